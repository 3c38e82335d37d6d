"""Figures of groups."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.report.table import Row, number


def groups(rows: list[Row], column: str) -> dict[str, list[Row]]:
    """Rows by what they have in a column, in order of appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column].strip(), []).append(row)
    return found


def figure(rows: list[Row], column: str, kind: str) -> float:
    """A count, sum, mean, median, least or most of a column; empty fields do not count."""
    values = sorted(number(row[column]) for row in rows if row[column].strip())
    if kind == "count":
        return float(len(values))
    if kind == "sum":
        return sum(values)
    if not values:
        raise ValueError("empty")
    if kind == "mean":
        return sum(values) / len(values)
    if kind == "median":
        middle = len(values) // 2
        return values[middle] if len(values) % 2 == 1 else (values[middle - 1] + values[middle]) / 2
    if kind == "least":
        return values[0]
    if kind == "most":
        return values[-1]
    raise ValueError(kind)


def summary(rows: list[Row], by: str, column: str, kind: str) -> list[tuple[str, float]]:
    """A figure of each group, the largest first, then by name."""
    made = [(name, figure(group, column, kind)) for name, group in groups(rows, by).items()]
    return sorted(made, key=lambda pair: (-pair[1], pair[0]))


def shares(rows: list[Row], by: str, column: str) -> dict[str, int]:
    """Percent of the whole sum, rounded half up."""
    whole = figure(rows, column, "sum")
    if whole == 0:
        return {}
    return {name: int(100 * value / whole + 0.5) for name, value in summary(rows, by, column, "sum")}
