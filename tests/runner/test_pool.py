from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from agent_gym.core.canonical import digest
from agent_gym.errors import ConfigurationError
from agent_gym.runner import AsyncPool, Batch, TaskQueue
from agent_gym.runner.episodes import spread
from agent_gym.testing import SmallTask
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.runner.faulty import Faulty, Jittery, release_all, released

BACKENDS = ["thread", "process"]
LAMPS = [f"lamps/switch/train/{i}" for i in range(12)]


@pytest.fixture(autouse=True)
def _gates() -> Iterator[None]:
    yield
    release_all()


@pytest.fixture
def pool() -> Iterator[AsyncPool]:
    with AsyncPool(Faulty, 3) as pool:
        yield pool


def started(pool: AsyncPool) -> Batch:
    pool.async_reset()
    return pool.recv(pool.num_envs)


# Stepping.


@pytest.mark.parametrize("backend", BACKENDS)
def test_environments_are_stepped_each_at_its_own_pace(backend: str) -> None:
    with AsyncPool("CartPole-v1", 3, backend=backend) as pool:
        assert pool.single_action_space == gymnasium.spaces.Discrete(2)
        assert isinstance(pool.single_observation_space, gymnasium.spaces.Box)
        assert pool.spec is not None
        assert pool.spec.id == "CartPole-v1"
        assert pool.metadata["render_fps"] == 50
        pool.async_reset()
        rows: list[Any] = []
        while len(rows) < 200:
            batch = pool.recv()
            assert len(batch) >= 1
            rows += batch
            pool.async_reset([row.env_id for row in batch if row.done])
            going = [row.env_id for row in batch if not row.done]
            pool.send([1] * len(going), going)
    by_episode: dict[int, list[Any]] = {}
    for row in rows:
        by_episode.setdefault(row.episode, []).append(row)
    assert len(by_episode) > 15
    for number, episode in by_episode.items():
        alone = gymnasium.make("CartPole-v1")
        observation, _ = alone.reset(seed=spread("pool", 0, number))
        assert [row.kind for row in episode] == ["reset", *["step"] * (len(episode) - 1)]
        for row in episode:
            if row.kind == "step":
                observation, reward, terminated, truncated, _ = alone.step(1)
                assert (row.reward, row.terminated, row.truncated, row.fault) == (float(reward), terminated, truncated, "")
            assert np.array_equal(row.observation, observation)
            assert row.mask is None
            assert 0 < row.seconds < row.waited
    assert len({row.request_id for row in rows}) == len(rows)


def test_a_batch_has_its_columns(pool: AsyncPool) -> None:
    batch = started(pool)
    assert sorted(batch.env_ids.tolist()) == [0, 1, 2]
    assert batch.env_ids.dtype == np.int64
    pool.send([0] * 3, [2, 0, 1])
    batch = pool.recv(3)
    assert batch.rewards.tolist() == [1.0] * 3
    assert batch.terminations.dtype == batch.truncations.dtype == np.bool_
    assert len(batch.observations) == len(batch.infos) == len(batch) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_come_with_their_observation(backend: str) -> None:
    with AsyncPool("agent_gym:AgentBase/ToolTask-v0", 2, backend=backend) as pool:
        for row in started(pool):
            assert row.mask is not None
            assert row.mask.dtype == np.bool_
            assert np.array_equal(row.mask, row.observation["action_mask"].astype(bool))
        pool.send(np.array([0, 0]), [0, 1])
        assert all(row.mask is not None for row in pool.recv(2))


def test_recv_waits_for_what_is_asked_and_can_come(pool: AsyncPool) -> None:
    assert len(pool.recv(3)) == 0  # nothing is outstanding
    pool.async_reset([0, 2])
    assert len(pool.recv(3)) == 2
    pool.send(["wait:recv", 0], [0, 2])
    assert pool.recv().env_ids.tolist() == [2]
    assert len(pool.recv(timeout=0.01)) == 0
    assert pool.recv(0).rows == ()
    released("recv").set()
    assert pool.recv().env_ids.tolist() == [0]


def test_of_more_than_recv_may_return_those_of_higher_priority_go_first(pool: AsyncPool) -> None:
    started(pool)
    pool.send([0] * 3, [0, 1, 2], priority=[0.0, 2.0, 1.0])
    while pool.arrived < 3:
        assert pool.recv(0, 0).rows == ()
    assert pool.recv(1, 1).env_ids.tolist() == [1]
    with pytest.raises(ConfigurationError, match="env 2, which is busy"):
        pool.send([0], [2])
    assert pool.recv(1, 1).env_ids.tolist() == [2]
    assert pool.recv(1, 1).env_ids.tolist() == [0]


