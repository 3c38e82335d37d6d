"""What a widget of the gallery is: its page, the tasks on it, and the way to solve one from nothing but what the pages show."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import orjson

from agent_gym.core import ToolCall
from agent_gym.world import Draft, Family, World

__all__ = ["FINISH", "Drawn", "Seen", "Slots", "Widget", "pick", "some"]

FINISH = ToolCall("finish")
"""What an oracle does when the page says that what was asked is saved."""

Slots = Mapping[str, str]
"""What a goal's words stand for, by slot."""

_SAVED = re.compile(r"^! Saved: (.*)$", re.MULTILINE)


class Drawn(NamedTuple):
    """What is drawn for a task.

    Attributes:
        slots: What the goal says.
        value: What must be saved in the end.
        given: What the page shows, as JSON values.
    """

    slots: Slots
    value: str
    given: Mapping[str, Any]


class Seen:
    """The pages seen so far, as an oracle reads them.

    Args:
        views: Them, oldest first, as the observations' ``data["view"]``.

    Attributes:
        outlines: Their outlines.
        outline: The newest.
        path: Where the newest is.
        downloads: The names of what was downloaded.
    """

    def __init__(self, views: Sequence[Mapping[str, Any]]) -> None:
        self.outlines: list[str] = [view["outline"] for view in views]
        self.outline = self.outlines[-1]
        self.path = urlsplit(views[-1]["url"]).path
        self.downloads: Sequence[str] = views[-1]["downloads"]
        self._elements: Sequence[Mapping[str, Any]] = views[-1]["elements"]

    @property
    def saved(self) -> str:
        """What the page says was saved; empty if it says nothing of it."""
        found = _SAVED.search(self.outline)
        return found[1] if found else ""

    @property
    def dialog(self) -> bool:
        """Whether a dialog of the browser is open."""
        return "(accept_dialog or dismiss_dialog)" in self.outline

    def read(self, pattern: str) -> str:
        """The first group of a pattern in the newest page; empty if it is not there."""
        found = re.search(pattern, self.outline, re.MULTILINE)
        return found[1] if found else ""

    def has(self, name: str, **facts: Any) -> bool:
        """Whether an element of that name, and with these facts, can be seen."""
        return bool(self._element(name, **facts))

    def value(self, name: str) -> str:
        """The text in the element of that name."""
        return str(self._element(name).get("value", ""))

    def shows(self, name: str, state: str) -> bool:
        """Whether the element of that name is in a state."""
        return state in self._element(name).get("states", ())

    def act(self, tool: str, name: str, **arguments: Any) -> ToolCall:
        """An action on the element of that name."""
        return ToolCall(tool, {"bid": self.bid(name), **arguments})

    def click(self, name: str) -> ToolCall:
        """A click on the element of that name."""
        return self.act("click", name)

    def bid(self, name: str) -> str:
        """The id of the element of that name; of none that exists if there is none."""
        return str(self._element(name).get("bid", "0"))

    def _element(self, name: str, **facts: Any) -> Mapping[str, Any]:
        wanted = {"name": name, **facts}
        return next((one for one in self._elements if all(one.get(key) == value for key, value in wanted.items())), {})


@dataclass(frozen=True, kw_only=True)
class Widget:
    """One widget.

    Attributes:
        name: The family's name, and the page's: ``/name``, whose template is ``name.html``.
        title: What the page is called.
        goal: What is asked, with slots in braces.
        draw: Draws a task.
        way: The next action towards what the slots say, from the pages seen; the newest is one of the widget's.
        capabilities: What it takes, for reports.
    """

    name: str
    title: str
    goal: str
    draw: Callable[[np.random.Generator], Drawn]
    way: Callable[[Seen, Slots], ToolCall]
    capabilities: tuple[str, ...]

    def read(self, goal: str) -> dict[str, str] | None:
        """The slots of a goal in words; None if it is not of this widget."""
        found = self._words.fullmatch(goal)
        return None if found is None else found.groupdict()

    @cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(self.goal)), re.IGNORECASE)

    def family(self) -> Family:
        """The family of its tasks."""
        return Family(name=self.name, draft=self._draft, capabilities=self.capabilities, doors=("web",))

    def _draft(self, world: World, rng: np.random.Generator, split: str) -> Draft:  # noqa: ARG002 - every split draws alike
        drawn = self.draw(rng)
        world.update("widgets", self.name, given=orjson.dumps(drawn.given).decode())
        where = {"name": self.name}
        return Draft(
            goal=self.goal.format(**drawn.slots),
            params=drawn.slots,
            rows=[{"table": "widgets", "where": where, "values": {"value": drawn.value}}],
            allowed=[{"table": "widgets", "where": where, "columns": ["value"]}],
            milestones=[
                {"name": "opened", "call": {"tool": "look", "arguments": {"widget": self.name}}},
                {"name": "saved", "goal": True},
            ],
        )


def pick(rng: np.random.Generator, things: Sequence[Any]) -> Any:
    """One of several things."""
    return things[int(rng.integers(len(things)))]


def some(rng: np.random.Generator, things: Sequence[Any], count: int) -> list[Any]:
    """So many different ones of several things, in drawn order."""
    return [things[int(index)] for index in rng.permutation(len(things))[:count]]
