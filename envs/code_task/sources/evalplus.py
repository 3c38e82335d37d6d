"""EvalPlus's format (HumanEval+, MBPP+): inputs, and a program that computes what should come of them."""

from collections.abc import Sequence
from typing import Any

from agent_gym.envs.code_task.graders.compare import SPECIAL
from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["FIELDS", "problem"]

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "base_input", "plus_input")

_GOAL = "Write the function {entry_point} in {file}, as its docstring says. Then finish.\n\n{prompt}"

# Inputs of MBPP+ that JSON cannot say: how each argument is read, from the outside in (t: tuple, l: list, v: values of a dict,
# s: set, or an empty dict, T: tuples all the way, f: float, c: complex). The last holds for all further arguments.
_READ: dict[tuple[str, ...], tuple[int, ...]] = {
    ("t",): (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809),
    ("lt",): (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    ("lt", ""): (75, 413, 444, 753),
    ("", "t"): (106, 750),
    ("ls",): (115,),
    ("f", "c"): (124,),
    ("t", ""): (250, 307, 405, 446, 617, 720, 763, 808),
    ("tt",): (259, 278, 401, 445),
    ("vt", ""): (722,),
    ("c",): (252,),
    ("T",): (580, 615, 791),
}
_READ_OF = {f"Mbpp/{number}": read for read, numbers in _READ.items() for number in numbers}


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem. What should come out is computed when it is graded, in a sandbox of its own."""
    task_id, entry_point = row.id("task_id", "Mbpp/"), row.name("entry_point")
    prompt, solution = row.text("prompt"), row.text("canonical_solution")
    codes = _READ_OF.get(task_id, ("",))
    inputs = [*_inputs(row, "base_input", codes), *_inputs(row, "plus_input", codes)]
    if not inputs:
        raise row.bad("there are no inputs: nothing would be graded")
    tolerance = row.fields.get("atol") or 0
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 1:
        raise row.bad(f"field 'atol' is {str(tolerance)[:50]} instead of a number in [0, 1]")
    of_mbpp = task_id.startswith("Mbpp/")
    special = entry_point if entry_point in SPECIAL and of_mbpp == SPECIAL[entry_point].of_mbpp else ""
    return Problem(
        id=task_id,
        family=family,
        split=split,
        goal=_GOAL.format(entry_point=entry_point, file=SOLUTION_FILE, prompt=prompt),
        prompt=prompt,
        files={SOLUTION_FILE: prompt},
        grader="inputs",
        hidden={
            "program": prompt + solution,
            "entry_point": entry_point,
            "inputs": [row.sendable(given, f"input {number}") for number, given in enumerate(inputs, 1)],
            "atol": float(tolerance),
            "special": special,
        },
        solution={SOLUTION_FILE: prompt + solution},
        difficulty=min(1.0, len(solution.splitlines()) / 25),
        metadata=row.rest((*FIELDS, "atol")),
    )


def _inputs(row: Row, name: str, codes: Sequence[str]) -> list[tuple[Any, ...]]:
    """The arguments of each call."""
    found = row.json(name)
    if found == {}:  # what EvalPlus writes where it has none
        return []
    if not isinstance(found, list) or not all(isinstance(given, list) for given in found):
        raise row.bad(f"field {name!r} is no list of lists of arguments")
    try:
        return [_arguments(given, codes) for given in found]
    except (TypeError, ValueError, OverflowError) as error:
        raise row.bad(f"field {name!r}: {error}") from None


def _arguments(given: Sequence[Any], codes: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_read(value, codes[min(at, len(codes) - 1)]) for at, value in enumerate(given))


def _read(value: Any, code: str) -> Any:
    if code == "f":
        return float(value)
    if code == "c":
        return complex(value)
    if code == "vt" and isinstance(value, dict):
        return {key: _read(part, "t") for key, part in value.items()}
    if code == "s" and isinstance(value, list):
        return set(value) or {}
    if not code or not isinstance(value, list):
        return value
    parts = [_read(part, code if code == "T" else code[1:]) for part in value]
    return parts if code[0] == "l" else tuple(parts)
