"""When people have time."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.dates.spans import Spans, common, merge, subtract


def minutes(text: str) -> int:
    """Minutes since midnight of a time such as ``9:05``."""
    hours, colon, rest = text.partition(":")
    if not colon or len(rest) != 2 or not 0 <= int(hours) <= 24 or not 0 <= int(rest) < 60:
        raise ValueError(text)
    return int(hours) * 60 + int(rest)


def clock(number: int) -> str:
    """A time such as ``09:05``."""
    return f"{number // 60:02d}:{number % 60:02d}"


def parse(text: str) -> Spans:
    """Spans of a day: ``9:00-10:30, 13:00-14:00``."""
    spans = []
    for part in text.split(","):
        if part.strip():
            start, dash, end = part.strip().partition("-")
            if not dash or minutes(start) > minutes(end):
                raise ValueError(part)
            spans.append((minutes(start), minutes(end)))
    return merge(spans)


def free(day: str, *busy: str) -> list[str]:
    """When everybody is free."""
    left = parse(day)
    for one in busy:
        left = common(left, subtract(parse(day), parse(one)))
    return [f"{clock(start)}-{clock(end)}" for start, end in left]


def first_slot(day: str, length: int, *busy: str) -> str:
    """The earliest time that is long enough for everybody; empty if there is none."""
    for slot in free(day, *busy):
        start, end = map(minutes, slot.split("-"))
        if end - start >= length:
            return clock(start)
    return ""
