"""The tools of programming tasks: what each is called, and what it does in the workspace."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent_gym.core.observation import cut
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.envs.code_task.visible import Case, run_visible
from agent_gym.sandbox import ExecResult, Limits, Sandbox

__all__ = ["TOOLS", "Bench", "Tool", "shown"]

_MAX_CONTENT = 200_000
_SHOWN_BYTES = 24_000
_LISTED = 500
_SHOWN_CASES = 50
_SHOWN_LINES, _SHOWN_LINE = 100, 300
_TEXT = {"type": "string", "maxLength": _MAX_CONTENT}
_PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "x-entity": "path",
    "description": "A path in the workspace, such as solution.py.",
}


@dataclass(eq=False)
class Bench:
    """What the tools of one episode work on.

    Attributes:
        sandbox: The workspace.
        limits: Of each run.
        visible: The tests that the agent may run: ``runner`` (a key of `agent_gym.envs.code_task.visible.RUNNERS`) and what that needs.
        ran: Whether anything was run.
    """

    sandbox: Sandbox
    limits: Limits
    visible: Mapping[str, Any] | None = None
    ran: bool = False

    def within(self, deadline: float) -> Limits:
        """The limits of a run that must be over by then, in seconds of `time.monotonic`."""
        return dataclasses.replace(self.limits, wall_s=max(0.1, min(self.limits.wall_s, deadline - time.monotonic())))

    def test(self, deadline: float) -> list[Case]:
        """Runs the visible tests on the workspace as it is.

        Raises:
            ValueError: There are none.
        """
        if self.visible is None:
            raise ValueError("if_better: this task shows no tests")
        return run_visible(self.sandbox.files, self.visible, self.within(deadline))


class Tool(NamedTuple):
    """A tool.

    Attributes:
        spec: What the agent is told.
        use: Carries out a call with the arguments, by a deadline.
    """

    spec: ToolSpec
    use: Callable[[Bench, Mapping[str, Any], float], ToolResult]


def shown(raw: bytes) -> str:
    """A file or an output as the agent sees it: as text, and not too long."""
    return cut(raw.decode(errors="replace"), _SHOWN_BYTES)


def _list_files(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:  # noqa: ARG001 - all tools are used alike
    paths = list(bench.sandbox.files)
    more = {"more": len(paths) - _LISTED} if len(paths) > _LISTED else {}
    return ToolResult(status="ok" if paths else "empty", structured={"paths": paths[:_LISTED], **more})


def _read_file(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:  # noqa: ARG001
    content = bench.sandbox.read_file(arguments["path"])
    return ToolResult(status="ok", structured={"path": arguments["path"], "content": shown(content)})


def _write_file(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:  # noqa: ARG001
    bench.sandbox.write_file(arguments["path"], arguments["content"])
    return ToolResult(status="ok", structured={"path": arguments["path"], "bytes": len(arguments["content"].encode())})


def _edit_file(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:
    path, old, new = arguments["path"], arguments["old"].encode(), arguments["new"].encode()
    before = bench.sandbox.read_file(path)
    if (times := before.count(old)) != 1:
        return ToolResult(status="conflict" if times else "not_found", content=f"that text occurs {times} times in {path}, not once")
    if not arguments.get("if_better"):
        bench.sandbox.write_file(path, before.replace(old, new))
        return ToolResult(status="ok", structured={"path": path, "bytes": len(bench.sandbox.read_file(path))})
    earlier = sum(case.passed for case in bench.test(deadline))
    bench.sandbox.write_file(path, before.replace(old, new))
    cases = bench.test(deadline)
    if (passed := sum(case.passed for case in cases)) <= earlier:
        bench.sandbox.write_file(path, before)
        return ToolResult(status="conflict", content=f"not kept, as it is no better: {passed} of {len(cases)} instead of {earlier}")
    return ToolResult(status="ok", structured=_counts(cases))


def _run_python(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:
    program = bench.sandbox.read_file(arguments["path"])
    bench.ran = True
    return _ran(bench.sandbox.run_python(program, stdin=arguments.get("stdin", "").encode(), limits=bench.within(deadline)))


def _run_shell(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:
    bench.ran = True
    return _ran(bench.sandbox.run(["bash", "-c", arguments["command"]], limits=bench.within(deadline)))


def _ran(done: ExecResult) -> ToolResult:
    output = {"exit_code": done.exit_code, "stdout": shown(done.stdout), "stderr": shown(done.stderr)}
    if done.signal is not None:
        output["signal"] = done.signal
    if done.reason == "exit":
        return ToolResult(status="ok", structured=output)
    timed_out = done.reason in ("wall", "cpu", "interrupted")
    return ToolResult(status="timeout" if timed_out else "error", structured={"ended_by": _limit(done), **output})


def _search(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:
    paths = [path for path in bench.sandbox.files if path.startswith(arguments.get("within", ""))]
    how = "-nHZIE" if arguments.get("regex") else "-nHZIF"
    # Inside, since a pattern can take for ever; `/dev/null` stands for no files at all.
    done = bench.sandbox.run(["grep", how, "-e", arguments["text"], "--", *paths, "/dev/null"], limits=bench.within(deadline))
    if done.reason != "exit" or done.exit_code not in (0, 1):
        return ToolResult(status="invalid_arguments", content=f"arguments.text: {shown(done.stderr)[:200] or _limit(done)}")
    found = []
    for line in done.stdout.decode(errors="replace").splitlines():
        path, nul, rest = line.partition("\0")
        number, colon, text = rest.partition(":")
        if nul and colon and number.isdigit():
            found.append({"path": path, "line": int(number), "text": text[:_SHOWN_LINE]})
    more = {"more": len(found) - _SHOWN_LINES} if len(found) > _SHOWN_LINES else {}
    return ToolResult(status="ok" if found else "empty", structured={"lines": found[:_SHOWN_LINES], **more})


def _run_tests(bench: Bench, arguments: Mapping[str, Any], deadline: float) -> ToolResult:  # noqa: ARG001
    cases = bench.test(deadline)
    told = sorted(cases, key=lambda case: case.passed)[:_SHOWN_CASES]  # those that fail first
    return ToolResult(status="ok", structured={**_counts(cases), "cases": [case.told() for case in told]})


def _counts(cases: list[Case]) -> dict[str, Any]:
    passed = sum(case.passed for case in cases)
    return {"tests": "all pass" if passed == len(cases) else "some still fail", "passed": passed, "failed": len(cases) - passed}


def _limit(done: ExecResult) -> str:
    return {"wall": "time limit", "cpu": "time limit", "interrupted": "time limit"}.get(done.reason, f"{done.reason} limit")


def _tool(
    name: str,
    use: Callable[[Bench, Mapping[str, Any], float], ToolResult],
    description: str,
    properties: Mapping[str, Any],
    required: list[str],
    *,
    reads: bool = False,
    idempotent: bool = True,
) -> Tool:
    spec = ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        may_block=False,
        annotations={"readOnlyHint": reads, "destructiveHint": not reads, "idempotentHint": idempotent, "openWorldHint": False},
    )
    return Tool(spec, use)


TOOLS: dict[str, Tool] = {
    tool.spec.name: tool
    for tool in (
        _tool("list_files", _list_files, "List the files of the workspace.", {}, [], reads=True),
        _tool("read_file", _read_file, "Read a text file.", {"path": _PATH}, ["path"], reads=True),
        _tool(
            "write_file",
            _write_file,
            "Write a text file; one of that name is replaced.",
            {"path": _PATH, "content": _TEXT},
            ["path", "content"],
        ),
        _tool(
            "edit_file",
            _edit_file,
            "Replace a text that occurs exactly once in a file.",
            {
                "path": {**_PATH, "x-edit": "path"},
                "old": {**_TEXT, "x-edit": "old", "minLength": 1, "description": "The text as it stands there, long enough to be unique."},
                "new": {**_TEXT, "x-edit": "new", "description": "What takes its place."},
                "if_better": {
                    "type": "boolean",
                    "x-fill": True,
                    "description": "Keep the change only if more of the task's tests pass with it.",
                },
            },
            ["path", "old", "new"],
            idempotent=False,
        ),
        _tool(
            "run_python",
            _run_python,
            "Run a Python file of the workspace, in isolation: no network, bounded time and memory. Gives its output and exit code.",
            {"path": _PATH, "stdin": _TEXT},
            ["path"],
            idempotent=False,
        ),
        _tool(
            "run_shell",
            _run_shell,
            "Run a bash command in the workspace, in isolation: no network, bounded time and memory. Gives its output and exit code. "
            "Files and their contents stay; empty directories, permissions and links do not.",
            {"command": {"type": "string", "minLength": 1, "maxLength": 20_000}},
            ["command"],
            idempotent=False,
        ),
        _tool(
            "search",
            _search,
            "Find the lines of the workspace's text files that hold a text.",
            {
                "text": {"type": "string", "minLength": 1, "maxLength": 500},
                "regex": {"type": "boolean", "description": "Whether the text is an extended regular expression."},
                "within": {"type": "string", "maxLength": 200, "description": "Only files whose paths begin so."},
            },
            ["text"],
            reads=True,
        ),
        _tool(
            "run_tests", _run_tests, "Run the tests that the task shows. Which of them pass decides nothing; others do.", {}, [], reads=True
        ),
    )
}
"""Every tool, by its name; a problem says which of them it offers."""
