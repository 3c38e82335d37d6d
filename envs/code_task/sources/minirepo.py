"""Our own format for small projects: files, an instruction, and tests that are hidden."""

from collections.abc import Mapping, Sequence

from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["FIELDS", "made", "problem"]

FIELDS = ("task_id", "files", "instruction", "hidden_tests", "fail_to_pass", "pass_to_pass")

_OPTIONAL = ("limits", "solution", "protected")
_TOOLS = ("list_files", "read_file", "search", "write_file", "edit_file", "run_python", "run_shell")
_GOAL = "Change the project in the workspace as is said here. Tests that you cannot see decide. Then finish.\n\n{text}"


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem: ``solution`` gives the files that solve it, ``protected`` patterns of paths that are put back for the tests."""
    return made(
        row,
        split,
        family,
        task_id=row.id("task_id"),
        files=row.files("files"),
        text=row.text("instruction"),
        tests=row.files("hidden_tests"),
        wanted=(row.texts("fail_to_pass"), row.texts("pass_to_pass")),
        solution=row.files("solution") if row.fields.get("solution") else None,
        known=(*FIELDS, *_OPTIONAL),
    )


def made(
    row: Row,
    split: str,
    family: str,
    *,
    task_id: str,
    files: Mapping[str, str],
    text: str,
    tests: Mapping[str, str],
    wanted: tuple[Sequence[str], Sequence[str]],
    solution: Mapping[str, str] | None,
    known: Sequence[str],
) -> Problem:
    """A project as a problem, whose tests share a process with it."""
    if not tests or not wanted[0]:
        raise row.bad("there are no hidden tests, or none that must pass: nothing would be graded")
    limits = row.fields.get("limits") or {}
    if not isinstance(limits, dict):
        raise row.bad(f"field 'limits' is {type(limits).__name__} instead of an object")
    return Problem(
        id=task_id,
        family=family,
        split=split,
        goal=_GOAL.format(text=text),
        prompt=text,
        files=files,
        grader="unittest",
        hidden={
            "tests": dict(tests),
            "fail_to_pass": list(wanted[0]),
            "pass_to_pass": list(wanted[1]),
            "protected": [*row.texts("protected", ()), *(path for path in tests if path in files)],
            "limits": row.limits(limits),
        },
        tools=_TOOLS,
        solution=solution,
        oracle_kind="none" if solution is None else "privileged",
        max_steps=30,
        difficulty=min(1.0, 0.3 + len(files) / 20),
        capabilities=("write_code", "read_code"),
        metadata=row.rest(known),
    )
