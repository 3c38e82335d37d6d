"""Stops an agent that goes round in circles."""

from collections.abc import Sequence
from typing import Any

import gymnasium

from agent_gym.core.canonical import digest
from agent_gym.core.observation import cut
from agent_gym.core.record import StepRecord
from agent_gym.core.verdict import Ending
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.gateway import WAIT
from agent_gym.wrappers.rich import UNSEEN, Result, RichWrapper

__all__ = ["LoopGuard"]

_CALL_BYTES = 300
_CAN_BE_OFF = ("identical", "same_error", "cycle", "window")


class LoopGuard(RichWrapper):
    """Ends an episode as ``failure`` when the agent repeats itself; the record's failed check says how.

    ============== ======================================================================================
    ``identical``  the same call with the same outcome, so many times in a row
    ``same_error`` the same call with the same failure, so many times in a row
    ``cycle``      the same two to ``period`` calls with the same outcomes in turn, so many times
    ``window``     so many steps without a new state
    ``revisits``   a larger share of steps than this into known states, from ``revisit_steps`` steps on
    ============== ======================================================================================

    An outcome is the result and what is shown with it; a state is that and the digest of the world. Each of these limits can be
    None, which turns it off.

    Args:
        env: An `AgentEnv`, or wrappers around one.
        identical: From 2.
        same_error: From 2; more than the default where tools fail on purpose and the agent itself tries again.
        cycle: From 2.
        period: From 2.
        window: From 2.
        revisits: In (0, 1).
        revisit_steps: From 2.
        polling: Tools that are asked again and again for a good reason. So many calls of each do not count as steps.
        polling_budget: How many, in an episode, from 0.

    Raises:
        ConfigurationError: A number does not fit, there is no such tool, or it stands in a wrong place.
    """

    not_around = UNSEEN

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        identical: int | None = 4,
        same_error: int | None = 3,
        cycle: int | None = 3,
        period: int = 4,
        window: int | None = 10,
        revisits: float | None = 0.5,
        revisit_steps: int = 12,
        polling: Sequence[str] = (WAIT.name,),
        polling_budget: int = 10,
    ) -> None:
        numbers: dict[str, Any] = {"identical": identical, "same_error": same_error, "cycle": cycle, "period": period, "window": window}
        numbers["revisit_steps"] = revisit_steps
        if not isinstance(polling, list | tuple):
            raise ConfigurationError(f"LoopGuard: polling must be a list of tools' names, got {polling!r}")
        about = {"revisits": revisits, "polling": list(polling), "polling_budget": polling_budget}
        super().__init__(env, **numbers, **about)
        for name, number in numbers.items():
            if not (number is None and name in _CAN_BE_OFF) and (not isinstance(number, int) or number < 2):
                raise ConfigurationError(f"LoopGuard: {name} must be at least 2, got {number!r}")
        if revisits is not None and not (isinstance(revisits, int | float) and 0 < revisits < 1):
            raise ConfigurationError(f"LoopGuard: revisits must be in (0, 1), got {revisits!r}")
        if not isinstance(polling_budget, int) or polling_budget < 0:
            raise ConfigurationError(f"LoopGuard: polling_budget must be at least 0, got {polling_budget!r}")
        known = {WAIT.name, *(tool.name for tool in self.agent_env.tools)}
        for name in polling:
            if name not in known:
                raise unknown("tool", name, known)
        self._identical, self._same_error, self._cycle, self._period, self._window = identical, same_error, cycle, period, window
        self._revisits, self._revisit_steps = revisits, revisit_steps
        self._polling, self._polling_budget = frozenset(polling), polling_budget
        self._forget()

    def _forget(self) -> None:
        self._polls: dict[str, int] = {}
        self._steps = 0  # that count
        self._made: list[tuple[str, str, str]] = []  # of each step the call, its outcome, its failure; a poll breaks every row
        self._states: dict[str, int] = {}  # each state, and after how many steps it was first seen

    def save_state(self) -> dict[str, Any]:
        """What was done and seen so far, as digests."""
        return {"steps": self._steps, "polls": dict(self._polls), "made": [list(one) for one in self._made], "states": dict(self._states)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Takes up what `save_state` gave."""
        self._steps, self._polls, self._states = state["steps"], dict(state["polls"]), dict(state["states"])
        self._made = [(call, outcome, failure) for call, outcome, failure in state["made"]]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with nothing done."""
        self._forget()
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Result:
        """Carries out one action, and ends the episode where it closes a loop."""
        result = super().step(action)
        if result[2] or result[3] or self._exempt(record := self.agent_env.last_record):
            return result
        self._note(record)
        why = self._loop()
        if not why:
            return result
        return self.conclude(result, Ending.FAILURE, f"loop: {why}; last {cut(str(record.call or 'an unreadable action'), _CALL_BYTES)}")

    def _exempt(self, record: StepRecord) -> bool:
        if record.call is None or record.call.name not in self._polling:
            return False
        polls = self._polls[record.call.name] = self._polls.get(record.call.name, 0) + 1
        if polls > self._polling_budget:
            return False
        self._made.append(("", f"poll {len(self._made)}", ""))
        return True

    def _note(self, record: StepRecord) -> None:
        assert record.result is not None
        result = record.result
        told = result.content if result.structured is None else result.structured
        call = digest(record.call.to_dict() if record.call is not None else record.invalid)
        outcome = digest([result.status, told, record.observation.data["view"]])
        self._steps += 1
        self._made.append((call, outcome, result.status if result.failed else ""))
        self._states.setdefault(f"{record.digest} {outcome}", self._steps)

    def _loop(self) -> str:
        """Which limit has been reached, or nothing."""
        made, steps = self._made, self._steps
        if (n := self._identical) and len(made) >= n and all(one[:2] == made[-1][:2] for one in made[-n:]):
            return f"identical: the same call with the same outcome {n} times in a row"
        if (n := self._same_error) and made[-1][2] and len(made) >= n and all(one[::2] == made[-1][::2] for one in made[-n:]):
            return f"same_error: the same call with the same failure {n} times in a row"
        if n := self._cycle:
            for p in range(2, self._period + 1):
                turn = [one[:2] for one in made[-p:]]
                if len(set(turn)) > 1 and [one[:2] for one in made[-n * p :]] == turn * n:
                    return f"cycle: the same {p} calls with the same outcomes {n} times"
        if (n := self._window) and steps - max(self._states.values()) >= n:
            return f"window: {n} steps without a new state"
        if self._revisits and steps >= self._revisit_steps and 1 - len(self._states) / steps > self._revisits:
            return f"revisits: {steps - len(self._states)} of {steps} steps led into known states"
        return ""
