"""Metrics on rows whose figures were worked out by hand."""

from typing import Any

import pytest

from agent_gym.evaluation import summarize, wilson
from agent_gym.gateway.safety import RETRY_SAFETY


def row(
    task_type: str | None,
    outcome: str,
    turns: int,
    calls: int = 0,
    failures: int = 0,
    invalid: int = 0,
    capabilities: list[str] | None = None,
) -> dict[str, Any]:
    valid = outcome not in ("infra_error", "interrupted")
    return {
        "task_type": task_type,
        "capabilities": capabilities,
        "outcome": outcome,
        "success": outcome == "success" if valid else None,
        "reward_total": float(outcome == "success") - 0.1 * failures if valid else None,
        "n_turns": turns,
        "n_tool_calls": calls,
        "n_tool_failures": failures,
        "n_invalid_actions": invalid,
        "n_retries": 0,
        "n_faults": 0,
        "retry_safety": [],
        "n_useless_questions": None,
    }


NONE = dict.fromkeys(RETRY_SAFETY, 0.0)
UNKNOWN = dict.fromkeys(RETRY_SAFETY)


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
        "retries_mean",
        "faults_mean",
        "retry_safety",
        "useless_questions_mean",
        "infra_errors",
        "by_task_type",
        "by_capability",
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
        "retries_mean": 0.0,
        "faults_mean": 0.0,
        "retry_safety": NONE,
        "useless_questions_mean": None,
        "infra_errors": 0,
    }
    assert (types["b"]["episodes"], types["b"]["success_rate"], types["b"]["infra_errors"]) == (3, 0.0, 1)
    assert types["b"]["tool_success_rate"] is None
    assert types["c"]["success_rate"] is types["c"]["success_ci95"] is types["c"]["turns_mean"] is None


def test_by_capability() -> None:
    rows = [
        row("a", "success", 4, capabilities=["lookup", "form"]),
        row("b", "failure", 2, capabilities=["lookup"]),
        row("b", "infra_error", 1, capabilities=["lookup"]),
        row("c", "success", 1),
    ]
    labels = summarize(rows)["by_capability"]
    assert list(labels) == ["form", "lookup"]
    assert (labels["form"]["episodes"], labels["form"]["success_rate"]) == (1, 1.0)
    assert labels["lookup"] == summarize(rows[:3])["by_capability"]["lookup"]
    assert (labels["lookup"]["episodes"], labels["lookup"]["success_rate"], labels["lookup"]["infra_errors"]) == (3, 0.5, 1)
    assert labels["lookup"]["success_ci95"] == list(wilson(1, 2))


def test_the_order_of_episodes_plays_no_part() -> None:
    assert summarize(ROWS[::-1], seed=3) == summarize(ROWS, seed=3)


def test_nothing_to_measure() -> None:
    got = summarize([])
    assert got["episodes"] == got["infra_errors"] == 0
    assert got["success_rate"] is got["success_macro"] is got["success_macro_ci95"] is got["turns_mean"] is None
    assert got["by_task_type"] == got["by_capability"] == {}


def test_an_unknown_success_is_neither() -> None:
    unknown = {**row("a", "truncated", 1), "success": None}
    assert summarize([unknown, row("a", "success", 1)])["success_rate"] == 1.0
    assert summarize([row(None, "infra_error", 0)])["by_task_type"]["unknown"]["infra_errors"] == 1


def safety(**counts: int) -> list[dict[str, Any]]:
    return [{"name": name, "count": count} for name, count in counts.items()]


@pytest.mark.parametrize(
    ("parts", "retries", "faults", "expected"),
    [
        ([{"n_retries": 3, "n_faults": 2, "retry_safety": safety(hammering=4)}, {}], 1.5, 1.0, {**NONE, "hammering": 2.0}),
        ([{"retry_safety": safety(gave_up_early=1)}, {"retry_safety": safety(gave_up_early=1)}], 0.0, 0.0, {**NONE, "gave_up_early": 1.0}),
        ([{"n_faults": None, "retry_safety": None}], 0.0, None, UNKNOWN),
        ([{"n_faults": None, "retry_safety": None}, {"n_faults": 3}], 0.0, 3.0, NONE),
        ([{"outcome": "infra_error", "n_retries": 9, "n_faults": 9, "retry_safety": safety(hammering=9)}, {}], 0.0, 0.0, NONE),
        ([], None, None, UNKNOWN),
    ],
)
def test_faults_and_how_they_were_dealt_with(
    parts: list[dict[str, Any]], retries: float | None, faults: float | None, expected: dict[str, Any]
) -> None:
    got = summarize([{**row("a", "success", 1), **part} for part in parts])
    assert (got["retries_mean"], got["faults_mean"], got["retry_safety"]) == (retries, faults, expected)
    for part in got["by_task_type"].values():
        assert part["retry_safety"] == expected
