"""``agent-gym check spaces``: whether what is shown and what can be done is what the spaces say."""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space

from agent_gym.core.verdict import Check
from agent_gym.evaluation.checks.playing import opened
from agent_gym.evaluation.checks.sampling import Sampled, sampled
from agent_gym.factory import INTERFACES

__all__ = ["check_spaces"]

_SAMPLES = 50


def check_spaces(
    env_id: str, *, split: str = "train", episodes: int = 10, seed: int = 0, env_kwargs: Mapping[str, Any] | None = None
) -> list[Check]:
    """Plays episodes through both interfaces, and holds everything against the spaces.

    Args:
        env_id: An environment of this package.
        split: The split that tasks are drawn from.
        episodes: Episodes through each interface, from 1.
        seed: Of the episodes and of the actions.
        env_kwargs: Further keywords of the environment.

    Returns:
        What was checked, in words, with what was seen.

    Raises:
        ConfigurationError: There is no such environment or keyword.
        SandboxUnavailable: The tasks run code, and this machine cannot isolate it.
    """
    checks = []
    for interface in INTERFACES:
        with opened(env_id, split, env_kwargs or {}, interface) as env:
            checks += [Check(f"{name}_{interface}", not fault, fault or seen) for name, fault, seen in _seen(env, episodes, seed)]
    return checks


def _seen(env: gymnasium.Env[Any, Any], episodes: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Each check's name, what is wrong, and what was seen."""
    steps, shown, done = 0, "", ""
    for each in sampled(env, episodes, seed):
        steps += 1
        shown = shown or _told(each, _outside(env.observation_space, each.observation, "observation"))
        done = done or _told(each, _wrong_action(env, each))
    foreign = next((sample for _ in range(_SAMPLES) if not env.action_space.contains(sample := env.action_space.sample())), None)
    yield "observations_are_in_their_space", shown, f"{steps} observations"
    yield "actions_are_valid", done, f"{steps - episodes} actions"
    yield "samples_are_in_the_action_space", "" if foreign is None else f"{foreign!r} is not", f"{_SAMPLES} samples"


def _told(each: Sampled, fault: str) -> str:
    return f"{each}: {fault}" if fault else ""


def _wrong_action(env: gymnasium.Env[Any, Any], each: Sampled) -> str:
    """What is wrong with the action that was taken, or with the mask that the next one is chosen by."""
    space = env.action_space
    if each.action is not None and not space.contains(each.action):
        return f"the action {each.action!r} is outside {space}"
    if not isinstance(space, Discrete):
        return ""
    if each.info["invalid_action"] and each.action is not None:
        return f"the action {each.action}, which is not masked out, is invalid"
    mask = env.get_wrapper_attr("action_masks")()
    if mask.shape != (space.n,) or not mask.any():
        return f"the mask has shape {mask.shape} and {int(mask.sum())} actions; there are {space.n}"
    return ""


def _outside(space: Space[Any], value: Any, where: str) -> str:
    """In what a value is not of a space; empty if it is."""
    if isinstance(space, Dict):
        if not isinstance(value, dict) or value.keys() != space.keys():
            return f"{where} has {sorted(value)}, not {sorted(space)}" if isinstance(value, dict) else f"{where} is no dict"
        return next((found for name in space if (found := _outside(space[name], value[name], f"{where}.{name}"))), "")
    if isinstance(space, Box):
        if not isinstance(value, np.ndarray):
            return f"{where} is no array: {str(value)[:100]!r}"
        if value.dtype != space.dtype or value.shape != space.shape:
            return f"{where} is {value.dtype}{list(value.shape)}, not {space.dtype}{list(space.shape)}"
        off = ~((value >= space.low) & (value <= space.high))  # not a number is off too
        return f"{where} holds {value[off].flat[0]}, outside [{space.low.min()}, {space.high.max()}]" if off.any() else ""
    return "" if space.contains(value) else f"{where} is outside {space}: {str(value)[:100]!r}"