def test_what_was_received_does_not_change_when_the_environment_fills_the_same_array_again() -> None:
    class Reusing(Faulty):
        shown = np.zeros(3)

        def _observation(self) -> Any:
            self.shown[:] = super()._observation()
            return self.shown

    with AsyncPool(Reusing, 1) as pool:
        first = started(pool).observations[0].copy()
        kept = pool.recv(0)
        pool.async_reset()
        kept = pool.recv()
        value = kept.observations[0].copy()
        pool.send([0], [0])
        pool.recv()
        assert np.array_equal(kept.observations[0], value)
        assert not np.array_equal(first, value)


def test_each_slot_can_have_an_environment_of_its_own() -> None:
    with AsyncPool(["CartPole-v1", "MountainCar-v0"], 2) as pool:
        shapes = {row.env_id: row.observation.shape for row in started(pool)}
    assert shapes == {0: (4,), 1: (2,)}


# Seeds.


def episodes(count: int, workers: int, backend: str, env: Callable[..., Any] = Jittery, tasks: bool = False) -> list[str]:
    """The digests of the first episodes, played by their own observations."""
    found: dict[Any, list[Any]] = {}
    ids = [f"family/one/train/{i}" for i in range(count)] if tasks else None
    begun = min(workers, count)
    with AsyncPool(env, workers, backend=backend, seed=5, tasks=ids) as pool:
        if not tasks:
            pool.async_reset(range(begun))
        while len(batch := pool.recv()):
            for row in batch:
                found.setdefault(row.task_id or row.episode, []).append(
                    [row.observation.tolist(), row.reward, row.done, row.info["ending"] if row.kind == "step" else row.info]
                )
            again = [row.env_id for row in batch if row.done]
            if not tasks and (again := again[: count - begun]):
                begun += len(again)
                pool.async_reset(again)
            going = [row for row in batch if not row.done]
            pool.send([int(row.observation[1]) % 2 for row in going], [row.env_id for row in going])
    assert len(found) == count
    return [digest(found[key]) for key in sorted(found)]


@pytest.mark.parametrize("tasks", [False, True])
def test_what_an_episode_contains_depends_on_neither_slots_nor_backend_nor_order(tasks: bool) -> None:
    alone = episodes(20, 1, "thread", Faulty, tasks)
    assert len(set(alone)) == 20
    for workers, backend in ((3, "thread"), (8, "thread"), (3, "process"), (8, "process")):
        assert episodes(20, workers, backend, Jittery, tasks) == alone


def test_seeds_can_be_given(pool: AsyncPool) -> None:
    def seeds(**given: Any) -> list[Any]:
        pool.async_reset([2, 0], **given)
        return [row.info["seed"] for row in sorted(pool.recv(2), key=lambda row: -row.env_id)]

    assert seeds() == [spread("pool", 0, 0), spread("pool", 0, 1)]
    assert seeds(seed=[7, None]) == [7, None]
    assert seeds(seed=9) == [spread("pool", 9, 0), spread("pool", 9, 1)]
    assert seeds() == [spread("pool", 0, 6), spread("pool", 0, 7)]


# Calls.


@pytest.mark.parametrize("backend", BACKENDS)
def test_environments_can_be_called(backend: str) -> None:
    with AsyncPool(Faulty, 2, backend=backend, env_kwargs={"length": 9}) as pool:
        assert pool.call("length") == [9, 9]
        assert pool.call("echo", "x", env_ids=[1]) == ["x"]
        assert pool.call(lambda env, extra: env.length + extra, 1) == [10, 10]
        pool.call("set_wrapper_attr", "length", 1, env_ids=[1])
        assert pool.call("length") == [9, 1]
        with pytest.raises(KeyError, match="planted") as raised:
            pool.call("fail", "planted")
        assert "in fail" in raised.value.__notes__[0]
        with pytest.raises(AttributeError):
            pool.call("no_such_thing")
        started(pool)
        pool.send([0], [0])
        with pytest.raises(ConfigurationError, match="cannot call env 0, which is busy"):
            pool.call("length")
        assert pool.recv().env_ids.tolist() == [0]
        assert pool.counters.faults == 0


# Misuse.


