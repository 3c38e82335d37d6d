import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from agent_gym import factory
from agent_gym.core.canonical import digest
from agent_gym.core.policy import Decision
from agent_gym.errors import ConfigurationError, InfrastructureError, PolicyError
from agent_gym.policies import load
from agent_gym.runner import AsyncPool, Batch, PolicyServer, ServedStep, ServerStats
from agent_gym.runner.episodes import spread
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.runner.faulty import Faulty, release_all
from tests.runner.serving import Big, Counting, Ending, Families, Misbehaving, Parity, Watching, Zero, resident

BACKENDS = ["thread", "process"]


def by_episode(steps: Sequence[ServedStep]) -> dict[str, list[ServedStep]]:
    found: dict[str, list[ServedStep]] = {}
    for step in steps:
        found.setdefault(step.episode_id, []).append(step)
    return found


# What is served.


def content(steps: Sequence[ServedStep]) -> list[str]:
    return [
        digest([[s.before.observation.tolist(), s.decision.action, s.after.observation.tolist(), s.after.done] for s in episode])
        for _, episode in sorted(by_episode(steps).items(), key=lambda item: int(item[0]))
    ]


def test_what_an_episode_contains_depends_on_neither_batches_nor_devices_nor_backend() -> None:
    def played(workers: int, devices: int = 1, backend: str = "thread", **keywords: Any) -> list[str]:
        with (
            AsyncPool(Ending, workers, backend=backend, seed=3) as pool,
            PolicyServer(pool, [Parity() for _ in range(devices)], **keywords) as server,
        ):
            return content(list(server.steps(episodes=20)))

    alone = played(1)
    assert len(set(alone)) == 20
    assert played(6) == alone
    assert played(6, max_batch=2, window=0.002) == alone
    assert played(6, devices=3, window="auto") == alone
    assert played(4, backend="process", budget_mib=0.001) == alone


@settings(max_examples=25, deadline=None)
@given(
    envs=st.integers(1, 7),
    devices=st.integers(1, 3),
    max_batch=st.none() | st.integers(1, 3),
    window=st.sampled_from([0.0, 0.003, "auto"]),
    values=st.booleans(),
    takes_s=st.sampled_from([0.0, 0.001]),
    limits=st.lists(st.integers(0, 12), max_size=3),
    seed=st.integers(0, 10**6),
)
def test_every_observation_is_decided_on_once_and_every_step_given_once(
    envs: int, devices: int, max_batch: int | None, window: Any, values: bool, takes_s: float, limits: list[int], seed: int
) -> None:
    policies = [Parity(values, takes_s) for _ in range(devices)]
    given_out: list[ServedStep] = []
    with AsyncPool(Ending, envs, seed=seed) as pool, PolicyServer(pool, policies, window=window, max_batch=max_batch) as server:
        for limit in limits:
            given_out += (some := list(server.steps(limit)))
            assert len(some) == limit
        given_out += server.steps(episodes=3)
        counts = server.stats()
    asked = Counter(one for policy in policies for one in policy.asked)
    cut = [step for step in given_out if step.after.truncated]
    wanted = [(step.episode_id, step.before.observation.tobytes()) for step in given_out]
    wanted += [(step.episode_id, step.after.observation.tobytes()) for step in cut if values]
    assert asked == Counter(wanted)
    assert set(asked.values()) == {1}
    for step in given_out:
        assert step.after.reward == step.decision.action == int(step.before.observation[1]) % 2
        assert step.value == (float(step.after.observation[1]) if values and step.after.truncated else None)
    for episode in by_episode(given_out).values():
        assert [step.after.observation[2] for step in episode] == list(range(1, len(episode) + 1))
        assert [step.after.done for step in episode] == [False] * (len(episode) - 1) + [True]
    assert counts.steps == len(given_out)
    assert counts.episodes == len(by_episode(given_out)) >= 3
    assert counts.final_values == (len(cut) if values else 0)
    assert max((size for policy in policies for size in policy.sizes), default=0) <= (max_batch or envs)


def test_so_many_episodes_are_those_that_a_loop_would_play() -> None:
    with AsyncPool("CartPole-v1", 3, seed=8) as pool, PolicyServer(pool, Parity()) as server:
        lengths = {int(name): len(episode) for name, episode in by_episode(list(server.steps(episodes=7))).items()}
        again = by_episode(list(server.steps(episodes=2)))
    assert sorted(map(int, again)) == [7, 8]
    env = gymnasium.make("CartPole-v1")
    for number in range(7):
        observation, _ = env.reset(seed=spread("pool", 8, number))
        done, length = False, 0
        while not done:
            observation, _, terminated, truncated, _ = env.step(int(observation[1]) % 2)
            done, length = terminated or truncated, length + 1
        assert lengths[number] == length
    assert len(lengths) == 7


