"""``agent-gym check truncation``: whether an episode that was cut short can be told from one that has ended, and learned from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from agent_gym.core.task import Task
from agent_gym.core.verdict import Check, Ending
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation.checks.playing import IDLE, Played, drawn, opened, play
from agent_gym.evaluation.schedule import keywords
from agent_gym.policies import load
from agent_gym.runner.adapters import AgentVectorEnv

__all__ = ["check_truncation"]

Floats = NDArray[np.float64]

_CLOSE = 1e-9
_GAMMA, _LAMBDA = 0.9, 0.8
_MORE = 3
_POLICIES = ("oracle", "noop", "refuse-always", "spam")


def check_truncation(
    env_id: str, *, split: str = "train", episodes: int = 5, seed: int = 0, env_kwargs: Mapping[str, Any] | None = None
) -> list[Check]:
    """Lets episodes run into their step limit, and others end by themselves, alone and in a vector environment.

    Args:
        env_id: An environment of this package.
        split: The split that tasks are drawn from.
        episodes: Tasks that are played by each policy, from 1.
        seed: Of the draw and of the policies.
        env_kwargs: Further keywords of the environment.

    Returns:
        What was checked, in words, with what was seen; all have passed where a learner can tell an end from a cut.

    Raises:
        ConfigurationError: There is no such environment or keyword.
        SandboxUnavailable: The tasks run code, and this machine cannot isolate it.
    """
    if episodes < 1:
        raise ConfigurationError(f"episodes must be at least 1, got {episodes}")
    given = dict(env_kwargs or {})
    task_ids = drawn(env_id, split, given, episodes, seed)
    with opened(env_id, split, given) as env:
        tasks = env.get_wrapper_attr("tasks")
        solvable = all(tasks.get(task_id).oracle_kind != "none" for task_id in task_ids)
        policies = [load(policy, env, seed=seed) for policy in _POLICIES if policy != "oracle" or solvable]
        idle = list(play(env, None, task_ids, seed))
        others = [episode for policy in policies for episode in play(env, policy, task_ids, seed)]
        alone, its_tasks = _rollout(env, seed)
    checks = [
        _at_the_limit(idle, {task_id: tasks.get(task_id).max_steps for task_id in task_ids}),
        _flags([*idle, *others]),
        _closing(others),
        _last_observation(alone),
    ]
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        make = {"interface": "text", "disable_env_checker": True, **keywords(split, given)}
        vector = AgentVectorEnv(env_id, 1, autoreset_mode=mode, env_kwargs=make)
        try:
            rows = list(_vector_rollout(vector, seed, len(alone)))
        finally:
            vector.close()
        checks += _in_a_vector(mode, rows, alone, _by_hand(alone, its_tasks))
    return checks


@dataclass(frozen=True)
class _Row:
    """A step of a rollout, as a learner keeps it; ``step`` counts from 1 in its episode."""

    before: Any
    reward: float
    after: Any
    terminated: bool
    truncated: bool
    step: int


def _rollout(env: gymnasium.Env[Any, Any], seed: int) -> tuple[list[_Row], list[Task]]:
    """One episode that idles into its limit, and the beginning of the next; with the task of each step."""
    rows, tasks = [], []
    observation, _ = env.reset(seed=seed)
    for steps in (env.get_wrapper_attr("task").max_steps, _MORE):
        for step in range(1, steps + 1):
            after, reward, terminated, truncated, _ = env.step(IDLE)
            rows.append(_Row(observation, float(reward), after, bool(terminated), bool(truncated), step))
            tasks.append(env.get_wrapper_attr("task"))
            observation = after
            if terminated or truncated:
                break
        observation, _ = env.reset()
    return rows, tasks


def _vector_rollout(vector: AgentVectorEnv, seed: int, steps: int) -> Iterator[_Row]:
    """The same in a vector environment of one, as a learner collects it."""
    batch, _ = vector.reset(seed=[seed])
    before, step, resetting = _first(batch), 0, False
    while steps:
        batch, rewards, terminations, truncations, infos = vector.step((IDLE,))
        after, terminated, truncated = _first(batch), bool(terminations[0]), bool(truncations[0])
        if resetting:  # the action was ignored, and this is the next episode's first observation
            before, resetting = after, False
            continue
        step, steps = step + 1, steps - 1
        over = terminated or truncated
        at_once = over and vector.autoreset_mode is AutoresetMode.SAME_STEP
        yield _Row(before, float(rewards[0]), infos["final_obs"][0] if at_once else after, terminated, truncated, step)
        before, resetting = after, over and not at_once
        step = 0 if over else step


def _first(batch: Any) -> Any:
    return {name: _first(part) for name, part in batch.items()} if isinstance(batch, dict) else batch[0]


def _at_the_limit(idle: Sequence[Played], limits: Mapping[str, int]) -> Check:
    """An episode in which nothing happens is cut at its step limit, and is no end of the task."""
    name = "the_step_limit_truncates"
    for episode in idle:
        last, count, limit = episode.steps[-1], len(episode.steps), limits[episode.task_id]
        seen = f"{episode.task_id} after {count} steps: ending {episode.ending!r}, terminated {last.terminated}, truncated {last.truncated}"
        if (episode.ending, last.terminated, last.truncated) != (Ending.STEP_LIMIT, False, True) or count != limit:
            return Check(name, False, f"{seen}; its limit is {limit}")
    return Check(name, True, f"{len(idle)} episodes")


def _flags(played: Sequence[Played]) -> Check:
    """Every ending is either of the task or of the patience with it, and the flags say which."""
    name, endings = "flags_agree_with_the_ending", set()
    for episode in played:
        last = episode.steps[-1]
        endings.add(episode.ending)
        ends = bool(episode.ending) and Ending(episode.ending).terminates
        if not episode.ending or (last.terminated, last.truncated) != (ends, not ends):
            seen = f"{episode.policy} on {episode.task_id}: ending {episode.ending!r}, terminated {last.terminated}"
            return Check(name, False, f"{seen}, truncated {last.truncated}")
    return Check(name, True, ", ".join(sorted(endings)))


def _closing(played: Sequence[Played]) -> Check:
    """Closing an episode terminates it."""
    name = "closing_terminates"
    closed = [episode for episode in played if episode.policy == "noop"]
    for episode in closed:
        if not episode.steps[-1].terminated:
            return Check(name, False, f"{episode.task_id}: finish() ended it as {episode.ending!r}, and not terminated")
    return Check(name, True, f"{len(closed)} episodes")


def _last_observation(rows: Sequence[_Row]) -> Check:
    """What is shown after the last step of a truncated episode is that episode's."""
    name = "the_final_observation_is_real"
    for row in rows:
        same = row.after["data"]["goal"] == row.before["data"]["goal"]
        if row.after["data"]["step"] != row.step or not same:
            seen = f"after step {row.step} the observation is of step {row.after['data']['step']}"
            return Check(name, False, seen + ("" if same else ", and of another goal"))
    return Check(name, True, f"{len(rows)} steps")


