"""Metrics on rows whose figures were worked out by hand."""

from typing import Any

import pytest

from agent_gym.evaluation import summarize, wilson


def row(task_type: str | None, outcome: str, turns: int, calls: int = 0, failures: int = 0, invalid: int = 0) -> dict[str, Any]:
    valid = outcome not in ("infra_error", "interrupted")
    return {
        "task_type": task_type,
        "outcome": outcome,
        "success": outcome == "success" if valid else None,
        "reward_total": float(outcome == "success") - 0.1 * failures if valid else None,
        "n_turns": turns,
        "n_tool_calls": calls,
        "n_tool_failures": failures,
        "n_invalid_actions": invalid,
    }


ROWS = [
    row("a", "success", 4, calls=3, failures=0),
    row("a", "success", 6, calls=4, failures=1, invalid=1),
    row("a", "failure", 2, calls=1),
    row("a", "truncated", 8, calls=6, failures=3, invalid=2),
    row("b", "abstained", 1),
    row("b", "infra_error", 5, calls=5, failures=5, invalid=5),
    row("b", "interrupted", 3, calls=3, failures=3, invalid=3),
    row("c", "infra_error", 0),
]


def test_the_whole() -> None:
    got = summarize(ROWS)
    assert list(got) == [
        "episodes",
        "success_rate",
        "success_ci95",
        "success_macro",
        "success_macro_ci95",
        "reward_mean",
        "turns_mean",
        "invalid_action_rate",
        "tool_success_rate",
        "infra_errors",
        "by_task_type",
    ]
    assert got["episodes"] == 8
    assert got["success_rate"] == 2 / 5
    assert got["success_ci95"] == list(wilson(2, 5))
    assert got["success_macro"] == (2 / 4 + 0 / 1) / 2
    assert got["reward_mean"] == pytest.approx((1.0 + 0.9 + 0.0 - 0.3 + 0.0) / 5)
    assert got["turns_mean"] == (4 + 6 + 2 + 8 + 1) / 5
    assert got["invalid_action_rate"] == 3 / 21
    assert got["tool_success_rate"] == 10 / 14
    assert got["infra_errors"] == 2
    low, high = got["success_macro_ci95"]
    assert 0 <= low <= 0.25 <= high <= 0.5


def test_by_task_type() -> None:
    types = summarize(ROWS)["by_task_type"]
    assert list(types) == ["a", "b", "c"]
    assert types["a"] == {
        "episodes": 4,
        "success_rate": 0.5,
        "success_ci95": list(wilson(2, 4)),
        "reward_mean": pytest.approx(1.6 / 4),
        "turns_mean": 5.0,
        "invalid_action_rate": 3 / 20,
        "tool_success_rate": 10 / 14,
        "infra_errors": 0,
    }
    assert (types["b"]["episodes"], types["b"]["success_rate"], types["b"]["infra_errors"]) == (3, 0.0, 1)
    assert types["b"]["tool_success_rate"] is None
    assert types["c"]["success_rate"] is types["c"]["success_ci95"] is types["c"]["turns_mean"] is None


def test_the_order_of_episodes_plays_no_part() -> None:
    assert summarize(ROWS[::-1], seed=3) == summarize(ROWS, seed=3)


def test_nothing_to_measure() -> None:
    got = summarize([])
    assert got["episodes"] == got["infra_errors"] == 0
    assert got["success_rate"] is got["success_macro"] is got["success_macro_ci95"] is got["turns_mean"] is None
    assert got["by_task_type"] == {}


def test_an_unknown_success_is_neither() -> None:
    unknown = {**row("a", "truncated", 1), "success": None}
    assert summarize([unknown, row("a", "success", 1)])["success_rate"] == 1.0
    assert summarize([row(None, "infra_error", 0)])["by_task_type"]["unknown"]["infra_errors"] == 1
