"""Names whose values are expressions of other names."""

from __future__ import annotations

from typing import Any

from agent_gym.envs.code_task.repo_repair.projects.calc.errors import BadName
from agent_gym.envs.code_task.repo_repair.projects.calc.evaluate import evaluate
from agent_gym.envs.code_task.repo_repair.projects.calc.parser import parse


def calculate(text: str, names: dict[str, Any] | None = None) -> Any:
    """The value of an expression."""
    return evaluate(parse(text), names or {})


def used(tree: list[Any]) -> list[str]:
    """The names that a tree uses, each once, in order of appearance."""
    found: list[str] = []
    for part in tree[1:]:
        if tree[0] == "name" and part not in found:
            found.append(part)
        elif isinstance(part, list):
            parts = [part] if part and isinstance(part[0], str) else part
            for inner in parts:
                found += [name for name in used(inner) if name not in found]
    return found


def solve(lines: dict[str, str]) -> dict[str, Any]:
    """The value of each name; one that depends on itself is an error."""
    values: dict[str, Any] = {}

    def work_out(name: str, above: tuple[str, ...]) -> None:
        if name in above or name not in lines:
            raise BadName(name)
        tree = parse(lines[name])
        for other in used(tree):
            if other not in values:
                work_out(other, (*above, name))
        values[name] = evaluate(tree, values)

    for name in lines:
        if name not in values:
            work_out(name, ())
    return values
