"""Widgets: a gallery of pages with scripts, each with one thing that a business's plain forms lack. Played in a real browser only."""

from pathlib import Path

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.families import BY_NAME
from agent_gym.envs.worlds.widgets.operations import OPERATIONS
from agent_gym.world import Base, Schema, Script, World, WorldKind

__all__ = ["WIDGETS"]

_START = 1_772_442_000
_SCHEMA = Schema.parse((Path(__file__).parent / "schema.sql").read_text(encoding="utf-8"))


def _build(seed: int) -> Base:
    """A gallery in which nothing is shown and nothing saved: all that differs is drawn by task."""
    return World.build(_SCHEMA, seed, _START, lambda _: {"widgets": [{"name": name, "given": "{}", "value": ""} for name in BY_NAME]})


def _script(name: str, slots: dict[str, str]) -> Script:
    """Wishes for one thing, that the widget be as the goal says; the site's ``way`` goes there and finishes."""
    yield ToolCall(name, slots)


def _oracle(goal: str) -> Script | None:
    return next((_script(name, slots) for name, widget in BY_NAME.items() if (slots := widget.read(goal)) is not None), None)


WIDGETS = WorldKind(
    name="widgets",
    schema=_SCHEMA,
    build=_build,
    operations=OPERATIONS,
    rules="The gallery has a page for each widget. Change what the request names and nothing else.",
    reasons=("impossible",),
    families={name: widget.family() for name, widget in BY_NAME.items()},
    tasks={"train": 200, "validation": 50, "test": 100},
    bases={"train": 1, "validation": 1, "test": 1},
    oracle=_oracle,
    site="agent_gym.envs.worlds.widgets.site",
    gallery=True,
)
"""The gallery."""
