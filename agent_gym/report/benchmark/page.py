"""The benchmark's page in Markdown, its figures as JSON beside it, and the pictures of its learning curves."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.report.benchmark.plan import TRAIN
from agent_gym.report.benchmark.suites import POLICIES
from agent_gym.report.benchmark.table import FEW, LEARNED, SOLVED
from agent_gym.report.charts import Point, Series, Tone, learning_curves, standalone
from agent_gym.report.figures import duration, integer, number
from agent_gym.report.kit import write

__all__ = ["write_page"]

_NONE = "–"
_RESUMED = " A star marks trainings that were broken off and went on; what the broken part took may be lacking."
_LOOKS: Mapping[str, tuple[Tone, str, str]] = {
    "maskable-ppo": ("orange", "dotted", "s"),
    "async-maskable-ppo": ("purple", "dotted", "v"),
    "candidate-ppo": ("blue", "dotted", "o"),
    "candidate-ppo-milestones": ("green", "dotted", "P"),
    "bc": ("green", "solid", "^"),
    "dagger": ("purple", "solid", "D"),
    "bc-maskable-ppo": ("orange", "solid", "X"),
    "bc-candidate-ppo": ("blue", "solid", "*"),
}
"""Colour, line and marker of each trained policy: what begins without demonstrations is dotted."""

_HEAD = """# Benchmark: suite {suite}

Every policy on every environment, on the tasks of {seeds}: `agent-gym benchmark --suite {suite}` runs the commands at
the end of this page, and makes the page from their answers (agent-gym {version}). In an empty folder they give the rows again: exactly, on
the same kind of machine, but for the times and but for `async-maskable-ppo` and the policies with `candidate-ppo` in their names, whose
PPO learns from what comes first.