def test_the_mix_of_tasks_that_is_learned_from_is_the_mix_that_was_drawn() -> None:
    """However unlike their speeds, and in however many portions the learner takes the steps."""
    counts: Counter[int] = Counter()
    with AsyncPool(Families, 8, seed=1) as pool, PolicyServer(pool, Zero()) as server:
        for _ in range(60):
            counts.update(step.after.info["kind"] for step in server.steps(40) if step.after.done)
    total = sum(counts.values())
    assert total > 700
    assert chisquare([counts[0], counts[1]], [share * total for share in Families.SHARES]).pvalue > 1e-4


def test_several_policies_that_remember_episodes_each_keep_their_own() -> None:
    policies = [Counting() for _ in range(3)]
    with AsyncPool(Ending, 7, seed=2) as pool, PolicyServer(pool, policies) as server:
        episodes = by_episode(list(server.steps(episodes=30)))
    for episode in episodes.values():
        assert [step.decision.note for step in episode] == list(range(len(episode)))
    assert sorted(name for policy in policies for name in policy.news) == sorted(episodes)
    assert all(policy.news for policy in policies)


def test_policies_of_ours_play_the_tasks_of_a_pool_and_what_they_noted_is_recorded(tmp_path: Path) -> None:
    run = TrajectoryStore(tmp_path).open_run()
    tasks = [f"lamps/switch/train/{number}" for number in range(8)]

    def make() -> gymnasium.Env[Any, Any]:
        return RecordTrajectory(factory.make(env="agent_gym.testing:SmallTask", interface="text"), run)

    policy = load("oracle", make())
    policy.version = 4
    with AsyncPool(make, 3, tasks=tasks) as pool, PolicyServer(pool, policy) as server:
        stats = server.run()
        assert {report.status for report in pool.report.values()} == {"done"}
        with pytest.raises(ConfigurationError, match="each is an episode"):
            server.steps(episodes=1)
    assert stats.episodes == 8
    TrajectoryStore(tmp_path).seal()
    assert {row["outcome"] for row in TrajectoryStore(tmp_path).episodes()} == {"success"}
    versions = TrajectoryStore(tmp_path).sql("select distinct policy_version from steps where step > 0")
    assert [row["policy_version"] for row in versions] == [4]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_environment_that_fails_stops_nobody_and_its_end_has_the_value_of_what_was_seen_last(backend: str) -> None:
    class Sometimes(Parity):
        def act(self, batch: Any) -> Any:
            decisions = super().act(batch)
            spoilt = [seen[2] == 0 and int(name) % 3 == 0 for name, seen in batch]
            return [replace(one, action="raise") if bad else one for one, bad in zip(decisions, spoilt, strict=True)]

    with AsyncPool(Faulty, 3, backend=backend, max_restarts=20) as pool, PolicyServer(pool, Sometimes(values=True)) as server:
        episodes = by_episode(list(server.steps(episodes=9)))
    for name, episode in episodes.items():
        last = episode[-1]
        assert bool(last.after.fault) == (int(name) % 3 == 0)
        assert last.value == (last.decision.value if last.after.fault else None)
    assert len(episodes) == 9


class Always(Zero):
    def act(self, batch: Any) -> Any:
        return [Decision("raise") for _ in batch]


def test_with_every_slot_retired_it_says_so() -> None:
    with (
        AsyncPool(Faulty, 2, max_restarts=0) as pool,
        PolicyServer(pool, Always()) as server,
        pytest.raises(InfrastructureError, match="every slot is retired"),
    ):
        server.run(steps=100)


class Counted(AsyncPool):
    """Counts how often somebody looks."""

    looks = 0

    def recv(self, *args: Any, **keywords: Any) -> Batch:
        self.looks += 1
        return super().recv(*args, **keywords)


@pytest.mark.parametrize("window", [0.0, 0.002, "auto"])
def test_a_server_that_waits_sleeps(window: Any) -> None:
    with Counted(Ending, 6) as pool, PolicyServer(pool, Parity(takes_s=0.02), window=window) as server:
        stats = server.run(steps=60)
        rows = stats.steps + stats.episodes + pool.num_envs
        assert pool.looks <= rows + 3 * (
            stats.batches + 1
        )  # for a row, a decision, a window's end, or a decision that was taken in already


