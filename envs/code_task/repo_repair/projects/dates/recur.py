"""Rules such as ``weekly Mon,Wed`` and ``every 3 days`` and ``monthly 31``."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.dates.civil import (
    NAMES,
    DateError,
    add_months,
    month_length,
    to_number,
    to_text,
    weekday,
)


def occurrences(rule: str, first: str, count: int) -> list[str]:
    """The first so many days on which it happens, from a day on."""
    words = rule.split()
    if words[:1] == ["weekly"] and len(words) == 2:
        return weekly(words[1].split(","), to_number(first), count)
    if words[:1] == ["every"] and len(words) == 3 and words[2] in ("days", "weeks"):
        step = int(words[1]) * (7 if words[2] == "weeks" else 1)
        start = to_number(first)
        return [to_text(start + step * index) for index in range(count)]
    if words[:1] == ["monthly"] and len(words) == 2:
        return monthly(int(words[1]), first, count)
    raise DateError(rule)


def weekly(names: list[str], start: int, count: int) -> list[str]:
    """Days of these weekdays."""
    if not names or any(name not in NAMES for name in names):
        raise DateError(",".join(names))
    found: list[str] = []
    day = start
    while len(found) < count:
        if weekday(day) in names:
            found.append(to_text(day))
        day += 1
    return found


def monthly(day: int, first: str, count: int) -> list[str]:
    """That day of each month, or the last of those that are shorter."""
    if not 1 <= day <= 31:
        raise DateError(str(day))
    found: list[str] = []
    month = first[:7]
    while len(found) < count:
        year, number = map(int, month.split("-"))
        text = f"{month}-{min(day, month_length(year, number)):02d}"
        if to_number(text) >= to_number(first):
            found.append(text)
        month = add_months(f"{month}-01", 1)[:7]
    return found
