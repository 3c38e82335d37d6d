"""Keeps workers alive: deadlines, deaths, restarts with backoff, a circuit breaker, and answers that come too late.

Whoever submits a request gets exactly one outcome for it, whatever happens to the worker, unless every worker is beyond help.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent_gym.errors import ConfigurationError, InfrastructureError, StateLeakError
from agent_gym.runner.backends import Backend
from agent_gym.runner.messages import Answer, Ask, Kind

__all__ = ["Counters", "Deadlines", "Outcome", "Supervisor"]

_BACKOFF_S = 0.1
_LONGEST_BACKOFF_S = 5.0
_AWAY_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """How long things may take.

    Attributes:
        make_s: Seconds for the constructor.
        reset_s: Seconds for a reset.
        step_s: Seconds for a step, and for a call of one of the environment's methods.

    Raises:
        ConfigurationError: One is not above 0.
    """

    make_s: float
    reset_s: float
    step_s: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ConfigurationError(f"{name.removesuffix('_s')}_timeout_s must be above 0, got {value!r}")

    def of(self, kind: Kind) -> float:
        """The seconds for one kind of ask."""
        return {"make": self.make_s, "reset": self.reset_s}.get(kind, self.step_s)


@dataclass
class Counters:
    """What has happened since the pool was made."""

    steps: int = 0
    """Steps that came back, faults not counted."""
    resets: int = 0
    """Resets that came back, faults not counted."""
    episodes: int = 0
    """Episodes that ended, by a fault or otherwise."""
    faults: int = 0
    """Deaths, deadlines passed, and exceptions of the environments."""
    restarts: int = 0
    """Workers started in place of others."""
    late_answers: int = 0
    """Answers to requests that had been given up."""


class Outcome(NamedTuple):
    """What became of a request.

    Attributes:
        slot: The slot.
        request_id: The request's id.
        kind: The request's kind.
        value: As in `Answer`.
        fault: What failed, or empty. (An exception in a ``call`` is no fault: it is the value.)
        seconds: Time spent in the worker.
        waited: Seconds from the request to its outcome.
        error: The traceback of an exception in a ``call``, or empty.
    """

    slot: int
    request_id: int
    kind: Kind
    value: Any = None
    fault: str = ""
    seconds: float = 0.0
    waited: float = 0.0
    error: str = ""


@dataclass(slots=True)
class _Slot:
    up: bool = False
    """Whether its worker has an environment."""
    ask: Ask | None = None
    """What its worker is doing."""
    request: Ask | None = None
    """What was submitted and has no outcome; sent once the worker is up."""
    since: float = 0.0
    """When that was submitted."""
    due: float = -math.inf
    """When something has to be done about it: a deadline, or the time to start a worker."""
    received: int = 0
    """How much of the answer had come when it was due."""
    failures: int = 0
    """In a row, without a step that came back in between."""
    lost: str = ""
    """Why the episode that ran here is gone, if it is and nobody was told yet."""
    fault: str = ""
    """The last one."""
    retired: bool = False


class Supervisor:
    """Runs requests on the workers of a backend.

    Args:
        backend: The backend.
        factories: What makes the environment, for each slot.
        deadlines: How long things may take.
        max_restarts: Failures in a row, without a successful step, that a slot survives.

    Attributes:
        num_envs: Slots.
        counters: What has happened so far.
        made: What the first worker said of its environment; None until then.
    """

    def __init__(self, backend: Backend, factories: Sequence[Callable[[], Any]], deadlines: Deadlines, max_restarts: int = 5) -> None:
        self.num_envs = len(factories)
        self.counters = Counters()
        self.made: dict[str, Any] | None = None
        self._backend, self._factories, self._deadlines, self._max_restarts = backend, factories, deadlines, max_restarts
        self._slots = [_Slot() for _ in factories]
        self._outcomes: list[Outcome] = []
        self._last_id = 0
        self._first_fault = self._leak = ""
        self._due = -math.inf  # nothing is due before; may be too early, never too late
        self._attended, self._respite = time.monotonic(), False
        self._look()

    def submit(self, index: int, kind: Kind, payload: Any) -> int:
        """Asks a slot that has nothing to do for something; as soon as its worker is up, it gets it.

        Returns:
            The request's id.

        Raises:
            TypeError: The payload cannot be passed to the worker; nothing was asked for.
        """
        slot = self._slots[index]
        ask = Ask(self._next_id(), kind, payload)
        if slot.retired or (slot.lost and kind == "step"):
            why = f"the slot is retired after {slot.failures} failures in a row; the last: {slot.fault}" if slot.retired else slot.lost
            self._outcomes.append(Outcome(index, ask.id, kind, fault=why))
            return ask.id
        slot.since = time.monotonic()
        if slot.up:
            self._send(index, ask)
        slot.request = ask
        return ask.id

    def wait(self, timeout_s: float | None) -> list[Outcome]:
        """Waits until something happens, at most ``timeout_s`` seconds (None: for ever), and sees to what is due.

        Returns:
            The outcomes there are; none at a timeout, or if what happened was none (a worker came up, say).

        Raises:
            InfrastructureError: No environment could be made at all.
            StateLeakError: A worker has raised one, now or before.
        """
        now = time.monotonic()
        if now - self._attended <= _AWAY_S:
            self._respite = False
        elif now >= self._due and not self._respite:
            # Nobody has listened meanwhile, and workers may be stuck with answers that no socket holds: these are read first.
            self._due, self._respite = now + _AWAY_S, True
        left = math.inf if timeout_s is None else timeout_s
        left = 0.0 if self._outcomes else max(0.0, min(left, self._due - now))
        for answer in self._backend.receive(None if left == math.inf else left):
            self._take(answer)
        self._attended = time.monotonic()
        if self._attended >= self._due:
            self._look()
        if self._leak:
            raise StateLeakError(self._leak)
        if self.made is None and all(slot.failures for slot in self._slots):
            raise InfrastructureError(f"no environment could be made; the first failure was:\n{self._first_fault}")
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def ready(self, index: int) -> bool:
        """Whether the slot's worker is up."""
        return self._slots[index].up

    def failed(self, index: int) -> bool:
        """Whether the slot has failed, so that a worker that is not up is one that is being replaced."""
        return self._slots[index].failures > 0

    def retired(self, index: int) -> bool:
        """Whether the slot has failed too often and is given up."""
        return self._slots[index].retired

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _send(self, index: int, ask: Ask) -> None:
        slot = self._slots[index]
        self._backend.send(index, ask)
        slot.ask, slot.due, slot.received = ask, time.monotonic() + self._deadlines.of(ask.kind), 0
        self._due = min(self._due, slot.due)

    def _take(self, answer: Answer) -> None:
        slot = self._slots[answer.slot]
        if answer.kind == "died":
            if slot.up or slot.ask is not None:  # else it was given up for what it had answered just before
                self._fail(answer.slot, answer.error)
        elif slot.ask is None or slot.ask.id != answer.ask_id:
            self.counters.late_answers += 1
        elif answer.kind == "make":
            self._made(answer)
        elif answer.error and answer.kind != "call":
            if answer.fatal:
                self._leak = self._leak or f"env {answer.slot}:\n{answer.error}"
            self._fail(answer.slot, f"{answer.kind}() raised an exception:\n{answer.error}", answer.seconds)
        else:
            if answer.kind == "step":
                slot.failures = 0
                self.counters.steps += 1
            elif answer.kind == "reset":
                slot.lost = ""
                self.counters.resets += 1
            slot.ask, slot.due = None, math.inf
            self._end(answer.slot, value=answer.value, seconds=answer.seconds, error=answer.error)

    def _made(self, answer: Answer) -> None:
        slot = self._slots[answer.slot]
        if answer.error:
            return self._fail(answer.slot, f"the environment's constructor raised an exception:\n{answer.error}")
        slot.up, slot.ask, slot.due = True, None, math.inf
        self.made = self.made or answer.value
        if slot.request is not None:
            try:
                self._send(answer.slot, slot.request)
            except TypeError as error:
                self._end(answer.slot, fault=str(error))
        return None

    def _end(self, index: int, value: Any = None, fault: str = "", seconds: float = 0.0, error: str = "") -> None:
        """Gives the slot's request its outcome."""
        slot = self._slots[index]
        request, slot.request = slot.request, None
        assert request is not None
        waited = time.monotonic() - slot.since
        self._outcomes.append(Outcome(index, request.id, request.kind, value, fault, seconds, waited, error))

    def _fail(self, index: int, fault: str, seconds: float = 0.0) -> None:
        """Is rid of a slot's worker; a new one is started in a while, if there have not been too many."""
        slot = self._slots[index]
        self._backend.kill(index)
        self.counters.faults += 1
        self._first_fault, slot.fault = self._first_fault or fault, fault
        doing, slot.ask, slot.up = slot.ask, None, False
        slot.failures += 1
        slot.retired = slot.failures > self._max_restarts
        slot.due = math.inf if slot.retired else time.monotonic() + min(_LONGEST_BACKOFF_S, _BACKOFF_S * 2 ** (slot.failures - 1))
        self._due = min(self._due, slot.due)
        if slot.request is None or doing is not slot.request:  # the worker was idle, or at its constructor
            slot.lost = slot.lost or fault
        if slot.request is not None and (doing is slot.request or slot.retired):
            if slot.request.kind == "call":
                slot.lost = fault
            self._end(index, fault=fault, seconds=seconds)

    def _look(self) -> None:
        """Does what is due: starts workers, ends what takes too long."""
        now = time.monotonic()
        for index, slot in enumerate(self._slots):
            if slot.due > now:
                continue
            if slot.ask is not None and (received := self._backend.received(index)) > slot.received:
                slot.received, slot.due = received, now + _AWAY_S  # its answer is on its way, however large
            elif slot.ask is not None:
                what = "the environment's constructor" if slot.ask.kind == "make" else f"{slot.ask.kind}()"
                self._fail(index, f"{what} did not come back within {self._deadlines.of(slot.ask.kind):g} s")
            else:
                self._start(index)
        self._due, self._respite = min(slot.due for slot in self._slots), False

    def _start(self, index: int) -> None:
        slot = self._slots[index]
        self.counters.restarts += slot.failures > 0
        slot.ask = Ask(self._next_id(), "make", self._factories[index])
        slot.due = time.monotonic() + self._deadlines.make_s
        try:
            self._backend.spawn(index, slot.ask)
        except InfrastructureError as error:
            self._fail(index, str(error))