def test_once_the_steps_are_taken_no_policy_acts_until_more_are_wanted() -> None:
    policies = [Parity(takes_s=0.005) for _ in range(2)]
    with AsyncPool(Ending, 6) as pool, PolicyServer(pool, policies) as server:
        for _ in range(5):
            assert len(list(server.steps(10))) == 10
            acted = [len(policy.sizes) for policy in policies]
            time.sleep(0.03)  # as one that learns from them
            assert [len(policy.sizes) for policy in policies] == acted


def test_steps_can_be_taken_here_and_there() -> None:
    with AsyncPool(Ending, 3) as pool, PolicyServer(pool, Parity()) as server:
        first, taken = server.steps(20), []
        for _ in range(10):
            taken += [next(first), *server.steps(2)]
        taken += first
        list(server.steps(episodes=0))
    assert len(taken) == 40
    for episode in by_episode(taken).values():
        assert [step.after.observation[2] for step in episode] == list(range(1, len(episode) + 1))


def test_the_example_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "runner.md").read_text(encoding="utf-8")
    example, printed = re.findall(r"^```\w+\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)[:2]
    exec(example, {})
    assert capsys.readouterr().out == printed


# What is held.


@pytest.mark.parametrize(("backend", "slots"), [("thread", 10), ("process", 6)])
def test_with_a_slow_policy_and_a_slow_learner_what_waits_and_what_is_resident_stay_within_the_budget(backend: str, slots: int) -> None:
    policy, budget = Watching(), 32
    with AsyncPool(Big, slots, backend=backend) as pool, PolicyServer(pool, policy, budget_mib=budget) as server:
        pool.call("get_wrapper_attr", "action_space")  # all are up
        before = resident()
        for _ in server.steps(40):
            time.sleep(0.002)
            policy.most = max(policy.most, resident())
        stats = server.stats()
    assert stats.capacity == 2
    assert stats.queue_peak_bytes <= budget * 2**20
    assert policy.most - before <= budget * 2**20
    assert stats.paused > 0
    assert stats.paused_s > 0.0


def test_while_there_is_room_nobody_waits() -> None:
    with AsyncPool(Ending, 6) as pool, PolicyServer(pool, Parity()) as server:
        stats = server.run(episodes=20)
    assert (stats.paused, stats.paused_s) == (0, 0.0)
    assert 0 < stats.queue_peak_bytes < 10_000
    assert stats.capacity > 1000


@pytest.mark.parametrize("tasks", [None, [f"one/two/train/{number}" for number in range(12)]])
def test_a_budget_for_nothing_lets_one_at_a_time_through(tasks: list[str] | None) -> None:
    with AsyncPool(Ending, 4, tasks=tasks) as pool, PolicyServer(pool, Parity(), budget_mib=1e-6) as server:
        steps = list(server.steps(episodes=None if tasks else 12))
        stats = server.stats()
    assert all(one.after.done for one, other in pairwise(steps) if one.episode_id != other.episode_id)
    assert len(by_episode(steps)) == 12
    assert stats.capacity == 1
    assert stats.paused > 0


# Policies that fail.


@pytest.mark.parametrize(
    ("backend", "how", "says"),
    [
        ("process", "raise", r"policy 'misbehaving' raised in a batch of [123]: ZeroDivisionError: planted in the policy"),
        ("thread", "exit", r"raised in a batch of [123]: SystemExit: 3"),
        ("process", "hang", r"(?s)did not decide within 0.2 s; it is at:.*in _hang\n.*self.released.wait"),
        ("thread", "few", r"gave [012] decisions for a batch of [123]; act\(\) must give one a pair"),
        ("thread", "many", r"gave [234] decisions for a batch of [123]"),
        ("thread", "none", r"act\(\) must give a list of Decisions, got None"),
        ("thread", "plain", r"act\(\) must give a list of Decisions, got \[0"),
    ],
)
def test_a_policy_that_fails_is_told_and_the_pool_can_be_served_by_another_and_closed(backend: str, how: str, says: str) -> None:
    policy = Misbehaving(how)
    with AsyncPool(Faulty, 3, backend=backend) as pool:
        pids = pool.call("pid")
        with PolicyServer(pool, policy, act_timeout_s=0.2 if how == "hang" else 60.0) as server:
            with pytest.raises(PolicyError, match=says) as raised:
                server.run(steps=100)
            with pytest.raises(ConfigurationError, match="this server has failed; make a new one"):
                server.steps(1)
        if how == "raise":
            assert raised.traceback
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
            assert raised.value.__cause__.__traceback__ is not None
            frame = raised.value.__cause__.__traceback__
            while frame.tb_next is not None:
                frame = frame.tb_next
            assert frame.tb_frame.f_code.co_name == "_raise"
        policy.released.set()
        with PolicyServer(pool, Zero()) as server:
            assert server.run(episodes=6).episodes >= 6
    assert pool.closed
    if backend == "process":
        assert not any(psutil.pid_exists(pid) for pid in pids)


def test_the_threads_of_policies_end_with_the_server() -> None:
    def alive() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("agent-gym-policy")}

    before = alive()
    with AsyncPool(Ending, 2) as pool:
        with PolicyServer(pool, [Zero(), Zero()]) as server:
            server.run(steps=3)
            mine = alive() - before
        forgotten = PolicyServer(pool, Zero())
        mine |= alive() - before
        del forgotten
        for thread in mine:
            thread.join(20)
            assert not thread.is_alive()
    assert len(mine) == 3


