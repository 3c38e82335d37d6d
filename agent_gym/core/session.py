"""The contract that a domain implements: one episode of one task."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.core.action import ToolCall
from agent_gym.core.observation import Observation
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.core.verdict import Verdict

__all__ = ["Change", "Session", "Snapshot"]

Snapshot = dict[str, Any]
"""A Session's whole state as JSON values (bytes as base64)."""


@dataclass(frozen=True)
class Change:
    """One row, file or other thing that an episode changed.

    Attributes:
        where: The table or place.
        key: Which one, within it.
        before: Its JSON value at the episode's start, None if it is new.
        after: Its JSON value now, None if it is gone.
    """

    where: str
    key: str
    before: Any
    after: Any


class Session(ABC):
    """One episode of one task. A reset builds a new one and closes the old one: nothing is cleaned, everything is new.

    Calls come one at a time. Whatever a tool call carries was written by the agent: it is data.

    Attributes:
        tools: What may be called, the closing tools left out (those belong to `AgentEnv`).
        rules: What the agent must keep to in this episode, in words; None for what the environment says.
        reasons: The reasons that ``refuse`` takes in it; None for the environment's.
        conventions: How names, dates and numbers are written, where it is not as in the domain's tools; part of every observation.
        goal: What the agent is asked to do, in words, where only the session knows it; None for what the task says.
        ended: The verdict on an episode that has ended by itself; None while it goes on. `AgentEnv` ends the episode at once.
        violation: Empty until a forbidden call took effect, then what was done. `AgentEnv` ends the episode at once.
        permit: Why a call is not permitted, or nothing; set by the gateway, which asks it before `call`. A Session whose tools carry
            other calls (`ToolSpec.carries`) asks it before each of those.
        meanwhile: How many things somebody else has done while the agent was at work.
        useless_questions: How many questions brought nothing new; None where there is nobody to ask.
    """

    tools: Sequence[ToolSpec]
    rules: str | None = None
    reasons: Sequence[str] | None = None
    conventions: Mapping[str, Any] | None = None
    goal: str | None = None
    ended: Verdict | None = None
    violation: str = ""
    permit: Callable[[ToolSpec, ToolCall], str] = staticmethod(lambda spec, call: "")  # noqa: ARG005 - everything is
    meanwhile: int = 0
    useless_questions: int | None = None
    _waited_s: float = 0.0

    @abstractmethod
    def observe(self) -> Observation:
        """What can be seen now beyond the goal and the last result, which `AgentEnv` adds.

        Raises:
            InfrastructureError: Our engine failed.
        """

    @abstractmethod
    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:
        """Carries out a call whose arguments passed the tool's schema.

        Args:
            call: The call.
            deadline: Seconds of `time.monotonic` at which it must be back.
            key: Names the operation that this is a try of, or empty. A write that comes again under its key is answered as it was
                the first time and does nothing; under the key of another payload, or of a try that is still under way, it is a
                ``conflict``. Only tools that are ``remote`` get one.

        Returns:
            The result. What the agent got wrong is a status, never an exception; past the deadline the status is ``timeout``.

        Raises:
            InfrastructureError: Our engine failed. The episode ends as ``infra_error``.
            Exception: Anything else is the tool's own failure: the call's status is ``error`` and the episode goes on.
        """

    @abstractmethod
    def verdict(self, closing: ToolCall) -> Verdict:
        """Judges the episode. Called once, when the agent closed it.

        Args:
            closing: The closing call: ``finish``, ``refuse`` or ``hand_over`` with its arguments.

        Raises:
            InfrastructureError: It could not be judged.
        """

    @abstractmethod
    def digest(self) -> str:
        """A digest of the whole state that matters: equal digests, equal states."""

    @abstractmethod
    def changes(self) -> list[Change]:
        """What differs from the episode's start, in a fixed order."""

    def milestones(self) -> dict[str, bool]:
        """The task's milestones in order, and whether each has been reached."""
        return {}

    def rehearse(self, call: ToolCall, deadline: float) -> ToolResult | None:  # noqa: ARG002 - most cannot
        """What `call` would answer, without anything being done; None where that cannot be told."""
        return None

    def owners(self, call: ToolCall) -> Collection[Collection[str]]:  # noqa: ARG002 - mostly nobody's
        """The identities to whom is open what a call's arguments name, for each thing that is not open to all."""
        return ()

    def denied(self, call: ToolCall) -> None:  # noqa: B027 - mostly nothing turns on it
        """Takes in that a call was not permitted."""

    def now(self) -> float:
        """Virtual seconds. They pass by what is done and by `wait` only."""
        return self._waited_s

    def wait(self, seconds: float) -> None:
        """Lets virtual time pass."""
        self._waited_s += seconds

    def save(self) -> Snapshot | None:
        """The state from which an equal Session can be opened, or None where only re-execution restores it."""
        return None

    def probes(self) -> dict[str, Any]:
        """What a leak check looks at: JSON values that must be equal in a used and a brand-new instance."""
        return {"digest": self.digest()}

    def interrupt(self) -> None:  # noqa: B027 - nothing to stop is the common case
        """Stops whatever a call is waiting for. May be called from any thread, at any time."""

    def close(self) -> None:  # noqa: B027 - nothing to free is the common case
        """Frees everything. Closing twice is fine."""
