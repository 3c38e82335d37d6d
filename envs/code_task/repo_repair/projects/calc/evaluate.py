"""Works out a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_gym.envs.code_task.repo_repair.projects.calc.errors import BadName

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "abs": lambda value: abs(value),
    "round": lambda value, digits=0: round(value, digits),
    "sum": lambda *values: sum(values),
}


def evaluate(tree: list[Any], names: dict[str, Any]) -> Any:
    """The value of a tree."""
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "name":
        if tree[1] not in names:
            raise BadName(tree[1])
        return names[tree[1]]
    if kind == "negate":
        return -evaluate(tree[1], names)
    if kind == "call":
        if tree[1] not in FUNCTIONS:
            raise BadName(tree[1])
        return FUNCTIONS[tree[1]](*[evaluate(part, names) for part in tree[2]])
    return combine(tree[1], evaluate(tree[2], names), evaluate(tree[3], names))


def combine(operator: str, left: Any, right: Any) -> Any:
    """What an operator makes of two values."""
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return left / right
    if operator == "%":
        return left % right
    return left**right
