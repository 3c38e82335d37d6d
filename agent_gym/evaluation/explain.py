"""Why an episode counted as it did: which checks failed, on which rows, what was wanted there and what was found."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import orjson

from agent_gym.core import Change
from agent_gym.errors import ConfigurationError
from agent_gym.world import World, WorldSession, WorldTaskSet
from agent_gym.world.grading import same, stray_changes

__all__ = ["explain"]

Finding = dict[str, Any]
Spec = Mapping[str, Any]


def explain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Explains a recorded episode.

    The rows come from making the task again and laying over its database what the episode is recorded to have changed; where the
    environment has another version by now, or is not known here, there is only what was recorded.

    Args:
        row: Its row of the table ``episodes``.

    Returns:
        ``episode_id, env_id, task_id, goal, outcome, end_reason, note`` and ``checks``, a list of ``{"name", "passed", "detail",
        "rows"}`` with rows ``{"table", "row", "column", "expected", "found"}``. The column is None where a whole row is missing or
        there is one too many; then ``found`` says how many there are. An episode that ended without a verdict has the check ``goal``
        alone.
    """
    checks: list[Finding] = [{**check, "rows": []} for check in orjson.loads(row["checks"] or "[]")]
    changes = [Change(**change) for change in orjson.loads(row["changes"] or "[]")]
    opened, note = _opened(row)
    if opened is not None:
        spec, session = opened
        try:
            if not checks:
                missing = _rows("goal", spec, session.world, changes)
                detail = f"not judged: the episode ended as {row['end_reason'] or row['outcome']}"
                checks.append({"name": "goal", "passed": not missing, "detail": detail, "rows": missing})
            for check in checks:
                check["rows"] = [] if check["passed"] else _rows(check["name"], spec, session.world, changes)
        finally:
            session.close()
    about = ("episode_id", "env_id", "task_id", "goal", "outcome", "end_reason")
    return {**{name: row[name] for name in about}, "note": note, "checks": checks}


def _opened(row: Mapping[str, Any]) -> tuple[tuple[Spec, WorldSession] | None, str]:
    """The task of an episode as it started, where it is one of a world and still the same; else nothing, and why."""
    try:
        env = gymnasium.make(row["env_id"], interface="text", disable_env_checker=True)
    except gymnasium.error.Error:
        return None, f"{row['env_id']} is not known here"
    try:
        tasks = env.get_wrapper_attr("tasks")
        version = env.unwrapped.rich.unwrapped.version  # type: ignore[attr-defined]
        if not isinstance(tasks, WorldTaskSet):
            return None, ""
        if version != row["env_version"]:
            return None, f"{row['env_id']} is version {version} by now, the episode is of version {row['env_version']}"
        task = tasks.get(row["task_id"])
        session = tasks.open(task)
    except ConfigurationError as error:
        return None, str(error)
    finally:
        env.close()
    return ((task.spec, session) if isinstance(session, WorldSession) else None), ""


def _rows(check: str, spec: Spec, world: World, changes: Sequence[Change]) -> list[Finding]:
    """The rows on which a check failed; none for one that is about no rows."""
    if check == "goal":
        return [finding for predicate in spec["goal"] for finding in _missing(predicate, world, changes)]
    if check == "frame":
        return _changed(world, stray_changes(changes, spec["allowed"]))
    return _changed(world, changes) if check == "untouched" else []


def _missing(predicate: Spec, world: World, changes: Sequence[Change]) -> list[Finding]:
    table, where, values = predicate["table"], predicate["where"], predicate["values"]
    fitting = [row for row in _at_the_end(world, table, changes) if not _differing(where, row)]
    if len(fitting) != 1:
        return [_finding(table, where, None, {**where, **values}, f"{len(fitting)} such rows")]
    return [_finding(table, where, name, values[name], fitting[0].get(name)) for name in _differing(values, fitting[0])]


def _at_the_end(world: World, table: str, changes: Sequence[Change]) -> list[Mapping[str, Any]]:
    """A table's rows at the episode's end."""
    key = world.schema.tables[table].key
    rows: dict[str, Mapping[str, Any]] = {str(row[key]): row for row in world.query(f"SELECT * FROM {table} ORDER BY {key}")}
    for change in changes:
        if change.where == table and change.after is None:
            rows.pop(change.key, None)
        elif change.where == table:
            rows[change.key] = change.after
    return list(rows.values())


def _changed(world: World, changes: Sequence[Change]) -> list[Finding]:
    found = []
    for change in changes:
        row = {world.schema.tables[change.where].key: change.key}
        if change.before is None or change.after is None:
            found.append(_finding(change.where, row, None, change.before, change.after))
        else:
            differing = _differing(change.before, change.after)
            found += [_finding(change.where, row, name, change.before[name], change.after[name]) for name in differing]
    return found


def _differing(wanted: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    return [name for name, value in wanted.items() if not same(value, row.get(name))]


def _finding(table: str, row: Mapping[str, Any], column: str | None, expected: Any, found: Any) -> Finding:
    return {"table": table, "row": dict(row), "column": column, "expected": expected, "found": found}
