"""The ledger of a world: under which key a write was asked for and how it was answered, so that it happens once."""

import dataclasses
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from agent_gym.core import ToolResult
from agent_gym.core.canonical import plain

__all__ = ["Ledger"]


@dataclass
class _Entry:
    """A claimed key: what it was claimed for, and the answer as JSON values, None while it is under way."""

    payload: str
    answer: dict[str, Any] | None = None


class Ledger:
    """Answers by idempotency key. Usable from any thread.

    Args:
        lock: The world's own: a write and the storing of its answer are one step to whoever holds it.
        rows: What `rows` of another ledger gave, to go on from there.
    """

    def __init__(self, lock: AbstractContextManager[Any], rows: Iterable[Any] = ()) -> None:
        self._lock = lock
        self._entries = {key: _Entry(payload, answer) for key, payload, answer in rows}

    def once(self, key: str, payload: str, write: Callable[[], ToolResult]) -> ToolResult:
        """Answers a write as it was answered before under its key, or makes it.

        A try that was stopped in time (``timeout``), or raised, has done nothing and gives its key back.

        Args:
            key: Names the write that this is a try of.
            payload: What is to be done, in a form that is equal where it is the same.
            write: Does it.

        Returns:
            The answer, ``from_cache`` if nothing was done; ``conflict`` for the key of another payload, or of a try that is under way.
        """
        mine = _Entry(payload)
        entry = self._entries.setdefault(key, mine)  # atomic: of several tries at once, one finds its own entry
        if entry is not mine:
            return _answered(key, entry, payload)
        with self._lock:
            answer = None
            try:
                answer = write()
            finally:
                if answer is None or answer.status == "timeout":
                    self._entries.pop(key, None)
                else:
                    mine.answer = plain(dataclasses.asdict(answer))
            return answer

    def rows(self) -> list[list[Any]]:
        """Every answer that was given, as JSON values."""
        return [[key, entry.payload, entry.answer] for key, entry in sorted(self._entries.items()) if entry.answer is not None]


def _answered(key: str, entry: _Entry, payload: str) -> ToolResult:
    if entry.payload != payload:
        return ToolResult(status="conflict", content=f"the key {key!r} belongs to another request")
    if entry.answer is None:
        return ToolResult(status="conflict", content=f"the request with the key {key!r} is still under way")
    return ToolResult(**{**plain(entry.answer), "from_cache": True})
