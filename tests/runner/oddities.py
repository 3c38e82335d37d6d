"""An environment whose actions make it misbehave, each in its way; what the adapters must survive."""

import os
import signal
import threading
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from agent_gym.core.spaces import Unicode

LOCK = threading.Lock()
STEP, END, CUT, RAISE, HANG, DIE, BREAK = range(7)


class Oddity(gymnasium.Env[Any, Any]):
    """Observations are ``[a number drawn at the reset, steps since then]``, in an array that is filled again and again.

    Args:
        fail: Whether the constructor raises.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own way
    resets_to_fail = 0
    released = threading.Event()

    def __init__(self, render_mode: str | None = None, fail: bool = False) -> None:
        if fail:
            raise ZeroDivisionError("planted in the constructor")
        self.observation_space = Box(0.0, 1e6, (2,), np.float32)
        self.action_space = Discrete(7)
        self.render_mode = render_mode
        self.colour = "grey"
        self._shown = np.zeros(2, np.float32)
        self._info: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if Oddity.resets_to_fail:
            Oddity.resets_to_fail -= 1
            raise OSError("planted in reset")
        self._shown[:] = self.np_random.integers(1, 10**6), 0
        if (options or {}).get("hang"):
            Oddity.released.wait(600)
        self._info.clear()
        self._info.update(steps=0, shared=np.random.random(), options=dict(options or {}))
        return self._shown, self._info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._shown[1] += 1
        if action == RAISE:
            raise ZeroDivisionError("planted in step")
        if action == HANG:
            Oddity.released.wait(600)
        if action == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == BREAK:
            Oddity.resets_to_fail = 4
        steps = int(self._shown[1])
        self._info.update(steps=steps, ragged=np.arange(steps), mixed="odd" if steps % 2 else steps)
        return self._shown, 1.0, bool(action in (END, BREAK)), bool(action == CUT), self._info

    def action_masks(self) -> Any:
        return np.arange(7) < 3

    @property
    def pid(self) -> int:
        return os.getpid()

    def render(self) -> Any:
        return np.full((4, 4, 3), 7, np.uint8)


class Locking(Oddity):
    """Takes a lock of its module."""

    def __init__(self) -> None:
        with LOCK:
            super().__init__()


class Talking(gymnasium.Env[Any, Any]):
    """Says one letter more at each step."""

    def __init__(self) -> None:
        self.observation_space = Dict({"text": Unicode(1000)})
        self.action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.text = ""
        return {"text": self.text}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.text += "aé"[int(action)]
        return {"text": self.text}, 0.0, False, False, {}
