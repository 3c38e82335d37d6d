"""Episodes from the rows of a trajectory store."""

import json
from typing import Any

from agent_gym.report import StepView, episode_view

EPISODE = {
    "policy_id": "maskable-ppo",
    "task_id": "retail/cancel/test/1",
    "task_type": "retail/cancel",
    "goal": "Cancel it.",
    "outcome": "failure",
    "end_reason": "violation",
    "reward_total": -1.0,
    "error": None,
}


def row(step: int, **columns: Any) -> dict[str, Any]:
    blank = dict.fromkeys(("action", "given", "invalid_reason", "status", "reward", "ending", "milestones"))
    return {"step": step, "obs_data": '{"last":null}', **blank, **columns}


def last(result: Any) -> str:
    return json.dumps({"last": {"tool": "t", "arguments": {}, "status": "ok", "result": result}})


def test_rows_become_steps() -> None:
    rows = [
        row(0),
        row(1, action='{"arguments":{"a":1},"name":"get"}', status="ok", obs_data=last({"b": 2}), reward=0.0, milestones=["read"]),
        row(2, given="{oops", status="invalid_arguments", invalid_reason="not JSON", reward=0.0, milestones=["read"]),
        row(3, action='{"arguments":{},"name":"finish"}', status="ok", obs_data=last(""), reward=-1.0, milestones=["read", "done"]),
    ]
    shown = episode_view(EPISODE, rows, policy="trained")
    assert (shown.policy, shown.outcome, shown.end_reason, shown.reward) == ("trained", "failure", "violation", -1.0)
    assert shown.steps == (
        StepView(index=1, call="get", arguments={"a": 1}, result={"b": 2}, milestones=("read",)),
        StepView(index=2, call="", given="{oops", status="invalid_arguments", result="not JSON"),
        StepView(index=3, call="finish", reward=-1.0, milestones=("done",)),
    )


def test_after_an_infrastructure_error_the_older_result_is_not_shown() -> None:
    failed = row(1, action='{"arguments":{},"name":"get"}', status="ok", obs_data=last("older"), ending="infra_error")
    assert episode_view(EPISODE, [row(0), failed]).steps == (StepView(index=1, call="get", status="infra_error", reward=None),)


def test_long_results_are_folded_and_very_long_ones_cut() -> None:
    short, long, huge = ({"a": 1}, {"a": list(range(50))}, "x" * 30_000)
    passages = [StepView(index=1, call="t", result=result).outcome for result in (short, long, huge)]
    assert [passage.folded for passage in passages] == [False, True, True]
    assert [passage.left_out for passage in passages] == [0, 0, 10_000]
    assert passages[0].text == '{"a": 1}'
    assert "\n" not in passages[1].gist


def test_arguments_are_shown_line_by_line_where_one_line_is_not_enough() -> None:
    assert StepView(index=1, call="t", arguments={"a": "é", "b": [1]}).inline == 'a="é", b=[1]'
    code = StepView(index=1, call="write_file", arguments={"path": "a.py", "content": "def f():\n    return 1\n" + "# long\n" * 9})
    assert code.inline == ""
    assert [(name, passage.folded) for name, passage in code.rows] == [("path", False), ("content", True)]
    assert "\n    return 1\n" in code.rows[1][1].text
