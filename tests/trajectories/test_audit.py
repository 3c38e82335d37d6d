"""An episode as it was sealed, an episode of which something was dropped, and every way to alter one that the ledger tells of."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_gym.errors import ConfigurationError, StoreError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.audit import Audit, audit, head
from agent_gym.trajectories.durable import checksum
from agent_gym.trajectories.ledger import ledger_path
from agent_gym.trajectories.manifest import manifest_path
from agent_gym.trajectories.policy import RetentionPolicy
from agent_gym.trajectories.retention import collect_garbage
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID, CountingEnv
from tests.trajectories.test_kept import SeeingEnv

LONG = "long " * 14_000
EVERYTHING_GOES = RetentionPolicy.model_validate({"budget": 1, "successes_per_task": 0, "thin_after_days": 1e-9})
Rows = list[dict[str, Any]]


def play(env: RecordTrajectory, **options: Any) -> str:
    env.reset(seed=0, options={"task_id": "train/even/4", **options})
    for number in range(2):
        env.note(policy_version=3, logprob=-0.1, tokens={"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.7]})
        env.note(thought=f"{LONG if number else 'short'} {env.episode_id}", usage={"cost_usd": 1})
        env.step("add(2)")
    env.step("finish()")
    return str(env.episode_id)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three episodes with pictures, long texts and tokens, the second one flagged; and five of the tool environment."""
    store = TrajectoryStore(tmp_path_factory.mktemp("audit") / "store")
    run = store.open_run(command="agent-gym train --of=things", policy="someone", seed=5)
    with RecordTrajectory(SeeingEnv(), run) as env:
        episodes = [play(env) for _ in range(3)]
    run.close()
    store.add_event("flag", episode_id=episodes[1], author="me", reason="have a look", payload={"at": 1})
    tools = gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", faults=0.5, disable_env_checker=True)
    with RecordTrajectory(tools, run) as env:
        for seed in range(5):
            observations = [env.reset(seed=seed)[0]]
            ended = False
            while not ended:
                call = env.unwrapped.rich.unwrapped.oracle(observations)  # type: ignore[attr-defined]
                observation, _, *endings, _ = env.step(call.to_dict())
                observations.append(observation)
                ended = any(endings)
    run.close()
    store.compact()
    return store.path


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> TrajectoryStore:
    shutil.copytree(recorded, tmp_path / "store")
    return TrajectoryStore(tmp_path / "store")


def episodes(store: TrajectoryStore) -> list[str]:
    return [row["episode_id"] for row in store.episodes()]


def rewrite(store: TrajectoryStore, table: str, change: Callable[[Rows], Rows]) -> None:
    """Alters rows as one would who knows the store: the file is written anew, and its size and checksum in the manifest too."""
    for path in store.path.glob(f"{table}/*/*.parquet"):
        schema = pq.read_schema(path)
        rows = change(pq.read_table(path, partitioning=None).to_pylist())
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
        with sqlite3.connect(manifest_path(store.path)) as database:
            known = (len(rows), path.stat().st_size, checksum(path), path.relative_to(store.path).as_posix())
            assert database.execute("UPDATE files SET rows = ?, bytes = ?, sha256 = ? WHERE path = ?", known).rowcount == 1


def with_value(column: str, value: Any, **where: Any) -> Callable[[Rows], Rows]:
    def change(rows: Rows) -> Rows:
        found = [row for row in rows if all(row[name] == wanted for name, wanted in where.items())]
        assert len(found) == 1
        assert found[0][column] != value
        found[0][column] = value
        return rows

    return change


def test_an_untouched_episode_is_as_it_was_sealed(store: TrajectoryStore) -> None:
    for episode_id in episodes(store):
        found = audit(store, episode_id)
        assert found.findings == []
        assert set(found.digests.values()) == {"as sealed"}
        assert set(found.digests) == {"episode", "steps", "tool_calls", "results", "tokens", "run"}
        assert all(told.startswith("sha256 ") for told in found.files.values())
    found = audit(store, episodes(store)[1])
    assert found.trigger["command"] == "agent-gym train --of=things"
    assert (found.trigger["policy"], found.trigger["source"], found.trigger["seed"]) == ("someone", "policy", 5)
    assert found.trigger["pid"] > 0
    assert found.trigger["host"]
    assert (found.which["task_id"], found.which["env_version"], found.which["seed"]) == ("train/even/4", "7", 0)
    assert [action["status"] for action in found.actions] == ["ok", "ok", "ok"]
    assert found.actions[0]["action"] == {"name": "add", "arguments": {"amount": 2}}
    assert (found.result["outcome"], found.checks[0]["name"], found.changes[0]["after"]) == ("success", "counted", 4)
    assert [(event["kind"], event["author"], event["reason"]) for event in found.events] == [("flag", "me", "have a look")]
    assert found.head == head(store)
    with pytest.raises(StoreError, match="no episode 'nothing'"):
        audit(store, "nothing")


