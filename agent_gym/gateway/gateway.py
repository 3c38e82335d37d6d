"""The boundary before every tool: look the tool up, check the arguments once, bound the time, keep the log."""

import dataclasses
import functools
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import orjson

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import plain
from agent_gym.core.session import Session
from agent_gym.core.tool import CallRecord, ToolResult, ToolSpec
from agent_gym.errors import InfrastructureError
from agent_gym.gateway.worker import Abandoned, Interrupted, Worker

__all__ = ["Gateway", "Outcome", "first_fault"]

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


class Gateway:
    """Carries the calls of one Session.

    Args:
        session: Where the calls go.
        closing: The closing tools and what each does, beside the session's own.
        call_timeout_s: Seconds of wall clock after which a call ends as ``timeout``.
    """

    def __init__(
        self,
        session: Session,
        closing: Sequence[tuple[ToolSpec, Callable[[ToolCall], ToolResult]]] = (),
        call_timeout_s: float = 30.0,
    ) -> None:
        self._session = session
        self._call_timeout_s = call_timeout_s
        self._worker: Worker | None = None
        self._tools: dict[str, tuple[ToolSpec, Callable[[ToolCall], ToolResult] | None]] = {s.name: (s, None) for s in session.tools}
        self._tools.update({spec.name: (spec, handler) for spec, handler in closing})

    def call(self, call: ToolCall) -> Outcome:
        """Carries out one call.

        Whatever the agent got wrong comes back as a status. A tool that raises is ``error`` and its traceback is logged; one
        that does not come back in time is ``timeout``.

        Raises:
            InfrastructureError: Our own engine failed.
        """
        known = self._tools.get(call.name)
        if known is None:
            message = f"unknown tool {call.name[:64]!r}; there are: {', '.join(self._tools)}"
            result = ToolResult(status="unknown_tool", content=message)
            return Outcome(result, (CallRecord(call=call, result=result, known_tool=False, valid=False),), message)
        spec, handler = known
        effect = "read" if spec.read_only else "write"
        if message := first_fault(spec, call.arguments):
            result = ToolResult(status="invalid_arguments", content=message)
            return Outcome(result, (CallRecord(call=call, result=result, valid=False, effect=effect),), message)
        started = time.monotonic_ns()
        result, error = (handler(call), "") if handler else self._attempt(spec, call)
        result = _plain(result)
        record = CallRecord(
            call=call,
            result=result,
            started_us=started // 1_000,
            duration_us=(time.monotonic_ns() - started) // 1_000,
            effect=effect,
            error=error,
        )
        return Outcome(result, (record,))

    def close(self) -> None:
        """Ends the worker thread, if there is one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _attempt(self, spec: ToolSpec, call: ToolCall) -> tuple[ToolResult, str]:
        if self._worker is not None and self._worker.abandoned:
            return ToolResult(status="timeout", content="an earlier call still hangs; nothing answers until the episode ends"), ""
        deadline = time.monotonic() + self._call_timeout_s
        try:
            if not spec.may_block:
                return self._session.call(call, deadline), ""
            if self._worker is None:
                self._worker = Worker()
            job = functools.partial(self._session.call, call, deadline)
            return self._worker.run(job, self._call_timeout_s, self._session.interrupt, _GRACE_S), ""
        except InfrastructureError:
            raise
        except (Interrupted, Abandoned):
            content = f"{call.name} did not answer within {self._call_timeout_s:g} s"
            return ToolResult(status="timeout" if spec.read_only else "outcome_unknown", content=content), ""
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool may raise anything; it is told to the agent and logged in full
            content = f"{call.name} failed: {type(error).__name__}: {error}"[:_MESSAGE_CHARS]
            return ToolResult(status="error", content=content), traceback.format_exc()


def _plain(result: ToolResult) -> ToolResult:
    """The result with nothing in it but JSON values and encodable text; ``malformed`` if the tool gave anything else."""
    if not isinstance(result, ToolResult):
        return ToolResult(status="malformed", content=f"the tool gave a {type(result).__name__} instead of a result")
    content = result.content.encode(errors="backslashreplace").decode()
    try:
        return dataclasses.replace(result, content=content, structured=plain(result.structured))
    except (TypeError, RecursionError) as error:
        return ToolResult(status="malformed", content=f"the tool's result is no JSON value: {error}"[:_MESSAGE_CHARS])


def first_fault(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Where the arguments break the tool's schema first, as ``arguments.path: what``; empty if they do not."""
    validator = _validator(orjson.dumps(spec.parameters))
    if validator.is_valid(arguments):
        return ""
    error = min(validator.iter_errors(arguments), key=lambda e: (list(map(str, e.instance_path)), e.kind.name))
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    message = error.message
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Enum):  # the library names no more than two of them
        message = f"{orjson.dumps(error.instance).decode()} is not one of {orjson.dumps(error.kind.options).decode()}"
    return f"arguments{path}: {message}"[:_MESSAGE_CHARS]


@functools.lru_cache(maxsize=512)
def _validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(orjson.loads(schema))
