"""Calls of remote tools: memory, breaker, pace, faults, retries, backup; in this order, and all of it in virtual time."""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent_gym.core.action import ToolCall
from agent_gym.core.seeding import derive
from agent_gym.core.session import Session
from agent_gym.core.tool import CallRecord, ToolResult, ToolSpec
from agent_gym.gateway.faults import Channel, FaultPlan
from agent_gym.gateway.resilience import Breaker, Pace, Resilience

__all__ = ["Remote", "Tried"]

_TRIPS = frozenset({"unavailable", "timeout", "outcome_unknown"})
"""What counts against a tool's breaker; that it is called too often, or says no, does not."""
_GOES_ROUND = frozenset({"rate_limited", "unavailable"})


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
        check: Makes a result that breaks the tool's output schema ``malformed``.
        timeout_s: Seconds of wall clock that a try may take.
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
        check: Callable[[ToolSpec, ToolResult], ToolResult],
        timeout_s: float,
    ) -> None:
        self._session, self._tools = session, tools
        self._resilience, self._retry = resilience, retry
        self._caching = resilience.cache if resilience.cache is not None else faults is None
        self._channel = Channel(session, faults, seed)
        self._send, self._check, self._timeout_s = send, check, timeout_s
        self._rng = derive("jitter", seed)
        self._left = resilience.retries_per_episode
        self._answers: dict[ToolCall, ToolResult] = {}
        self._breakers: dict[str, Breaker] = {}
        self._paces: dict[str, Pace] = {}

    def call(self, spec: ToolSpec, call: ToolCall, number: int) -> Tried:
        """Carries out the episode's call of that number."""
        if not spec.read_only:
            self._answers.clear()
        elif (known := self._answers.get(call)) is not None:
            again = dataclasses.replace(known, from_cache=True, attempts=0)
            return Tried(again, (CallRecord(call=call, result=again, effect=spec.effect, started_us=time.monotonic_ns() // 1_000),))
        tried = self._tried(spec, call, number)
        backup = self._tools.get(self._resilience.backups.get(spec.name, ""))
        if backup is not None and tried.result.status in _GOES_ROUND:
            other = self._tried(backup, ToolCall(backup.name, call.arguments), number)
            result = other.result if other.result.failed else dataclasses.replace(other.result, status="degraded")
            tried = Tried(result, (*tried.attempts, *other.attempts))
        tried = tried._replace(result=dataclasses.replace(tried.result, attempts=len(tried.attempts)))
        if self._caching and spec.read_only and tried.result.status in ("ok", "empty"):
            self._answers[call] = tried.result
        return tried

    def _tried(self, spec: ToolSpec, call: ToolCall, number: int) -> Tried:
        """One call of one tool, tried as often as makes sense."""
        session, resilience = self._session, self._resilience
        key = f"{number}-{spec.name}" if resilience.keys and not spec.read_only else ""
        breaker = self._breakers.setdefault(spec.name, Breaker(resilience.breaker_failures, resilience.breaker_reset_s))
        self._channel.begin(spec, number)
        attempts: list[CallRecord] = []
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
            self._left -= len(attempts) - 1
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
            session.wait(pace.take(session.now()))
        waited = session.now() - since
        made = self._channel.attempt(spec, call, time.monotonic() + self._timeout_s, lambda: self._send(spec, call, key))
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
