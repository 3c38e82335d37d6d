"""The boundary before every tool: look the tool up, check the arguments once, bound the time, keep the log."""

import dataclasses
import functools
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import jsonschema_rs
import orjson

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import plain
from agent_gym.core.session import Session
from agent_gym.core.tool import CallRecord, ToolResult, ToolSpec
from agent_gym.errors import ConfigurationError, InfrastructureError, unknown
from agent_gym.gateway.faults import FaultPlan
from agent_gym.gateway.permissions import Permissions
from agent_gym.gateway.remote import Remote
from agent_gym.gateway.resilience import Resilience
from agent_gym.gateway.safety import RetrySafety
from agent_gym.gateway.worker import Abandoned, Interrupted, Worker

__all__ = ["WAIT", "Boundary", "Gateway", "Outcome", "Tape", "check_tools", "first_fault"]

WAIT = ToolSpec(
    name="wait",
    description="Let time pass, before something is tried again.",
    parameters={
        "type": "object",
        "properties": {"seconds": {"type": "integer", "enum": [5, 60, 300]}},
        "required": ["seconds"],
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "idempotentHint": False, "openWorldHint": False},
)
"""Offered where the agent may have to wait: virtual time passes."""

_EVERYTHING = Permissions()
_MESSAGE_CHARS = 300
_GRACE_S = 0.5


@dataclass(frozen=True)
class Outcome:
    """What became of a call.

    Attributes:
        result: What the agent is told.
        attempts: Every attempt at the tool, for the log.
        invalid: Why it was an invalid action, or empty.
    """

    result: ToolResult
    attempts: tuple[CallRecord, ...]
    invalid: str = ""


class Tape(Protocol):
    """Answers calls in the place of tools, where a recorded episode is played again."""

    def call(self, spec: ToolSpec, call: ToolCall, live: Callable[[], ToolResult]) -> ToolResult:
        """Answers one try of a call.

        Args:
            spec: The tool.
            call: The call.
            live: Has the tool carry it out.
        """

    def rehearse(self, spec: ToolSpec, call: ToolCall, live: Callable[[], ToolResult | None]) -> ToolResult | None:
        """What a try would answer without anything being done, or None; arguments as for `call`."""


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """What holds at an environment's boundary.

    Attributes:
        call_timeout_s: Seconds of wall clock after which a call ends as ``timeout``.
        permissions: What may be called.
        retries: Who tries again: ``gateway`` or ``agent``.
        resilience: What the gateway does about failures of remote tools.
        faults: What goes wrong with remote tools on purpose.
        tape: What answers in the place of the session's tools.
    """

    call_timeout_s: float = 30.0
    permissions: Permissions = field(default_factory=Permissions)
    retries: str = "gateway"
    resilience: Resilience = field(default_factory=Resilience)
    faults: FaultPlan | None = None
    tape: Tape | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.call_timeout_s, int | float) or self.call_timeout_s <= 0:
            raise ConfigurationError(f"call_timeout_s must be above 0, got {self.call_timeout_s!r}")
        if self.retries not in ("gateway", "agent"):
            raise unknown("retries", self.retries, ["gateway", "agent"])


