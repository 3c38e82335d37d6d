"""Calls of remote tools: memory, breaker, pace, faults, concurrency, retries, backup; in this order, and all but one in virtual time."""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import plain
from agent_gym.core.seeding import derive
from agent_gym.core.session import Session
from agent_gym.core.tool import CallRecord, ToolResult, ToolSpec
from agent_gym.gateway.faults import Channel, FaultPlan
from agent_gym.gateway.resilience import Breaker, Concurrency, Pace, Resilience

__all__ = ["Remote", "Tried"]

_TRIPS = frozenset({"unavailable", "timeout", "outcome_unknown"})
"""What counts against a tool's breaker; that it is called too often, or says no, does not."""
_GOES_ROUND = frozenset({"rate_limited", "unavailable"})
_NOT_KNOWN = frozenset({"outcome_unknown", "malformed"})


class Tried(NamedTuple):
    """What the agent is told, and every try behind it."""

    result: ToolResult
    attempts: tuple[CallRecord, ...]


class Remote:
    """Carries the calls of one episode's remote tools.

    Args:
        session: Where the tools are, and the virtual time.
        tools: They, and any that may stand in for one, by name.
        resilience: What is done about failures.
        retry: Whether it is this layer that tries again.
        faults: What goes wrong on purpose.
        seed: The episode's.
        send: Carries out one try, under an idempotency key: the result, and the traceback of a tool that raised.
        rehearse: What a try would answer without anything being done, or None.
        check: Makes a result that breaks the tool's output schema ``malformed``.
        fault_of: Where a call breaks a tool's schema, or empty.
    """

    def __init__(
        self,
        session: Session,
        tools: Mapping[str, ToolSpec],
        *,
        resilience: Resilience,
        retry: bool,
        faults: FaultPlan | None,
        seed: int,
        send: Callable[[ToolSpec, ToolCall, str], tuple[ToolResult, str]],
        rehearse: Callable[[ToolSpec, ToolCall], ToolResult | None],
        check: Callable[[ToolSpec, ToolResult], ToolResult],
        fault_of: Callable[[ToolSpec, Mapping[str, Any]], str],
    ) -> None:
        self._session, self._tools = session, tools
        self._resilience, self._retry = resilience, retry
        self._caching = resilience.cache if resilience.cache is not None else faults is None
        self._channel = Channel(session, faults, seed)
        self._send, self._rehearse, self._check, self._fault_of = send, rehearse, check, fault_of
        self._seed = seed
        self._rng = derive("jitter", seed)
        self._left = resilience.retries_per_episode
        self._failed = False
        self._answers: dict[ToolCall, ToolResult] = {}
        self._breakers: dict[str, Breaker] = {}
        self._paces: dict[str, Pace] = {}

    @property
    def touched(self) -> bool:
        """Whether it has a state of its own by now, beyond what it remembers of answers."""
        return self._left < self._resilience.retries_per_episode or self._failed or bool(self._paces)

    def forget(self) -> None:
        """Forgets the answers: something was written, or time has passed."""
        self._answers.clear()

    def call(self, spec: ToolSpec, call: ToolCall, number: int) -> Tried:
        """Carries out the episode's call of that number."""
        if (known := self._answers.get(call)) is not None:
            again = dataclasses.replace(known, from_cache=True, attempts=0, structured=plain(known.structured))
            return Tried(again, (CallRecord(call=call, result=again, effect=spec.effect, started_us=time.monotonic_ns() // 1_000),))
        tried = self._tried(spec, call, number, ())
        backup = self._tools.get(self._resilience.backups.get(spec.name, ""))
        if backup is not None and tried.result.status in _GOES_ROUND and not self._fault_of(backup, call.arguments):
            other = self._tried(backup, ToolCall(backup.name, call.arguments), number, tried.attempts)
            result = other.result if other.result.failed else dataclasses.replace(other.result, status="degraded")
            tried = Tried(result, other.attempts)
        tried = tried._replace(result=dataclasses.replace(tried.result, attempts=len(tried.attempts)))
        if self._caching and spec.read_only and tried.result.status in ("ok", "empty"):
            self._answers[call] = tried.result
        return tried

    def _tried(self, spec: ToolSpec, call: ToolCall, number: int, before: tuple[CallRecord, ...]) -> Tried:
        """One call of one tool, tried as often as makes sense; ``before`` are the tries that the same call has behind it."""
        session, resilience = self._session, self._resilience
        key = f"{self._seed:x}-{number}-{spec.name}" if resilience.keys and not spec.read_only else ""
        breaker = self._breakers.setdefault(spec.name, Breaker(resilience.breaker_failures, resilience.breaker_reset_s))
        self._channel.begin(spec, number)
        attempts = list(before)
        last = session.now()

        def attempt() -> ToolResult:
            nonlocal last
            attempts.append(self._attempt(spec, call, key, breaker, len(attempts) + 1, last))
            last = session.now()
            return attempts[-1].result

        def again(result: ToolResult) -> bool:
            return resilience.again(spec, result) and not breaker.shut_for(session.now())

        result = attempt()
        if self._retry and again(result):
            made = [result]
            retries = min(resilience.retry_of(spec).retries, self._left)
            result = resilience.retry(lambda: made.pop() if made else attempt(), again, retries, session.wait, self._rng)
            self._left -= len(attempts) - len(before) - 1
        self._failed |= result.status in _TRIPS or result.status == "rate_limited"
        earlier = {one.result.status for one in attempts[:-1]}
        if not spec.read_only and result.failed and result.status not in _NOT_KNOWN and earlier & _NOT_KNOWN:
            # A later try that came to nothing does not undo what an earlier one may have done.
            content = f"{spec.name} may have taken effect: a try was not answered, and then: {result.content}"
            result = ToolResult(status="outcome_unknown", content=content, retry_after_s=result.retry_after_s)
        return Tried(result, tuple(attempts))

    def _attempt(self, spec: ToolSpec, call: ToolCall, key: str, breaker: Breaker, number: int, since: float) -> CallRecord:
        session, resilience = self._session, self._resilience
        started = time.monotonic_ns()
        if shut := breaker.shut_for(session.now()):
            left = math.ceil(shut)
            content = f"{spec.name} failed again and again and is left alone; try again after {left} s"
            result = ToolResult(status="unavailable", content=content, retry_after_s=left)
            return CallRecord(call=call, result=result, attempt=number, started_us=started // 1_000, effect=spec.effect)
        if resilience.calls_per_s is not None:
            pace = self._paces.setdefault(spec.name, Pace(resilience.calls_per_s, resilience.burst))
            pause = pace.pause(session.now())
            if pause > resilience.longest_wait_s:
                left = math.ceil(pause)
                result = ToolResult(status="rate_limited", content=f"too many calls; try again after {left} s", retry_after_s=left)
                return CallRecord(call=call, result=result, attempt=number, started_us=started // 1_000, effect=spec.effect)
            session.wait(pause)
            pace.take(session.now())
        waited = session.now() - since
        made = self._channel.attempt(spec, call, lambda: self._in_turn(spec, call, key), lambda: self._rehearse(spec, call))
        result = self._check(spec, made.result)
        breaker.note(result.status in _TRIPS, session.now())
        return CallRecord(
            call=call,
            result=result,
            attempt=number,
            started_us=started // 1_000,
            duration_us=(time.monotonic_ns() - started) // 1_000,
            effect=spec.effect,
            error=made.error,
            key=key,
            waited_s=waited,
            fault=made.fault,
            took_effect=made.took_effect,
        )

    def _in_turn(self, spec: ToolSpec, call: ToolCall, key: str) -> tuple[ToolResult, str]:
        """Carries out a try while not too many calls of the tool are under way in this process."""
        most = self._resilience.concurrency
        if most is None:
            return self._send(spec, call, key)
        shared = Concurrency.of(type(self._session), spec.name, most)
        entered = shared.enter(self._resilience.longest_wait_s)
        if entered is None:
            return ToolResult(status="rate_limited", content=f"too many calls of {spec.name} are under way"), ""
        started, status = time.monotonic(), ""
        try:
            result, error = self._send(spec, call, key)
            status = result.status
        finally:
            shared.leave(entered, status, time.monotonic() - started)
        return result, error
