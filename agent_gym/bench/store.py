"""What keeping trajectories costs, and how fast they are found again.

Recording is measured on a real rollout of ``AgentBase/ToolTask-v0`` with a random policy. Finding is measured on a store of 100,000
episodes with 2 million steps and as many calls, in ten runs: its rows are those of the rollout, copied column by column through the
store's own writer; new in each copy are the ids, the lengths (every 25th episode has 68 steps, the others 18), the task (5,000 of
them) and the number of failed calls (every 100th episode has 4). The answers are compared with what is known to be there.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.bench.playing import one_core
from agent_gym.core.record import StepRecord
from agent_gym.core.seeding import derive
from agent_gym.errors import StoreError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.manifest import Manifest, kept
from agent_gym.trajectories.parquet import PartWriter
from agent_gym.wrappers import RecordTrajectory

__all__ = ["measure"]

_ID = "agent_gym:AgentBase/ToolTask-v0"
_PAIRS, _STEPS = 60, 100
_ROUNDS = 7
_RUNS, _EPISODES = 10, 10_000
_CHUNK = 500
_LONG_EVERY, _LONG, _SHORT = 25, 68, 18
_FAILING_EVERY, _FAILURES = 100, 4
_TASKS = 5_000
_LOOKUPS = 21


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Records a rollout, generates a large store and looks things up in it.

    Returns:
        ``record_steps_per_s``: step records written to a log, in one process on one core. ``rollout_slowdown``: a rollout with
        recording over the same one without, the median over pairs of rollouts taken in turn. ``bytes_per_step``: of that rollout,
        sealed, all tables. ``seal_steps_per_s``. On the large store, medians: ``query_failures_s`` and ``query_turns_s`` (all
        episodes with more than 3 failed calls, or 50 turns, whole rows), ``episode_by_id_ms`` (one row), ``episode_whole_ms`` (the
        row, all its steps and calls), ``calls_lookup_s`` (the calls of a task at one step). ``generate_s``: how long making it took.
    """
    with tempfile.TemporaryDirectory() as folder:
        small, large = TrajectoryStore(Path(folder) / "small"), TrajectoryStore(Path(folder) / "large")
        with one_core():
            progress("a rollout, recorded and not")
            metrics = _rollouts(small)
            progress("recording alone")
            metrics["record_steps_per_s"] = _recording(TrajectoryStore(Path(folder) / "again"))
        progress("generating 100,000 episodes")
        started = time.perf_counter()
        episode_ids = _generate(small, large)
        metrics["generate_s"] = time.perf_counter() - started
        progress("looking things up")
        return metrics | _lookups(large, episode_ids)


def _rollouts(store: TrajectoryStore) -> dict[str, float]:
    run = store.open_run(command="bench store", policy="random")
    bare, recorded = (gymnasium.make(_ID, disable_env_checker=True) for _ in range(2))
    ratios = []
    with closing(RecordTrajectory(recorded, run)) as recording, closing(bare):
        for number in range(_PAIRS):
            envs = (bare, recording) if number % 2 else (recording, bare)
            spent = {env: _rollout(env, number) for env in envs}
            ratios.append(spent[recording] / spent[bare])
    started = time.perf_counter()
    run.close()
    took = time.perf_counter() - started
    found = store.stats()
    return {
        "rollout_slowdown": statistics.median(ratios),
        "bytes_per_step": found["bytes_per_step"],
        "seal_steps_per_s": found["tables"]["steps"]["rows"] / took,
    }


