"""Seeded faults: what can go wrong between an agent and a service, brought about on purpose, so that dealing with it can be learned.

A plan hits each call of a remote tool with the same probability; what hits the n-th call of an episode follows from the plan and
the episode's seed alone. Every kind is *recoverable*: an agent that waits when told to, looks before it writes again, and checks
that what it wrote is there, still solves the task.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from agent_gym.core.action import ToolCall
from agent_gym.core.seeding import derive
from agent_gym.core.session import Session
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["KINDS", "NOT_SENT", "Attempt", "Channel", "FaultPlan"]

_READ, _WRITE, _BOTH = ("read",), ("idempotent", "write"), ("read", "idempotent", "write")

KINDS: Mapping[str, tuple[str, ...]] = {
    "rate_limit": _BOTH,
    "unavailable": _BOTH,
    "network_drop": _BOTH,
    "read_timeout": _READ,
    "timeout_after_commit": _WRITE,
    "stale_read": _READ,
    "silent_noop": _WRITE,
    "partial_page": _READ,
    "malformed": _BOTH,
    "renamed_field": _BOTH,
    "slow": _BOTH,
    "outage": _BOTH,
}
"""The kinds of fault, and the effects of the tools that each can hit. ``rate_limit``: the tool answers ``rate_limited`` until
``retry_after_s`` have passed. ``unavailable``, ``network_drop``: it is not reached, once or twice. ``outage``: no remote tool is
reached for some minutes. ``read_timeout``: no answer in time, once or twice. ``timeout_after_commit``: the write took effect, the
answer did not come. ``stale_read``: an earlier answer to the same call. ``silent_noop``: the write says ok and did nothing.
``partial_page``: only the first half of a list. ``malformed``, ``renamed_field``: the answer breaks the tool's output schema, once or
twice. ``slow``: the answer takes 20 virtual seconds."""

NOT_SENT = frozenset({"rate_limit", "unavailable", "network_drop", "outage", "read_timeout", "silent_noop", "stale_read"})
"""The kinds in which nothing is sent."""
_RETRY_AFTER_S = (5, 20, 60)
_OUTAGE_S = 240
_TIMEOUT_S = 10.0
_SLOW_S = 20.0


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """What goes wrong, and how often.

    Attributes:
        rate: Probability with which a call is hit, in [0, 1]; slightly less where none of the kinds fits the call.
        kinds: The kinds that are drawn from. The first in a random order that fits the call hits it: an answer without a list has no
            first half, one that came never before has no stale form.
    """

    rate: float
    kinds: tuple[str, ...] = tuple(KINDS)

    def __post_init__(self) -> None:
        if isinstance(self.rate, bool) or not isinstance(self.rate, int | float) or not 0 <= self.rate <= 1:
            raise ConfigurationError(f"faults: the rate must be in [0, 1], got {self.rate!r}")
        for kind in self.kinds:
            if not isinstance(kind, str) or kind not in KINDS:
                raise unknown("kind of fault", kind, KINDS)

    @classmethod
    def of(cls, given: object) -> "FaultPlan | None":
        """Reads the JSON form: a rate, or ``{"rate", "kinds"?}``; None for None and for a rate of 0.

        Raises:
            ConfigurationError: It is no such thing.
        """
        if given is None or isinstance(given, FaultPlan):
            return given
        if isinstance(given, int | float):
            return cls(rate=given) if given or isinstance(given, bool) else None
        if not isinstance(given, Mapping) or not {"rate"} <= set(given) <= {"rate", "kinds"}:
            raise ConfigurationError(f'faults must be a rate or {{"rate": …, "kinds": […]}}, got {given!r}')
        kinds = given.get("kinds", tuple(KINDS))
        if not isinstance(kinds, list | tuple) or not kinds:
            raise ConfigurationError(f"faults: kinds must be a list of {', '.join(KINDS)}, got {kinds!r}")
        return cls(rate=given["rate"], kinds=tuple(kinds)) if given["rate"] or isinstance(given["rate"], bool) else None


class Attempt(NamedTuple):
    """What became of one try.

    Attributes:
        result: What came back.
        error: The traceback of a tool that raised, else empty.
        fault: The kind of fault that was injected, else empty.
        took_effect: Whether a write took effect.
    """

    result: ToolResult
    error: str = ""
    fault: str = ""
    took_effect: bool = False


class _Fault(NamedTuple):
    kinds: tuple[str, ...]
    lasts: int
    retry_after_s: int


Send = Callable[[], tuple[ToolResult, str]]
Rehearse = Callable[[], ToolResult | None]


class Channel:
    """The way to the remote tools of one episode: as good as the plan lets it be.

    Args:
        session: Where the tools are.
        plan: What goes wrong; nothing for None.
        seed: The episode's.
    """

    def __init__(self, session: Session, plan: FaultPlan | None, seed: int) -> None:
        self._session = session
        self._plan = plan
        self._seed = seed
        self._fault: _Fault | None = None
        self._tries = 0
        self._closed: dict[str, tuple[float, str]] = {}  # tool, or nothing for all: until when, and by what kind of fault
        self._answers: dict[ToolCall, ToolResult] = {}

    def begin(self, spec: ToolSpec, number: int) -> None:
        """Begins the episode's call of that number: draws what hits it."""
        self._tries = 0
        self._fault = None if self._plan is None else self._drawn(self._plan, spec, number)

    def attempt(self, spec: ToolSpec, call: ToolCall, send: Send, rehearse: Rehearse) -> Attempt:
        """Makes one try of the call that was begun.

        Args:
            spec: Its tool.
            call: The call.
            send: Carries it out: the result, and the traceback of a tool that raised.
            rehearse: What it would answer without anything being done, or None.
        """
        self._tries += 1
        if barred := self._barred(spec):
            return barred
        fault = self._fault
        if fault is None or self._tries > fault.lasts:
            return self._sent(spec, call, send)
        return self._hit(fault, spec, call, send, rehearse)

    def _drawn(self, plan: FaultPlan, spec: ToolSpec, number: int) -> _Fault | None:
        rng = derive("fault", self._seed, number, spec.name)
        if rng.random() >= plan.rate:
            return None
        kinds = [kind for kind in plan.kinds if spec.effect in KINDS[kind]]
        order = tuple(kinds[index] for index in rng.permutation(len(kinds)))
        return _Fault(order, 1 + int(rng.integers(2)), _RETRY_AFTER_S[int(rng.integers(3))])

    def _barred(self, spec: ToolSpec) -> Attempt | None:
        now = self._session.now()
        for place in (spec.name, ""):
            until, kind = self._closed.get(place, (now, ""))
            if now < until:
                status = "rate_limited" if kind == "rate_limit" else "unavailable"
                return Attempt(_refused(spec, status, math.ceil(until - now)), fault=kind)
        return None

    def _hit(self, fault: _Fault, spec: ToolSpec, call: ToolCall, send: Send, rehearse: Rehearse) -> Attempt:
        """The try as the first kind of fault that fits makes it."""
        session = self._session
        sent: Attempt | None = None
        for kind in fault.kinds:
            if sent is not None and kind in NOT_SENT:  # it was sent already: too late to keep it from that
                continue
            match kind:
                case "rate_limit":
                    self._closed[spec.name] = (session.now() + fault.retry_after_s, kind)
                    return Attempt(_refused(spec, "rate_limited", fault.retry_after_s), fault=kind)
                case "outage":
                    self._closed[""] = (session.now() + _OUTAGE_S, kind)
                    return Attempt(_refused(spec, "unavailable", _OUTAGE_S), fault=kind)
                case "unavailable" | "network_drop":
                    return Attempt(_refused(spec, "unavailable"), fault=kind)
                case "read_timeout":
                    session.wait(_TIMEOUT_S)
                    return Attempt(_late(spec, "timeout"), fault=kind)
                case "silent_noop":
                    if (rehearsed := rehearse()) is not None:
                        return Attempt(rehearsed, fault=kind)
                case "stale_read":
                    if call in self._answers:
                        return Attempt(self._answers[call], fault=kind)
                case "timeout_after_commit":
                    sent = sent or self._sent(spec, call, send)
                    session.wait(_TIMEOUT_S)
                    return sent._replace(result=_late(spec, "outcome_unknown"), fault=kind)
                case "slow":
                    sent = sent or self._sent(spec, call, send)
                    session.wait(_SLOW_S)
                    return sent._replace(fault=kind)
                case _:
                    sent = sent or self._sent(spec, call, send)
                    mangled = None if sent.result.failed else _MANGLE[kind](sent.result)
                    if mangled is not None:
                        return sent._replace(result=mangled, fault=kind)
        return sent or self._sent(spec, call, send)

    def _sent(self, spec: ToolSpec, call: ToolCall, send: Send) -> Attempt:
        result, error = send()
        writes = not spec.read_only
        if self._plan is not None and not writes and not result.failed:
            self._answers.setdefault(call, result)
        return Attempt(result, error, took_effect=writes and not result.failed and not result.from_cache)