FIRST_STEP, FIRST_CALL = {"step": 1}, {"step": 1, "attempt": 1}


@pytest.mark.parametrize(
    ("table", "column", "value", "finding"),
    [
        ("episodes", "success", False, "the row of the episode is altered"),
        ("episodes", "reward_total", 1.0000001, "the row of the episode is altered"),
        ("episodes", "started_at", None, "the row of the episode is altered"),
        ("episodes", "checks", "[]", "the row of the episode is altered"),
        ("steps", "action", '{"name":"add","arguments":{"amount":3}}', "the steps are altered"),
        ("steps", "obs_text", "something else", "the steps are altered"),
        ("steps", "obs_data", "{}", "the steps are altered"),
        ("steps", "note", None, "the steps are altered"),
        ("steps", "reward", 0.5, "the steps are altered"),
        ("tool_calls", "arguments", '{"amount":3}', "the calls are altered"),
        ("tool_calls", "took_effect", None, "the calls are altered"),
        ("tool_calls", "result", "now 5", "the results of calls are altered"),
        ("tokens", "completion_token_ids", [4], "the tokens are altered"),
        ("tokens", "logprobs", [-0.5], "the tokens are altered"),
    ],
)
def test_an_altered_value_is_found(store: TrajectoryStore, table: str, column: str, value: Any, finding: str) -> None:
    first, second, *_ = episodes(store)
    where = {"episodes": {}, "steps": FIRST_STEP, "tool_calls": FIRST_CALL, "tokens": FIRST_STEP}[table]
    rewrite(store, table, with_value(column, value, episode_id=first, **where))
    assert store.fsck() == [], "nothing but the ledger tells"
    assert audit(store, first).findings == [finding]
    assert audit(store, second).findings == []


@pytest.mark.parametrize("table", ["steps", "tool_calls", "tokens"])
def test_a_row_that_was_taken_out_or_put_in_is_found(store: TrajectoryStore, table: str) -> None:
    first, second, third, *_ = episodes(store)

    def change(rows: Rows) -> Rows:
        extra = next(row for row in rows if row["episode_id"] == second and row["step"] == 2)
        left = [row for row in rows if (row["episode_id"], row["step"]) != (first, 2)]
        return [*left, {**extra, "step": 7}]

    rewrite(store, table, change)
    for episode_id, altered in ((first, True), (second, True), (third, False)):
        assert bool(audit(store, episode_id).findings) == altered
    rewrite(store, table, lambda rows: [row for row in rows if row["episode_id"] != third])
    assert any(finding.endswith(" are missing") for finding in audit(store, third).findings)
    rewrite(store, "episodes", lambda rows: [row for row in rows if row["episode_id"] != third])
    with pytest.raises(StoreError, match=f"no episode '{third}' .* but the ledger has it"):
        audit(store, third)


def test_events_cannot_be_altered_taken_out_or_put_in(store: TrajectoryStore) -> None:
    first, second, *_ = episodes(store)
    (event,) = store.events(second)
    rewrite(store, "events", with_value("reason", "nothing to see", event_id=event["event_id"]))
    assert audit(store, second).findings == [f"event {event['event_id']} was altered"]
    rewrite(store, "events", lambda rows: [{**row, "event_id": "made-up", "episode_id": first, "kind": "pin"} for row in rows])
    assert audit(store, second).findings == [f"event {event['event_id']} is missing"]
    assert audit(store, first).findings == ["event made-up has no entry in the ledger"]


def test_dropping_rows_and_a_made_up_event_do_not_pass_for_retention(store: TrajectoryStore) -> None:
    first, second, *_ = episodes(store)
    rewrite(store, "steps", lambda rows: [row for row in rows if row["episode_id"] != first])
    rewrite(store, "events", lambda rows: [*rows, {**rows[0], "event_id": "made-up", "episode_id": first, "kind": "dropped_steps"}])
    assert store.fsck() == []
    assert audit(store, first).findings == ["event made-up has no entry in the ledger"]
    assert audit(store, second).findings == []


def test_the_record_of_the_run_and_blobs_belong_to_it(store: TrajectoryStore) -> None:
    first, second, *_ = episodes(store)
    path = next(store.path.glob("_meta/runs/*.json"))
    path.write_bytes(path.read_bytes().replace(b"--of=things", b"--of=nothing"))
    assert audit(store, first).findings == ["the record of the run is altered"]
    path.write_bytes(path.read_bytes().replace(b"--of=nothing", b"--of=things"))
    step = list(store.steps(first))[2]
    text, picture = (store.path / "blobs" / digest[:2] / digest for digest in (step["blobs"][0]["digest"], step["obs_image"]))
    text.write_text("another thought")
    picture.unlink()
    findings = audit(store, first).findings
    named = {"note of steps, step 2", "obs_image of steps, step 2", "obs_image of steps, step 3"}
    assert {finding.partition(":")[0] for finding in findings} == named
    assert "has another digest" in "".join(findings)
    assert all(finding.startswith("obs_image") for finding in audit(store, second).findings), "the picture is that of all three"
    assert len(audit(store, second).findings) == 2


