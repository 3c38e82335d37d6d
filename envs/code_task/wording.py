"""Goals with slots, read back."""

import re

__all__ = ["read_slots"]

_SLOT = re.compile(r"\\\{(\w+)\\\}")


def read_slots(text: str, goal: str) -> dict[str, str] | None:
    """What stands in the slots of a text, such as ``Move {what} to {where}``, that a goal holds; None if it does not hold it."""
    seen: set[str] = set()

    def group(slot: re.Match[str]) -> str:
        if slot[1] in seen:
            return f"(?P={slot[1]})"
        seen.add(slot[1])
        return f"(?P<{slot[1]}>.+?)"

    found = re.search(_SLOT.sub(group, re.escape(text)), goal)
    return found.groupdict() if found else None