def _refused(spec: ToolSpec, status: str, retry_after_s: int | None = None) -> ToolResult:
    when = "" if retry_after_s is None else f"; try again after {retry_after_s} s"
    what = "is called too often" if status == "rate_limited" else "cannot be reached"
    return ToolResult(status=status, content=f"{spec.name} {what}{when}", retry_after_s=retry_after_s)


def _late(spec: ToolSpec, status: str) -> ToolResult:
    unknown = "; whether it took effect is not known" if status == "outcome_unknown" else ""
    return ToolResult(status=status, content=f"{spec.name} did not answer within {_TIMEOUT_S:g} s{unknown}")


def _half(result: ToolResult) -> ToolResult | None:
    """Only the first half of the longest list at the top; None if there is none to cut."""
    found = result.structured
    lists = {name: part for name, part in found.items() if isinstance(part, list)} if isinstance(found, dict) else {}
    name = max(lists, key=lambda one: len(lists[one]), default="")
    if not name or len(lists[name]) < 2:
        return None
    return _told(result, {**found, name: lists[name][: len(lists[name]) // 2]})


def _garbled(result: ToolResult) -> ToolResult:
    return dataclasses.replace(result, content=result.content[: len(result.content) // 2], structured=None)


def _renamed(result: ToolResult) -> ToolResult | None:
    """The first field under another name."""
    found = result.structured
    if not isinstance(found, dict) or not found:
        return None
    first = next(iter(found))
    return _told(result, {f"{first}_v2" if name == first else name: part for name, part in found.items()})


def _told(result: ToolResult, structured: Any) -> ToolResult:
    return dataclasses.replace(result, content=orjson.dumps(structured).decode(), structured=structured)


_MANGLE: Mapping[str, Callable[[ToolResult], ToolResult | None]] = {
    "partial_page": _half,
    "malformed": _garbled,
    "renamed_field": _renamed,
}
