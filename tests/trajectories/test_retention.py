"""What goes and what stays: age, number, budget, pins; and that a store is whole at any moment in between."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from agent_gym.agent_env import AgentEnv
from agent_gym.core.observation import Observation
from agent_gym.errors import ConfigurationError, StoreError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.candidates import KINDS
from agent_gym.trajectories.policy import DEFAULT_POLICY, RetentionPolicy, load_policy
from agent_gym.trajectories.retention import Report, collect_garbage
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import CountingEnv, CountingSession

LONG = "long " * 14_000
NOW = 1e-9
"""Days that have passed since anything was recorded."""


def played(env: RecordTrajectory, options: Mapping[str, Any], *, well: bool, thought: str = "", tokens: bool = True) -> str:
    """Plays an episode as the oracle does, or gives up at once."""
    inner: AgentEnv = env.unwrapped.rich.unwrapped  # type: ignore[attr-defined]
    observations = [env.reset(seed=0, options=dict(options))[0]]
    ended = False
    while not ended:
        if tokens:
            env.note(tokens={"prompt_token_ids": list(range(20)), "completion_token_ids": [1, 2], "logprobs": [-0.1, -0.2]})
        env.note(policy_version=1, **({"thought": f"{thought}{env.episode_id}{len(observations)}"} if thought else {}))
        action = inner.oracle(observations).to_dict() if well else "finish()"
        observation, _, *endings, _ = env.step(action)
        observations.append(observation)
        ended = any(endings)
    return str(env.episode_id)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 episodes of 6 retail tasks in training, every fifth a failure, every third with texts of 70 KB; 4 of an evaluation."""
    store = TrajectoryStore(tmp_path_factory.mktemp("retention") / "store")
    for command, count in (("agent-gym train", 60), ("agent-gym eval oracle AgentBase/ToolTask-v0", 4)):
        run = store.open_run(command=command, policy="someone")
        with RecordTrajectory(
            gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", worlds=["retail"], disable_env_checker=True), run
        ) as env:
            tasks = env.task_set.ids("train", env.task_set.families("train")[0])[:6]
            for number in range(count):
                played(env, {"task_id": tasks[number % 6]}, well=number % 5 != 0, thought="" if number % 3 else LONG)
        run.close()
    return store.path


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> TrajectoryStore:
    shutil.copytree(recorded, tmp_path / "store")
    return TrajectoryStore(tmp_path / "store")


def policy(**settings: Any) -> RetentionPolicy:
    return RetentionPolicy.model_validate(settings)


def size(store: TrajectoryStore) -> int:
    return sum(path.stat().st_size for path in store.path.rglob("*") if path.is_file())


def everything(store: TrajectoryStore, episode_id: str) -> tuple[Any, ...]:
    return store.episode(episode_id), list(store.steps(episode_id)), list(store.tool_calls(episode_id))


def ids(store: TrajectoryStore, where: str) -> list[str]:
    return [row["episode_id"] for row in store.episodes(where=where)]


def went(report: Report) -> list[tuple[str, str, str]]:
    return [(one.kind, one.episode_id, one.reason) for one in report.dropped]


def test_a_store_is_made_to_fit_its_budget_and_what_is_held_stays(store: TrajectoryStore) -> None:
    failures = ids(store, "outcome = 'failure'")
    pinned = ids(store, "outcome = 'success'")[3]
    store.add_event("pin", episode_id=pinned, reason="the best one")
    held = {episode_id: everything(store, episode_id) for episode_id in [*failures, pinned]}
    assert len(failures) == 13
    before = size(store)
    budget = before // 2
    report = collect_garbage(store, policy(budget=budget))
    assert report.fits
    assert size(store) == report.bytes_after <= budget < report.bytes_before == before
    assert store.fsck() == []
    assert {episode_id: everything(store, episode_id) for episode_id in held} == held
    assert len(store.episodes()) == 64
    for one in report.dropped:
        assert ("dropped_" + one.kind, one.reason) in [(event["kind"], event["reason"]) for event in store.events(one.episode_id)]
    assert collect_garbage(store, policy(budget=budget)).dropped == []


