"""Tries many versions of a function on examples, each for a bounded number of steps.

It runs where the versions may run: in the sandbox, to which it is sent as text, or, for versions of our own making, right here. So it
imports nothing of this package and keeps to what Python 3.9 knows.
"""

from __future__ import annotations

import ast
import copy
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

__all__ = ["passed"]

MOST_STEPS = 2_000
_FILE = "version.py"


class _TooLong(BaseException):
    """A version does not come to an end."""


def passed(versions: list[str], name: str, examples: list[list[str]]) -> list[list[bool]]:
    """Which examples each version passes.

    Args:
        versions: Programs.
        name: Of the function in them.
        examples: The arguments (a tuple) and the value of each call, as Python literals.
    """
    told = [(ast.literal_eval(arguments), ast.literal_eval(value)) for arguments, value in examples]
    return [_passed(version, name, told) for version in versions]


def _passed(version: str, name: str, examples: list[tuple[Any, Any]]) -> list[bool]:
    module: dict[str, Any] = {}
    try:
        exec(compile(version, _FILE, "exec", dont_inherit=True), module)
    except Exception:  # noqa: BLE001 - whatever it was, there is no function
        return [False] * len(examples)
    return [_passes(module.get(name), copy.deepcopy(given), value) for given, value in examples]


def _passes(function: Any, given: Any, value: Any) -> bool:
    sys.settrace(_guard())
    try:
        got = function(*given)
    except (_TooLong, Exception):  # noqa: BLE001 - whatever it was, there is no value
        return False
    finally:
        sys.settrace(None)
    return _exactly(got, value)


def _exactly(got: Any, value: Any) -> bool:
    if type(got) is not type(value):
        return False
    if isinstance(value, dict):
        return got.keys() == value.keys() and all(_exactly(got[key], value[key]) for key in value)
    if isinstance(value, (list, tuple)):
        return len(got) == len(value) and all(map(_exactly, got, value))
    return bool(got == value)


def _guard() -> Callable[..., Any]:
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != _FILE:
            return None
        steps += event == "line"
        if steps > MOST_STEPS:
            raise _TooLong
        return trace

    return trace
