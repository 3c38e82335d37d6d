"""How a faulty function is mended by trying: the edits that fit its text, one after the other, as long as more examples pass.

Nothing here knows what was done to the function.
"""

import ast
import doctest
import functools
from collections.abc import Callable, Sequence
from importlib.resources import files

from agent_gym.errors import ConfigurationError
from agent_gym.interface.edits import Edit, python_edits
from agent_gym.sandbox import CandidateError, CandidateProcess, Limits, default_pool

__all__ = ["Example", "Try", "examples", "in_the_sandbox", "mend", "versions"]

Example = list[str]
"""The arguments (a tuple) and the value of a call, as Python literals."""
Try = Callable[[list[str], str, list[Example]], list[list[bool]]]
"""As `agent_gym.envs.code_task.repair.trying.passed`."""

_MOST_EDITS = 4


def versions(text: str) -> list[tuple[Edit, str]]:
    """All edits of a text, each with what it makes of it."""
    return [(edit, text.replace(edit.old, edit.new)) for edit in python_edits(text)]


def examples(text: str) -> tuple[str, list[Example]]:
    """The first function of a text and the examples that it shows; empty if there is none."""
    try:
        function = next((node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)), None)
    except (SyntaxError, ValueError):
        return "", []
    told = ast.get_docstring(function) if function else None
    if function is None or told is None:
        return "", []
    found: list[Example] = []
    for example in doctest.DocTestParser().get_examples(told):
        arguments = example.source.strip().removeprefix(f"{function.name}(").removesuffix(")")
        found.append([f"({arguments},)", example.want.strip()])
    return function.name, found


def mend(text: str, name: str, shown: Sequence[Example], attempt: Try) -> list[Edit] | None:
    """The edits that make all examples pass, each one of those that make the most pass then; None if that leads nowhere."""
    edits: list[Edit] = []
    best = sum(attempt([text], name, list(shown))[0])
    while best < len(shown):
        tried = versions(text)
        scores = [sum(passes) for passes in attempt([version for _, version in tried], name, list(shown))] or [0]
        if max(scores) <= best or len(edits) == _MOST_EDITS:
            return None
        best = max(scores)
        edit, text = tried[scores.index(best)]
        edits.append(edit)
    return edits


def in_the_sandbox(texts: list[str], name: str, shown: list[Example]) -> list[list[bool]]:
    """Tries versions where anybody's code may run.

    Raises:
        ConfigurationError: No answer came back, which only code that fights against being tried can bring about.
    """
    with default_pool().lease() as place, CandidateProcess(_program(), limits=Limits(), place=place) as process:
        try:
            answer: list[list[bool]] = process.call("passed", (texts, name, shown)).value
        except CandidateError as error:
            raise ConfigurationError(f"the oracle's trials broke off: {error}") from error
    return answer


@functools.cache
def _program() -> str:
    return files("agent_gym.envs.code_task.repair").joinpath("trying.py").read_text(encoding="utf-8")
