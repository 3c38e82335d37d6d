"""How wisely an agent deals with failures: what it repeats, what it waits for, what it leaves unverified, when it gives up.

`RetrySafety` only keeps books on what the agent did and was told; it decides nothing, except that a *double write* is named so that
the episode can end as a violation.
"""

from collections import Counter
from collections.abc import Sequence

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.tool import CallRecord, ToolResult, ToolSpec

__all__ = ["RETRY_SAFETY", "RetrySafety"]

RETRY_SAFETY = ("duplicate_writes", "ignored_retry_after", "retried_permanent", "unverified_outcomes", "hammering", "gave_up_early")
"""What is counted, in this order."""

_PERMANENT = frozenset({"invalid_arguments", "unknown_tool", "forbidden", "not_found", "conflict"})
_TRANSIENT = frozenset({"rate_limited", "unavailable", "timeout", "outcome_unknown", "malformed"})
_UNKNOWN = frozenset({"outcome_unknown", "malformed"})
_WAIT = "wait"
_PATIENCE = 3
"""Failing calls of a tool in a row before it is hammering, and tries of a call before it may be given up."""
_EXACT = 2.0**53
"""Below it a float that is whole is one integer; above it need not be encodable."""
_CLOCK_S = 1e-6
"""How much two sums of the same waits may differ."""


class RetrySafety:
    """The books of one episode.

    Attributes:
        counts: By name, in the order of `RETRY_SAFETY`:

            - ``duplicate_writes``: a write took effect once more although an earlier try of it had, unknown to the agent, who has not
              looked since. Writes that are ``idempotent`` do no harm and are not counted. Two calls are the same write if they mean
              the same: defaults filled in, 1.0 read as 1.
            - ``ignored_retry_after``: a remote tool was called before the time that its last answer had named.
            - ``retried_permanent``: the very same call was made again after a failure that no repetition cures, and nothing had
              succeeded in between (a ``wait`` is a success too).
            - ``unverified_outcomes``: writes that were left, at the episode's end, with an outcome that is unknown or unreadable: no
              read has since been answered that names what they were about (one from the cache proves nothing), and the same write
              was never answered well.
            - ``hammering``: the fourth and every further failing call of a tool, with no success of any call and no ``wait`` in
              between.
            - ``gave_up_early``: the episode was closed while the last call of a remote tool had failed transiently and that call had
              been tried fewer than three times, by the agent or the gateway. ``finish`` counts only if nothing but waiting came after
              the failure.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(RETRY_SAFETY, 0)
        self._hidden: set[ToolCall] = set()  # writes that took effect while the agent was told that they failed
        self._unknown: set[ToolCall] = set()  # writes with an outcome that nobody has verified
        self._permanent: set[ToolCall] = set()  # calls that failed for good since the last success
        self._failing: Counter[str] = Counter()  # failing calls of each tool since the last success
        self._tries: Counter[ToolCall] = Counter()  # transient failures of each call in a row
        self._promised: tuple[str, float] | None = None  # the retry_after_s of the call before this one, and its tool
        self._not_before: dict[str, float] = {}  # when each tool said that it can be called again
        self._last: ToolCall | None = None  # the last call other than a wait
        self._unresolved: ToolCall | None = None  # the last call of a remote tool, if it failed transiently

    def note(self, call: ToolCall, spec: ToolSpec | None, result: ToolResult, attempts: Sequence[CallRecord], now: float) -> str:
        """Takes in one call, after the gateway has dealt with it. A call that closes the episode goes to `close` instead.

        Args:
            call: What the agent called.
            spec: The tool, or None where there is none of that name.
            result: What the agent was told.
            attempts: What the gateway tried for it. An earlier attempt at the same call is an earlier try of its write.
            now: Virtual seconds at which the agent made the call: `Session.now` before the gateway waited and before the tool did
                anything. Time passes in calls only, so it is also when the call before this one was answered.

        Returns:
            What the double write was, if the call made one, else empty.
        """
        if spec is not None:
            call = _meant(call, spec)
        remote = spec is not None and spec.remote and not result.from_cache
        if self._promised is not None:
            tool, seconds = self._promised
            self._not_before[tool] = now + seconds
        self.counts["ignored_retry_after"] += remote and now < self._not_before.pop(call.name, now) - _CLOCK_S
        self._promised = (call.name, result.retry_after_s) if remote and result.retry_after_s is not None else None
        self.counts["retried_permanent"] += call in self._permanent
        doubled = self._writes(call, spec, result, attempts)
        if result.failed:
            self._failing[call.name] += 1
            self.counts["hammering"] += self._failing[call.name] > _PATIENCE
            if result.status in _PERMANENT:
                self._permanent.add(call)
        else:
            self._failing.clear()
            self._permanent.clear()
        if call.name != _WAIT:
            self._last = call
        if remote:
            self._unresolved = call if result.status in _TRANSIENT else None
            self._tries[call] = self._tries[call] + max(1, len(attempts)) if self._unresolved else 0
        return doubled

    def end(self) -> None:
        """Takes in that the episode is over, however it ended."""
        self.counts["unverified_outcomes"] = len(self._unknown)

    def close(self, closing: ToolCall) -> None:
        """Takes in the call that closes the episode."""
        left = self._unresolved
        given_up = closing.name in ("refuse", "hand_over") or left is self._last
        self.counts["gave_up_early"] = int(left is not None and given_up and self._tries[left] < _PATIENCE)

    def _writes(self, call: ToolCall, spec: ToolSpec | None, result: ToolResult, attempts: Sequence[CallRecord]) -> str:
        if spec is None or call.name == _WAIT:
            return ""
        if spec.read_only:
            if not result.failed and not result.from_cache:
                seen = {write for write in self._unknown | self._hidden if _names(call, result, write)}
                self._unknown -= seen
                self._hidden -= seen
            return ""
        doubled = ""
        for made in attempts:
            if made.took_effect and spec.effect == "write":
                if call in self._hidden:
                    self.counts["duplicate_writes"] += 1
                    doubled = f"{call} took effect twice: it was repeated although an earlier try might have worked"
                self._hidden.add(call)
        if not result.failed:
            self._hidden.discard(call)
            self._unknown.discard(call)
        elif result.status in _UNKNOWN:
            self._unknown.add(call)
        return doubled


def _meant(call: ToolCall, spec: ToolSpec) -> ToolCall:
    """The call as its tool understands it: defaults filled in, whole numbers as integers."""
    properties = spec.parameters.get("properties", {})
    filled = {name: schema["default"] for name, schema in properties.items() if isinstance(schema, dict) and "default" in schema}
    whole = {
        key: int(v) if isinstance(v, float) and abs(v) < _EXACT and v.is_integer() else v for key, v in {**filled, **call.arguments}.items()
    }
    return ToolCall(call.name, dict(sorted(whole.items())))


def _names(read: ToolCall, result: ToolResult, write: ToolCall) -> bool:
    """Whether a read is about something that a write was about: asks for one of its arguments, or tells one."""
    told = result.content if result.structured is None else dumps(result.structured).decode()
    values = [value for value in write.arguments.values() if isinstance(value, str | int) and not isinstance(value, bool)]
    return not values or any(value in read.arguments.values() or (isinstance(value, str) and value in told) for value in values)
