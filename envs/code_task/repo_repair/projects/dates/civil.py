"""Days as numbers, with 1970-01-01 as 0."""

from __future__ import annotations

LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class DateError(ValueError):
    """No such day."""


def leap(year: int) -> bool:
    """Whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    """How many days a month has."""
    return 29 if month == 2 and leap(year) else LENGTHS[month - 1]


def days_before(year: int) -> int:
    """Days from 1970-01-01 to a year's first."""
    before = year - 1
    return (year - 1970) * 365 + (before // 4 - 492) - (before // 100 - 19) + (before // 400 - 4)


def to_number(text: str) -> int:
    """The number of a day such as ``2024-02-29``."""
    parts = text.split("-")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise DateError(text)
    year, month, day = map(int, parts)
    if not 1 <= month <= 12 or not 1 <= day <= month_length(year, month):
        raise DateError(text)
    return days_before(year) + sum(month_length(year, earlier) for earlier in range(1, month)) + day - 1


def to_text(number: int) -> str:
    """A day's number as ``YYYY-MM-DD``."""
    year = 1970 + number // 366
    while days_before(year + 1) <= number:
        year += 1
    rest = number - days_before(year)
    month = 1
    while rest >= month_length(year, month):
        rest -= month_length(year, month)
        month += 1
    return f"{year:04d}-{month:02d}-{rest + 1:02d}"


def weekday(number: int) -> str:
    """The day of the week."""
    return NAMES[(number + 3) % 7]


def add_months(text: str, months: int) -> str:
    """So many months later; a day that the month lacks becomes its last."""
    year, month, day = map(int, text.split("-"))
    to_number(text)
    count = year * 12 + month - 1 + months
    year, month = count // 12, count % 12 + 1
    return f"{year:04d}-{month:02d}-{min(day, month_length(year, month)):02d}"
