"""Programs, run from standard input to standard output; what should come out stays in this process."""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

from agent_gym.envs.code_task.graders.compare import same_output
from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.sandbox import ExecResult, Limits, SandboxPool

__all__ = ["stdio"]

_START_S = 1.0
_KIB = 1024


def stdio(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """By cases: ``hidden`` has ``cases``, pairs of an input and the expected output.

    Each case has a fresh sandbox; the first that fails ends it. CPU time decides. Elapsed time is bounded for all cases together, by so
    much that a busy machine fails nobody: a program that waits instead of working uses it up, one that works earns more.
    """
    if SOLUTION_FILE not in work.files:
        return Grade(passed=False, detail=f"there is no {SOLUTION_FILE}")
    patience = limits.wall_s / limits.cpu_s
    until = time.monotonic() + limits.wall_s
    for number, (given, expected) in enumerate(hidden["cases"], 1):
        until += _START_S
        left = min(limits.wall_s, max(0.1, until - time.monotonic()))
        room = max(limits.output_kib, 16 + 8 * len(expected) // _KIB)  # what is right always fits
        case = dataclasses.replace(limits, wall_s=left, output_kib=min(16384, room), flood_mib=max(limits.flood_mib, room // _KIB + 1))
        with pool.acquire(limits=case) as sandbox:
            done = sandbox.run_python(work.files[SOLUTION_FILE], stdin=given.encode())
        if why := _wrong(done, expected):
            return Grade(passed=False, detail=f"case {number} of {len(hidden['cases'])}: {why}")
        until += patience * done.cpu_s
    return Grade(passed=True)


def _wrong(done: ExecResult, expected: str) -> str:
    if done.reason != "exit":
        return f"it hit the {done.reason} limit"
    if not done.ok:
        return f"it ended with {done.signal or f'exit code {done.exit_code}'}: {done.stderr.decode(errors='replace')[-300:]}"
    return "it printed too much" if done.stdout_cut else same_output(done.stdout.decode(errors="replace"), expected)
