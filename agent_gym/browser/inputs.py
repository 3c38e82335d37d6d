"""What each kind of input may hold, by the HTML standard: value sanitization, numbers and dates, and how they step.

Numbers are exact fractions; dates and times count in milliseconds, months in months, all from 1970 on. Years go from 1 to 9999.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from lxml.etree import _Element as Node

__all__ = ["SCALES", "TEXT_KINDS", "Limits", "Scale", "kind_of", "limits_of", "sanitized", "takes"]

TEXT_KINDS = frozenset({"text", "search", "tel", "url", "email", "password"})
"""The kinds of input that ``pattern``, ``minlength`` and ``maxlength`` apply to."""

_BUTTONS = frozenset({"submit", "reset", "button", "image"})
_DATES = frozenset({"date", "month", "week", "time", "datetime-local"})
_KINDS = TEXT_KINDS | _BUTTONS | _DATES | {"hidden", "number", "range", "color", "checkbox", "radio", "file"}
_LONGEST = 100  # characters of a number or date: none needs more, and exact arithmetic stays cheap
_BLANKS = "\t\n\f\r "
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d\d)", re.ASCII)
_WEEK = re.compile(r"(\d{4})-W(\d\d)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,3}))?)?", re.ASCII)
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_DAY = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Scale:
    """How the values of one kind of input count.

    Attributes:
        parse: A value as a number; None if it is not valid.
        show: A number as a value; raises ValueError or OverflowError beyond the years there are.
        takes: What the kind takes, for a message.
        unit: What a step of 1 is worth.
        step: The default step.
        base: What steps are counted from by default.
    """

    parse: Callable[[str], Fraction | None]
    show: Callable[[Fraction], str]
    takes: str
    unit: int = 1
    step: int = 1
    base: int = 0


class Limits(NamedTuple):
    """What bounds an input's number: ``min``, ``max``, ``step`` (None: any) and what steps are counted from."""

    low: Fraction | None
    high: Fraction | None
    step: Fraction | None
    base: Fraction


def kind_of(control: Node) -> str:
    """An input's type, an unknown one as ``text``; of other elements the tag."""
    if control.tag != "input":
        return str(control.tag)
    kind = (control.get("type") or "text").lower()
    return kind if kind in _KINDS else "text"


def takes(kind: str) -> str:
    """What a kind of input takes, for a message; empty if it takes any text."""
    return "a color such as #00ff7f" if kind == "color" else SCALES[kind].takes if kind in SCALES else ""


def sanitized(control: Node, text: str) -> str:
    """The standard's value sanitization algorithm: what the control holds when it is given a text."""
    kind = kind_of(control)
    if kind in TEXT_KINDS:
        text = text.replace("\n", "").replace("\r", "")
        if kind == "url":
            return text.strip(_BLANKS)
        if kind == "email":
            return ",".join(part.strip(_BLANKS) for part in text.split(",")) if control.get("multiple") is not None else text.strip(_BLANKS)
        return text
    if kind == "textarea":
        return text.replace("\r\n", "\n").replace("\r", "\n")
    if kind == "color":
        return text.lower() if _COLOR.fullmatch(text) else "#000000"
    if kind not in SCALES:
        return "" if kind == "file" else text
    number = SCALES[kind].parse(text)
    if kind == "range":
        return _within(control, text, number)
    if number is None:
        return ""
    return SCALES[kind].show(number) if kind == "datetime-local" else text


def limits_of(control: Node) -> Limits:
    """The limits of an input that has a scale."""
    kind = kind_of(control)
    scale = SCALES[kind]
    low, high = scale.parse(control.get("min") or ""), scale.parse(control.get("max") or "")
    base = low if low is not None else scale.parse(control.get("value") or "")
    given = (control.get("step") or "").strip(_BLANKS)
    step = None
    if given.lower() != "any":
        step = _number(given)
        step = (step if step is not None and step > 0 else scale.step) * Fraction(scale.unit)
    return Limits(low, high, step, Fraction(scale.base) if base is None else base)


