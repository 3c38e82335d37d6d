"""Wall clocks and the virtual one: times of people in their zones, as ``2028-02-29 14:00``, and seconds of UTC."""

from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

__all__ = ["DAY", "START", "day_bounds", "shifted", "to_utc", "wall", "wall_gap"]

DAY = 86_400
START = 1_834_729_200
"""Monday, 21 February 2028, 07:00 UTC: when every episode begins. A leap day and two changes of the clocks are to come."""

_FORMAT = "%Y-%m-%d %H:%M"
_YEARS = range(2000, 2101)
"""The years that calendars have."""


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=16_384)
def wall(at: int, zone: str) -> str:
    """What the clocks of a zone show at a time."""
    return datetime.fromtimestamp(at, _zone(zone)).strftime(_FORMAT)


@lru_cache(maxsize=16_384)
def to_utc(text: str, zone: str) -> int:
    """The time at which the clocks of a zone show this; the first, where they show it twice.

    Raises:
        ValueError: They never do: there is no such day or hour, no calendar has that year, or the clocks skip it.
    """
    at = _time(datetime.strptime(text, _FORMAT), zone)
    if wall(at, zone) != text:
        raise ValueError(f"the clocks of {zone} never show {text}")
    return at


def day_bounds(day: str, zone: str) -> tuple[int, int]:
    """When a day of a zone begins and ends: 23, 24 or 25 hours.

    Raises:
        ValueError: There is no such day, or no calendar has that year.
    """
    first = datetime.combine(date.fromisoformat(day), time())
    start = _time(first, zone)
    return start, int((first + timedelta(days=1)).replace(tzinfo=_zone(zone)).timestamp())


def wall_gap(before: int, after: int, zone: str) -> timedelta:
    """By how much the hands of a zone's clocks stand apart at two times."""
    return _hands(after, zone) - _hands(before, zone)


def shifted(at: int, zone: str, by: timedelta) -> int:
    """The time at which the clocks of a zone have moved on by so much.

    The wall clock is what counts: a meeting at ten stays at ten when the clocks change. What they skip is an hour later.

    Raises:
        ValueError: No calendar has the year that they would show.
    """
    return _time(_hands(at, zone) + by, zone)


def _time(hands: datetime, zone: str) -> int:
    if hands.year not in _YEARS:
        raise ValueError(f"no calendar has the year {hands.year}")
    return int(hands.replace(tzinfo=_zone(zone)).timestamp())


def _hands(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at, _zone(zone)).replace(tzinfo=None)
