"""Workspaces, judged by what is in them: exactly these paths, with exactly these contents."""

import fnmatch
from collections.abc import Mapping
from typing import Any

from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.envs.code_task.problem import unpack
from agent_gym.sandbox import Limits, SandboxPool

__all__ = ["judge"]


def judge(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:  # noqa: ARG001 - nothing is run
    """By the files: ``hidden`` has ``made`` (contents by path, see `agent_gym.envs.code_task.problem.pack`), ``removed`` (paths), and
    ``allowed`` (patterns of paths that do not count). All else must be as it was at the start.
    """
    wanted = {**work.start, **unpack(hidden["made"])}
    for path in hidden["removed"]:
        del wanted[path]
    got = {path: content for path, content in work.files.items() if not any(fnmatch.fnmatchcase(path, one) for one in hidden["allowed"])}
    for path in sorted(wanted.keys() | got.keys()):
        if path not in got:
            return Grade(passed=False, detail=f"there is no {path}")
        if path not in wanted:
            return Grade(passed=False, detail=f"{path} should not be there")
        if got[path] != wanted[path]:
            return Grade(passed=False, detail=f"{path} has {got[path][:200]!r}, expected {wanted[path][:200]!r}")
    return Grade(passed=True)
