"""explain: of an episode that failed the rows, with what was wanted there and what was found; and when it cannot tell, why."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.worlds import load_worlds
from agent_gym.evaluation import evaluate
from agent_gym.evaluation.explain import explain
from agent_gym.policies import load
from agent_gym.trajectories import TrajectoryStore
from agent_gym.world import WorldTaskSet
from agent_gym.wrappers import RecordTrajectory

ID = "AgentBase/ToolTask-v0"
TASKS = WorldTaskSet(load_worlds(["library"]))
RENEW = next(task for task in map(TASKS.get, TASKS.ids("transfer", "library/renew")) if not task.refusal)
REFUSE = next(task for task in map(TASKS.get, TASKS.ids("transfer", "library/renew")) if task.spec["refusal"] == "blocked")
LOAN = RENEW.spec["goal"][0]["where"]["loan_id"]


def recorded(folder: Path, task_id: str, calls: Sequence[ToolCall]) -> dict[str, Any]:
    """The row of an episode in which these calls are made, after what the oracle would read."""
    store = TrajectoryStore(folder)
    with store.open_run(policy="test", env_id=ID, seed=0) as run:
        env = RecordTrajectory(gymnasium.make(ID, interface="text"), run)
        env.reset(seed=0, options={"task_id": task_id})
        for call in calls:
            env.step(call)
        env.close()
    (row,) = store.episodes()
    return store.episode(row["episode_id"])


def looks(task: Any) -> list[ToolCall]:
    return [ToolCall(pattern["tool"], pattern["arguments"]) for pattern in task.spec["look_first"]]


def failed(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {check["name"]: check["rows"] for check in found["checks"] if not check["passed"]}


def test_what_was_not_done(tmp_path: Path) -> None:
    found = explain(recorded(tmp_path, RENEW.id, [*looks(RENEW), ToolCall("finish")]))
    assert (found["task_id"], found["goal"], found["outcome"], found["note"]) == (RENEW.id, RENEW.goal, "failure", "")
    assert failed(found) == {
        "goal": [{"table": "loans", "row": {"loan_id": LOAN}, "column": "renewals", "expected": 1, "found": 0}],
    }


def test_what_was_done_beside_it(tmp_path: Path) -> None:
    session: Any = TASKS.open(RENEW)
    other = session.world.query("SELECT * FROM loans WHERE loan_id != ? AND renewals = 1 ORDER BY loan_id", (LOAN,))[0]
    session.close()
    writes = [ToolCall("renew_loan", {"loan_id": loan}) for loan in (LOAN, other["loan_id"])]
    found = explain(recorded(tmp_path, RENEW.id, [*looks(RENEW), *writes, ToolCall("finish")]))
    (rows,) = failed(found).values()
    assert [(row["row"], row["column"], row["expected"]) for row in rows] == [
        ({"loan_id": other["loan_id"]}, "due", other["due"]),
        ({"loan_id": other["loan_id"]}, "renewals", 1),
    ]
    assert rows[1]["found"] == 2


def test_what_was_missing_when_time_ran_out(tmp_path: Path) -> None:
    found = explain(recorded(tmp_path, RENEW.id, looks(RENEW)[:1] * RENEW.max_steps))
    assert found["end_reason"] == "step_limit"
    ((check),) = found["checks"]
    assert (check["name"], check["passed"]) == ("goal", False)
    assert "step_limit" in check["detail"]
    assert check["rows"][0]["column"] == "renewals"


def test_a_violation_and_a_refusal(tmp_path: Path) -> None:
    loan = REFUSE.spec["forbidden"][0]["arguments"]
    found = explain(recorded(tmp_path / "violation", REFUSE.id, [ToolCall("renew_loan", loan)]))
    assert found["end_reason"] == "violation"
    assert any(loan["loan_id"] in check["detail"] for check in found["checks"] if not check["passed"])
    found = explain(recorded(tmp_path / "refusal", REFUSE.id, [*looks(REFUSE), ToolCall("refuse", {"reason": "blocked"})]))
    assert failed(found) == {}


def test_without_the_same_task_there_is_what_was_recorded(tmp_path: Path) -> None:
    row = recorded(tmp_path, RENEW.id, [*looks(RENEW), ToolCall("finish")])
    for change, said in [
        ({"env_version": "0"}, "the episode is of version 0"),
        ({"env_id": "Nobody/Nothing-v9"}, "is not known here"),
        ({"task_id": "library/renew/transfer/99999"}, "unknown task id"),
    ]:
        found = explain({**row, **change})
        assert said in found["note"]
        assert failed(found) == {"goal": []}


@pytest.mark.usefixtures("needs_sandbox")
def test_other_domains_have_checks_and_no_rows(tmp_path: Path) -> None:
    env = gymnasium.make("AgentBase/CodeTask-v0", interface="text")
    store = TrajectoryStore(tmp_path)
    evaluate(load("noop", env), "AgentBase/CodeTask-v0", split="train", episodes=1, store=store)
    env.close()
    found = explain(store.episode(store.episodes()[0]["episode_id"]))
    assert found["note"] == ""
    assert all(check["rows"] == [] for check in found["checks"])
