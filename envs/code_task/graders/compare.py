"""Whether a value, or an output, is the expected one. What is compared here came as plain builtins or bytes, so nothing of it runs."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["SPECIAL", "Special", "listed", "same", "same_output"]

TOLERANCE = 1e-6
"""How far a number in an output may be from the expected one, by itself or as a share of it."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?", re.ASCII)
_LONGEST = 400  # characters of a number


def same(got: Any, expected: Any, atol: float, rtol: float) -> bool:
    """Whether two values are equal, as Python has it, with floats and complex numbers within a tolerance where both are such."""
    if type(expected) in (float, complex) and type(got) is type(expected):
        if got == expected or (got != got and expected != expected):
            return True
        try:
            return bool(abs(got - expected) <= atol + rtol * abs(expected))
        except OverflowError:
            return False
    if type(expected) in (list, tuple) and type(got) is type(expected):
        return len(got) == len(expected) and all(same(one, other, atol, rtol) for one, other in zip(got, expected, strict=True))
    if type(expected) is dict and type(got) is dict:
        return got.keys() == expected.keys() and all(same(got[key], expected[key], atol, rtol) for key in expected)
    return bool(got == expected)


def listed(value: Any) -> Any:
    """A value with lists for tuples, as JSON would have it."""
    if type(value) in (list, tuple):
        return [listed(part) for part in value]
    return {key: listed(part) for key, part in value.items()} if type(value) is dict else value


def same_output(got: str, expected: str) -> str:
    """Compares two outputs word by word; white space between words does not matter, and numbers may differ by `TOLERANCE`.

    Returns:
        What differs; empty if nothing does.
    """
    words, wanted = got.split(), expected.split()
    for number, (one, other) in enumerate(zip(words, wanted, strict=False), 1):
        if one != other and not _same_number(one, other):
            return f"word {number} is {one[:80]!r}, expected {other[:80]!r}"
    return "" if len(words) == len(wanted) else f"{len(words)} words, expected {len(wanted)}"


def _same_number(one: str, expected: str) -> bool:
    if len(one) > _LONGEST or len(expected) > _LONGEST or not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(expected)):
        return False
    if _INTEGER.fullmatch(expected):  # a whole number is meant exactly, however it is written
        whole = _WHOLE.fullmatch(one)
        return whole is not None and int(whole[1]) == int(expected)
    a, b = float(one), float(expected)
    return math.isfinite(a) and math.isfinite(b) and math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


class Special(NamedTuple):
    """A function of EvalPlus's that equality does not do justice to.

    Attributes:
        of_mbpp: Whether it is MBPP's; else HumanEval's.
        right: Whether a value is right that is not the reference's, from the arguments, the value, the reference's and the tolerance. It
            may raise ``TypeError``, ``ValueError`` or ``OverflowError`` for one that is not.
        as_truth: Whether only this counts: whether there is a value at all.
    """

    of_mbpp: bool
    right: Callable[[Sequence[Any], Any, Any, float], bool]
    as_truth: bool = False


def _root(args: Sequence[Any], got: Any, _: Any, atol: float) -> bool:
    return type(got) in (int, float) and abs(sum(c * math.pow(got, power) for power, c in enumerate(args[0]))) <= atol


def _pyramid(args: Sequence[Any], got: Any, _: Any, atol: float) -> bool:
    """With the height to the apex instead of along a face."""
    base, height = args
    return bool(abs(got - round(base**2 + 2 * base * math.hypot(base / 2, height))) <= atol)


def _digits(args: Sequence[Any], got: Any, _: Any, __: float) -> bool:
    """With the shorter number filled up with zeros."""
    texts = [str(number) for number in args]
    longest = max(map(len, texts))
    pairs = zip(*(text.zfill(longest) for text in texts), strict=True)
    return bool(got == sum(abs(int(one) - int(other)) for one, other in pairs))


def _as_sets(_: Sequence[Any], got: Any, expected: Any, __: float) -> bool:
    return set(got) == set(expected)


_SETS = (
    "similar_elements",
    "find_char_long",
    "common_in_nested_lists",
    "extract_singly",
    "larg_nnum",
    "intersection_array",
    "find_dissimilar",
    "Diff",
)
_TRUTHS = ("check_str", "text_match_three", "text_starta_endb")

SPECIAL: dict[str, Special] = {
    "find_zero": Special(False, _root),
    "are_equivalent": Special(True, lambda _, got, __, ___: type(got) is bool),  # the task is ambiguous: EvalPlus takes anything
    "sum_div": Special(True, lambda _, got, __, ___: bool(got == 0)),
    "surface_Area": Special(True, _pyramid),
    "digit_distance_nums": Special(True, _digits),
    **dict.fromkeys(_SETS, Special(True, _as_sets)),
    **dict.fromkeys(_TRUTHS, Special(True, lambda *_: False, as_truth=True)),
}
"""EvalPlus's special cases, by the function's name."""
