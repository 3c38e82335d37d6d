"""A session that is spoken to in a dialect."""

from collections.abc import Callable, Collection
from typing import Any

from agent_gym.core.action import ToolCall
from agent_gym.core.dialect import Dialect
from agent_gym.core.observation import Observation
from agent_gym.core.session import Change, Session, Snapshot
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.core.verdict import Verdict

__all__ = ["TranslatedSession"]


class TranslatedSession(Session):
    """Another session whose tools, calls and results are in a dialect; what it has beside a session's methods can be reached.

    Args:
        inner: The session.
        dialect: The dialect.
    """

    def __init__(self, inner: Session, dialect: Dialect) -> None:
        self._inner = inner
        self._dialect = dialect
        self.tools = tuple(dialect.spec(spec) for spec in inner.tools)
        self.rules, self.reasons, self.goal = inner.rules, inner.reasons, inner.goal
        self.conventions = dialect.conventions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def violation(self) -> str:
        """That of the session."""
        return self._inner.violation

    @violation.setter
    def violation(self, violation: str) -> None:
        self._inner.violation = violation

    @property
    def ended(self) -> Verdict | None:  # type: ignore[override]
        """That of the session."""
        return self._inner.ended

    @property
    def permit(self) -> Callable[[ToolSpec, ToolCall], str]:
        """That of the session."""
        return self._inner.permit

    @permit.setter
    def permit(self, permit: Callable[[ToolSpec, ToolCall], str]) -> None:
        self._inner.permit = permit

    @property
    def meanwhile(self) -> int:  # type: ignore[override]
        """That of the session."""
        return self._inner.meanwhile

    @property
    def useless_questions(self) -> int | None:  # type: ignore[override]
        """That of the session."""
        return self._inner.useless_questions

    def observe(self) -> Observation:
        """What can be seen, in the dialect."""
        return self._dialect.view(self._inner.observe())

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:
        """Carries out the call that is meant, and tells of it in the dialect."""
        return self._dialect.result(self._inner.call(self._dialect.call(call), deadline, key))

    def rehearse(self, call: ToolCall, deadline: float) -> ToolResult | None:
        """What `call` would answer."""
        result = self._inner.rehearse(self._dialect.call(call), deadline)
        return None if result is None else self._dialect.result(result)

    def owners(self, call: ToolCall) -> Collection[Collection[str]]:
        """To whom is open what the call that is meant names."""
        return self._inner.owners(self._dialect.call(call))

    def denied(self, call: ToolCall) -> None:
        """Takes in that the call that is meant was not permitted."""
        self._inner.denied(self._dialect.call(call))

    def verdict(self, closing: ToolCall) -> Verdict:
        """Judges the episode; an answer is read in the dialect."""
        return self._inner.verdict(self._dialect.closing(closing))

    def milestones(self) -> dict[str, bool]:
        """Those of the session."""
        return self._inner.milestones()

    def digest(self) -> str:
        """That of the session."""
        return self._inner.digest()

    def changes(self) -> list[Change]:
        """Those of the session, by the names that things have there."""
        return self._inner.changes()

    def now(self) -> float:
        """The session's virtual seconds."""
        return self._inner.now()

    def wait(self, seconds: float) -> None:
        """Lets the session's virtual time pass."""
        self._inner.wait(seconds)

    def save(self) -> Snapshot | None:
        """What the session saves; the dialect follows from the reset's options."""
        return self._inner.save()

    def probes(self) -> dict[str, Any]:
        """Those of the session."""
        return self._inner.probes()

    def interrupt(self) -> None:
        """Stops whatever a call is waiting for."""
        self._inner.interrupt()

    def close(self) -> None:
        """Frees everything."""
        vars(self._inner).pop("permit", None)  # else the session and its gateway would keep each other
        self._inner.close()
