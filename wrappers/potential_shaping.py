"""Rewards progress by a potential, which changes how fast a policy is learned and not which one is best."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.errors import ConfigurationError
from agent_gym.wrappers.reward_wrapper import RewardWrapper, Transition, called_by_name

__all__ = ["PotentialShaping"]


class PotentialShaping(RewardWrapper):
    """Adds γΦ(s′) − Φ(s) to every reward, as a part of its own (Ng, Harada and Russell, ICML 1999).

    The end of the task has the potential 0: over an episode that terminates, the discounted sum is −Φ(s₀) whatever the agent does.
    A truncated episode keeps the potential of its last observation, since the learner goes on from there with a value.

    Args:
        env: Any environment.
        phi: Import string of a function of an observation (as it is here) that gives its potential, a finite number.
        gamma: The learner's γ, in (0, 1].
        name: The part's name.

    Raises:
        ConfigurationError: An argument does not fit.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], phi: str | Callable[[Any], float], gamma: float, name: str = "potential") -> None:
        self._phi, shown = called_by_name(phi)
        RecordConstructorArgs.__init__(self, phi=shown, gamma=gamma, name=name)
        super().__init__(env)
        if not isinstance(gamma, int | float) or not 0.0 < gamma <= 1.0:
            raise ConfigurationError(f"gamma must be in (0, 1], got {gamma!r}")
        self._gamma, self._name = float(gamma), name
        self._shown = shown
        self._before = 0.0

    def _begin(self, observation: Any, info: Mapping[str, Any]) -> None:  # noqa: ARG002 - only what is seen counts
        self._before = self._potential(observation)

    def _rewarded(self, now: Transition) -> dict[str, float]:
        if self._name in now.parts:
            raise ConfigurationError(f"there is a part {self._name!r} of the reward already; give PotentialShaping another name")
        after = 0.0 if now.terminated else self._potential(now.observation)
        now.parts[self._name] = self._gamma * after - self._before
        self._before = after
        return now.parts

    def _spoiled(self, observation: Any) -> None:
        if not self._ended:  # the next step starts from here all the same
            self._before = self._potential(observation)

    def _potential(self, observation: Any) -> float:
        value = float(self._phi(observation))
        if not math.isfinite(value):
            raise ConfigurationError(f"the potential {self._shown} gave {value}; it must be finite")
        return value

    def _saved(self) -> dict[str, Any]:
        return {"potential": self._before}

    def _load(self, state: Mapping[str, Any]) -> None:
        self._before = float(state["potential"])
