"""How an episode ends and how it is judged."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Check", "Ending", "Verdict"]


class Ending(StrEnum):
    """Why an episode ended. The first four terminate it, the others truncate it."""

    SUCCESS = "success"
    FAILURE = "failure"
    VIOLATION = "violation"
    ABSTAINED = "abstained"
    STEP_LIMIT = "step_limit"
    DEADLINE = "deadline"
    BUDGET = "budget"
    INFRA_ERROR = "infra_error"

    @property
    def terminates(self) -> bool:
        """Whether the task itself ended, rather than the patience with it."""
        return self in _TERMINAL


_TERMINAL = frozenset({Ending.SUCCESS, Ending.FAILURE, Ending.VIOLATION, Ending.ABSTAINED})


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: Short, stable.
        passed: Whether it held.
        detail: What was seen, for the record; never shown to the agent.
    """

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """The judgement of an episode that ended by itself.

    Attributes:
        ending: ``success``, ``failure``, ``violation`` or ``abstained``.
        checks: What it rests on.
        worth: The reward for it; None for what its ending is worth everywhere.
    """

    ending: Ending
    checks: tuple[Check, ...] = ()
    worth: float | None = None

    def __post_init__(self) -> None:
        if not self.ending.terminates:
            raise ValueError(f"a verdict is one of {sorted(_TERMINAL)}, not {self.ending!r}")

    @property
    def success(self) -> bool:
        """Whether the task was solved (or rightly refused)."""
        return self.ending is Ending.SUCCESS
