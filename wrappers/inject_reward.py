"""Lets somebody outside, a person or another program, reward an agent while an episode runs."""

import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.core.record import StepRecord
from agent_gym.errors import ConfigurationError, ResetNeeded
from agent_gym.wrappers.reward_wrapper import RewardWrapper, Transition, agent_env

__all__ = ["InjectReward"]


class InjectReward(RewardWrapper):
    """Adds what `inject` was given, from whatever thread, to the reward of the step that ends next, as parts with their names.

    Around an interface it is reached in a pool by ``pool.call("inject", "human", 1.0, env_ids=[3])``, between two steps. What was
    given before a reset, or in a step in which the environment itself failed, is void; what was given in another whose reward is
    unknown goes to the step after it.

    Args:
        env: Any environment.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._lock = threading.Lock()
        self._waiting: dict[str, float] = {}
        self._own = frozenset({"reward"})
        self._open = False
        self._given: dict[str, float] = {}  # with the newest step
        self._step = 0  # its number, where there are records

    def inject(self, name: str, value: float) -> None:
        """Adds to the reward of the step that ends next; values of one name are summed.

        Args:
            name: The part's name; none that the environment has itself.
            value: A finite number.

        Raises:
            ResetNeeded: No episode is running, so that there is nothing to reward.
            ConfigurationError: The name is taken or empty, or the value is no finite number.
        """
        if not isinstance(name, str) or not name or name in self._own:
            raise ConfigurationError(f"inject: {name!r} cannot name a signal; give text other than {', '.join(sorted(self._own))}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigurationError(f"inject: the value of {name!r} must be a finite number, got {value!r}")
        ours = agent_env(self.env)
        with self._lock:
            if not self._open or (ours is not None and ours.last_record.ending is not None):  # a wrapper outside may have ended it
                raise ResetNeeded(f"inject: no episode is running that {name!r} could reward; call reset() first")
            self._waiting[name] = self._waiting.get(name, 0.0) + float(value)

    def _begin(self, observation: Any, info: Mapping[str, Any]) -> None:  # noqa: ARG002 - its parts are the names that are taken
        self._own = frozenset(info.get("reward_parts", ("reward",)))
        self._given = {}
        self._take(open_after=True)

    def _rewarded(self, now: Transition) -> dict[str, float]:
        self._own |= now.parts.keys()
        self._given = self._take(open_after=not now.ended)
        if self._given and agent_env(self.env) is not None:
            self._step = self._records.last_record.step
        return _with(now.parts, self._given)

    def _spoiled(self, observation: Any) -> None:  # noqa: ARG002 - only whether it goes on counts
        self._given = {}
        if self._ended:
            self._take(open_after=False)

    @property
    def last_record(self) -> StepRecord:
        """All about the last step, with the reward as it is here; a wrapper around this may have ended the episode since."""
        record: StepRecord = self._records.last_record
        if not self._given or record.step != self._step:
            return record
        parts = _with(record.reward_parts, self._given)
        return replace(record, reward=float(sum(parts.values())), reward_parts=parts)

    def _take(self, *, open_after: bool) -> dict[str, float]:
        """What is waiting; in one stroke with the end, so that nothing is accepted that no step would give."""
        with self._lock:
            taken, self._waiting, self._open = self._waiting, {}, open_after
        return taken

    def _saved(self) -> dict[str, Any]:
        return {
            "waiting": dict(self._waiting),
            "own": sorted(self._own),
            "open": self._open,
            "given": dict(self._given),
            "step": self._step,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        self._given, self._step = dict(state["given"]), int(state["step"])
        with self._lock:
            self._waiting, self._own, self._open = dict(state["waiting"]), frozenset(state["own"]), bool(state["open"])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


def _with(parts: Mapping[str, float], signals: Mapping[str, float]) -> dict[str, float]:
    return {**parts, **{name: parts.get(name, 0.0) + value for name, value in signals.items()}}
