"""Goals in words: templates that are written with slots filled in and read back into the slots.

A `Phrasebook` holds *frames* (whole requests, by wording: ``train``, ``held_out``, ``synonyms``) and *routes* (ways to say who is
asking and what is meant). A frame has the places ``{who}`` and ``{thing}``, which a route fills, and slots of its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from agent_gym.world.generating import pick

__all__ = ["Phrasebook", "Route", "Written", "one_of"]

_PLACE = re.compile(r"\{(\w+)\}")
_WORDINGS = {"validation": "held_out", "test": "held_out", "synonyms": "synonyms"}
"""Which frames a split draws from; the others draw from ``train``."""


@dataclass(frozen=True)
class Route:
    """One way to name a person and a thing.

    Attributes:
        who: Sentences that say who is asking; none where the thing's name is enough.
        thing: Phrases for the thing, where it is not always named alike.
    """

    who: Sequence[str]
    thing: Sequence[str] = ("",)


class Written(NamedTuple):
    """A goal in words, and what stands in its slots."""

    text: str
    slots: dict[str, str]


@dataclass(frozen=True)
class Phrasebook:
    """The wordings of one kind of request.

    Attributes:
        frames: Frames by wording. ``{who}`` stands first or last, apart by one space.
        routes: Routes by name.
        slots: A regular expression for each slot, anchors or not; no groups with names.
    """

    frames: Mapping[str, Sequence[str]]
    routes: Mapping[str, Route]
    slots: Mapping[str, str]

    def write(self, rng: np.random.Generator, split: str, route: str, values: Mapping[str, str]) -> Written:
        """Draws a frame of the split's and a route's phrases and fills in the slots; values that these have no slot for are left out."""
        frame = pick(rng, self.frames[_WORDINGS.get(split, "train")])
        who = pick(rng, self.routes[route].who) if self.routes[route].who else ""
        text = frame.replace("{who}", who).replace("{thing}", pick(rng, self.routes[route].thing))
        used = {name: values[name] for name in _PLACE.findall(text)}
        return Written(" ".join(_PLACE.sub(lambda match: used[match[1]], text).split()), used)

    def read(self, goal: str) -> dict[str, str] | None:
        """The values of the slots, or None if the goal fits no frame. Case does not matter outside of slots, nor does white space."""
        goal = " ".join(goal.split())
        for pattern in self._patterns:
            if match := pattern.fullmatch(goal):
                return {name.partition("__")[0]: value for name, value in match.groupdict().items() if value is not None}
        return None

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        who = "|".join(self._pattern(text, f"w{number}") for number, text in enumerate(self._all("who")))
        thing = "|".join(self._pattern(text, f"t{number}") for number, text in enumerate(self._all("thing")))
        patterns = []
        for frame in (frame for frames in self.frames.values() for frame in frames):
            escaped = self._pattern(frame, "f").replace("<thing>", f"(?:{thing})")
            escaped = re.sub(r"<who>\\ ", lambda _: f"(?:(?:{who}) )?", escaped)
            escaped = re.sub(r"\\ <who>", lambda _: f"(?: (?:{who}))?", escaped)
            patterns.append(re.compile(escaped, re.IGNORECASE))
        return patterns

    def _all(self, part: str) -> list[str]:
        return list(dict.fromkeys(text for route in self.routes.values() for text in getattr(route, part)))

    def _pattern(self, text: str, suffix: str) -> str:
        """A regular expression for a text; slots become groups whose suffix keeps their names apart."""
        pieces = _PLACE.split(text)
        for index in range(0, len(pieces), 2):
            pieces[index] = re.escape(pieces[index])
        for index in range(1, len(pieces), 2):
            name = pieces[index]
            pieces[index] = f"<{name}>" if name in ("who", "thing") else f"(?P<{name}__{suffix}>(?-i:{self.slots[name].strip('^$')}))"
        return "".join(pieces)


def one_of(*words: str) -> str:
    """A regular expression for one of some words, the longest that fits."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))
