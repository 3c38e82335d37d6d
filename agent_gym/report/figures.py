"""Numbers, spans of time, JSON and texts as people read them. A figure that is not known is a dash, never a zero."""

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["duration", "integer", "interval", "number", "percent", "readable", "reward", "tone", "visible", "whole_percent", "whole_range"]

_UNKNOWN = "–"
_NB = "\u00a0"
_GOOD = frozenset({"success", "ok", "empty"})
_BAD = frozenset({"failure", "violation", "forbidden", "error", "invalid_arguments", "unknown_tool", "not_found", "conflict"})

_CONTROLS = [*range(0x00, 0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)]
_TURNING = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0xFEFF]
_SURROGATES = range(0xD800, 0xE000)
_UNSAFE = dict.fromkeys([*_CONTROLS, *_TURNING, *_SURROGATES, 0xFFFE, 0xFFFF], "\N{REPLACEMENT CHARACTER}")


def percent(rate: float | None) -> str:
    """A rate in [0, 1] with one decimal, for tables: ``93.2 %``."""
    return _UNKNOWN if rate is None else f"{100 * rate:.1f}{_NB}%"


def whole_percent(rate: float | None) -> str:
    """A rate in [0, 1] in whole per cent, for sentences; what is not all or nothing never reads as 0 or 100 %."""
    if rate is None:
        return _UNKNOWN
    if 0 < rate < 0.005:
        return f"less than 0.5{_NB}%"
    if 0.995 < rate < 1:
        return f"more than 99.5{_NB}%"
    return f"{100 * rate:.0f}{_NB}%"


def interval(ends: Sequence[float] | None) -> str:
    """Both ends of an interval of rates, for tables: ``90.9 – 95.0``."""
    return _UNKNOWN if ends is None else f"{100 * ends[0]:.1f}{_NB}–{_NB}{100 * ends[1]:.1f}"


def whole_range(ends: Sequence[float] | None) -> str:
    """Both ends of an interval of rates, for sentences: ``91–95 %``."""
    return _UNKNOWN if ends is None else f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}{_NB}%"


def number(value: float | None, digits: int = 1) -> str:
    """A number with a fixed count of decimals."""
    return _UNKNOWN if value is None else f"{value:.{digits}f}".replace("-", "−")


def integer(value: int | None) -> str:
    """A count, its thousands apart."""
    return _UNKNOWN if value is None else f"{value:,}"


def reward(value: float | None) -> str:
    """A reward with its sign: ``+1``, ``−0.1``, ``0``; a dash where it is not valid."""
    if value is None:
        return _UNKNOWN
    return "0" if value == 0 else f"{value:+.3g}".replace("-", "−")


def duration(seconds: float) -> str:
    """A span of time, in the units people would use: ``8.4 s``, ``5 min 07 s``, ``2 h 05 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f}{_NB}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{_NB}s"
    if whole < 3600:
        return f"{whole // 60}{_NB}min {whole % 60:02d}{_NB}s"
    return f"{whole // 3600}{_NB}h {whole % 3600 // 60:02d}{_NB}min"


def readable(value: Any) -> str:
    """A text as it is; any other JSON value indented."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def tone(word: str) -> str:
    """How an outcome, an ending or a status is coloured: ``good``, ``bad``, or ``care`` for what is neither or no fault of the agent."""
    return "good" if word in _GOOD else "bad" if word in _BAD else "care"


def visible(text: str) -> str:
    """The text with a replacement character for each one that UTF-8 or XML cannot hold, or that could hide or turn round text."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_UNSAFE)