- **Success** is the share of episodes that end in success, on the outcome alone, all seeds pooled. Every policy is measured on the same
  tasks of a seed; a trained policy is what that seed's training found best on the validation split. The **95 % interval** is a bootstrap
  over tasks, each with all its episodes (as wide as Wilson's, of as many trials as tasks, where all went alike). It covers which tasks
  were drawn, and not which trainings were: with so few seeds that is better seen in the rates of the single seeds, in brackets behind it.
- **Steps** are the environment steps of PPO, as many with demonstrations as without; demonstrations (*demos*, episodes in which the
  oracle acted or was asked) come on top.
- **Times** are means over seeds, of the training with its demonstrations and validations: wall clock, and CPU seconds of the process and
  the children it waited for (a browser's are not all among them). They were taken with {jobs} side by side, so they say more beside
  each other than by themselves.{resumed}
"""


def write_page(result: Mapping[str, Any], folder: Path) -> Path:
    """Writes ``benchmark.md``, ``benchmark.json`` and, for each environment with curves, ``benchmark-ENV.svg`` and a narrow one.

    Args:
        result: What `collect` found.
        folder: Where to.

    Returns:
        The page's path.

    Raises:
        OSError: It cannot be written.
        MissingExtra: Matplotlib is not installed.
    """
    write(folder / "benchmark.json", json.dumps(result, indent=1) + "\n")
    parts = [_head(result)]
    for env_id in _environments(result):
        parts += [f"## {env_id}\n", *_environment(result, env_id, folder)]
    parts += _lacking(result)
    parts.append("## Commands\n")
    for env_id in _environments(result):
        commands = dict.fromkeys(line for row in result["rows"] if row["env_id"] == env_id for line in row["commands"])
        if commands:
            parts.append(f"### {env_id}\n\n```console\n" + "\n".join(commands) + "\n```\n")
    return write(folder / "benchmark.md", "\n".join(parts))


def _head(result: Mapping[str, Any]) -> str:
    jobs = " or ".join(map(str, result["jobs"]))
    return _HEAD.format(
        suite=result["suite"],
        seeds="one seed" if result["seeds"] == 1 else f"{result['seeds']} seeds",
        version=result["version"],
        resumed=_RESUMED if any(row["resumed"] for row in result["rows"]) else "",
        jobs="no commands" if not jobs else "one command" if jobs == "1" else f"{jobs} commands",
    )


def _environments(result: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([*result["notes"], *(row["env_id"] for row in result["rows"])]))


def _environment(result: Mapping[str, Any], env_id: str, folder: Path) -> list[str]:
    rows = {(row["policy"], row["split"]): row for row in result["rows"] if row["env_id"] == env_id}
    splits = list(dict.fromkeys(split for _, split in rows))
    parts = [f"{note}\n" for note in result["notes"].get(env_id, ())]
    if rows:
        head = ["policy", *splits, "turns", "invalid actions", "steps", "demos", "wall", "CPU"]
        lines = [_line(policy, rows, splits) for policy in dict.fromkeys(policy for policy, _ in rows)]
        version = next(iter(rows.values()))["env_version"]
        parts.append(f"Version {version}; {_code(rows)}. Turns and invalid actions on split `{splits[0]}`.\n")
        parts.append(_table(head, lines))
        if lost := [f"{row['infra_errors']} of `{policy}` on `{split}`" for (policy, split), row in rows.items() if row["infra_errors"]]:
            parts.append(f"Lost to infrastructure errors, and in no rate, are episodes: {', '.join(lost)}.\n")
    left_out: dict[str, list[str]] = {}
    for left in result["left_out"]:
        if left["env_id"] == env_id and left["policy"] is not None:
            left_out.setdefault(left["why"], []).append(f"`{left['policy']}`")
    parts += [f"Left out: {', '.join(policies)}; {why}.\n" for why, policies in left_out.items()]
    if env_id in result["curves"]:
        parts.append(_picture(result, env_id, rows, folder))
    if env_id in result["families"]:
        parts += _families(result["families"][env_id])
    return parts


def _code(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """The code that answered; where it was not the same for all rows, whose it was."""
    by_code: dict[tuple[str, ...], list[str]] = {}
    for (policy, _), row in rows.items():
        by_code.setdefault(tuple(row["code"]), []).append(f"`{policy}`")
    told = {" and ".join(code) or "unknown": ", ".join(dict.fromkeys(policies)) for code, policies in by_code.items()}
    return f"code {next(iter(told))}" if len(told) == 1 else "; ".join(f"code {code} for {policies}" for code, policies in told.items())


def _line(policy: str, rows: Mapping[tuple[str, str], Mapping[str, Any]], splits: Sequence[str]) -> list[str]:
    own = [rows.get((policy, split)) for split in splits]
    row = next(row for row in own if row is not None)
    invalid = row["invalid_action_rate"]
    trained = row["train_wall_s"] is not None
    return [
        f"`{policy}`",
        *(_NONE if of is None else _success(of) for of in own),
        number(row["turns_mean"]),
        _NONE if invalid is None else f"{100 * invalid:.1f} %",
        integer(row["env_steps"]) if trained else _NONE,
        integer(row["demonstrations"]) if trained else _NONE,
        duration(row["train_wall_s"]) + ("*" if row["resumed"] else "") if trained else _NONE,
        duration(row["train_cpu_s"]) if trained else _NONE,
    ]


def _success(row: Mapping[str, Any]) -> str:
    seeds = " ".join(number(rate, 2) for rate in row["success_by_seed"])
    return f"{_rate(row['success_rate'], row['success_ci95'])} ({seeds})"


def _rate(rate: float | None, ends: Sequence[float] | None) -> str:
    return number(rate, 2) + ("" if ends is None else f" [{number(ends[0], 2)}, {number(ends[1], 2)}]")


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    aligned = ["---:" if any(line[at][:1].isdigit() for line in lines) else "---" for at in range(len(head))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, aligned, *lines]) + "\n"


def _picture(result: Mapping[str, Any], env_id: str, rows: Mapping[tuple[str, str], Mapping[str, Any]], folder: Path) -> str:
    """Draws the curves for wide and for narrow screens; gives what shows the one that fits."""
    curves = result["curves"][env_id]
    name = f"benchmark-{env_id.rpartition('/')[2].partition('-v')[0].lower()}"
    series = [_series(policy, curves[policy]) for policy in POLICIES if policy in curves]
    far = max((points[-1][0] for by_seed in curves.values() for points in by_seed.values() if points), default=0)
    for policy in ("random", "heuristic", "oracle"):
        row = rows.get((policy, "test"))
        if row is not None and row["success_rate"] is not None:
            ends = [Point(steps, row["success_rate"]) for steps in (0, far)]
            series.append(Series(policy, ends, "grey", {"random": "dotted", "heuristic": "dashed", "oracle": "solid"}[policy], ""))
    chart = learning_curves(series, title=f"Learning curves, {env_id}")
    write(folder / f"{name}.svg", standalone(chart.wide))
    write(folder / f"{name}-narrow.svg", standalone(chart.narrow))
    return (
        f'<picture><source media="(max-width: 600px)" srcset="{name}-narrow.svg">'
        f'<img src="{name}.svg" alt="Learning curves, {env_id}"></picture>\n\n'
        "Success on validation tasks while learning, the mean over seeds with a band from the worst to the best of them. What begins\n"
        "without demonstrations is dotted; policies that only imitate are one point at 0 steps, with a bar for the band. Grey, for\n"
        "comparison: the split `test`.\n"
    )


def _series(policy: str, by_seed: Mapping[str, Sequence[Sequence[float]]]) -> Series:
    """The mean over seeds. They are measured after nearly the same steps, and read off between these where they are not."""
    known = [np.array(points) for points in by_seed.values() if points]
    if not known:
        return Series(policy, (), *_LOOKS[policy])
    at = max(known, key=len)[:, 0]
    rates = np.array([np.interp(at, points[:, 0], points[:, 1]) for points in known])
    points = [
        Point(int(steps), float(mean), float(low), float(high))
        for steps, mean, low, high in zip(at, rates.mean(axis=0), rates.min(axis=0), rates.max(axis=0), strict=True)
    ]
    return Series(policy, points, *_LOOKS[policy])


def _families(found: Mapping[str, Any]) -> list[str]:
    best = found["policy"]
    lines = [
        [
            row["task_type"],
            integer(row["tasks"]),
            number(row["success_rate"], 2),
            number(row["random"], 2),
            number(row["heuristic"], 2),
            _rate(row["difference"], row["difference_ci95"]),
            _verdict(row, best),
        ]
        for row in found["rows"]
    ]
    head = ["family", "tasks", f"`{best}`", "random", "heuristic", "trained − random", "verdict"]
    judged = [row for row in found["rows"] if row["tasks"] >= FEW]
    unlearned = [row for row in judged if best not in row["learned_by"]]
    nobody = [f"`{row['task_type']}`" for row in unlearned if not row["learned_by"]]
    others = [f"`{row['task_type']}` (by {', '.join(row['learned_by'])})" for row in unlearned if row["learned_by"]]
    solved = [f"`{row['task_type']}`" for row in found["rows"] if row["heuristic_solves"]]
    told = [
        f"The best trained policy, by this table, is `{best}`. Its families, each task counting once: one is learned where chance is\n"
        f"beaten by {LEARNED} or more, the interval (over tasks) above 0. That is so in {len(judged) - len(unlearned)} of {len(judged)} "
        f"families with {FEW} tasks or more.",
        f"**No policy learned** {', '.join(nobody)}." if nobody else "",
        f"Others learned {', '.join(others)}." if others else "",
        f"**The heuristic solves** {', '.join(solved)} ({SOLVED} or more): little is left to be learned there." if solved else "",
    ]
    return ["\n".join(line for line in told if line) + "\n", _table(head, lines)]


def _verdict(row: Mapping[str, Any], best: str) -> str:
    if row["tasks"] < FEW:
        return "too few tasks"
    if row["heuristic_solves"]:
        return "heuristic solves it"
    return "learned" if best in row["learned_by"] else "not learned"


def _lacking(result: Mapping[str, Any]) -> list[str]:
    """What there is no figure of, and why."""
    lines = [f"- {left['env_id']}, all of it: {left['why']}" for left in result["left_out"] if left["policy"] is None]
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for left in result["missing"]:
        step = f"seed {left['seed']} {'training' if left['step'] == TRAIN else left['step']}"
        grouped.setdefault((left["env_id"], left["policy"], left["why"]), []).append(step)
    for (env_id, policy, why), steps in grouped.items():
        what = ", ".join(steps)
        quoted = "\n".join(f"      {line}" for line in why.splitlines())
        lines.append(f"- {env_id}, `{policy}`, {what}: " + (why if "\n" not in why else f"\n\n{quoted}\n"))
    return ["## Missing\n", "\n".join(lines) + "\n"] if lines else []
