"""Workspace: an office with mail, calendars, contacts and documents, and the rules its assistants must keep to."""

from pathlib import Path

from agent_gym.envs.worlds.workspace.clock import START
from agent_gym.envs.worlds.workspace.generate import rows
from agent_gym.world import Base, Schema, World

__all__ = ["SCHEMA", "build"]

_HERE = Path(__file__).parent

SCHEMA = Schema.parse((_HERE / "schema.sql").read_text(encoding="utf-8"))
"""The tables."""


def build(seed: int) -> Base:
    """Builds a base database from nothing."""
    return World.build(SCHEMA, seed, START, lambda ids: rows(ids, seed))