class Gateway:
    """Carries the calls of one Session.

    Args:
        session: Where the calls go.
        own: Tools beside the session's own, and what each does.
        boundary: What holds.
        seed: The episode's.
        granted: What the task itself permits; a call needs that and what the boundary permits.

    Attributes:
        safety: How the agent deals with failures.
    """

    def __init__(
        self,
        session: Session,
        own: Sequence[tuple[ToolSpec, Callable[[ToolCall], ToolResult]]] = (),
        boundary: Boundary = Boundary(),
        seed: int = 0,
        granted: Permissions = _EVERYTHING,
    ) -> None:
        self._session = session
        self._permissions = (boundary.permissions, granted)
        session.permit = self._refusal
        self._boundary = boundary
        self._worker: Worker | None = None
        self._tools: dict[str, tuple[ToolSpec, Callable[[ToolCall], ToolResult] | None]] = {s.name: (s, None) for s in session.tools}
        self._tools.update({spec.name: (spec, handler) for spec, handler in own})
        self._forbidden = {spec.name for spec in session.tools if not all(one.allow(spec) for one in self._permissions)}
        self._remote: Remote | None = None
        if any(spec.remote for spec in session.tools):
            self._remote = Remote(
                session,
                {spec.name: spec for spec in session.tools if spec.name not in self._forbidden},
                resilience=boundary.resilience,
                retry=boundary.retries == "gateway",
                faults=boundary.faults,
                seed=seed,
                send=self._attempt,
                rehearse=self._rehearse,
                check=_conforming,
                fault_of=lambda spec, arguments: first_fault(spec, arguments) or self._refusal(spec, ToolCall(spec.name, dict(arguments))),
            )
        self.safety = RetrySafety()

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What is on offer: what is permitted of the session's, then our own."""
        return tuple(spec for name, (spec, _) in self._tools.items() if name not in self._forbidden)

    def call(self, call: ToolCall, number: int) -> Outcome:
        """Carries out the episode's call of that number; the number tells idempotency keys and faults apart.

        Whatever the agent got wrong comes back as a status. A tool that raises is ``error`` and its traceback is logged; one
        that does not come back in time is ``timeout``; one whose answer breaks its output schema is ``malformed``.

        Raises:
            InfrastructureError: Our own engine failed.
        """
        at, meanwhile = self._session.now(), self._session.meanwhile
        outcome = self._carried(call, number)
        spec, handler = self._tools.get(call.name, (None, None))
        if self._remote is not None and spec is not None and (not spec.read_only or spec is WAIT or self._session.meanwhile != meanwhile):
            self._remote.forget()
        if handler is None or call.name == WAIT.name:
            doubled = self.safety.note(call, spec, outcome.result, outcome.attempts, at)
            if doubled:
                self._session.violation = self._session.violation or doubled
        elif spec is not None and not spec.read_only and not outcome.result.failed:
            self.safety.close(call)
        return outcome

    def _carried(self, call: ToolCall, number: int) -> Outcome:
        known = self._tools.get(call.name)
        if known is None:
            message = f"unknown tool {call.name[:64]!r}; there are: {', '.join(spec.name for spec in self.tools)}"
            result = ToolResult(status="unknown_tool", content=message)
            return Outcome(result, (CallRecord(call=call, result=result, known_tool=False, valid=False),), message)
        spec, handler = known
        message = first_fault(spec, call.arguments)
        if handler is None and (call.name in self._forbidden or not message) and (why := self._refusal(spec, call)):
            result = ToolResult(status="forbidden", content=why)
            return Outcome(result, (CallRecord(call=call, result=result, effect=spec.effect),))
        if message:
            result = ToolResult(status="invalid_arguments", content=message)
            return Outcome(result, (CallRecord(call=call, result=result, valid=False, effect=spec.effect),), message)
        if spec.remote and handler is None and self._remote is not None:
            return Outcome(*self._remote.call(spec, call, number))
        started = time.monotonic_ns()
        raw, error = (handler(call), "") if handler else self._attempt(spec, call)
        result = _conforming(spec, raw)
        record = CallRecord(
            call=call,
            result=result,
            started_us=started // 1_000,
            duration_us=(time.monotonic_ns() - started) // 1_000,
            effect=spec.effect,
            error=error,
            took_effect=handler is None and not spec.read_only and not raw.failed,
        )
        return Outcome(result, (record,))

    def _refusal(self, spec: ToolSpec, call: ToolCall) -> str:
        """Why a call is not permitted, or nothing. The Session takes it in: a task may turn on it."""
        for one in self._permissions:
            if why := one.refusal(spec, lambda: self._session.owners(call)):
                self._session.denied(call)
                return why
        return ""

    def close(self) -> None:
        """Ends the worker thread, if there is one."""
        vars(self._session).pop("permit", None)  # else each would keep the other
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def end(self) -> None:
        """Takes in that the episode is over, however it ended."""
        self.safety.end()

    @property
    def touched(self) -> bool:
        """Whether going back to this point takes more than the session's own state."""
        return any(self.safety.counts.values()) or (self._remote is not None and self._remote.touched)

    def _attempt(self, spec: ToolSpec, call: ToolCall, key: str = "") -> tuple[ToolResult, str]:
        """One try: the result, and the traceback of a tool that raised."""
        if self._worker is not None and self._worker.abandoned:
            status = "timeout" if spec.read_only else "outcome_unknown"
            return ToolResult(status=status, content="an earlier call still hangs; nothing answers until the episode ends"), ""
        tape = self._boundary.tape

        def job(deadline: float) -> ToolResult:
            def live() -> ToolResult:
                return self._session.call(call, deadline, key)

            return live() if tape is None else tape.call(spec, call, live)

        return self._guarded(spec, call, job)

    def _rehearse(self, spec: ToolSpec, call: ToolCall) -> ToolResult | None:
        if self._worker is not None and self._worker.abandoned:
            return None
        rehearsed: list[ToolResult] = []
        tape = self._boundary.tape

        def job(deadline: float) -> ToolResult:
            def live() -> ToolResult | None:
                return self._session.rehearse(call, deadline)

            found = live() if tape is None else tape.rehearse(spec, call, live)
            if found is not None:
                rehearsed.append(found)
            return ToolResult(status="ok")

        told = self._guarded(spec, call, job)[0]
        return told if told.failed else _plain(rehearsed[0]) if rehearsed else None

    def _guarded(self, spec: ToolSpec, call: ToolCall, job: Callable[[float], ToolResult]) -> tuple[ToolResult, str]:
        timeout_s = self._boundary.call_timeout_s
        deadline = time.monotonic() + timeout_s
        try:
            if not spec.may_block:
                return _plain(job(deadline)), ""
            if self._worker is None:
                self._worker = Worker()
            return _plain(self._worker.run(functools.partial(job, deadline), timeout_s, self._session.interrupt, _GRACE_S)), ""
        except InfrastructureError:
            raise
        except (Interrupted, Abandoned):
            content = f"{call.name} did not answer within {timeout_s:g} s"
            return ToolResult(status="timeout" if spec.read_only else "outcome_unknown", content=content), ""
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool may raise anything; it is told to the agent and logged in full
            return ToolResult.raised(call.name, error), traceback.format_exc()


