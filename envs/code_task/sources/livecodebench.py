"""LiveCodeBench's format: contest problems with public and private tests, the private ones packed."""

import base64
import binascii
import io
import pickletools
from typing import Any

from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.programs import Contest
from agent_gym.envs.code_task.sources.reading import MAX_LINE, inflate, parse
from agent_gym.envs.code_task.sources.row import Row
from agent_gym.errors import DatasetError

__all__ = ["FIELDS", "problem"]

FIELDS = ("question_id", "question_content", "starter_code", "public_test_cases", "private_test_cases")

_OPTIONAL = ("metadata", "difficulty", "canonical_solution")
_DIFFICULTY = {"easy": 0.3, "medium": 0.6, "hard": 0.9}
_IMPORTS = "from typing import *\n\n"
_HARMLESS = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})
_TEXTS = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem. The set itself has no solutions; a row that brings its own in ``canonical_solution`` has an oracle."""
    tests = [*_tests(row, "public_test_cases"), *_tests(row, "private_test_cases")]
    kinds = {test["testtype"] for test in tests}
    functional = kinds == {"functional"}
    if not functional and kinds != {"stdin"}:
        raise row.bad(f"the tests' kinds are {', '.join(sorted(kinds)) or 'none'}, expected all 'stdin' or all 'functional'")
    contest = Contest(
        row=row,
        split=split,
        family=family,
        id=row.id("question_id", "livecodebench/"),
        text=row.text("question_content"),
        start=(_IMPORTS if functional else "") + row.text("starter_code", ""),
        solution=row.text("canonical_solution", "") or None,
        difficulty=_DIFFICULTY.get(str(row.fields.get("difficulty")).lower(), 0.5),
        known=(*FIELDS, *_OPTIONAL),
    )
    if not functional:
        return contest.program([(test["input"], test["output"]) for test in tests], {})
    metadata = row.json("metadata") if row.fields.get("metadata") else {}
    name = Row(row.where, metadata if isinstance(metadata, dict) else {}).name("func_name")
    cases = [([_value(row, line) for line in test["input"].split("\n") if line.strip()], _value(row, test["output"])) for test in tests]
    return contest.function(name, cases)


def _value(row: Row, text: str) -> Any:
    return parse(text, f"{row.where}: a test")


def _tests(row: Row, name: str) -> list[dict[str, str]]:
    value = row.fields[name]
    if isinstance(value, str) and value.strip() and not value.lstrip().startswith("["):
        value = _packed(row, value, name)
    value = (parse(value, f"{row.where}: field {name!r}") if value.strip() else []) if isinstance(value, str) else value
    if not isinstance(value, list):
        raise row.bad(f"field {name!r} is no list of tests")
    for test in value:
        if not isinstance(test, dict) or not all(isinstance(test.get(key), str) for key in ("input", "output", "testtype")):
            raise row.bad(f"field {name!r} has a test without the texts 'input', 'output' and 'testtype'")
    return value


def _packed(row: Row, text: str, name: str) -> str:
    """The text in base64, zlib and pickle.

    No pickle is ever run: its instructions are read one by one, and all but those that make up one text are refused.
    """
    place = f"{row.where}: field {name!r}"
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DatasetError(f"{place}: neither JSON nor base64: {error}") from None
    found: list[str] = []
    try:
        for instruction, argument, _ in pickletools.genops(io.BytesIO(inflate(raw, place))):
            if instruction.name in _TEXTS:
                found.append(str(argument))
            elif instruction.name not in _HARMLESS:
                raise DatasetError(f"{place}: a pickle that does more than hold a text ({instruction.name})")
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{place}: a torn pickle: {error}") from None
    if len(found) != 1 or len(found[0]) > MAX_LINE:
        raise DatasetError(f"{place}: a pickle of {len(found)} texts, expected one")
    return found[0]
