"""Admission: which families of tasks may be trained on and measured with, decided by what scripted policies score.

A family that doing nothing, trying everything or always refusing can solve rewards the wrong thing; one that its oracle cannot
solve is broken; one that random play or the heuristic solves teaches nothing; one whose oracle always does the same is learned by
heart.
"""

import functools
import multiprocessing
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import gymnasium

from agent_gym.core.policy import Policy
from agent_gym.core.seeding import derive
from agent_gym.core.task import TaskSet
from agent_gym.errors import AgentGymError
from agent_gym.evaluation.evaluate import evaluate
from agent_gym.policies import load
from agent_gym.policies.scripted import CheatPolicy
from agent_gym.registry import IDS, OUTSIDE
from agent_gym.trajectories.store import TrajectoryStore
from agent_gym.world import WorldTaskSet

__all__ = ["BOUNDS", "CHEATS", "AdmissionRow", "admit", "admit_all", "faults_of_worlds"]

CHEATS = "cheats"
"""Under this name stands the best of a family's own cheats (`agent_gym.world.Family`)."""

BOUNDS: dict[str, tuple[float, float]] = {
    "oracle": (1.0, 1.0),
    "noop": (0.0, 0.0),
    "spam": (0.0, 0.0),
    "refuse-always": (0.0, 0.0),
    "finish-early": (0.0, 0.0),
    CHEATS: (0.0, 0.0),
    "first-candidate": (0.0, 0.05),
    "random": (0.0, 0.05),
    "heuristic": (0.0, 0.8),
}
"""Lowest and highest success rate that each policy may have on a family. Refusing at once earns nothing even where refusing is right:
the record that shows why was not read. The order in which calls are offered must tell as little as chance does."""

_MOSTLY = 0.5
"""Below this the heuristic must stay on most families of a world."""
_WAYS = 3
"""In so many ways at least, sequences of tools, an oracle solves the tasks of a world's family."""
_ORACLE_TASKS = 40
"""How many tasks of a family the oracle solves at least: enough to count its ways."""
_CHEATED, _CHEATED_BY_ONE = 160, 5
"""How many tasks of a family its cheats play at most, all together; and so many, or as many as are drawn, each of them at least."""
_SAME_TASKS = {"AgentBase/WebTask-v0": ("oracle", "finish-early")}
"""Where the tasks are those of another id, and judged by the same code, only what the door itself could spoil is played."""
_CHANCE = ("first-candidate", "random", "heuristic")
"""What a gallery (`agent_gym.world.WorldKind`) is not played by: it shows what a browser can do, some of it by chance."""
_SPLITS = ("train", "transfer")
_BATCH = 8


@dataclass(frozen=True, kw_only=True)
class AdmissionRow:
    """What was found of one family.

    Attributes:
        env_id: The environment.
        version: Its version.
        split: The split that the tasks are of.
        family: ``world/family``.
        scores: Success rate by policy; None where the policy was not played.
        ways: How many sequences of operations the oracle solved the tasks by; None where its calls are none.
        steps: Mean number of calls of the oracle; None where it was not played.
        difficulty: Mean difficulty of the tasks.
        faults: What is out of bounds, in words; empty if the family is admitted.
    """

    env_id: str
    version: str
    split: str
    family: str
    scores: Mapping[str, float | None]
    ways: int | None
    steps: float | None
    difficulty: float
    faults: tuple[str, ...]


@dataclass(frozen=True)
class _Job:
    """One policy on tasks of one family."""

    env_id: str
    keywords: Mapping[str, Any]
    family: str
    policy: str
    cheat: str
    task_ids: tuple[str, ...]


@dataclass(frozen=True)
class _Played:
    """What came of a job."""

    score: float | None = None
    turns: float | None = None
    ways: int = 0
    trouble: str = "the environment failed in every episode"  # why there is no score, if there is none


@dataclass(frozen=True)
class _Family:
    """A family that is looked at, and what there is to play on it."""

    env_id: str
    version: str
    split: str
    name: str
    difficulty: float
    counted: bool  # whether the oracle's ways are counted: where they are sequences of a world's operations
    jobs: tuple[_Job, ...]