def test_a_dry_run_changes_nothing_and_says_what_then_goes(store: TrajectoryStore) -> None:
    store.add_event("pin", episode_id=ids(store, "outcome = 'success'")[0])
    store.seal()
    files = {path: path.stat().st_size for path in store.path.rglob("*") if path.is_file()}
    rules = policy(budget=size(store) // 20, tokens_days=NOW)
    looked = collect_garbage(store, rules, dry_run=True)
    assert {path: path.stat().st_size for path in store.path.rglob("*") if path.is_file()} == files
    assert not looked.fits
    assert {one.kind for one in looked.dropped} == set(KINDS)
    done = collect_garbage(store, rules)
    assert done.dropped == looked.dropped
    assert done.held == looked.held
    assert done.bytes_after == pytest.approx(looked.bytes_after, rel=0.01), "the events differ in their ids and times"
    assert not list((store.path / "_meta" / "tmp").glob("gc-*"))


def test_what_goes_first(store: TrajectoryStore) -> None:
    order = [one.kind for one in collect_garbage(store, policy(budget=1), dry_run=True).dropped]
    assert order == sorted(order, key=KINDS.index)
    assert set(order) == set(KINDS)
    assert order.count("tokens") == 64, "of failures and evaluations too: they cost most and are worth least"
    assert order.count("steps") == len(ids(store, "outcome = 'success' AND run_id = (SELECT min(run_id) FROM episodes)")) == 48
    some = collect_garbage(store, policy(budget=size(store) - 1_000_000)).dropped
    assert {one.kind for one in some} == {"tokens", "blobs"}
    blobs = [one.episode_id for one in some if one.kind == "blobs"]
    assert blobs == [one for one in ids(store, "outcome = 'success'") if one in blobs], "the oldest first"
    for episode_id in blobs:
        steps = list(store.steps(episode_id))
        assert [step["note"] for step in steps] == [None] * len(steps)
        assert [step["gaps"] for step in steps[1:]] == [["dropped:note"]] * (len(steps) - 1)
        assert all(step["obs_text"] for step in steps)
    assert store.fsck() == []


def test_a_budget_that_cannot_be_kept_is_told(store: TrajectoryStore) -> None:
    failures = {episode_id: everything(store, episode_id) for episode_id in ids(store, "outcome = 'failure'")}
    report = collect_garbage(store, policy(budget=1000))
    assert not report.fits
    assert report.bytes_after == size(store)
    assert report.held == {"failures": 13, "evaluation": 4}
    assert "more than the budget of 1000. Episodes that rules keep whole: 4 by keep.evaluation, 13 by keep.failures" in report.trouble
    assert store.sql("SELECT * FROM tokens") == []
    dropped = [one.episode_id for one in report.dropped if one.kind == "steps"]
    assert store.sql("SELECT DISTINCT episode_id FROM steps ORDER BY 1") == [
        {"episode_id": row["episode_id"]}
        for row in sorted(store.episodes(), key=lambda row: row["episode_id"])
        if row["episode_id"] not in dropped
    ]
    for episode_id in dropped:
        calls = list(store.tool_calls(episode_id))
        assert calls
        assert all(call["arguments"] and call["status"] and call["result"] is call["structured"] is None for call in calls)
    assert {episode_id: everything(store, episode_id) for episode_id in failures} == failures
    assert store.fsck() == []
    assert store.compact()[1] <= 3
    assert store.fsck() == []


def test_successes_are_thinned_the_same_way_every_time(store: TrajectoryStore, tmp_path: Path) -> None:
    shutil.copytree(store.path, tmp_path / "again")
    again = TrajectoryStore(tmp_path / "again")
    rules = policy(successes_per_task=3, thin_after_days=NOW, blobs_days="forever", tokens_days="forever")
    report = collect_garbage(store, rules)
    assert went(report) == went(collect_garbage(again, rules))
    left = store.sql("""
        SELECT task_id, count(DISTINCT episode_id) AS n FROM steps JOIN episodes USING (run_id, episode_id)
        WHERE outcome = 'success' AND run_id = (SELECT min(run_id) FROM episodes) GROUP BY ALL""")
    assert [row["n"] for row in left] == [3] * 6
    recorded_in_order = ids(store, "outcome = 'success'")
    kept = {row["episode_id"] for row in store.sql("SELECT DISTINCT episode_id FROM steps")}
    first = [one for one in recorded_in_order[:18] if one in kept]
    assert 0 < len(first) < 18, "not those that came first"
    assert collect_garbage(store, rules).dropped == []
    assert store.fsck() == []


def test_each_rule_ends(store: TrajectoryStore) -> None:
    failure, flagged, *_ = ids(store, "outcome = 'failure'")
    for kind in ("pin", "flag", "pin", "unpin"):
        store.add_event(kind, episode_id=failure if "pin" in kind else flagged)
    forever = dict.fromkeys(("tokens_days", "blobs_days", "thin_after_days"), "forever")
    assert collect_garbage(store, policy(**forever)).dropped == []
    report = collect_garbage(store, policy(**forever, keep={"failures": NOW}))
    gone = {one.episode_id for one in report.dropped if one.kind == "steps"}
    evaluated = set(ids(store, "run_id = (SELECT max(run_id) FROM episodes)"))
    assert gone == set(ids(store, "outcome = 'failure'")) - evaluated - {flagged}
    assert {one.reason for one in report.dropped} == {"keep.failures = 1e-09 days are over"}
    report = collect_garbage(store, policy(**forever, keep={"failures": NOW, "flagged": NOW, "evaluation": NOW}))
    assert {one.episode_id for one in report.dropped if one.kind == "steps"} == {
        flagged,
        *(evaluated & set(ids(store, "outcome = 'failure'"))),
    }
    assert store.fsck() == []


def test_one_run_alone(store: TrajectoryStore) -> None:
    first, second = (about["run_id"] for about in store.runs())
    rules = policy(budget=1, keep={"evaluation": NOW})
    report = collect_garbage(store, rules, run_id=second)
    assert report.dropped
    assert all(one.episode_id.startswith(second) for one in report.dropped)
    other = store.sql(f"SELECT count(*) AS n FROM events WHERE run_id = '{first}'")
    assert other == [{"n": 0}]
    with pytest.raises(StoreError, match=f"no run 'nothing' in .*; the newest is {second}"):
        collect_garbage(store, rules, run_id="nothing")


class Seeing(CountingSession):
    def observe(self) -> Observation:
        shown = super().observe()
        return Observation(shown.text, shown.data, np.full((40, 60, 3), self.count, np.uint8))


class SeeingEnv(CountingEnv):
    def open(self, task: Any, seed: int, snapshot: Any = None) -> Seeing:  # noqa: ARG002 - the contract's
        return Seeing(task)


def test_blobs_of_a_living_writer_stay(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path / "store")
    everything_goes = policy(budget=1, successes_per_task=0, thin_after_days=NOW)

    def play(env: RecordTrajectory, steps: int) -> None:
        env.reset(seed=0, options={"task_id": "train/even/4"})
        for _ in range(steps):
            env.note(thought=LONG)
            env.step("add(1)")

    with RecordTrajectory(SeeingEnv(), str(store.path)) as done:
        play(done, 4)
        done.step("finish()")
    with RecordTrajectory(SeeingEnv(), str(store.path)) as living:
        play(living, 2)  # names blobs that the other episode names too
        report = collect_garbage(store, everything_goes)
        assert [one.kind for one in report.dropped] == ["steps"]
        assert report.young_blobs == 2, "the pictures of 3 and 4"
        assert "2 blobs stay until the writers that live are done" in report.trouble
        living.note(thought=LONG)
        living.step("add(1)")
        living.step("finish()")
    steps = list(store.steps(str(living.episode_id)))
    assert all(Blobs(store.path).get(step["obs_image"]) for step in steps)
    assert [step["note"] and LONG in step["note"] for step in steps] == [None, True, True, True, None]
    assert store.fsck() == []
    report = collect_garbage(store, policy(budget=1))
    assert report.unnamed_blobs == 1, "the fifth picture, which the writer that lived could have named"
    assert store.fsck() == []


def test_readers_see_every_row_once_meanwhile(store: TrajectoryStore) -> None:
    seen = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(
                store.sql("""
                SELECT count(*) AS n, count(DISTINCT episode_id) AS ids, count(*) FILTER (n != n_turns + 1 AND n != 0) AS partly
                FROM episodes LEFT JOIN (SELECT episode_id, count(DISTINCT step) AS n FROM steps GROUP BY ALL) USING (episode_id)""")[0]
            )

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for share in (0.5, 0.2, 0.05, 0.01):
            collect_garbage(store, policy(budget=int(size(store) * share)))
    finally:
        stop.set()
        reader.join()
    assert len(seen) > 3
    assert all(one == {"n": 64, "ids": 64, "partly": 0} for one in seen)


@pytest.mark.slow
def test_a_death_at_any_moment_leaves_the_store_whole(store: TrajectoryStore) -> None:
    script = "import sys; from tests.trajectories.retention_torture import main; main(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", script, str(store.path)], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    killed = int(done.stdout)
    assert killed > 5


