"""SWE-bench's format, for tasks whose repository comes along in the row as ``files``; no image is ever run."""

from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources import minirepo
from agent_gym.envs.code_task.sources.patch import apply
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["FIELDS", "problem"]

FIELDS = ("instance_id", "problem_statement", "patch", "FAIL_TO_PASS", "PASS_TO_PASS")

_OPTIONAL = ("files", "test_patch", "limits")
_IMAGES = ("image_name", "docker_image")


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem: ``patch`` is the solution, and what ``test_patch`` makes of the tests decides."""
    if "files" not in row.fields:
        image = next((f"the image {row.fields[name]!r}" for name in _IMAGES if row.fields.get(name)), "")
        where = image or f"the repository {row.fields.get('repo')!r} at {row.fields.get('base_commit')!r}, installed"
        raise row.bad(f"it needs {where[:200]}, and no images are run here; rows that bring their repository in 'files' are read")
    files = row.files("files")
    tests = _patched(row, files, "test_patch")
    solution = _patched(row, files, "patch")
    return minirepo.made(
        row,
        split,
        family,
        task_id=row.id("instance_id"),
        files=files,
        text=row.text("problem_statement"),
        tests=tests,
        wanted=(row.texts("FAIL_TO_PASS"), row.texts("PASS_TO_PASS")),
        solution=solution,
        known=(*FIELDS, *_OPTIONAL),
    )


def _patched(row: Row, files: dict[str, str], name: str) -> dict[str, str]:
    try:
        changed = apply(files, row.text(name))
    except ValueError as error:
        raise row.bad(f"field {name!r}: {str(error)[:300]}") from None
    kept = {path: text for path, text in changed.items() if text is not None}
    if len(kept) < len(changed):
        raise row.bad(f"field {name!r} removes files, which is not offered")
    return kept