def _within(control: Node, text: str, number: Fraction | None) -> str:
    """A slider's value: its middle by default, within its limits, on a step."""
    least, most, step, base = limits_of(control)
    low, high = Fraction(0) if least is None else least, Fraction(100) if most is None else most
    value = low + max(high - low, Fraction(0)) / 2 if number is None else number
    value = max(low, min(value, high))
    if step is not None and (value - base) % step:
        value = base + math.floor((value - base) / step + Fraction(1, 2)) * step
        value = value - step if value > high else value + step if value < low else value
        value = value if low <= value <= high else low
    return text if value == number else _show_number(value)


def _number(text: str) -> Fraction | None:
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return Fraction(repr(float(text)) if "e" in text.lower() else text)


def _show_number(number: Fraction) -> str:
    shown = format(Decimal(number.numerator) / Decimal(number.denominator), "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _month(text: str) -> Fraction | None:
    found = _MONTH.fullmatch(text)
    if not found or found[1] == "0000" or not 1 <= int(found[2]) <= 12:
        return None
    return Fraction((int(found[1]) - 1970) * 12 + int(found[2]) - 1)


def _show_month(number: Fraction) -> str:
    year, month = divmod(int(number), 12)
    return date(1970 + year, month + 1, 1).isoformat()[:7]


def _week(text: str) -> Fraction | None:
    found = _WEEK.fullmatch(text)
    try:
        return _days(date.fromisocalendar(int(found[1]), int(found[2]), 1)) if found else None
    except ValueError:  # no such week in that year
        return None


def _show_week(number: Fraction) -> str:
    year, week, _ = date.fromordinal(int(number) // _DAY + _EPOCH).isocalendar()
    return f"{year:04}-W{week:02}"


def _date(text: str) -> Fraction | None:
    try:
        return _days(date.fromisoformat(text)) if _DATE.fullmatch(text) else None
    except ValueError:  # no such day
        return None


def _days(day: date) -> Fraction:
    return Fraction((day.toordinal() - _EPOCH) * _DAY)


def _show_date(number: Fraction) -> str:
    return date.fromordinal(int(number) // _DAY + _EPOCH).isoformat()


def _time(text: str) -> Fraction | None:
    found = _TIME.fullmatch(text)
    if not found:
        return None
    seconds = (int(found[1]) * 60 + int(found[2])) * 60 + int(found[3] or 0)
    return Fraction(seconds * 1000 + int((found[4] or "").ljust(3, "0")))


def _show_time(number: Fraction) -> str:
    seconds, thousandths = divmod(int(number) % _DAY, 1000)
    minutes, seconds = divmod(seconds, 60)
    shown = f"{minutes // 60:02}:{minutes % 60:02}"
    if seconds or thousandths:
        shown += f":{seconds:02}"
    return f"{shown}.{thousandths:03}".rstrip("0") if thousandths else shown


def _moment(text: str) -> Fraction | None:
    day, time = _date(text[:10]), _time(text[11:])
    return day + time if day is not None and time is not None and text[10] in "T " else None


def _show_moment(number: Fraction) -> str:
    return f"{_show_date(number)}T{_show_time(number)}"


SCALES = {
    "number": Scale(_number, _show_number, "a number such as 12.5"),
    "range": Scale(_number, _show_number, "a number such as 12.5"),
    "date": Scale(_date, _show_date, "a date such as 2024-02-29", unit=_DAY),
    "month": Scale(_month, _show_month, "a month such as 2024-02"),
    "week": Scale(_week, _show_week, "a week such as 2024-W09", unit=7 * _DAY, base=-3 * _DAY),
    "time": Scale(_time, _show_time, "a time such as 14:30", unit=1000, step=60),
    "datetime-local": Scale(_moment, _show_moment, "a date and time such as 2024-02-29T14:30", unit=1000, step=60),
}
"""The kinds of input whose values count, and how."""
