"""Steps that operations of the workspace share."""

from typing import Any

from agent_gym.world import NotFound, World

__all__ = ["DELETED", "Record", "done", "kept_thread", "prefixed"]

Record = dict[str, Any]

DELETED = "deleted"
"""The folder of mail that is to be seen no more."""
_WRITE_TAKES_S = 60
"""Virtual seconds that a change takes."""


def done(world: World, operation: str, subject: str) -> None:
    """Notes a change and lets its time pass."""
    world.insert("log_operations", entry_id=world.new_id("LO"), operation=operation, subject=subject, booked_at=world.clock)
    world.advance(_WRITE_TAKES_S)


def prefixed(column: str, words: list[str]) -> str:
    """A condition: the column has a word that begins with each of these, one place in the statement for each."""
    return "".join(f" AND instr(' ' || lower({column}), ' ' || ?)" for _ in words)


def kept_thread(world: World, thread_id: str) -> Record:
    """A thread of mail that was not deleted."""
    thread = world.get("threads", thread_id)
    if thread["folder"] == DELETED:
        raise NotFound(f"thread_id {thread_id!r} was deleted")
    return thread
