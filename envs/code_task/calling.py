"""Calls in a project, written as Python: ``s = kv.store.Store(); s.set('a', 1); s.get('a')``. They are read, not run."""

import ast
from typing import Any

from agent_gym.envs.code_task.graders.drivers.calls import REFERENCE

__all__ = ["read"]


def read(text: str) -> list[dict[str, Any]]:
    """The steps of a case, see `agent_gym.envs.code_task.graders.drivers.calls.run`.

    Raises:
        ValueError: It is something else than calls, with literals and names of earlier results as arguments, and assignments of them.
    """
    steps: list[dict[str, Any]] = []
    kept: set[str] = set()

    def value(node: ast.expr) -> Any:
        return {REFERENCE: node.id} if isinstance(node, ast.Name) and node.id in kept else ast.literal_eval(node)

    for line in ast.parse(text).body:
        call = line.value if isinstance(line, ast.Expr | ast.Assign) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            raise ValueError(  # noqa: TRY004 - it is the text that is wrong
                f"{text!r} holds something else than calls"
            )
        owner = ast.unparse(call.func.value)
        step: dict[str, Any] = {"on": owner, "call": call.func.attr} if owner in kept else {"call": f"{owner}:{call.func.attr}"}
        step["args"] = [value(argument) for argument in call.args]
        step["kwargs"] = {str(keyword.arg): value(keyword.value) for keyword in call.keywords}
        if isinstance(line, ast.Assign):
            step["keep"] = ast.unparse(line.targets[0])
            kept.add(step["keep"])
        steps.append(step)
    return steps
