"""Metrics of episodes, from their rows in a trajectory store. Nothing here knows how the episodes came about.

An episode is *valid* unless the environment failed (``infra_error``) or it never ended (``interrupted``): those are neither
successes nor failures and leave every rate. What cannot be computed, because there is nothing to compute it from, is None.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.evaluation.intervals import bootstrap_macro, wilson
from agent_gym.gateway.safety import RETRY_SAFETY

__all__ = ["by_task", "summarize"]

Row = Mapping[str, Any]


def summarize(rows: Sequence[Row], *, seed: int = 0) -> dict[str, Any]:
    """Summarizes episodes.

    Args:
        rows: Rows of the table ``episodes``.
        seed: Of the bootstrap.

    Returns:
        ``episodes`` (all of them), ``success_rate`` (mean over valid episodes whose success is known) and ``success_ci95`` (Wilson),
        ``success_macro`` (mean of the task types' rates) and ``success_macro_ci95`` (bootstrap stratified by task type),
        ``reward_mean`` and ``turns_mean`` (over valid episodes), ``invalid_action_rate`` (invalid actions ÷ actions of valid
        episodes), ``tool_success_rate`` (calls with final status ok, empty or degraded ÷ calls, closing tools left out),
        ``retries_mean`` (the gateway's attempts beyond the first of each call) and ``faults_mean`` (faults injected), both per valid
        episode, ``retry_safety`` (each of `RETRY_SAFETY`'s counts, the mean over valid episodes where it is known),
        ``useless_questions_mean`` (questions that brought nothing new, per valid episode in which somebody could be asked),
        ``infra_errors``, and ``by_task_type`` and ``by_capability``: the same for each type, and for each label of what solving a
        task takes, without the macro average. An episode counts under every label of its task.
    """
    types: dict[str, list[Row]] = {}
    labels: dict[str, list[Row]] = {}
    for row in rows:
        types.setdefault(row["task_type"] or "unknown", []).append(row)
        for label in row.get("capabilities") or ():
            labels.setdefault(label, []).append(row)
    counts = [count for name in sorted(types) if (count := _successes(types[name]))[1]]
    whole = _figures(rows)
    macro = {
        "success_macro": math.fsum(successes / trials for successes, trials in counts) / len(counts) if counts else None,
        "success_macro_ci95": list(bootstrap_macro(counts, seed=seed)) if counts else None,
    }
    head = {key: whole.pop(key) for key in ("episodes", "success_rate", "success_ci95")}
    parts = {"by_task_type": types, "by_capability": labels}
    return {**head, **macro, **whole, **{by: {name: _figures(groups[name]) for name in sorted(groups)} for by, groups in parts.items()}}


def by_task(rows: Sequence[Row]) -> dict[str, dict[str, list[int]]]:
    """The successes and the trials of each task, by task type: valid episodes whose success is known."""
    tasks: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        tasks.setdefault(row["task_type"] or "unknown", {}).setdefault(row["task_id"] or "unknown", []).append(row)
    counts = {name: {task_id: list(_successes(of)) for task_id, of in sorted(ids.items())} for name, ids in sorted(tasks.items())}
    return {name: {task_id: count for task_id, count in ids.items() if count[1]} for name, ids in counts.items()}


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    valid = _valid(rows)
    successes, trials = _successes(rows)
    turns, calls = _total(valid, "n_turns"), _total(valid, "n_tool_calls")
    rewards = [row["reward_total"] for row in valid if row["reward_total"] is not None]
    return {
        "episodes": len(rows),
        "success_rate": _ratio(successes, trials),
        "success_ci95": list(wilson(successes, trials)) if trials else None,
        "reward_mean": _ratio(math.fsum(rewards), len(rewards)),
        "turns_mean": _ratio(turns, len(valid)),
        "invalid_action_rate": _ratio(_total(valid, "n_invalid_actions"), turns),
        "tool_success_rate": _ratio(calls - _total(valid, "n_tool_failures"), calls),
        "retries_mean": _ratio(_total(valid, "n_retries"), len(valid)),
        "faults_mean": _mean([row["n_faults"] for row in valid]),
        "retry_safety": _retry_safety(valid),
        "useless_questions_mean": _mean([row["n_useless_questions"] for row in valid]),
        "infra_errors": sum(row["outcome"] == "infra_error" for row in rows),
    }


def _valid(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["outcome"] not in ("infra_error", "interrupted")]


def _successes(rows: Sequence[Row]) -> tuple[int, int]:
    known = [row["success"] for row in _valid(rows) if row["success"] is not None]
    return sum(known), len(known)


def _retry_safety(rows: Sequence[Row]) -> dict[str, float | None]:
    known = [{part["name"]: part["count"] for part in row["retry_safety"]} for row in rows if row["retry_safety"] is not None]
    return {name: _mean([counts.get(name, 0) for counts in known]) for name in RETRY_SAFETY}


def _mean(counts: Sequence[int | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return _ratio(sum(known), len(known))


def _total(rows: Sequence[Row], column: str) -> int:
    return sum(row[column] for row in rows)


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None
