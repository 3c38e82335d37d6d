"""The functions as they should be, and how they are shown."""

import ast
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType

from agent_gym.envs.code_task.repair import test, train, validation
from agent_gym.envs.code_task.repair.mending import Example

__all__ = ["MODULES", "called", "functions", "shown"]

MODULES: Mapping[str, ModuleType] = {"train": train, "validation": validation, "test": test}
"""The functions of each split."""


def functions(split: str) -> dict[str, FunctionType]:
    """The functions of a split by name."""
    return {name: value for name, value in vars(MODULES[split]).items() if inspect.isfunction(value)}


def called(function: FunctionType, arguments: Sequence[str]) -> list[Example]:
    """What a function gives for arguments, which are tuples as Python literals."""
    return [[given, repr(function(*ast.literal_eval(given)))] for given in arguments]


def shown(function: FunctionType, examples: Sequence[Example]) -> str:
    """The text of a function, with examples in its docstring."""
    head, quotes, body = inspect.getsource(function).partition('"""\n')
    lines = [f"    >>> {function.__name__}{_written(given)}\n    {value}\n" for given, value in examples]
    return f"{head}\n\n{''.join(lines)}    {quotes}{body}"


def _written(arguments: str) -> str:
    """Of a tuple's text what stands in a call."""
    return f"{arguments.removesuffix(',)')})" if arguments.endswith(",)") else arguments
