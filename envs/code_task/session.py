"""One episode of a programming task: a workspace of files, programs run in it in isolation, and a grader that runs outside it."""

import base64
import dataclasses
import time
from collections.abc import Hashable
from typing import Any

from agent_gym.core.action import ToolCall
from agent_gym.core.observation import Observation, cut
from agent_gym.core.session import Change, Session, Snapshot
from agent_gym.core.task import Task
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.core.verdict import Check, Ending, Verdict
from agent_gym.envs.code_task.graders import GRADERS, Work
from agent_gym.envs.code_task.problem import unpack
from agent_gym.sandbox import ExecResult, Limits, default_pool

__all__ = ["TOOLS", "CodeSession"]

_MAX_CONTENT = 200_000
_SHOWN_BYTES = 24_000
_LISTED, _LISTED_BY_CALL = 200, 500
_PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "x-entity": "path",
    "description": "A path in the workspace, such as solution.py.",
}


def _spec(name: str, description: str, properties: dict[str, Any], required: list[str], read_only: bool) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        may_block=False,
        annotations={
            "readOnlyHint": read_only,
            "destructiveHint": not read_only,
            "idempotentHint": name != "run_python",
            "openWorldHint": False,
        },
    )


TOOLS = (
    _spec("list_files", "List the files of the workspace.", {}, [], True),
    _spec("read_file", "Read a text file.", {"path": _PATH}, ["path"], True),
    _spec(
        "write_file",
        "Write a text file; one of that name is replaced.",
        {"path": _PATH, "content": {"type": "string", "maxLength": _MAX_CONTENT}},
        ["path", "content"],
        False,
    ),
    _spec(
        "run_python",
        "Run a Python file of the workspace, in isolation: no network, bounded time and memory. Gives its output and exit code.",
        {"path": _PATH, "stdin": {"type": "string", "maxLength": _MAX_CONTENT}},
        ["path"],
        False,
    ),
)


class CodeSession(Session):
    """A workspace that starts with the ``files`` of the task's spec; see `Problem`.

    Args:
        task: A programming task.
        limits: Of each run, and of grading.
        snapshot: What `save` gave.
        owner: Whose episode it is; one owner has one sandbox at a time.

    Raises:
        SandboxUnavailable: This machine cannot isolate code.
    """

    tools = TOOLS

    def __init__(self, task: Task, limits: Limits, snapshot: Snapshot | None = None, owner: Hashable = None) -> None:
        self._task = task
        self._limits = limits
        self._start = unpack(task.spec["files"])
        self._ran = bool(snapshot and snapshot["ran"])
        files = {path: base64.b64decode(content) for path, content in snapshot["files"].items()} if snapshot else self._start
        self._sandbox = default_pool().acquire(files, owner=owner, limits=limits)

    def observe(self) -> Observation:
        """The workspace's files and their sizes."""
        sizes = [(path, len(content)) for path, content in self._sandbox.files.items()]
        more = max(0, len(sizes) - _LISTED)
        listed = ", ".join(f"{path} ({size} bytes)" for path, size in sizes[:_LISTED]) or "none"
        text = f"Files: {listed}{f', and {more} more' if more else ''}"
        return Observation(text, {"files": [{"path": path, "bytes": size} for path, size in sizes[:_LISTED]], "more_files": more})

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - nothing here is remote
        """Carries out one of `TOOLS`."""
        arguments = call.arguments
        if call.name == "list_files":
            paths = list(self._sandbox.files)
            more = {"more": len(paths) - _LISTED_BY_CALL} if len(paths) > _LISTED_BY_CALL else {}
            return ToolResult(status="ok" if paths else "empty", structured={"paths": paths[:_LISTED_BY_CALL], **more})
        if call.name == "write_file":
            try:
                self._sandbox.write_file(arguments["path"], arguments["content"])
            except ValueError as error:
                return ToolResult(status="invalid_arguments", content=f"arguments.{error}"[:300])
            return ToolResult(status="ok", structured={"path": arguments["path"], "bytes": len(arguments["content"].encode())})
        try:
            content = self._sandbox.read_file(arguments["path"])
        except FileNotFoundError as error:
            return ToolResult(status="not_found", content=str(error)[:300])
        if call.name == "read_file":
            return ToolResult(status="ok", structured={"path": arguments["path"], "content": _shown(content)})
        return self._run(content, arguments.get("stdin", ""), deadline)

    def verdict(self, closing: ToolCall) -> Verdict:
        """What the task's grader says of the workspace, in sandboxes of its own."""
        if closing.name != "finish":
            return Verdict(Ending.ABSTAINED)
        grader = GRADERS[self._task.spec["grader"]]
        work = Work(files=self._sandbox.files, start=self._start, answer=closing.arguments.get("answer"))
        grade = grader.judge(work, self._task.spec["hidden"], self._limits, default_pool())
        if grade.tampered:
            return Verdict(Ending.VIOLATION, (Check("untampered", False, grade.tampered[:1_000]),))
        ending = Ending.SUCCESS if grade.passed else Ending.FAILURE
        return Verdict(ending, (Check(f"{grader.grading}_{self._task.spec['grader']}", grade.passed, grade.detail[:1_000]),))

    def milestones(self) -> dict[str, bool]:
        """Whether a file was written, and whether anything was run."""
        changed = self._sandbox.changes(self._start)
        return {"files_changed": bool(changed.added or changed.changed), "program_run": self._ran}

    def digest(self) -> str:
        """Of all paths and contents, and whether a program was run: `milestones` tells that too."""
        return f"{self._sandbox.digest()}{'+ran' if self._ran else ''}"

    def changes(self) -> list[Change]:
        """The files that differ from the start, as text."""
        changed = self._sandbox.changes(self._start)
        files = self._sandbox.files
        return [
            Change("files", path, _text(self._start.get(path)), _text(files.get(path)))
            for path in sorted((*changed.added, *changed.changed, *changed.removed))
        ]

    def save(self) -> Snapshot | None:
        """All files, as base64."""
        files = {path: base64.b64encode(content).decode() for path, content in self._sandbox.files.items()}
        return {"files": files, "ran": self._ran}

    def interrupt(self) -> None:
        """Ends the run in progress."""
        self._sandbox.interrupt()

    def close(self) -> None:
        """Forgets the files."""
        self._sandbox.close()

    def _run(self, program: bytes, stdin: str, deadline: float) -> ToolResult:
        self._ran = True
        left = max(0.1, min(self._limits.wall_s, deadline - time.monotonic()))
        limits = dataclasses.replace(self._limits, wall_s=left)
        done = self._sandbox.run_python(program, stdin=stdin.encode(), limits=limits)
        shown = {"exit_code": done.exit_code, "stdout": _shown(done.stdout), "stderr": _shown(done.stderr)}
        if done.signal is not None:
            shown["signal"] = done.signal
        if done.reason == "exit":
            return ToolResult(status="ok", structured=shown)
        timed_out = done.reason in ("wall", "cpu", "interrupted")
        return ToolResult(status="timeout" if timed_out else "error", structured={"ended_by": _limit(done), **shown})


def _limit(done: ExecResult) -> str:
    return {"wall": "time limit", "cpu": "time limit", "interrupted": "time limit"}.get(done.reason, f"{done.reason} limit")


def _shown(raw: bytes) -> str:
    return cut(raw.decode(errors="replace"), _SHOWN_BYTES)


def _text(content: bytes | None) -> str | None:
    return None if content is None else _shown(content)