def test_a_damaged_store_is_left_alone(store: TrajectoryStore) -> None:
    part = min(store.path.glob("steps/*/*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(StoreError, match=f"{part.name} has .* bytes instead of .*; nothing was dropped, see agent-gym store fsck"):
        collect_garbage(store, policy(budget=1))
    assert store.sql("SELECT * FROM events") == []


def test_the_default_policy_is_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(DEFAULT_POLICY)
    assert load_policy(path) == load_policy() == RetentionPolicy()
    path.write_text('budget = "1.5 GB"\n[keep]\nfailures = "forever"')
    assert (load_policy(path).budget, load_policy(path).keep.failures) == (1_500_000_000, float("inf"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('budget = "much"', r"policy.toml: budget = 'much' cannot be used; write a size above 0, such as \"20 GB\" or \"500 MiB\""),
        ("budget = true", "budget = True cannot be used; write a size"),
        ("tokens_days = 0", r"tokens_days = 0 cannot be used; write a number of days above 0, or \"forever\""),
        ("successes_per_task = 1.5", "successes_per_task = 1.5 cannot be used; write a whole number, 0 or above"),
        ('[keep]\npinned = "never"', r"keep.pinned = 'never' cannot be used; write a number of days above 0, or \"forever\""),
        ("[keep]\nfailure = 3", "unknown key keep.failure = 3; known: pinned, flagged, evaluation, failures, infra_errors"),
        ("keep = 3", r"keep = 3 cannot be used; write it as a table: \[keep\]"),
        ("budget =", "cannot read the policy .*policy.toml: Invalid value"),
    ],
)
def test_a_wrong_policy_says_what_and_where(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        load_policy(path)
