"""The array interface, for learners: fixed-size features out, the index of a candidate call in."""

from collections.abc import Mapping
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from agent_gym.core.action import ToolCall
from agent_gym.errors import ConfigurationError, InvalidAction
from agent_gym.interface.base import Interface
from agent_gym.interface.candidates import Toolbox
from agent_gym.interface.features import CANDIDATE_SIZE, CANDIDATES, DATA_SIZE, TEXT_SIZE, Encoder

__all__ = ["ArrayInterface"]


class ArrayInterface(Interface):
    """Encodes observations as arrays and offers `CANDIDATES` calls to choose from.

    Observations are ``{"text": float32[D], "data": float32[M], "candidates": float32[K·C], "action_mask": int8[K]}`` with every
    float within [−1, 1]; D, M, K and C are the same for every id. Where there is something to see, ``image: uint8[H, W, 3]`` comes
    with them as it is. The action is an index below K; one that is masked out is an
    invalid action and costs a step.
    """

    def __init__(self, rich: gymnasium.Env[Any, Any]) -> None:
        super().__init__(rich)
        self.observation_space = Dict(
            {
                "text": Box(-1.0, 1.0, (TEXT_SIZE,), np.float32),
                "data": Box(-1.0, 1.0, (DATA_SIZE,), np.float32),
                "candidates": Box(-1.0, 1.0, (CANDIDATES * CANDIDATE_SIZE,), np.float32),
                "action_mask": Box(0, 1, (CANDIDATES,), np.int8),
            }
        )
        shown = cast("Dict", rich.observation_space).spaces
        self._pictured = "image" in shown
        if self._pictured:
            self.observation_space = Dict({**self.observation_space.spaces, "image": shown["image"]})
        self.action_space = Discrete(CANDIDATES)
        self._toolbox: Toolbox | None = None
        self._encoder: Encoder | None = None
        self._mask: NDArray[np.int8] = np.zeros(CANDIDATES, np.int8)
        self._seen: list[dict[str, Any]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode; see `AgentEnv.reset`."""
        super().reset(seed=seed)
        observation, info = self.rich.reset(seed=seed, options=options)
        self._begin()
        return self._encode(observation, info), info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carries out the candidate of that index; see `AgentEnv.step`."""
        observation, reward, terminated, truncated, info = self.rich.step(self.call_of(action))
        return self._encode(observation, info), float(reward), terminated, truncated, self._with_ending(info, truncated)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which indices stand for a candidate: ``bool[K]`` (the name that SB3's MaskablePPO looks for)."""
        return self._mask.astype(bool)

    def call_of(self, action: Any) -> ToolCall | InvalidAction:
        """The call that an index stands for, or what is wrong with the index; a `ToolCall`, as a replay gives it, stands for itself."""
        if isinstance(action, ToolCall | InvalidAction):
            return action
        if isinstance(action, np.ndarray) and action.size == 1:
            action = action.item()
        if isinstance(action, bool) or not isinstance(action, int | np.integer):
            return InvalidAction(f"action: a {type(action).__name__} is no index; give one below {len(self.candidates)}")
        index = int.__index__(action) if isinstance(action, int) else int(action)
        calls = self._encoder.calls if self._encoder is not None else []
        if not 0 <= index < len(calls):
            return InvalidAction(
                f"action: index {index if abs(index) < 10**6 else '(huge)'} stands for no candidate; there are {len(calls)}"
            )
        return calls[index]

    @property
    def candidates(self) -> tuple[ToolCall, ...]:
        """The calls on offer, by index."""
        return tuple(self._encoder.calls) if self._encoder is not None else ()

    def get_state(self) -> dict[str, Any]:
        """The episode's state as JSON values, with what has been read so far."""
        return {**super().get_state(), "seen": list(self._seen)}

    def set_state(self, state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Goes back to a state of `get_state`; gives the observation and info there."""
        if not state.get("seen"):
            raise ConfigurationError("a state of another interface: the array interface needs what was seen so far")
        observation, info = super().set_state(state)
        self._begin()
        *earlier, newest = state["seen"]
        for data in earlier:
            self._encode({**observation, "data": data}, {"gaps": []})
        return self._encode({**observation, "data": newest}, info), info

    def _begin(self) -> None:
        if self._toolbox is None or self._toolbox.tools != self.tools:
            self._toolbox = Toolbox(self.tools)
        self._encoder = Encoder(self.task.goal, self._toolbox)
        self._seen = []

    def _encode(self, observation: Mapping[str, Any], info: dict[str, Any]) -> dict[str, Any]:
        if self._encoder is None:
            self._begin()
        assert self._encoder is not None
        data = observation["data"]
        self._seen.append({key: data[key] for key in ("step", "max_steps", "last", "view", "asks") if key in data})
        encoded = self._encoder.encode(data)
        self._mask = encoded["action_mask"].copy()
        info["gaps"] = [*info["gaps"], *self._encoder.gaps]
        if self._pictured:
            encoded["image"] = observation["image"]
        return encoded