# Misuse, and figures.


def closed_twice(pool: AsyncPool) -> None:
    server = PolicyServer(pool, Zero())
    server.close()
    server.close()
    server.steps()


@pytest.mark.parametrize(
    ("misuse", "says"),
    [
        (lambda pool: PolicyServer(pool, []), "policy must be a Policy, or several"),
        (lambda pool: PolicyServer(pool, None), "policy must be a Policy"),  # type: ignore[arg-type]
        (lambda pool: PolicyServer(pool, ["random"]), "policy must be a Policy"),  # type: ignore[list-item]
        (lambda pool: PolicyServer(pool, [one := Zero(), one]), "none twice"),
        (lambda pool: PolicyServer(pool, Zero(), window=-1.0), "window must be seconds from 0, or 'auto'; got -1"),
        (lambda pool: PolicyServer(pool, Zero(), window="best"), "got 'best'"),  # type: ignore[arg-type]
        (lambda pool: PolicyServer(pool, Zero(), max_batch=0), "max_batch must be at least 1"),
        (lambda pool: PolicyServer(pool, Zero(), act_timeout_s=0), "act_timeout_s must be above 0"),
        (lambda pool: PolicyServer(pool, Zero(), budget_mib=0), "budget_mib must be above 0"),
        (lambda pool: PolicyServer(pool, Zero()).run(), "needs steps or episodes"),
        (lambda pool: PolicyServer(pool, Zero()).steps(-1), "steps must be at least 0, got -1"),
        (closed_twice, "this server is closed"),
    ],
)
def test_misuse_is_named(misuse: Callable[[AsyncPool], Any], says: str) -> None:
    with AsyncPool(Ending, 1) as pool, pytest.raises(ConfigurationError, match=says):
        misuse(pool)


def test_the_episodes_of_somebody_else_are_not_taken_over_where_tasks_would_be_lost() -> None:
    with AsyncPool(Ending, 1, tasks=["one/two/train/1"]) as pool:
        pool.recv()
        with pytest.raises(ConfigurationError, match="env 0 waits for an action"):
            PolicyServer(pool, Zero())


def test_figures_are_json_values_and_progress_is_told() -> None:
    told: list[ServerStats] = []
    with AsyncPool(Ending, 3) as pool, PolicyServer(pool, Parity(takes_s=0.002)) as server:
        assert json.loads(json.dumps(server.stats().as_dict()))["batch_mean"] is None
        stats = server.run(steps=60, progress=told.append, every_s=0.0)
    assert [one.steps for one in told] == list(range(1, 61))
    assert stats.batches > 0
    assert stats.batch_mean is not None
    assert 1.0 <= stats.batch_mean <= 3.0
    assert stats.act_a_s + stats.act_b_s > 0.0
    assert stats.latency_s > 0.0
    assert stats.bound_per_s is not None
    assert stats.bound_per_s > 0.0
    assert stats.fraction_of_bound is not None
    json.dumps(stats.as_dict())


@pytest.mark.parametrize(("backend", "action"), [("thread", "wait:woken"), ("process", "hang")])
def test_a_recv_that_waits_is_woken_from_another_thread(backend: str, action: str) -> None:
    pool = AsyncPool(Faulty, 1, backend=backend, step_timeout_s=600)
    pool.async_reset()
    pool.recv()
    pool.send([action], [0])
    threading.Timer(0.05, pool.wake).start()
    assert len(pool.recv()) == 0
    pool.wake()
    assert len(pool.recv()) == 0
    release_all()
    pool.close(0.5)
    pool.wake()  # nobody is there, and nothing happens
