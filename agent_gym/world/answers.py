"""Whether what an agent answered is what was asked for: texts by their letters, numbers by their value, money also in dollars."""

import re
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

__all__ = ["answered"]

_CENTS = "_cents"
_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")
_DOLLARS = re.compile(r"([+-]?)(\$?)((?:\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d{1,2}))?)")
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


def answered(asks: str, wanted: Any, said: Any) -> bool:
    """Whether an answer is the one that was wanted.

    Args:
        asks: The kind of value; one whose name ends in ``_cents`` may also be said in dollars: ``$19.90`` and ``19.90`` are 1990.
        wanted: The value: a JSON scalar, or a list whose order and repetitions do not matter.
        said: What ``finish`` was given: a text, the items of a list parted by commas, or nothing.
    """
    if not isinstance(said, str):
        return False
    if isinstance(wanted, list):
        parts = {" ".join(part.split()) for part in said.split(",")} - {""}
        return {_read(asks, part, wanted[0]) if wanted else part for part in parts} == {_known(item) for item in wanted}
    return _read(asks, said, wanted) == _known(wanted)


def _known(value: Any) -> Hashable:
    """A value as answers are compared with it; its kind goes with it, so that 1 is neither true nor ``"1"``."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int | float):
        return "number", Decimal(str(value))
    return "text", _folded(str(value))


def _read(asks: str, said: str, like: Any) -> Hashable:
    """What was said, read as the kind of value that another is of; None where it is none."""
    text = _folded(said)
    if isinstance(like, bool):
        return ("truth", _TRUTHS[text]) if text in _TRUTHS else None
    if not isinstance(like, int | float):
        return "text", text
    if asks.endswith(_CENTS) and (match := _DOLLARS.fullmatch(text)) and (match[2] or match[4]):
        return "number", Decimal(match[1] + match[3].replace(",", "")) * 100
    return ("number", Decimal(text.replace(",", ""))) if _NUMBER.fullmatch(text) else None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
