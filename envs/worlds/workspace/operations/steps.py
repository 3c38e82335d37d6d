"""Steps that operations of the workspace share."""

from typing import Any

from agent_gym.world import World

__all__ = ["Record", "done", "prefixed"]

Record = dict[str, Any]

_WRITE_TAKES_S = 60
"""Virtual seconds that a change takes."""


def done(world: World, operation: str, subject: str) -> None:
    """Notes a change and lets its time pass."""
    world.insert("log_operations", entry_id=world.new_id("LO"), operation=operation, subject=subject, booked_at=world.clock)
    world.advance(_WRITE_TAKES_S)


def prefixed(column: str, words: list[str]) -> str:
    """A condition: the column has a word that begins with each of these, one place in the statement for each."""
    return "".join(f" AND instr(' ' || lower({column}), ' ' || ?)" for _ in words)
