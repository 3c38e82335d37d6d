"""The table: what the answers in a benchmark's folder come to, one row an environment, policy and split, the seeds pooled."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gym.evaluation.intervals import bootstrap_clustered, bootstrap_paired, wilson
from agent_gym.registry import VERSION
from agent_gym.report.benchmark.plan import TRAIN, Chain, Plan
from agent_gym.report.benchmark.suites import POLICIES
from agent_gym.report.benchmark.work import Record, answers

__all__ = ["FEW", "LEARNED", "SOLVED", "collect"]

LEARNED = 0.3
"""By how much a trained policy must beat chance on a family, its interval above 0, for the family to count as learned."""
FEW = 5
"""A family that was met in fewer tasks than these counts neither as learned nor as not learned."""
SOLVED = 0.8
"""The heuristic's success from which on little of a family is left to be learned."""

Counts = dict[str, tuple[int, int]]
"""Successes and trials of each task."""


def collect(plan: Plan, folder: Path) -> dict[str, Any]:
    """Makes the table from whatever there is.

    Args:
        plan: What there should be.
        folder: The benchmark's folder.

    Returns:
        ``suite``, ``version`` (this package's), ``seeds``, ``jobs`` (how many commands ran side by side, each number that occurs), and

        - ``rows``: one an environment, policy and split: ``env_id, env_version, policy, split, episodes, infra_errors, tasks``
          (different ones), ``seeds`` (those that were measured), ``success_rate, success_ci95`` (clustered by task, all seeds
          pooled), ``success_by_seed, by_task_type`` (each with ``episodes, tasks, success_rate, success_ci95``), ``turns_mean,
          invalid_action_rate, env_steps`` (of PPO) and ``demonstrations`` (episodes of the oracle, DAgger's included) of each
          training, the means over seeds ``train_wall_s, train_cpu_s, eval_wall_s, eval_cpu_s``, ``resumed`` (trainings that were
          broken off and went on), ``code`` (digests of the code that trained and measured), and ``commands``;
        - ``families``: of each environment's split ``test``, see below;
        - ``curves``: by environment and policy, for each seed the ``[steps, success rate]`` on the validation split;
        - ``missing``: what there is no figure of yet, with ``env_id, policy, seed, step, why`` and its ``command``;
        - ``left_out``: what makes no sense, with ``env_id, policy, why``; and ``notes`` by environment.

        ``families`` has for each environment the ``policy`` that did best among the trained, and ``rows``: ``task_type,
        tasks, success_rate, random, heuristic, difference`` (trained − random), all means over tasks, ``difference_ci95`` (over tasks),
        ``learned_by`` (trained policies that beat random on `FEW` tasks or more by `LEARNED` or more, the interval above 0) and
        ``heuristic_solves``.
    """
    found = [(chain, answers(chain, folder)) for chain in plan.chains]
    done = [record for _, records in found for record in records if record is not None and record.status == "done"]
    cells = _cells(found)
    rows = [_row(group, split, folder) for (_, _, split), group in cells.items()]
    return {
        "suite": plan.suite.name,
        "version": VERSION,
        "seeds": plan.suite.seeds,
        "jobs": sorted({record.jobs for record in done}),
        "rows": rows,
        "families": _families(cells),
        "curves": _curves(found),
        "missing": [told for chain, records in found for told in _missing(chain, records, folder)],
        "left_out": [{"env_id": left.env_id, "policy": left.policy, "why": left.why} for left in plan.left_out],
        "notes": {env_id: list(notes) for env_id, notes in plan.notes.items()},
    }


_Found = tuple[Chain, list[Record | None]]
_Cells = dict[tuple[str, str, str], list[_Found]]


def _cells(found: Sequence[_Found]) -> _Cells:
    """What was measured, by environment, policy and split: each seed's chain with its records."""
    cells: _Cells = {}
    for chain, records in found:
        for command, record in zip(chain.commands, records, strict=True):
            if command.step != TRAIN and record is not None and record.status == "done":
                cells.setdefault((chain.env_id, chain.policy, command.step), []).append((chain, records))
    return cells