def _in_a_vector(mode: AutoresetMode, rows: Sequence[_Row], alone: Sequence[_Row], expected: Floats) -> Iterator[Check]:
    """A vector environment hands on the same, and what is computed from its rows is what it is by hand."""
    where = mode.name.lower()
    same = all(
        (one.after, one.reward, one.terminated, one.truncated) == (other.after, other.reward, other.terminated, other.truncated)
        for one, other in zip(rows, alone, strict=True)
    )
    yield Check(f"a_vector_environment_says_the_same_{where}", same, f"{len(rows)} steps")
    off = float(np.abs(_advantages(rows) - expected).max())
    yield Check(f"the_bootstrapped_value_is_right_{where}", off <= _CLOSE, f"advantages differ by {off:.3g} at most, in {len(rows)} steps")


def _value(goal: str, step: int, max_steps: int) -> float:
    """A critic: any function will do that tells one observation from another."""
    return 1.0 + step / max_steps + len(goal) / 1000.0


def _advantages(rows: Sequence[_Row]) -> Floats:
    """Generalised advantages as a learner computes them: from the last row to the first, from nothing but the rows."""
    advantages, following = np.zeros(len(rows)), 0.0
    for index in reversed(range(len(rows))):
        row = rows[index]
        before, after = (_value(data["goal"], data["step"], data["max_steps"]) for data in (row.before["data"], row.after["data"]))
        following *= 0.0 if row.terminated or row.truncated else _GAMMA * _LAMBDA
        following += row.reward + (0.0 if row.terminated else _GAMMA * after) - before
        advantages[index] = following
    return advantages


def _by_hand(rows: Sequence[_Row], tasks: Sequence[Task]) -> Floats:
    """The same from what must be so: nothing ends by itself, and the value after each step is that of this task and step."""
    deltas = []
    for row, task in zip(rows, tasks, strict=True):
        before, after = (_value(task.goal, step, task.max_steps) for step in (row.step - 1, row.step))
        deltas.append(row.reward + _GAMMA * after - before)
    advantages = np.zeros(len(rows))
    for index, task in enumerate(tasks):
        same = [
            number for number in range(index, len(rows)) if rows[number].step - rows[index].step == number - index and tasks[number] is task
        ]
        advantages[index] = sum((_GAMMA * _LAMBDA) ** (number - index) * deltas[number] for number in same)
    return advantages
