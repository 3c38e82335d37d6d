"""The projects: their files, and the cases that they are shown and judged by."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from agent_gym.envs.code_task.calling import read
from agent_gym.envs.code_task.graders.drivers.calls import run, told
from agent_gym.envs.code_task.graders.repo import as_json

__all__ = ["PROJECTS", "Project", "project"]

PROJECTS: Mapping[str, Sequence[str]] = {
    "train": ("calc", "stock", "dates", "kv", "report"),
    "validation": ("paper",),
    "test": ("graph", "search"),
}
"""Their names by split. None is in two."""

_HERE = __package__ or ""
_PACKAGE = f"{_HERE}.projects."
"""What their modules' names begin with here, and do not in a workspace."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Project:
    """One project.

    Attributes:
        name: Its package.
        about: What it is, in words.
        files: Its files, by path.
        visible: The cases that the agent is shown: calls as text, and what should come of them.
        hidden: The cases that decide, in the same way.
        judged: The same as the grader ``repo`` takes them.
    """

    name: str
    about: str
    files: Mapping[str, str]
    visible: Sequence[tuple[str, str]]
    hidden: Sequence[tuple[str, str]]
    judged: Sequence[Mapping[str, Any]]


@lru_cache(maxsize=16)
def project(name: str) -> Project:
    """The project of a name."""
    folder = files(f"{_HERE}.projects").joinpath(name)
    paths = sorted(path.name for path in folder.iterdir() if path.name.endswith(".py"))
    contents = {f"{name}/{path}": folder.joinpath(path).read_text(encoding="utf-8").replace(_PACKAGE, "") for path in paths}
    return Project(
        name=name,
        about=contents[f"{name}/__init__.py"].strip().strip('"'),
        files=contents,
        visible=_cases(name, "visible"),
        hidden=_cases(name, "hidden"),
        judged=[_judged(f"{name}/{number}", text) for number, (text, _) in enumerate(_cases(name, "hidden"), 1)],
    )


def _cases(name: str, kind: str) -> list[tuple[str, str]]:
    """Calls, one case a line, and what comes of them here, where nothing is wrong."""
    lines = files(_HERE).joinpath("cases", f"{name}.{kind}.txt").read_text(encoding="utf-8").splitlines()
    return [(line, told(run(read(line), _PACKAGE))) for line in lines]


def _judged(case_id: str, text: str) -> dict[str, Any]:
    """A case with what its calls come to."""
    steps = read(text)
    for step, (kind, what) in zip(steps, run(steps, _PACKAGE), strict=True):
        if kind != "kept":
            step["raises" if kind == "raised" else "expect"] = what
    return {"id": case_id, "steps": [{key: as_json(value) for key, value in step.items()} for step in steps]}