def check_tools(tools: Sequence[ToolSpec]) -> None:
    """Looks whether every schema can be used.

    Raises:
        ConfigurationError: One cannot; names the tool and what is wrong.
    """
    for spec in tools:
        for what, schema in (("parameters", spec.parameters_json), ("output schema", spec.output_json)):
            try:
                _validator(schema or b"{}")
            except ValueError as error:
                raise ConfigurationError(f"tool {spec.name!r}: its {what} is no JSON Schema: {str(error)[:_MESSAGE_CHARS]}") from error


def _plain(result: Any) -> ToolResult:
    """The result with nothing in it but JSON values and encodable text; ``malformed`` if the tool gave anything else."""
    if not isinstance(result, ToolResult) or not isinstance(result.content, str):
        what = type(result).__name__ if not isinstance(result, ToolResult) else f"content of type {type(result.content).__name__}"
        return ToolResult(status="malformed", content=f"the tool gave a {what} instead of a result")
    content = result.content.encode(errors="backslashreplace").decode()
    after = result.retry_after_s
    if after is not None and not (isinstance(after, int | float) and math.isfinite(after) and after >= 0):
        after = None
    try:
        return dataclasses.replace(result, content=content, structured=plain(result.structured), retry_after_s=after)
    except (TypeError, RecursionError) as error:
        return ToolResult(status="malformed", content=f"the tool's result is no JSON value: {error}"[:_MESSAGE_CHARS])


def _conforming(spec: ToolSpec, result: ToolResult) -> ToolResult:
    """The result; ``malformed`` if it breaks the tool's output schema."""
    if not spec.output_json or result.failed:
        return result
    fault = _fault(spec.output_json, result.structured, "result")
    return ToolResult(status="malformed", content=f"{spec.name} gave a malformed answer: {fault}"[:_MESSAGE_CHARS]) if fault else result


def first_fault(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Where the arguments break the tool's schema first, as ``arguments.path: what``; empty if they do not."""
    return _fault(spec.parameters_json, arguments, "arguments")


def _fault(schema: bytes, value: Any, where: str) -> str:
    validator = _validator(schema)
    if validator.is_valid(value):
        return ""
    error = min(validator.iter_errors(value), key=lambda e: (list(map(str, e.instance_path)), e.kind.name))
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    message = error.message
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Enum):  # the library names no more than two of them
        message = f"{orjson.dumps(error.instance).decode()} is not one of {orjson.dumps(error.kind.options).decode()}"
    return f"{where}{path}: {message}"[:_MESSAGE_CHARS]


@functools.lru_cache(maxsize=512)
def _validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(orjson.loads(schema))
