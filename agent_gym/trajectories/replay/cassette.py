"""A tape of recorded results, which answers in the place of tools."""

from collections import deque
from collections.abc import Callable
from typing import Any

import orjson

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.gateway import NOT_SENT
from agent_gym.trajectories.replay.recording import Recording, Row

__all__ = ["Cassette"]

_REHEARSED = "silent_noop"
"""The kind of fault whose answer comes from the tool, although nothing was done."""


class Cassette:
    """Serves the recorded results of an episode, by step, call, attempt, tool and arguments.

    A tool whose state is outside of the episode, ``remote`` and not declared as ``"openWorldHint": False``, is never called. One whose
    state is the episode's own (a simulated world, a page, files) is carried out, since what comes later depends on it, and its recorded
    result is what counts. Where a fault was injected, what came back before that is not on the tape: such a tool then speaks for itself.

    Args:
        recording: The episode.

    Attributes:
        missing: The calls that are not on the tape, and so were neither made nor answered, as pairs of step and call.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._step = 0
        self._tries: deque[Row] = deque()
        self.missing: list[tuple[int, str]] = []

    def wind(self, step: int) -> None:
        """Goes to a step."""
        self._step = step
        self._tries = deque(row for row in self._recording.calls.get(step, ()) if not row["from_cache"] and _was_sent(row))

    def call(self, spec: ToolSpec, call: ToolCall, live: Callable[[], ToolResult]) -> ToolResult:
        """The recorded result of this try."""
        row = self._next(call)
        if row is None:
            self.missing.append((self._step, str(call)))
            return ToolResult(status="error", content=f"{call.name}: this call is not on the tape, and was not made")
        if not _outside(spec):
            result = live()
            return result if row["fault"] else _result(row)
        if row["fault"] == "timeout_after_commit":
            return ToolResult(status="ok" if row["took_effect"] else "error")
        return _result(row)

    def rehearse(self, spec: ToolSpec, call: ToolCall, live: Callable[[], ToolResult | None]) -> ToolResult | None:
        """The recorded result of a try that did nothing."""
        row = self._next(call) if self._tries and self._tries[0]["fault"] == _REHEARSED else None
        if not _outside(spec):
            return live()
        return None if row is None else _result(row)

    def _next(self, call: ToolCall) -> Row | None:
        wanted = call.name, dumps(call.arguments).decode()
        while self._tries:
            row = self._tries.popleft()
            if (row["tool"], row["arguments"]) == wanted:
                return row
        return None


def _outside(spec: ToolSpec) -> bool:
    """Whether what a tool acts upon is not the episode's own."""
    return spec.remote and bool(spec.annotations.get("openWorldHint", True))


def _was_sent(row: Row) -> bool:
    """Whether a try reached its tool, or was rehearsed."""
    if row["fault"]:
        return row["fault"] == _REHEARSED or row["fault"] not in NOT_SENT
    return bool(row["dur_us"]) or row["status"] not in ("unavailable", "rate_limited")


def _result(row: Row) -> ToolResult:
    structured: Any = None if row["structured"] is None else orjson.loads(row["structured"])
    return ToolResult(status=row["status"], content=row["result"] or "", structured=structured, retry_after_s=row["retry_after_s"])
