"""What the wrappers that change rewards share: the reward is the sum of its named parts, in `info` and in the record too."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.agent_env import AgentEnv
from agent_gym.core.record import StepRecord
from agent_gym.errors import ConfigurationError
from agent_gym.factory import load_object
from agent_gym.interface import Interface
from agent_gym.interface.base import offering

__all__ = ["RewardWrapper", "Transition", "agent_env", "called_by_name"]

_CLOSE = 1e-6


@dataclass(frozen=True)
class Transition:
    """One step, as what rewards it sees it.

    Attributes:
        observation: The observation after the step, as it is where the wrapper is.
        action: What ``step`` was given.
        parts: The parts beneath.
        terminated: Whether the task has ended.
        truncated: Whether the episode was cut short.
        info: The step's.
        record: All about the step, for `AggregateReward`; None for environments that make no records.
        history: The steps so far, the reset first and this one last: dicts of ``call`` (``{"name", "arguments"}`` or None),
            ``status``, ``invalid``, ``result``, ``digest`` and ``milestones`` (how many are reached). Empty without records.
        milestones: How many milestones the task has.
    """

    observation: Any
    action: Any
    parts: dict[str, float]
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
    record: StepRecord | None = None
    history: Sequence[Mapping[str, Any]] = ()
    milestones: int = 0

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


class RewardWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Puts other parts in the place of a step's reward parts; the reward is their sum.

    It works on either side of an interface, and around any other environment, whose reward then is one part, ``reward``. A step
    whose reward is not valid passes through as it is. Where an environment beneath resets itself, its first observation is no step.

    Args:
        env: The environment, or wrappers around one.

    Raises:
        ConfigurationError: What is beneath must be outside of this.
    """

    outermost: ClassVar[bool] = False
    """Whether no other wrapper of rewards may go around it."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        for inner in _beneath(env):
            if isinstance(inner, RewardWrapper) and inner.outermost:
                raise ConfigurationError(f"{type(self).__name__} must be inside {type(inner).__name__}, which scales the whole reward")
        self._records = offering(env, "last_record")
        self._ended = False
        self._parts: dict[str, float] | None = None
        self._known = True
        self._gaps: tuple[str, ...] = ()

    @abstractmethod
    def _begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """An episode begins."""

    @abstractmethod
    def _rewarded(self, now: Transition) -> dict[str, float] | None:
        """The parts in the place of ``now.parts``, which may be changed; None where the reward is unknown."""

    def _spoiled(self, observation: Any) -> None:
        """The reward of this step is unknown: the environment itself failed, or no source beneath could tell."""

    def _saved(self) -> dict[str, Any]:
        """What `_load` needs, as JSON values."""
        return {}

    def _load(self, state: Mapping[str, Any]) -> None:
        """Takes up what `_saved` gave."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._start(observation, info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps the environment.

        Raises:
            ConfigurationError: Something beneath has changed the reward and not its parts.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._ended:  # an environment beneath has reset itself
            self._start(observation, info)
            return observation, float(reward), terminated, truncated, info
        self._ended = bool(terminated or truncated)
        self._parts, self._known, self._gaps = None, True, ()
        if not info.get("reward_valid", True):
            self._spoiled(observation)
            return observation, float(reward), terminated, truncated, info
        parts = dict(info["reward_parts"]) if "reward_parts" in info else {"reward": float(reward)}
        if "reward_parts" in info and not math.isclose(sum(parts.values()), float(reward), rel_tol=_CLOSE, abs_tol=_CLOSE):
            raise ConfigurationError(
                f"beneath {type(self).__name__} the reward is {float(reward):g} and its parts sum to {sum(parts.values()):g}: "
                "put what changes only the reward outside of it"
            )
        made = self._rewarded(Transition(observation, action, parts, bool(terminated), bool(truncated), info))
        self._parts, self._known = made or {}, made is not None
        self._tell(info)
        return observation, float(sum(self._parts.values())), terminated, truncated, info

    def _tell(self, info: dict[str, Any]) -> None:
        if self._parts is not None:
            info["reward_parts"] = dict(self._parts)
        if not self._known:
            info["reward_valid"] = False
        if self._gaps:
            info["gaps"] = [*info.get("gaps", ()), *self._gaps]

    @property
    def last_record(self) -> StepRecord:
        """All about the last step, with the reward as it is here."""
        record: StepRecord = self._records.last_record
        if self._parts is None:
            return record
        return replace(
            record,
            reward=float(sum(self._parts.values())) if self._known else None,
            reward_parts=dict(self._parts),
            reward_valid=self._known,
            gaps=(*record.gaps, *self._gaps),
        )

    def save_state(self) -> dict[str, Any]:
        """What `load_state` needs to go on from here, as JSON values."""
        shown = {"parts": self._parts, "known": self._known, "gaps": list(self._gaps)}
        return {"ended": self._ended, **shown, **self._saved()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes up what `save_state` gave."""
        self._ended = bool(state["ended"])
        self._parts = None if state["parts"] is None else dict(state["parts"])
        self._known, self._gaps = bool(state["known"]), tuple(state["gaps"])
        self._load(state)

    def get_state(self) -> dict[str, Any]:
        """The episode's state as JSON values, where this is around an interface; inside one, the interface's `get_state` has all."""
        state: dict[str, Any] = self.env.get_wrapper_attr("get_state")()
        return {**state, "outside": [*state.get("outside", ()), self.save_state()]}

    def set_state(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Goes back to a state of `get_state`; gives the observation and info there.

        Raises:
            ConfigurationError: It is no such state.
        """
        if not state.get("outside"):
            raise ConfigurationError(f"not a state of these wrappers: nothing in it is {type(self).__name__}'s")
        *others, own = state["outside"]
        observation, info = self.env.get_wrapper_attr("set_state")({**state, "outside": others})
        self.load_state(own)
        self._tell(info)
        return observation, info

    def _start(self, observation: Any, info: Mapping[str, Any]) -> None:
        self._ended = False
        self._parts, self._known, self._gaps = None, True, ()
        self._begin(observation, info)


def _beneath(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """An environment and all that is inside it, through the interface."""
    while True:
        yield env
        if isinstance(env, gymnasium.Wrapper):
            env = env.env
        elif isinstance(env, Interface):
            env = env.rich
        else:
            return


def agent_env(env: gymnasium.Env[Any, Any]) -> AgentEnv | None:
    """The environment of this package inside, if there is one."""
    *_, inner = _beneath(env)
    return inner if isinstance(inner, AgentEnv) else None


def called_by_name(given: str | Callable[..., Any]) -> tuple[Callable[..., Any], str]:
    """A function that is given by its import string, or as it is; and the import string, for the spec.

    Raises:
        ConfigurationError: The string names nothing, or nothing that can be called.
    """
    if isinstance(given, str):
        found = load_object(given)
        if not callable(found):
            raise ConfigurationError(f"{given!r} names a {type(found).__name__}, which cannot be called")
        return found, given
    if not callable(given):
        raise ConfigurationError(f"a function or its import string is needed, got {given!r}")
    kind = given if hasattr(given, "__qualname__") else type(given)
    return given, f"{kind.__module__}:{kind.__qualname__}"
