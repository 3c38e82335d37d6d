"""Perturbed tasks for a share of the episodes: for training on them, or for measuring."""

from collections.abc import Sequence
from typing import Any

import gymnasium

from agent_gym.core.perturbation import KINDS, Perturbation
from agent_gym.core.seeding import derive
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.wrappers.rich import RichWrapper

__all__ = ["PerturbTasks"]


class PerturbTasks(RichWrapper):
    """Perturbs the tasks of a share of the resets, by the option ``perturbation``, which goes into the episode's record.

    Which ones and how follows from the seed of the last reset that was given one, and the resets since. A reset whose options say
    themselves what is perturbed is left alone.

    Args:
        env: An `AgentEnv`, or wrappers around one.
        share: How often, from 0 to 1.
        kinds: What is perturbed, all of it at once: of ``wording``, ``interface`` and ``state``.
        strength: ``mild`` or ``strong``.

    Raises:
        ConfigurationError: An argument does not fit, or it stands in a wrong place.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], share: float = 0.5, kinds: Sequence[str] = ("wording",), strength: str = "mild"
    ) -> None:
        super().__init__(env, share=share, kinds=list(kinds) if isinstance(kinds, tuple) else kinds, strength=strength)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ConfigurationError(f"PerturbTasks: share must be from 0 to 1, got {share!r}")
        if not isinstance(kinds, list | tuple) or not kinds:
            raise ConfigurationError(f"PerturbTasks: kinds must be a list of {', '.join(KINDS)}, got {kinds!r}")
        for kind in kinds:
            if kind not in KINDS:
                raise unknown("kind of perturbation", kind, KINDS)
        self._share = share
        self._perturbation = Perturbation(**dict.fromkeys(kinds, True), strength=strength)
        self._root: int | None = None
        self._number = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode, perturbed or not."""
        if seed is not None or self._root is None:
            self._root, self._number = int(self.np_random.integers(2**62)) if seed is None else seed, 0
        else:
            self._number += 1
        rng = derive("perturb tasks", self._root, self._number)
        if rng.random() < self._share and "perturbation" not in (options or {}):
            drawn = {**self._perturbation.to_dict(), "seed": int(rng.integers(2**62))}
            options = {**(options or {}), "perturbation": drawn}
        return super().reset(seed=seed, options=options)

    def save_state(self) -> Any:
        """Where it is in its draws."""
        return [self._root, self._number]

    def load_state(self, state: Any) -> None:
        """Goes on drawing from there."""
        self._root, self._number = state
