"""Tries changes to a project, each in a process of its own with little time. Sent into the sandbox together with the driver ``calls``.

It imports nothing of this package and keeps to what Python 3.9 knows; ``run`` and ``told`` are the driver's.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import os
import signal
import sys
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agent_gym.envs.code_task.graders.drivers.calls import run, told

__all__ = ["lines_of", "outcomes"]

_CPU_S = 0.1
_TOO_LONG = "too long"


class _TooLong(BaseException):
    """A case does not come to an end."""


def outcomes(
    texts: dict[str, str], edits: list[list[str]], cases: list[tuple[list[dict[str, Any]], str | None]], most: int
) -> list[list[str]]:
    """What comes of cases when an edit is made.

    Args:
        texts: The files by path.
        edits: Each a path, a text that occurs there once, and what takes its place.
        cases: Their steps, and what should come of them, as text, if that is known.
        most: So many characters of the texts count.

    Returns:
        For each edit what came of the cases, as text, up to the first that gave something else than it should, or came to no end.
    """
    codes = {path: compile(text, path, "exec", dont_inherit=True) for path, text in texts.items()}

    def tried(edit: list[str]) -> list[str]:
        path, old, new = edit
        changed = {**codes, path: compile(texts[path].replace(old, new), path, "exec", dont_inherit=True)}
        sys.meta_path.insert(0, _Memory(changed))
        found: list[str] = []
        for steps, expected in cases:
            found.append(_bounded(partial(_told, steps, most)) or _TOO_LONG)
            if found[-1] == _TOO_LONG or (expected is not None and found[-1] != expected[:most]):
                break
        return found

    return [_apart(partial(tried, edit)) or [] for edit in edits]


def lines_of(texts: dict[str, str], cases: list[list[dict[str, Any]]]) -> list[list[tuple[str, int]]]:
    """The lines that each case runs, as paths and numbers."""
    codes = {path: compile(text, path, "exec", dont_inherit=True) for path, text in texts.items()}

    def traced() -> list[list[tuple[str, int]]]:
        sys.meta_path.insert(0, _Memory(codes))
        found = []
        for steps in cases:
            seen: set[tuple[str, int]] = set()

            def trace(frame: Any, _: str, __: Any, seen: set[tuple[str, int]] = seen) -> Any:
                if frame.f_code.co_filename not in codes:
                    return None
                seen.add((frame.f_code.co_filename, frame.f_lineno))
                return trace

            sys.settrace(trace)
            _bounded(partial(run, steps), 10)
            sys.settrace(None)
            found.append(sorted(seen))
        return found

    return [[(path, line) for path, line in rows] for rows in _apart(traced) or [[] for _ in cases]]


def _told(steps: list[dict[str, Any]], most: int) -> str:
    return told(run(steps))[:most]


class _Memory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from compiled texts."""

    def __init__(self, codes: dict[str, Any]) -> None:
        self._codes = {path[: -len(".py")].replace("/", "."): code for path, code in codes.items()}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - as the import system calls it
        for known, package in ((name, False), (f"{name}.__init__", True)):
            if known in self._codes:
                return importlib.util.spec_from_loader(name, self, is_package=package)
        return None

    def exec_module(self, module: Any) -> None:
        exec(self._codes.get(module.__name__) or self._codes[f"{module.__name__}.__init__"], module.__dict__)


def _bounded(work: Callable[[], Any], times: int = 1) -> Any:
    """What some work gives; None if it takes too much CPU time."""

    def stop(*_: Any) -> None:
        raise _TooLong

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S * times)
    try:
        return work()
    except _TooLong:
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _apart(work: Callable[[], Any]) -> Any:
    """What some work gives, done in a child; None if it fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    data = b""
    while part := os.read(reading, 1 << 16):
        data += part
    os.close(reading)
    os.waitpid(child, 0)
    try:
        return json.loads(data)
    except ValueError:
        return None