def admit(
    env_id: str,
    *,
    split: str = "train",
    seeds: int = 20,
    episodes: int = 5,
    policies: Sequence[str] = tuple(BOUNDS),
    env_kwargs: Mapping[str, Any] | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[AdmissionRow]:
    """Plays every scripted policy on every family of a split.

    A family is played by itself: what is found of it does not depend on which others there are.

    Args:
        env_id: The environment.
        split: The split whose families are looked at.
        seeds: So many times tasks are drawn; a task that is drawn again is played once.
        episodes: Tasks of each family that are drawn with each seed; the oracle plays 40 at least.
        policies: Names in `BOUNDS`; the oracle's is passed over where there is none.
        env_kwargs: Keywords of the environment.
        workers: Processes side by side; 1 plays in this one.
        progress: Is told how many episodes are done, of how many.

    Returns:
        A row for every family.
    """
    return _judged(_families(env_id, split, seeds, episodes, policies, env_kwargs or {}), workers, progress)


def admit_all(
    *, seeds: int = 20, episodes: int = 2, workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> list[AdmissionRow]:
    """Plays the scripted policies on every family that has an oracle, through every door: train split, and what is held out.

    Args:
        seeds: As for `admit`.
        episodes: As for `admit`.
        workers: As for `admit`.
        progress: As for `admit`.

    Returns:
        A row for every id, split and family.

    Raises:
        SandboxUnavailable: Some tasks run code, and this machine cannot isolate it.
    """
    found = [
        family
        for env_id in IDS
        if env_id not in OUTSIDE
        for split in _SPLITS
        for family in _families(env_id, split, seeds, episodes, _SAME_TASKS.get(env_id, tuple(BOUNDS)), {}, lacking=True)
    ]
    return _judged(found, workers, progress)


def faults_of_worlds(rows: Sequence[AdmissionRow]) -> list[str]:
    """What is out of bounds about whole worlds, in words."""
    of_world: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if (score := row.scores["heuristic"]) is not None:
            of_world[row.family.partition("/")[0]].append(score)
    return [
        f"{world}: the heuristic scores {_MOSTLY:g} or more on {easy} of {len(scores)} families; on most it must score less"
        for world, scores in of_world.items()
        if 2 * (easy := sum(score >= _MOSTLY for score in scores)) >= len(scores)
    ]


def _families(
    env_id: str,
    split: str,
    seeds: int,
    episodes: int,
    policies: Sequence[str],
    env_kwargs: Mapping[str, Any],
    *,
    lacking: bool = False,
) -> Iterator[_Family]:
    """The families of a split; none if ``lacking`` and the environment has no such split."""
    keywords = dict(env_kwargs) if lacking else {**env_kwargs, "split": split}
    env = gymnasium.make(env_id, interface="text", disable_env_checker=True, **keywords)
    try:
        tasks: TaskSet = env.get_wrapper_attr("tasks")
        if lacking and split not in tasks.splits():
            return
        for family in tasks.select(split, env_kwargs.get("families")).by_family:
            ids = tasks.ids(split, family)
            draws = [derive("admission", seed, family) for seed in range(seeds)]
            drawn = [ids[int(index)] for rng in draws for index in rng.permutation(len(ids))[:episodes]]
            drawn = list(dict.fromkeys(drawn))
            solved = list(dict.fromkeys([*drawn, *ids[: max(_ORACLE_TASKS - len(drawn), 0)]]))
            sample = [tasks.get(task_id) for task_id in solved]
            exempt = sample[0].oracle_kind == "none"
            if exempt and lacking:
                continue
            apart: tuple[str, ...] = ("oracle", CHEATS)
            if isinstance(tasks, WorldTaskSet):
                apart += _CHANCE if tasks.kinds[family.partition("/")[0]].gallery else ()
            job = functools.partial(_Job, env_id, {**env_kwargs, "split": split}, family)
            jobs = [job(policy, "", tuple(drawn)) for policy in policies if policy not in apart]
            if "oracle" in policies and not exempt:
                jobs.insert(0, job("oracle", "", tuple(solved)))
            if CHEATS in policies:
                cheats = tasks.cheats(family)
                share = max(_CHEATED // max(len(cheats), 1), _CHEATED_BY_ONE)
                jobs += [job(CHEATS, cheat, tuple(drawn[:share])) for cheat in cheats]
            difficulty = sum(task.difficulty for task in sample) / len(sample)
            version = env.unwrapped.rich.unwrapped.version  # type: ignore[attr-defined]
            counted = isinstance(tasks, WorldTaskSet) and env_id not in _SAME_TASKS
            yield _Family(env_id, version, split, family, difficulty, counted, tuple(jobs))
    finally:
        env.close()


def _judged(families: Iterable[_Family], workers: int, progress: Callable[[int, int], None] | None) -> list[AdmissionRow]:
    found = list(families)
    played = iter(_play([job for family in found for job in family.jobs], workers, progress))
    return [_row(family, [(job.policy, next(played)) for job in family.jobs]) for family in found]


def _play(jobs: Sequence[_Job], workers: int, progress: Callable[[int, int], None] | None) -> list[_Played]:
    """Plays jobs, in processes side by side if there are to be several."""
    total, done = sum(len(job.task_ids) for job in jobs), 0
    played: dict[int, _Played] = {}

    def keep(number: int, found: _Played) -> None:
        nonlocal done
        played[number] = found
        done += len(jobs[number].task_ids)
        if progress is not None:
            progress(done, total)

    if workers == 1:
        for number, job in enumerate(jobs):
            keep(number, _played(job))
    else:
        # Not forked: this process may have threads, and a fork of one holds locks that nobody gives back.
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            waiting = {pool.submit(_played, job): number for number, job in enumerate(jobs)}
            try:
                for future in as_completed(waiting):
                    keep(waiting[future], future.result())
            finally:
                pool.shutdown(cancel_futures=True)
    return [played[number] for number in range(len(jobs))]


def _played(job: _Job) -> _Played:
    env = gymnasium.make(job.env_id, interface="text", disable_env_checker=True, **job.keywords)
    try:
        with tempfile.TemporaryDirectory(prefix="agent_gym-") as folder:
            store = TrajectoryStore(folder)
            result = evaluate(
                _policy(job, env),
                job.env_id,
                split=job.keywords["split"],
                tasks=job.task_ids,
                env_kwargs=job.keywords,
                store=store,
                batch=_BATCH,
            )
            ways = store.sql(_WAYS_SQL)[0]["ways"]
    except AgentGymError:
        raise
    except Exception as error:  # noqa: BLE001 - what an oracle or a cheat raises is a fault of its family, and the others are still played
        return _Played(trouble=f"{type(error).__name__}: {error}")
    finally:
        env.close()
    return _Played(result["success_rate"], result["turns_mean"], ways)


_WAYS_SQL = """
    SELECT count(DISTINCT way) AS ways
    FROM (SELECT list(action ->> '$.name' ORDER BY step) AS way FROM steps WHERE step > 0 GROUP BY episode_id)
"""


def _policy(job: _Job, env: gymnasium.Env[Any, Any]) -> Policy:
    if job.policy != CHEATS:
        return load(job.policy, env)
    return CheatPolicy(env, env.get_wrapper_attr("tasks").cheats(job.family)[job.cheat])


def _row(family: _Family, played: Sequence[tuple[str, _Played]]) -> AdmissionRow:
    scores: dict[str, float | None] = dict.fromkeys(BOUNDS)
    for policy, found in played:
        known = [score for score in (scores[policy], found.score) if score is not None]
        scores[policy] = max(known, default=None)
    oracle = next((found for policy, found in played if policy == "oracle"), None)
    faults = [f"{name} has no score: {found.trouble}" for name, found in played if found.score is None]
    for name, (low, high) in BOUNDS.items():
        score = scores[name]
        if score is not None and not low <= score <= high:
            faults.append(f"{name} scores {score:.2f}, " + (f"at least {low:g} is wanted" if score < low else f"at most {high:g} may be"))
    if oracle is not None and oracle.score is not None and family.counted and oracle.ways < _WAYS:
        faults.append(f"the oracle knows {oracle.ways} ways, at least {_WAYS} are wanted")
    return AdmissionRow(
        env_id=family.env_id,
        version=family.version,
        split=family.split,
        family=family.name,
        scores=scores,
        ways=oracle.ways if oracle is not None and oracle.score is not None and family.counted else None,
        steps=None if oracle is None else oracle.turns,
        difficulty=family.difficulty,
        faults=tuple(faults),
    )
