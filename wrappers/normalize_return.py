"""Brings the returns of different kinds of task to one scale, so that none drowns the others."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.errors import ConfigurationError
from agent_gym.wrappers.reward_wrapper import RewardWrapper, Transition

__all__ = ["NormalizeReturn"]

_ENOUGH = 8
_NOTHING = 1e-8


class NormalizeReturn(RewardWrapper):
    """Divides rewards by the size of recent returns of the same kind of task.

    The size is the root mean square of the discounted returns of the last ``window`` episodes of that kind, beneath this wrapper. It
    is taken anew at every reset and holds for the whole episode. Rewards are scaled and never shifted: signs, zeros and the order
    of policies stay. Until a few episodes of a kind have ended, and while all its returns are 0, the scale is 1. An episode that
    was cut short counts with what it brought; one in which the reward of a step is unknown does not count.

    Each environment keeps its own windows, and they outlive a reset with a seed. It is the outermost of the reward wrappers.

    Args:
        env: Any environment.
        window: Episodes of a kind that are looked back at, from 8.
        gamma: The learner's γ, in (0, 1].
        per: The key of ``info`` that says what kind of task an episode is of; None takes all for one kind.

    Raises:
        ConfigurationError: An argument does not fit; at a reset, that ``info`` has no such key.
    """

    outermost: ClassVar[bool] = True

    def __init__(self, env: gymnasium.Env[Any, Any], window: int = 100, gamma: float = 0.98, per: str | None = "task_type") -> None:
        RecordConstructorArgs.__init__(self, window=window, gamma=gamma, per=per)
        super().__init__(env)
        if not isinstance(window, int) or window < _ENOUGH:
            raise ConfigurationError(f"window must be a whole number of episodes, at least {_ENOUGH}, got {window!r}")
        if not isinstance(gamma, int | float) or not 0.0 < gamma <= 1.0:
            raise ConfigurationError(f"gamma must be in (0, 1], got {gamma!r}")
        self._window, self._gamma, self._per = window, float(gamma), per
        self._returns: dict[str, deque[float]] = {}
        self._kind = ""
        self._steps = 0
        self._return = 0.0
        self._known_so_far = True
        self._scale = 1.0

    @property
    def scales(self) -> dict[str, float]:
        """What the rewards of the next episode of each kind will be divided by."""
        return {kind: self._size(kind) for kind in self._returns}

    def _begin(self, observation: Any, info: Mapping[str, Any]) -> None:  # noqa: ARG002 - only its kind counts
        self._count()
        if self._per is not None and self._per not in info:
            raise ConfigurationError(f"NormalizeReturn: the info of {self.env} has no {self._per!r}; give per=None, or another key")
        self._kind = "" if self._per is None else str(info[self._per])
        self._scale = self._size(self._kind)

    def _rewarded(self, now: Transition) -> dict[str, float]:
        self._return += self._gamma**self._steps * sum(now.parts.values())
        self._steps += 1
        if now.ended:
            self._count()
        return {name: value / self._scale for name, value in now.parts.items()}

    def _spoiled(self, observation: Any) -> None:  # noqa: ARG002 - whatever it shows
        self._known_so_far = False

    def _count(self) -> None:
        """Puts the episode's return into the window, if there was one."""
        if self._steps and self._known_so_far and math.isfinite(self._return):
            self._returns.setdefault(self._kind, deque(maxlen=self._window)).append(self._return)
        self._steps, self._return, self._known_so_far = 0, 0.0, True

    def _size(self, kind: str) -> float:
        returns = self._returns.get(kind, ())
        if len(returns) < _ENOUGH:
            return 1.0
        size = math.sqrt(math.fsum(value * value for value in returns) / len(returns))
        return size if size > _NOTHING else 1.0

    def _saved(self) -> dict[str, Any]:
        returns = {kind: list(values) for kind, values in self._returns.items()}
        episode = {"kind": self._kind, "steps": self._steps, "return": self._return, "whole": self._known_so_far}
        return {"returns": returns, "scale": self._scale, **episode}

    def _load(self, state: Mapping[str, Any]) -> None:
        self._returns = {kind: deque(values, maxlen=self._window) for kind, values in state["returns"].items()}
        self._kind, self._steps = str(state["kind"]), int(state["steps"])
        self._return, self._scale, self._known_so_far = float(state["return"]), float(state["scale"]), bool(state["whole"])
