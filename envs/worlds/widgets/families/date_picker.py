"""Date picker: a calendar that turns month by month, over a field that cannot be typed into."""

from datetime import date

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget

__all__ = ["WIDGET"]

_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


def _draw(rng: np.random.Generator) -> Drawn:
    year, first = 2026 + int(rng.integers(3)), int(rng.integers(1, 13))
    month = min(max(first + int(rng.integers(-4, 5)), 1), 12)
    day = f"{int(rng.integers(1, 29))} {_MONTHS[month - 1]} {year}"
    return Drawn({"day": day}, day, {"year": year, "month": first})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    day = slots["day"]
    if seen.saved == day:
        return FINISH
    if seen.value("Date") == day:
        return seen.click("Save")
    if not seen.has("Next month"):
        return seen.click("Open calendar")
    if seen.has(day):
        return seen.click(day)
    return seen.click("Next month" if _month(seen.read(r"^## (.*)$")) < _month(day) else "Previous month")


def _month(text: str) -> date:
    """The month that a text ends with."""
    month, year = text.split()[-2:]
    return date(int(year), _MONTHS.index(month) + 1, 1)


WIDGET = Widget(
    name="date_picker",
    title="Date picker",
    goal="Set the date picker to {day} and save it.",
    draw=_draw,
    way=_way,
    capabilities=("navigate", "search"),
)