def _record(one: _Found, step: str) -> Record | None:
    chain, records = one
    return next((record for command, record in zip(chain.commands, records, strict=True) if command.step == step), None)


def _answers(group: Sequence[_Found], split: str) -> list[Mapping[str, Any]]:
    return [record.answer for one in group if (record := _record(one, split)) is not None]


def _row(group: Sequence[_Found], split: str, folder: Path) -> dict[str, Any]:
    chain = group[0][0]
    measured = _answers(group, split)
    trained = [record for one in group if (record := _record(one, TRAIN)) is not None]
    evaluated = [record for one in group if (record := _record(one, split)) is not None]
    types = _by_type(measured)
    valid = [answer["episodes"] - answer["infra_errors"] for answer in measured]
    turns = [count * (answer["turns_mean"] or 0.0) for count, answer in zip(valid, measured, strict=True)]
    invalid = [count * (answer["invalid_action_rate"] or 0.0) for count, answer in zip(turns, measured, strict=True)]
    config = trained[0].answer["config"] if trained else {}
    return {
        "env_id": chain.env_id,
        "env_version": chain.env_version,
        "policy": chain.policy,
        "split": split,
        "episodes": sum(answer["episodes"] for answer in measured),
        "infra_errors": sum(answer["infra_errors"] for answer in measured),
        **_figures([counts for tasks in types.values() for counts in tasks.values()]),
        "seeds": [one.seed for one, _ in group],
        "success_by_seed": [answer["success_rate"] for answer in measured],
        "by_task_type": {
            name: {"episodes": sum(trials for _, trials in tasks.values()), **_figures(list(tasks.values()))}
            for name, tasks in types.items()
        },
        "turns_mean": sum(turns) / sum(valid) if sum(valid) else None,
        "invalid_action_rate": sum(invalid) / sum(turns) if sum(turns) else None,
        "env_steps": round(_mean([record.answer["steps"] for record in trained])) if trained else None,
        "demonstrations": config["bc"] + config.get("dagger", 0) if trained else None,
        "train_wall_s": _mean([record.wall_s for record in trained]) if trained else None,
        "train_cpu_s": _mean([record.cpu_s for record in trained]) if trained else None,
        "eval_wall_s": _mean([record.wall_s for record in evaluated]),
        "eval_cpu_s": _mean([record.cpu_s for record in evaluated]),
        "resumed": sum(record.attempts > 1 for record in trained),
        "code": sorted({record.answer["versions"]["code"] for record in (*trained, *evaluated) if "versions" in record.answer}),
        "commands": [command.line(folder) for one, _ in group for command in one.commands if command.step in (TRAIN, split)],
    }


def _figures(counts: Sequence[tuple[int, int]]) -> dict[str, Any]:
    rate = _rate(counts)
    if rate is None:
        ends = None
    elif len({successes / trials for successes, trials in counts}) == 1:
        ends = [max(0.0, rate - _unseen(len(counts))), min(1.0, rate + _unseen(len(counts)))]
    else:
        ends = list(bootstrap_clustered(counts))
    return {"tasks": len(counts), "success_rate": rate, "success_ci95": ends}


def _unseen(tasks: int) -> float:
    """How far off a rate may be where all tasks went alike, so that a bootstrap sees no spread: Wilson's, of as many trials as tasks."""
    return wilson(0, tasks).high


def _by_type(measured: Sequence[Mapping[str, Any]]) -> dict[str, Counts]:
    """The successes and trials of each task, over all seeds, by task type."""
    pooled: dict[str, Counts] = {}
    for answer in measured:
        for name, tasks in answer["by_task"].items():
            counts = pooled.setdefault(name, {})
            for task_id, (successes, trials) in tasks.items():
                before = counts.get(task_id, (0, 0))
                counts[task_id] = (before[0] + successes, before[1] + trials)
    return dict(sorted(pooled.items()))


