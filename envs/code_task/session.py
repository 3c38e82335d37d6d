"""One episode of a programming task: a workspace of files, programs run in it in isolation, and a grader that runs outside it."""

import base64

from agent_gym.core.action import ToolCall
from agent_gym.core.observation import Observation
from agent_gym.core.session import Change, Session, Snapshot
from agent_gym.core.task import Task
from agent_gym.core.tool import ToolResult
from agent_gym.core.verdict import Check, Ending, Verdict
from agent_gym.envs.code_task.graders import GRADERS, Work
from agent_gym.envs.code_task.problem import unpack
from agent_gym.envs.code_task.tools import TOOLS, Bench, shown
from agent_gym.sandbox import Limits, default_pool

__all__ = ["CodeSession"]

_LISTED = 200


class CodeSession(Session):
    """A workspace that starts with the ``files`` of the task's spec; see `Problem`.

    Args:
        task: A programming task.
        limits: Of each run, and of grading.
        snapshot: What `save` gave.

    Raises:
        SandboxUnavailable: This machine cannot isolate code.
    """

    def __init__(self, task: Task, limits: Limits, snapshot: Snapshot | None = None) -> None:
        self._task = task
        self._limits = limits
        self._start = unpack(task.spec["files"])
        files = {path: base64.b64decode(content) for path, content in snapshot["files"].items()} if snapshot else self._start
        self._sandbox = default_pool().acquire(files, limits=limits)
        self._bench = Bench(self._sandbox, limits, task.spec["visible"], ran=bool(snapshot and snapshot["ran"]))
        self.tools = tuple(TOOLS[name].spec for name in task.spec["tools"])

    def observe(self) -> Observation:
        """The workspace's files and their sizes."""
        sizes = [(path, len(content)) for path, content in self._sandbox.files.items()]
        more = max(0, len(sizes) - _LISTED)
        listed = ", ".join(f"{path} ({size} bytes)" for path, size in sizes[:_LISTED]) or "none"
        text = f"Files: {listed}{f', and {more} more' if more else ''}"
        return Observation(text, {"files": [{"path": path, "bytes": size} for path, size in sizes[:_LISTED]], "more_files": more})

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - nothing here is remote
        """Carries out a call of one of the task's tools."""
        try:
            return TOOLS[call.name].use(self._bench, call.arguments, deadline)
        except FileNotFoundError as error:
            return ToolResult(status="not_found", content=str(error)[:300])
        except ValueError as error:
            return ToolResult(status="invalid_arguments", content=f"arguments.{error}"[:300])

    def verdict(self, closing: ToolCall) -> Verdict:
        """What the task's grader says of the workspace, in sandboxes of its own."""
        if closing.name != "finish":
            return Verdict(Ending.ABSTAINED)
        grader = GRADERS[self._task.spec["grader"]]
        work = Work(files=self._sandbox.files, start=self._start, answer=closing.arguments.get("answer"))
        grade = grader(work, self._task.spec["hidden"], self._limits, default_pool())
        if grade.tampered:
            return Verdict(Ending.VIOLATION, (Check("untampered", False, grade.tampered[:1_000]),))
        ending = Ending.SUCCESS if grade.passed else Ending.FAILURE
        return Verdict(ending, (Check(f"{grader.grading}_{self._task.spec['grader']}", grade.passed, grade.detail[:1_000]),))

    def milestones(self) -> dict[str, bool]:
        """Whether a file was written, and whether anything was run."""
        changed = self._sandbox.changes(self._start)
        return {"files_changed": bool(changed.added or changed.changed), "program_run": self._bench.ran}

    def digest(self) -> str:
        """Of all paths and contents, and whether a program was run: `milestones` tells that too."""
        return f"{self._sandbox.digest()}{'+ran' if self._bench.ran else ''}"

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
        return {"files": files, "ran": self._bench.ran}

    def interrupt(self) -> None:
        """Ends the run in progress."""
        self._sandbox.interrupt()

    def close(self) -> None:
        """Forgets the files."""
        self._sandbox.close()


def _text(content: bytes | None) -> str | None:
    return None if content is None else shown(content)
