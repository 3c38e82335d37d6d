"""Plays a policy on chosen tasks, records every episode, and summarizes the record."""

import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import gymnasium

from agent_gym.core.perturbation import Perturbation
from agent_gym.core.policy import Policy
from agent_gym.core.seeding import derive_seed
from agent_gym.errors import ConfigurationError, InfrastructureError, SandboxUnavailable
from agent_gym.evaluation import frozen
from agent_gym.evaluation.metrics import by_task, summarize
from agent_gym.evaluation.schedule import episode_seed, keywords, schedule
from agent_gym.trajectories.store import Run, TrajectoryStore
from agent_gym.trajectories.versions import versions
from agent_gym.wrappers.record_trajectory import RecordTrajectory

__all__ = ["DEFAULT_EPISODES", "evaluate", "open_run"]

DEFAULT_EPISODES = 200


@dataclass
class _Episode:
    """One episode that is being played. Its id says nothing but its number, so that equal seeds give equal episodes."""

    id: str
    env: RecordTrajectory
    observation: Any


def evaluate(
    policy: Policy,
    env_id: str,
    *,
    episodes: int | None = None,
    split: str = "test",
    seed: int = 0,
    tasks: str | Path | Sequence[str] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    store: str | Path | TrajectoryStore | Run | None = None,
    batch: int = 16,
    perturbation: Perturbation | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measures a policy.

    All tasks are drawn before the first episode, and each episode has its own seed: neither the batch size nor the order in which
    episodes end changes what is played. The policy sees ids ``"<seed>-<number>"``. The environment's own failures are kept apart
    as ``infra_errors``, and are no failures of the policy.

    Args:
        policy: Who acts; its ``interface`` decides what it sees.
        env_id: Gymnasium id, with or without ``agent_gym:``.
        episodes: How many to play (200 by default), drawn uniformly over families, then over a family's tasks. With ``tasks`` alone
            each of those is played once.
        split: The split to draw from.
        seed: Of the draw, of the episodes and of the bootstrap.
        tasks: Families, task ids, or a file of task ids or families, one a line, or of frozen tasks, which come with their keywords,
            seeds and options.
        env_kwargs: Further keywords of the environment. ``families``, ``difficulty`` and ``task_ids`` narrow the draw too.
        store: Where the episodes are kept; a `Run` is joined. Without it they are forgotten once they have been measured.
        batch: Episodes played side by side.
        perturbation: What is perturbed in every episode, each with a seed of its own that follows from this one's.
        progress: Called with the number of episodes done and of all, after each.

    Returns:
        ``policy, env_id, split, episodes, success_rate, success_ci95, success_macro, success_macro_ci95, reward_mean, turns_mean,
        invalid_action_rate, tool_success_rate, retries_mean, faults_mean, retry_safety, infra_errors, by_task_type,
        by_capability, by_task, seed, versions``; `summarize` and `by_task` say what they mean.

    Raises:
        ConfigurationError: An argument names something that does not exist, or does not fit.
        StoreError: The episodes cannot be kept.
        SandboxUnavailable: The tasks run code, and this machine cannot isolate it.
    """
    if batch < 1 or (episodes is not None and episodes < 1):
        raise ConfigurationError(f"batch and episodes must be at least 1, got {batch} and {episodes}")
    regression = frozen.read(tasks)
    given = keywords(split, frozen.settings(regression, env_id, env_kwargs))
    if tasks is None and episodes is None:
        episodes = DEFAULT_EPISODES
    with ExitStack() as stack:
        run = open_run(store, stack, policy, env_id, seed)

        def make() -> RecordTrajectory:
            source = "oracle" if policy.name == "oracle" else "policy"
            env = gymnasium.make(env_id, interface=policy.interface, disable_env_checker=True, **given)
            recorded = RecordTrajectory(env, run, source=source, policy_id=policy.name)
            stack.callback(recorded.close)
            return recorded

        first = make()
        starts: list[str | frozen.FrozenTask]
        if regression:
            starts = list(islice(cycle(regression), episodes or len(regression)))
        else:
            starts = list(schedule(first.task_set, split, episodes, seed, tasks, given))
        envs = [first, *(make() for _ in range(min(batch, len(starts)) - 1))]
        played = _play(policy, envs, starts, seed, perturbation, progress)
        for env in envs:
            env.close()
        kept = TrajectoryStore(run.path)
        kept.seal(run.run_id)
        rows = [row for row in kept.episodes(run_id=run.run_id) if row["episode_id"] in played]
    splits = sorted({row["split"] for row in rows if row["split"]})
    summary = summarize(rows, seed=seed)
    return {
        "policy": policy.name,
        "env_id": env_id.rpartition(":")[2],
        "split": regression[0].split if regression else ",".join(splits) or split,
        **summary,
        "by_task": by_task(rows),
        "seed": seed,
        "versions": versions(),
    }


def open_run(store: str | Path | TrajectoryStore | Run | None, stack: ExitStack, policy: Policy, env_id: str, seed: int) -> Run:
    """A run in a store; that which is given, or one that is forgotten with the stack where nothing is."""
    if isinstance(store, Run):
        return store
    if store is None:
        store = stack.enter_context(tempfile.TemporaryDirectory(prefix="agent_gym-"))
    if not isinstance(store, TrajectoryStore):
        store = TrajectoryStore(store)
    return store.open_run(policy=policy.name, env_id=env_id, seed=seed)


def _play(
    policy: Policy,
    envs: Sequence[RecordTrajectory],
    starts: Sequence[str | frozen.FrozenTask],
    seed: int,
    perturbation: Perturbation | None,
    progress: Callable[[int, int], None] | None,
) -> set[str]:
    """Plays every task, an environment each in turn; gives the ids under which the episodes are kept."""
    waiting = deque(enumerate(starts))
    free = deque(envs)
    live: list[_Episode] = []
    played: set[str] = set()

    def finish(env: RecordTrajectory) -> None:
        played.add(str(env.episode_id))
        free.append(env)
        if progress is not None:
            progress(len(played), len(starts))

    while waiting or live:
        fresh = []
        while waiting and free:
            number, start = waiting.popleft()
            env = free.popleft()
            options: dict[str, Any] = {}
            if perturbation is not None:
                options["perturbation"] = replace(perturbation, seed=derive_seed(perturbation.seed, number)).to_dict()
            try:
                if isinstance(start, str):
                    observation, _ = env.reset(seed=episode_seed(seed, number), options={"task_id": start, **options})
                else:
                    observation, _ = start.begin(env, **options)
            except SandboxUnavailable:
                raise  # no episode can start on this machine: that is no figure about a policy
            except InfrastructureError:
                finish(env)  # it is in the record, with what failed
                continue
            fresh.append(_Episode(f"{seed}-{number:06d}", env, observation))
        if fresh:
            policy.reset([episode.id for episode in fresh])
            live += fresh
        if not live:
            continue
        decisions = policy.act([(episode.id, episode.observation) for episode in live])
        if len(decisions) != len(live):
            raise ConfigurationError(f"policy {policy.name!r} gave {len(decisions)} decisions for {len(live)} episodes")
        going = []
        for episode, decision in zip(live, decisions, strict=True):
            episode.env.notes = {**decision.notes(), "policy_version": policy.version}
            try:
                episode.observation, _, terminated, truncated, _ = episode.env.step(decision.action)
            except InfrastructureError:
                terminated = True
            if terminated or truncated:
                finish(episode.env)
            else:
                going.append(episode)
        live = going
    return played