def test_what_was_dropped_is_told_and_the_rest_can_still_be_checked(store: TrajectoryStore) -> None:
    first, second, *_ = episodes(store)
    before = audit(store, first)
    collect_garbage(store, RetentionPolicy.model_validate({"blobs_days": 1e-9, "tokens_days": 1e-9, "thin_after_days": "forever"}))
    found = audit(store, first)
    assert found.findings == []
    assert found.digests == before.digests | {"tokens": "dropped"}
    assert {event["kind"] for event in found.events} == {"dropped_tokens", "dropped_blobs"}
    assert [step["obs_image"] for step in store.steps(first)] == [None] * 4
    rewrite(store, "steps", with_value("obs_text", "something else", episode_id=first, step=1))
    assert audit(store, first).findings == ["the steps are altered"]
    collect_garbage(store, EVERYTHING_GOES)
    found = audit(store, first)
    assert found.findings == []
    assert {group for group, state in found.digests.items() if state == "dropped"} == {"steps", "results", "tokens"}
    assert [action["action"]["name"] for action in found.actions] == ["add", "add", "finish"], "from the calls, which stay"
    assert audit(store, second).digests["steps"] == "as sealed", "it is flagged"
    assert store.fsck() == []


def chain(store: TrajectoryStore, sql: str, *values: Any) -> None:
    with sqlite3.connect(ledger_path(store.path)) as database:
        assert database.execute(sql, values).rowcount


def test_the_ledger_cannot_be_altered_in_part(store: TrajectoryStore) -> None:
    first, *_, last = episodes(store)
    kept_elsewhere = head(store)
    assert kept_elsewhere is not None
    whole = ledger_path(store.path).read_bytes()
    told = "the ledger is broken at entry {}: it, or one before it, was altered, taken out or put in"
    for broken, sql in {
        1: "UPDATE entries SET digests = zeroblob(96) WHERE seq = 1",
        3: "DELETE FROM entries WHERE seq = 2",
        10: "INSERT INTO entries SELECT 10, kind, 'made-up', owner, digests, chain FROM entries WHERE seq = 9",
    }.items():
        chain(store, sql)
        assert told.format(broken) in audit(store, last).findings
        assert [str(one) for one in store.fsck()] == [f"_meta/ledger.sqlite is broken at entry {broken}"]
        ledger_path(store.path).write_bytes(whole)
    assert audit(store, last, kept_elsewhere).findings == []
    with RecordTrajectory(CountingEnv(), str(store.path)) as env:
        newer = play(env)
    assert audit(store, newer, kept_elsewhere).findings == []
    ledger_path(store.path).unlink()
    assert audit(store, first).findings == [
        "the episode has no entry in the ledger: it was recorded before there was one, or not by the recorder"
    ]
    with RecordTrajectory(CountingEnv(), str(store.path)) as env:
        newer = play(env)
    assert audit(store, newer).findings == []
    (finding,) = audit(store, newer, kept_elsewhere).findings
    assert finding == f"the ledger does not go through {kept_elsewhere}: it was written anew"
    with pytest.raises(ConfigurationError, match="'nonsense' is no head of a ledger"):
        audit(store, newer, "nonsense")


def test_a_damaged_ledger_is_told_and_put_aside(store: TrajectoryStore) -> None:
    ledger_path(store.path).write_bytes(b"no database at all, and long enough to look like one" * 100)
    assert [str(one) for one in store.fsck()] == ["_meta/ledger.sqlite is damaged: file is not a database"]
    with pytest.raises(StoreError, match=r"ledger\.sqlite: .*store recover puts it aside"):
        audit(store, episodes(store)[0])
    assert [str(one) for one in store.recover()] == ["_meta/ledger.sqlite was put aside, and another begins"]
    assert store.fsck() == []
    with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path)) as env:
        newer = play(env)
    assert audit(store, newer).findings == []


def test_compacting_changes_no_digest(store: TrajectoryStore) -> None:
    run_id = store.runs()[0]["run_id"]
    with RecordTrajectory(CountingEnv(), str(store.path), run_id) as env:
        play(env)
    assert store.compact() == (2, 1)
    found: list[Audit] = [audit(store, episode_id) for episode_id in episodes(store)]
    assert [one.findings for one in found] == [[]] * 9
