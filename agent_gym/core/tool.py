"""Tools as the agent sees them, and what a call of one gives back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import orjson

from agent_gym.core.action import ToolCall
from agent_gym.errors import ConfigurationError

__all__ = ["CALL_FAILED", "STATUSES", "CallRecord", "ToolResult", "ToolSpec"]

STATUSES = (
    "ok",
    "empty",
    "invalid_arguments",
    "unknown_tool",
    "forbidden",
    "not_found",
    "conflict",
    "rate_limited",
    "unavailable",
    "timeout",
    "outcome_unknown",
    "malformed",
    "error",
    "degraded",
)
"""Every status a result can have. ``empty`` (nothing found) and ``degraded`` (a backup answered) are successes."""

CALL_FAILED = frozenset(STATUSES) - {"ok", "empty", "degraded"}
"""The statuses that count as a failed call."""

_MESSAGE_CHARS = 300
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HINTS = {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """What is known of a tool before it is called.

    Attributes:
        name: ``[A-Za-z0-9_-]{1,64}``, valid for MCP and for OpenAI-style tools alike.
        description: One or two sentences for the agent.
        parameters: A JSON Schema of type ``object``. A property may carry ``x-entity``: the kind of thing it names
            (``order_id``, ``email``), by which candidates are filled.
        output_schema: A JSON Schema of the structured result, or None where it is free.
        annotations: MCP's hints: ``readOnlyHint``, ``destructiveHint``, ``idempotentHint``, ``openWorldHint``.
        may_block: Whether the call could outlast its deadline (a sleep, a socket, somebody's code); then it runs on a worker thread,
            so that the deadline can leave it behind. False is a promise that `Session.call` itself keeps the deadline.
        remote: Whether it stands for a service that can fail by itself. Faults, retries, the cache and the breaker are for these only.
        carries: Whether whatever it brings about are other calls, each of which the Session puts to `Session.permit`, as those that
            the pages of a site make when they are clicked. Levels of permissions are for these, then, and not for the tool.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False})
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    may_block: bool = True
    remote: bool = False
    carries: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(f"tool name {self.name!r} does not match {_NAME.pattern}")
        if self.parameters.get("type") != "object":
            raise ConfigurationError(f"tool {self.name!r}: parameters must be a JSON Schema of type 'object'")
        if unknown := set(self.annotations) - _HINTS:
            raise ConfigurationError(f"tool {self.name!r}: unknown annotations {sorted(unknown)}; MCP has {sorted(_HINTS)}")

    @property
    def read_only(self) -> bool:
        """Whether the tool is declared to change nothing."""
        return bool(self.annotations.get("readOnlyHint", False))

    @cached_property
    def parameters_json(self) -> bytes:
        """The schema of its parameters, encoded."""
        return orjson.dumps(self.parameters)

    @cached_property
    def output_json(self) -> bytes:
        """The schema of its result, encoded; empty where the result is free."""
        return b"" if self.output_schema is None else orjson.dumps(self.output_schema)

    @property
    def effect(self) -> str:
        """``read``, ``idempotent`` (a write that may be made twice) or ``write``."""
        if self.read_only:
            return "read"
        return "idempotent" if self.annotations.get("idempotentHint", False) else "write"

    def to_openai(self) -> dict[str, Any]:
        """The tool in the form of OpenAI-style chat APIs (``{"type": "function", "function": {…}}``)."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": dict(self.parameters)},
        }


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a call gave back, as the agent sees it.

    Attributes:
        status: One of `STATUSES`.
        content: Readable text; for structured results the same facts.
        structured: A JSON value, or None.
        retry_after_s: Seconds of virtual time after which another try makes sense, or None.
        attempts: How many times the tool was tried for this call.
        from_cache: Whether it is the answer to an earlier call of the same.
    """

    status: str
    content: str = ""
    structured: Any = None
    retry_after_s: float | None = None
    attempts: int = 1
    from_cache: bool = False

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {STATUSES}")

    @classmethod
    def raised(cls, call: str, error: BaseException) -> Self:
        """The result of a call that raised: the exception's name and the start of its message."""
        content = f"{call} failed: {type(error).__name__}: {error}"[:_MESSAGE_CHARS]
        return cls(status="error", content=content.encode(errors="backslashreplace").decode())

    @property
    def failed(self) -> bool:
        """Whether the call failed; an empty answer has not."""
        return self.status in CALL_FAILED


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """One attempt of one call, for the log.

    Attributes:
        call: The call, as it was read.
        result: What this attempt gave.
        attempt: From 1.
        started_us: Microseconds of the monotonic clock.
        duration_us: Microseconds.
        known_tool: False where no tool of that name is offered.
        valid: Whether the arguments passed the tool's schema.
        effect: ``read``, ``idempotent`` or ``write``.
        error: The traceback of a tool that raised, else empty.
        key: The idempotency key that it carried, else empty.
        waited_s: Virtual seconds that the gateway waited before it.
        fault: The kind of fault that was injected into it, else empty. Never shown to the agent.
        took_effect: Whether a write took effect, whatever the agent was told; always false for a read.
    """

    call: ToolCall
    result: ToolResult
    attempt: int = 1
    started_us: int = 0
    duration_us: int = 0
    known_tool: bool = True
    valid: bool = True
    effect: str = "write"
    error: str = ""
    key: str = ""
    waited_s: float = 0.0
    fault: str = ""
    took_effect: bool = False