@pytest.mark.parametrize(
    ("misuse", "says"),
    [
        (lambda pool: pool.send([0], [0]), "cannot step env 0, which is (starting|done).*call async_reset"),
        (lambda pool: (pool.async_reset(), pool.send([0], [0])), "cannot step env 0, which is busy.*call recv"),
        (lambda pool: (pool.async_reset(), pool.async_reset([1])), "cannot reset env 1, which is busy"),
        (lambda pool: (started(pool), pool.send([0, 0], [0])), "2 actions for 1 envs"),
        (lambda pool: (started(pool), pool.send([], [0, 1])), "0 actions for 2 envs"),
        (lambda pool: (started(pool), pool.send([0, 0], [1, 1])), "named twice"),
        (lambda pool: (started(pool), pool.send([0], [3])), r"env 3 is not in \[0, 3\)"),
        (lambda pool: (started(pool), pool.send([0], [-1])), "env -1"),
        (lambda pool: (started(pool), pool.send([0], [0], notes=[{}, {}])), "2 notes"),
        (lambda pool: (started(pool), pool.send([0], [0], priority=[1, 2])), "2 priorities"),
        (lambda pool: pool.async_reset([0, 1], seed=[1]), "1 seeds for 2 envs"),
        (lambda pool: pool.async_reset([0], options=[{}, {}]), "2 options for 1 envs"),
        (lambda pool: pool.recv(3, 2), "min <= max"),
        (lambda pool: pool.start(), "has no tasks"),
        (lambda pool: (pool.close(), pool.recv()), "closed"),
        (lambda pool: (pool.close(), pool.send([0], [0])), "closed"),
        (lambda pool: (pool.close(), pool.async_reset()), "closed"),
        (lambda pool: (pool.close(), pool.call("length")), "closed"),
    ],
)
def test_misuse_names_the_slot_its_state_and_the_remedy(pool: AsyncPool, misuse: Callable[[AsyncPool], Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        misuse(pool)


def test_a_slot_whose_episode_has_ended_wants_a_reset(pool: AsyncPool) -> None:
    started(pool)
    for _ in range(5):
        pool.send([0], [1])
        (row,) = pool.recv()
    assert row.done
    with pytest.raises(ConfigurationError, match=r"env 1, which is done: it has no episode; call async_reset"):
        pool.send([0, 0], [0, 1])
    assert pool.states == ["idle", "done", "idle"]
    assert len(pool.recv(timeout=0.0)) == 0  # nothing was sent


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"backend": "ray"}, "unknown backend 'ray'"),
        ({"env": 3}, "env must be"),
        ({"env": ["CartPole-v1"]}, "1 envs for 2 slots"),
        ({"step_timeout_s": 0}, "step_timeout_s must be above 0"),
        ({"tasks": ["a/b/c", "a/b/c"]}, "queued before"),
        ({"tasks": [], "scheduler": "best"}, "unknown scheduler"),
    ],
)
def test_keywords_that_do_not_fit_are_refused(keywords: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        AsyncPool(**{"env": "CartPole-v1", "num_envs": 2, **keywords})


# Tasks.


def act(pool: AsyncPool, batch: Batch, choose: Callable[[Any], Any]) -> None:
    going = [row for row in batch if not row.done]
    pool.send([choose(row) for row in going], [row.env_id for row in going])


@pytest.mark.parametrize("backend", BACKENDS)
def test_few_environments_work_off_many_tasks_each_once(backend: str) -> None:
    with AsyncPool(SmallTask, 3, backend=backend, tasks=LAMPS) as pool:
        ended: Counter[str | None] = Counter()
        while not pool.finished:
            batch = pool.recv()
            ended.update(row.task_id for row in batch if row.done)
            assert all(row.info["task_id"] == row.task_id for row in batch)
            act(pool, batch, lambda row: f"look({1 + row.episode % 4})" if row.kind == "reset" else "finish()")
        assert ended == Counter(LAMPS)
        assert {task.status for task in pool.report.values()} == {"done"}
        assert {task.attempts for task in pool.report.values()} == {1}
        assert len(pool.recv()) == 0
        with pytest.raises(ConfigurationError, match="this pool has tasks"):
            pool.async_reset()


def test_tasks_can_be_added_while_others_run_and_priority_goes_first() -> None:
    queue = TaskQueue(LAMPS[:4], scheduler="priority")
    order: list[str | None] = []
    with AsyncPool(SmallTask, 1, tasks=queue) as pool:
        while not pool.finished:
            batch = pool.recv()
            if not order:
                queue.add(LAMPS[9], priority=5.0)
            order += [row.task_id for row in batch if row.kind == "reset"]
            act(pool, batch, lambda _: "finish()")
    assert order == [LAMPS[0], LAMPS[9], *LAMPS[1:4]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_record_with_the_notes_of_the_learner(backend: str, tmp_path: Path) -> None:
    run = TrajectoryStore(tmp_path).open_run()

    def make() -> gymnasium.Env[Any, Any]:
        return RecordTrajectory(gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text"), run)

    with AsyncPool(make, 2, backend=backend, tasks=some_tasks(), scheduler="explore") as pool:
        while not pool.finished:
            batch = pool.recv()
            going = [row for row in batch if not row.done]
            notes = [{"logprob": -0.5, "episode": row.episode} for row in going]
            pool.send(["finish()"] * len(going), [row.env_id for row in going], notes=notes)
    TrajectoryStore(tmp_path).seal()
    noted = TrajectoryStore(tmp_path).sql("select logprob, note from steps where logprob is not null")
    assert sorted((row["logprob"], row["note"]) for row in noted) == [(-0.5, f'{{"episode":{i}}}') for i in range(6)]
    assert [row["stage"] for row in TrajectoryStore(tmp_path).episodes()] == ["explore"] * 6


def some_tasks() -> list[str]:
    with closing(gymnasium.make("agent_gym:AgentBase/ToolTask-v0")) as env:
        tasks = env.get_wrapper_attr("tasks")
        return list(tasks.ids("train", tasks.families("train")[0])[:6])