def _rollout(env: gymnasium.Env[Any, Any], seed: int) -> float:
    """Seconds for some steps of a random policy, resets included."""
    rng = derive("bench", seed)
    started = time.perf_counter()
    observation, _ = env.reset(seed=seed)
    for _ in range(_STEPS):
        observation, _, terminated, truncated, _ = env.step(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
        if terminated or truncated:
            observation, _ = env.reset()
    return time.perf_counter() - started


def _recording(store: TrajectoryStore) -> float:
    """Steps a second, in the best of some rounds: a busy machine only ever makes it slower."""
    records = list(_records())
    run = store.open_run(command="bench store")
    rates = []
    for _ in range(_ROUNDS):
        recorder = run.recorder(env_id=_ID, policy_id="random")
        started = time.perf_counter()
        for record in records:
            recorder.step(record, reward=record.reward or 0.0, terminated=record.ending is not None, truncated=False)
        rates.append(len(records) / (time.perf_counter() - started))
        recorder.close()
    return max(rates)


def _records() -> Iterator[StepRecord]:
    env: Any = gymnasium.make(_ID, disable_env_checker=True)
    rng = derive("bench", "records")
    with closing(env):
        for seed in range(100):
            observation, _ = env.reset(seed=seed)
            ended = False
            while not ended:
                yield env.get_wrapper_attr("last_record")
                observation, _, *endings, _ = env.step(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
                ended = any(endings)
            yield env.get_wrapper_attr("last_record")


def _generate(source: TrajectoryStore, store: TrajectoryStore) -> list[str]:
    """Fills the store; the episodes' ids."""
    rows = {table: pq.read_table(kept(source.path, table)[0].path, partitioning=None) for table in ("episodes", "steps", "tool_calls")}
    episode_ids: list[str] = []
    shutil.copytree(source.path / "blobs", store.path / "blobs")
    for number in range(_RUNS):
        run = store.open_run(command="bench store", policy="random")
        numbers = np.arange(number * _EPISODES, (number + 1) * _EPISODES)
        names = [f"{run.run_id}-{'0' * 10}-{one:06d}" for one in range(_EPISODES)]

        def fill(writer: PartWriter, names: list[str] = names, numbers: Any = numbers) -> None:
            for start in range(0, _EPISODES, _CHUNK):
                part = slice(start, start + _CHUNK)
                for table, columns in _copies(rows, names[part], numbers[part]).items():
                    for batch in columns.to_batches(max_chunksize=4_096):
                        writer.files[table].add_columns(batch)

        with Manifest.of(store.path) as manifest:
            manifest.replace(run.run_id, PartWriter, fill, [])
        episode_ids += names
    return episode_ids


def _copies(rows: dict[str, pa.Table], names: list[str], numbers: Any) -> dict[str, pa.Table]:
    """Rows of some episodes, by table."""
    lengths = np.where(numbers % _LONG_EVERY == 0, _LONG, _SHORT)
    firsts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = np.arange(lengths.sum()) - firsts
    ids = pa.array(np.repeat(np.array(names), lengths))
    place = {"episode_id": ids, "step": steps}
    return {
        "episodes": _with(
            _taken(rows["episodes"], numbers),
            {
                "episode_id": names,
                "task_id": [f"train/exchange/{number % _TASKS}" for number in numbers],
                "n_turns": lengths - 1,
                "n_tool_failures": np.where(numbers % _FAILING_EVERY == 0, _FAILURES, numbers % 4),
            },
        ),
        "steps": _with(_taken(rows["steps"], firsts + steps + int(numbers[0])), place),
        "tool_calls": _with(_taken(rows["tool_calls"], firsts + steps + int(numbers[0])), place | {"attempt": np.ones(len(steps))}),
    }


def _taken(rows: pa.Table, numbers: Any) -> pa.Table:
    return rows.take(pa.array(numbers % rows.num_rows))


def _with(rows: pa.Table, columns: dict[str, Any]) -> pa.Table:
    for name, values in columns.items():
        index = rows.schema.get_field_index(name)
        field = rows.schema.field(index)
        rows = rows.set_column(index, field, pa.array(values).cast(field.type))
    return rows


def _lookups(store: TrajectoryStore, episode_ids: list[str]) -> dict[str, float]:
    failing, long = episode_ids[::_FAILING_EVERY], episode_ids[::_LONG_EVERY]
    some = [episode_ids[number] for number in derive("bench", "ids").integers(len(episode_ids), size=_LOOKUPS)]

    def found(where: str, expected: list[str]) -> None:
        _same(sorted(row["episode_id"] for row in store.episodes(where=where)), sorted(expected), where)

    def calls() -> None:
        _same(len(store.calls(task_id="train/exchange/7", step=7)), len(episode_ids) // _TASKS, "calls of a task at a step")

    def whole(episode_id: str) -> None:
        turns, steps = store.episode(episode_id)["n_turns"], list(store.steps(episode_id))
        _same((len(steps), len(list(store.tool_calls(episode_id)))), (turns + 1, turns + 1), episode_id)

    return {
        "query_failures_s": _median([lambda: found("n_tool_failures > 3", failing)] * _ROUNDS),
        "query_turns_s": _median([lambda: found("n_turns > 50", long)] * _ROUNDS),
        "episode_by_id_ms": 1_000 * _median([lambda one=one: store.episode(one) for one in some]),  # type: ignore[misc]
        "episode_whole_ms": 1_000 * _median([lambda one=one: whole(one) for one in some]),  # type: ignore[misc]
        "calls_lookup_s": _median([calls] * _ROUNDS),
    }


def _median(questions: list[Callable[[], object]]) -> float:
    """Seconds for one of them; the first warms up and does not count."""
    times = []
    for question in questions:
        started = time.perf_counter()
        question()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def _same(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise StoreError(f"the store does not answer {what!r} with what is in it")