def _families(cells: _Cells) -> dict[str, dict[str, Any]]:
    """How the trained policies did on each family of the split ``test``, beside chance and the heuristic."""
    told: dict[str, dict[str, Any]] = {}
    for env_id in dict.fromkeys(env_id for env_id, _, _ in cells):
        types = {
            policy: _by_type(_answers(group, split)) for (of, policy, split), group in cells.items() if (of, split) == (env_id, "test")
        }
        rates = {policy: _rate([counts for tasks in by.values() for counts in tasks.values()]) for policy, by in types.items()}
        trained = [policy for policy in types if POLICIES[policy].algo and rates[policy] is not None]
        if not trained or "random" not in types:
            continue
        best = max(trained, key=lambda policy: rates[policy] or 0.0)
        chance, heuristic = types["random"], types.get("heuristic", {})
        rows = []
        for name in types[best]:
            differences = {policy: _difference(types[policy].get(name, {}), chance.get(name, {})) for policy in trained}
            difference, ends = differences[best]
            words = _mean_over_tasks(heuristic.get(name, {}))
            rows.append(
                {
                    "task_type": name,
                    "tasks": len(types[best][name]),
                    "success_rate": _mean_over_tasks(types[best][name]),
                    "random": _mean_over_tasks(chance.get(name, {})),
                    "heuristic": words,
                    "difference": difference,
                    "difference_ci95": ends,
                    "learned_by": [
                        policy
                        for policy, (by, ci) in differences.items()
                        if by is not None and ci is not None and by >= LEARNED and ci[0] > 0 and len(types[policy][name]) >= FEW
                    ],
                    "heuristic_solves": words is not None and words >= SOLVED,
                }
            )
        told[env_id] = {"policy": best, "rows": rows}
    return told


def _difference(trained: Counts, chance: Counts) -> tuple[float | None, list[float] | None]:
    """How much better the one is on the tasks that both were measured on, with its interval."""
    both = [trained[task][0] / trained[task][1] - chance[task][0] / chance[task][1] for task in trained if task in chance]
    if not both:
        return None, None
    mean = math.fsum(both) / len(both)
    if len(set(both)) == 1:
        return mean, [max(-1.0, mean - _unseen(len(both))), min(1.0, mean + _unseen(len(both)))]
    return mean, list(bootstrap_paired(both))


def _mean_over_tasks(counts: Counts) -> float | None:
    return _mean([successes / trials for successes, trials in counts.values()]) if counts else None


def _rate(counts: Sequence[tuple[int, int]]) -> float | None:
    trials = sum(trials for _, trials in counts)
    return sum(successes for successes, _ in counts) / trials if trials else None


def _curves(found: Sequence[_Found]) -> dict[str, dict[str, dict[str, list[list[float]]]]]:
    curves: dict[str, dict[str, dict[str, list[list[float]]]]] = {}
    for chain, records in found:
        record = _record((chain, records), TRAIN)
        if record is not None and record.status == "done":
            points = [[point["steps"], point["success_rate"]] for point in record.answer["curve"] if point["success_rate"] is not None]
            curves.setdefault(chain.env_id, {}).setdefault(chain.policy, {})[str(chain.seed)] = points
    return curves


def _missing(chain: Chain, records: Sequence[Record | None], folder: Path) -> list[dict[str, Any]]:
    told = []
    broken = ""
    for command, record in zip(chain.commands, records, strict=True):
        if record is not None and record.status == "done":
            continue
        why = "not run yet" if record is None else "broken off" if record.status == "begun" else record.error
        why = broken or why
        if command.step == TRAIN:
            broken = "its training is not done"
        where = {"env_id": chain.env_id, "policy": chain.policy, "seed": chain.seed, "step": command.step}
        told.append({**where, "why": why, "command": command.line(folder)})
    return told


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
