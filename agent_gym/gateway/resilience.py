"""What the gateway does about failures of remote tools, so that the agent need not: try again, wait, go round, remember, give up.

All waiting is virtual time, but for that of calls which wait for other environments' calls of the same tool (`Concurrency`).
One layer owns retries: with ``retries="agent"`` there are none here, and the agent is told at once.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import median
from typing import Any

import numpy as np
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt

from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["Breaker", "Concurrency", "ConcurrencyReport", "Pace", "Resilience", "Retry", "concurrency_report"]


@dataclass(frozen=True)
class Retry:
    """Which failures of a call are tried again, and how often.

    Attributes:
        statuses: The statuses after which another try is made.
        retries: Tries beyond the first.
    """

    statuses: frozenset[str]
    retries: int = 2


_LONGEST_S = 1e6
_NOT_DONE = frozenset({"unavailable", "rate_limited"})
_NOT_KNOWN = frozenset({"outcome_unknown", "malformed"})
_LATE = frozenset({"timeout", "outcome_unknown"})
_NOTICEABLE_S = 0.05
_LATEST = 32


@dataclass(frozen=True, kw_only=True)
class Resilience:
    """The gateway's policy, by the effect of the tool.

    Whatever is permanent (arguments, not found, conflict, forbidden, a tool's own error) goes back to the agent at once.

    Attributes:
        read: For tools that change nothing.
        idempotent: For writes that may be made twice.
        write: For all other writes. What may have been done is tried again under the same idempotency key only.
        keys: Whether writes carry an idempotency key.
        first_delay_s: Virtual seconds before the first retry; they double with each, and are stretched by U(1, 1.5).
        longest_wait_s: The longest ``retry_after_s`` that is waited for; a longer one goes back to the agent, or to the backup.
        retries_per_episode: Tries beyond the first, all calls of an episode together.
        cache: Whether an identical read is answered from memory until something is written; None for: unless faults are injected,
            since a cache keeps what a fault made of an answer.
        breaker_failures: Failures in a row after which a tool is left alone …
        breaker_reset_s: … for so many virtual seconds; then one try decides.
        calls_per_s: Calls of a tool in a virtual second, on average; None for no limit.
        burst: How many calls may come at once under that limit.
        concurrency: How many calls of a tool may be under way at once, at most, all environments of this process together; fewer while
            the tool is rate limited or slow. None for no limit.
        backups: The tool to ask instead, by the tool that is rate limited or out of reach; its answer is ``degraded``.
    """

    read: Retry = Retry(_NOT_DONE | {"timeout", "malformed"})
    idempotent: Retry = Retry(_NOT_DONE | _NOT_KNOWN)
    write: Retry = Retry(_NOT_DONE | _NOT_KNOWN)
    keys: bool = True
    first_delay_s: float = 0.1
    longest_wait_s: float = 60.0
    retries_per_episode: int = 40
    cache: bool | None = None
    breaker_failures: int = 5
    breaker_reset_s: float = 60.0
    calls_per_s: float | None = None
    burst: int = 5
    concurrency: int | None = 64
    backups: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, low in (("first_delay_s", 0), ("longest_wait_s", 0), ("breaker_reset_s", 0)):
            if not _is_number(value := getattr(self, name)) or not low <= value <= _LONGEST_S:
                raise ConfigurationError(f"resilience: {name} must be seconds in [{low}, {_LONGEST_S}], got {value!r}")
        for name, low in (("retries_per_episode", 0), ("breaker_failures", 1), ("burst", 1)):
            if type(value := getattr(self, name)) is not int or value < low:
                raise ConfigurationError(f"resilience: {name} must be at least {low}, got {value!r}")
        if self.concurrency is not None and (type(self.concurrency) is not int or self.concurrency < 1):
            raise ConfigurationError(f"resilience: concurrency must be at least 1, or null, got {self.concurrency!r}")
        if self.calls_per_s is not None and not (_is_number(self.calls_per_s) and self.calls_per_s > 0):
            raise ConfigurationError(f"resilience: calls_per_s must be above 0, got {self.calls_per_s!r}")
        if not isinstance(self.keys, bool) or not (self.cache is None or isinstance(self.cache, bool)):
            raise ConfigurationError(f"resilience: keys and cache are true or false, got {self.keys!r} and {self.cache!r}")
        names = [*self.backups, *self.backups.values()] if isinstance(self.backups, Mapping) else [None]
        if not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"resilience: backups must be an object of tool names, got {self.backups!r}")

    def check(self, tools: Sequence[ToolSpec]) -> None:
        """Looks whether the backups fit the tools.

        Raises:
            ConfigurationError: A backup is no such tool, or does something else than the tool that it stands in for.
        """
        known = {spec.name: spec for spec in tools}
        for pair in self.backups.items():
            for name in pair:
                if name not in known:
                    raise unknown("tool in resilience.backups", name, known)
            first, second = (known[name] for name in pair)
            if not (first.remote and second.remote and first.effect == second.effect):
                raise ConfigurationError(
                    f"resilience: {second.name} cannot stand in for {first.name}: both must be remote, with one effect"
                )

    @classmethod
    def of(cls, given: object) -> "Resilience":
        """Reads the JSON form: the attributes by name, ``read``, ``idempotent`` and ``write`` as numbers of retries.

        Raises:
            ConfigurationError: It is no such thing.
        """
        if given is None or isinstance(given, Resilience):
            return given or cls()
        if not isinstance(given, Mapping):
            raise ConfigurationError(f"resilience must be an object of {', '.join(one.name for one in fields(cls))}, got {given!r}")
        settings: dict[str, Any] = {}
        for name, value in given.items():
            if name not in (known := {one.name for one in fields(cls)}):
                raise unknown("setting of resilience", name, known)
            by_effect = name in ("read", "idempotent", "write")
            if by_effect and (type(value) is not int or value < 0):
                raise ConfigurationError(f"resilience: {name} must be a number of retries from 0, got {value!r}")
            settings[name] = Retry(getattr(cls, name).statuses, value) if by_effect else value
        try:
            return cls(**settings)
        except TypeError as error:
            raise ConfigurationError(f"resilience: {error}") from None

    def retry_of(self, spec: ToolSpec) -> Retry:
        """What is tried again of a tool."""
        retry: Retry = getattr(self, spec.effect)
        return retry if self.keys or spec.effect != "write" else Retry(retry.statuses - _NOT_KNOWN, retry.retries)

    def again(self, spec: ToolSpec, result: ToolResult) -> bool:
        """Whether a result calls for another try."""
        waits = (result.retry_after_s or 0.0) <= self.longest_wait_s
        return result.status in self.retry_of(spec).statuses and waits

    def retry(
        self,
        attempt: Callable[[], ToolResult],
        again: Callable[[ToolResult], bool],
        retries: int,
        wait: Callable[[float], None],
        rng: np.random.Generator,
    ) -> ToolResult:
        """Tries until there is a result that calls for no more, or no more tries are left.

        Args:
            attempt: Makes a try.
            again: Whether a result calls for another.
            retries: Tries beyond the first.
            wait: Lets virtual time pass.
            rng: Of the jitter.
        """

        def delay(state: RetryCallState) -> float:
            result: ToolResult = state.outcome.result()  # type: ignore[union-attr]
            if result.retry_after_s is not None:
                return result.retry_after_s
            return self.first_delay_s * 2.0 ** (state.attempt_number - 1) * float(rng.uniform(1.0, 1.5))

        retrying = Retrying(
            stop=stop_after_attempt(1 + retries),
            wait=delay,
            retry=retry_if_result(again),
            sleep=wait,
            retry_error_callback=lambda state: state.outcome.result(),  # type: ignore[union-attr]
        )
        return retrying(attempt)


class Breaker:
    """Leaves a tool alone that fails again and again: closed → open → half-open → closed, in virtual time.

    Args:
        failures: Failures in a row that open it.
        reset_s: Virtual seconds after which one try is let through.
    """

    def __init__(self, failures: int, reset_s: float) -> None:
        self._failures, self._reset_s = failures, reset_s
        self._in_a_row = 0
        self._open_until: float | None = None

    def shut_for(self, now: float) -> float:
        """Virtual seconds until a try is let through; 0 if one is now."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - now)

    def note(self, failed: bool, now: float) -> None:
        """Takes in a try that was let through."""
        self._in_a_row = self._in_a_row + 1 if failed else 0
        if not failed:
            self._open_until = None
        elif self._open_until is not None or self._in_a_row >= self._failures:
            self._open_until = now + self._reset_s


class Pace:
    """Spreads calls: a token bucket in virtual time.

    Args:
        per_s: Tokens in a second.
        burst: The most tokens there can be.
    """

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s, self._burst = per_s, float(burst)
        self._tokens, self._at = float(burst), 0.0

    def pause(self, now: float) -> float:
        """Virtual seconds until there is a token."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_s)
        self._at = now
        return max(0.0, (1.0 - self._tokens) / self._per_s)

    def take(self, now: float) -> None:
        """Takes the token that there is now."""
        self.pause(now)
        self._tokens -= 1.0


@dataclass(frozen=True, kw_only=True)
class ConcurrencyReport:
    """How many calls of a tool this process allows at once, and what that came to.

    Attributes:
        limit: The limit now.
        most: The highest that it may be.
        cuts: How often it was halved.
        waits: Calls that had to wait.
        waited_s: Seconds of wall clock that they waited, all together.
    """

    limit: int
    most: int
    cuts: int
    waits: int
    waited_s: float


class Concurrency:
    """Bounds how many calls of a tool are under way at once: additive increase, multiplicative decrease, as congestion control does it.

    The limit is halved when a call comes back as ``rate_limited`` or late, and when calls slow down: when the median of 32 takes more
    than three times the least such median so far (which is forgotten slowly) and more than 50 ms. Calls that were begun before a cut
    bring about no other. It grows by one for every round of calls that needed all of it.

    It waits by the wall clock, since it is about what other environments do at the same time; what a call answers does not depend on it.

    Args:
        most: The limit to begin with, and the highest.
    """

    def __init__(self, most: int) -> None:
        self._most, self._limit = most, float(most)
        self._under_way = self._cuts = self._waits = 0
        self._waited_s = 0.0
        self._took: list[float] = []
        self._usual = math.inf
        self._free = threading.Condition()

    @property
    def report(self) -> ConcurrencyReport:
        """What it came to so far."""
        with self._free:
            return ConcurrencyReport(limit=int(self._limit), most=self._most, cuts=self._cuts, waits=self._waits, waited_s=self._waited_s)

    def enter(self, patience_s: float) -> int | None:
        """Waits until another call may be made, and counts it as under way.

        Args:
            patience_s: Seconds to wait at most.

        Returns:
            What `leave` is to be told of it; None if its turn did not come.
        """
        with self._free:
            if self._under_way >= int(self._limit):
                self._waits += 1
                since = time.monotonic()
                may = self._free.wait_for(lambda: self._under_way < int(self._limit), patience_s)
                self._waited_s += time.monotonic() - since
                if not may:
                    return None
            self._under_way += 1
            return self._cuts

    def leave(self, entered: int, status: str, seconds: float) -> None:
        """Takes in that a call is over.

        Args:
            entered: What `enter` gave.
            status: The result's status, or empty if there was none.
            seconds: How long it took.
        """
        with self._free:
            full = self._under_way >= int(self._limit)
            self._under_way -= 1
            if status == "rate_limited" or (status in _LATE and seconds > _NOTICEABLE_S) or self._slow(status, seconds):
                if entered == self._cuts:
                    self._cuts += 1
                    self._limit = max(1.0, self._limit / 2)
            elif full and status:
                self._limit = min(float(self._most), self._limit + 1 / self._limit)
            self._free.notify(2)  # the place that it had, and one that has grown

    def _slow(self, status: str, seconds: float) -> bool:
        if status in ("ok", "empty"):
            self._took.append(seconds)
        if len(self._took) < _LATEST:
            return False
        middle = median(self._took)
        self._took.clear()
        self._usual = min(self._usual * 1.02, middle)
        return middle > max(_NOTICEABLE_S, 3 * self._usual)

    @classmethod
    def of(cls, service: type, tool: str, most: int) -> "Concurrency":
        """The one of this process for a tool of a kind of Session."""
        key = (service, tool, most)
        return _SHARED.get(key) or _SHARED.setdefault(key, cls(most))


_SHARED: dict[tuple[type, str, int], Concurrency] = {}
os.register_at_fork(after_in_child=_SHARED.clear)  # a thread of the parent may have been inside one


def concurrency_report() -> dict[str, ConcurrencyReport]:
    """What the limits of this process on concurrent calls of remote tools came to, by ``module.Session/tool``; those called so far."""
    return {f"{service.__module__}.{service.__qualname__}/{tool}": shared.report for (service, tool, _), shared in list(_SHARED.items())}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
