"""``agent-gym check clean-start``: whether episodes start clean where many environments live side by side."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import gymnasium

from agent_gym.core.seeding import derive
from agent_gym.core.verdict import Check
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation.checks.playing import opened
from agent_gym.evaluation.checks.sampling import drawn_action
from agent_gym.evaluation.schedule import episode_seed
from agent_gym.wrappers import StateLeakCheck

__all__ = ["check_clean_start"]

_MOST_STEPS = 50


def check_clean_start(
    env_id: str,
    *,
    split: str = "train",
    envs: int = 64,
    sample: int = 10,
    episodes: int = 2,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[Check]:
    """Plays random episodes in many environments in turns, and compares some of them with fresh ones; see `StateLeakCheck`.

    Args:
        env_id: An environment of this package.
        split: The split that tasks are drawn from.
        envs: Environments side by side in this process, from 1.
        sample: How many of them are compared.
        episodes: Episodes in each before that, from 1.
        seed: Of the episodes, the actions and the sample.
        env_kwargs: Further keywords of the environment.
        progress: Called with how many episodes have begun, and of how many.

    Returns:
        A check for each channel in which something was left behind; one that has passed if there is none.

    Raises:
        ConfigurationError: There is no such environment or keyword, or a number does not fit.
        SandboxUnavailable: The tasks run code, and this machine cannot isolate it.
    """
    if not 1 <= sample <= envs or episodes < 1:
        raise ConfigurationError(
            f"sample must be in 1 to envs and episodes at least 1, got sample {sample}, envs {envs}, {episodes} episodes"
        )
    watched = {int(index) for index in derive("clean-start", seed).permutation(envs)[:sample]}
    found: Counter[str] = Counter()
    told: dict[str, str] = {}
    with ExitStack() as stack:
        running: list[gymnasium.Env[Any, Any]] = []
        for index in range(envs):
            env = stack.enter_context(opened(env_id, split, env_kwargs or {}, "array"))
            running.append(StateLeakCheck(env, every=episodes + 1, sample=1, on_leak="record") if index in watched else env)
            env.action_space.seed(index)
        for episode in range(episodes + 1):
            for index, env in enumerate(running):
                _, info = env.reset(seed=episode_seed(seed, index) if episode == 0 else None)
                if progress is not None:
                    progress(episode * envs + index + 1, (episodes + 1) * envs)
                for leak in info.get("leaks", ()):
                    found[leak["channel"]] += 1
                    fresh = "" if leak["fresh"] is None else f", in a fresh instance {leak['fresh']!r}"
                    told.setdefault(leak["channel"], f"{info['task_id']}: {leak['value']!r}{fresh}")
            if episode < episodes:
                _play(running)
    compared = f"{sample} of {envs} environments, after {episodes} episodes in each"
    if not found:
        return [Check("every_episode_starts_clean", True, compared)]
    return [Check(channel, False, f"in {count} of {sample}; {told[channel]}") for channel, count in found.items()]


def _play(running: list[gymnasium.Env[Any, Any]]) -> None:
    """One episode in each, step by step in turns, with actions that are drawn."""
    for _ in range(_MOST_STEPS):
        going = []
        for env in running:
            _, _, terminated, truncated, _ = env.step(drawn_action(env))
            if not (terminated or truncated):
                going.append(env)
        running = going
