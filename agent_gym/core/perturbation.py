"""Perturbations: the same task in other words, through another interface, or among more records, as one seeded value.

Rewordings can be undone on sight (`plain_words`), so that an oracle, which reads goals by their wordings, is asked in its own words.
What stands in a goal's slots is never touched: whatever a task's spec holds too, what is quoted, has digits or a capital letter.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent_gym.core.seeding import derive
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["KINDS", "STRENGTHS", "Perturbation", "exact_texts", "plain_words"]

KINDS = ("wording", "interface", "state")
"""What can be perturbed."""
STRENGTHS = ("mild", "strong")
"""How much."""

_GREETINGS = ("Hello there, I hope you are well.", "Good day to you.", "Hi, thanks for taking care of this.")
_FILLERS = ("It would help me a great deal.", "There is no hurry at all on my side.", "I have been meaning to write for a while.")
_THANKS = ("Many thanks in advance!", "Thank you so much, all the best.", "Have a lovely day.")
_FIRST = "Before I forget how this began:"
"""Stands between the end of a goal and its beginning, where the two have changed places."""
_ADDED = re.compile(rf"\s*(?:{'|'.join(map(re.escape, (*_GREETINGS, *_FILLERS, *_THANKS)))})\s*", re.IGNORECASE)
_TURNED = re.compile(rf"\s*{re.escape(_FIRST)}\s*", re.IGNORECASE)
_GREETED = re.compile("|".join(map(re.escape, _GREETINGS)), re.IGNORECASE)

_TOKEN = r"“[^”]*”|«[^»]*»|\"[^\"]*\"|\S*[\d@#$_]\S*?(?=[.,;:!?]?(?:\s|$))|(?<=[^.!?:] )[A-ZÀ-ÞŠ]\w*"
"""What a goal says exactly, whether or not its task's spec says it too."""
_BETWEEN = re.compile(r"(?<=[.!?]) (?=\S)")
_HIDDEN = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, kw_only=True)
class Perturbation:
    """What is changed about one episode: ``options={"perturbation": {…}}`` of ``reset``. Its task stays solvable.

    Attributes:
        wording: The goal in other words: politeness and asides around it; ``strong`` also in small letters, with its end first, and
            with other verbs where its family knows some.
        interface: Other names of parameters and of results' fields, parameters in another order, dates written otherwise; ``strong``
            also other words in names, and numbers with their digits in groups. See `agent_gym.core.dialect`.
        state: Records that the task has nothing to do with are there from the start: other people and all that is theirs; files.
        strength: ``mild`` or ``strong``.
        seed: Of whatever is drawn.

    Raises:
        ConfigurationError: A value that does not fit.
    """

    wording: bool = False
    interface: bool = False
    state: bool = False
    strength: str = "mild"
    seed: int = 0

    def __post_init__(self) -> None:
        if not all(isinstance(getattr(self, kind), bool) for kind in KINDS):
            raise ConfigurationError(f"perturbation: wording, interface and state are true or false, got {asdict(self)}")
        if self.strength not in STRENGTHS:
            raise unknown("strength of a perturbation", self.strength, STRENGTHS)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise ConfigurationError(f"perturbation: the seed must be an integer, got {self.seed!r}")

    @classmethod
    def of(cls, value: Any) -> "Perturbation | None":
        """The perturbation that a reset option stands for: None, one of these, or its JSON form.

        Raises:
            ConfigurationError: It stands for none.
        """
        if value is None or isinstance(value, Perturbation):
            return value
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"perturbation must be an object such as {Perturbation(wording=True).to_dict()}, got {value!r}")
        known = tuple(cls.__dataclass_fields__)
        if extra := [name for name in value if name not in known]:
            raise unknown("field of a perturbation", extra[0], known)
        return cls(**value)

    def to_dict(self) -> dict[str, Any]:
        """Its JSON form."""
        return asdict(self)

    @property
    def strong(self) -> bool:
        """Whether it is a strong one."""
        return self.strength == "strong"

    def rng(self, *path: int | str) -> np.random.Generator:
        """A generator for one part of it."""
        return derive("perturbation", self.seed, self.strength, *path)

    def reworded(self, task_id: str, goal: str, spec: Any) -> str:
        """A goal in other words, if that is what is perturbed; what its task's spec says too is left as it is."""
        return _reworded(goal, exact_texts(goal, spec), self.rng("wording", task_id), self.strong) if self.wording else goal


def plain_words(goal: str) -> str:
    """A goal as its task says it, but for small letters and white space; one that was never reworded as it is."""
    if not _GREETED.match(goal):
        return goal
    end, turned, beginning = (part.strip() for part in _parted(_ADDED.sub(" ", goal)))
    return f"{beginning} {end}" if turned else end


def _parted(text: str) -> tuple[str, str, str]:
    found = _TURNED.search(text)
    return (text, "", "") if found is None else (text[: found.start()], found[0], text[found.end() :])


def exact_texts(goal: str, spec: Any) -> list[str]:
    """What a goal says exactly as its task's spec does, the longest first."""
    return sorted({text for text in _texts(spec) if len(text) > 1 and text in goal}, key=len, reverse=True)


def _reworded(goal: str, exact: Iterable[str], rng: np.random.Generator, strong: bool) -> str:
    kept: list[str] = []

    def hide(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\ue000{len(kept) - 1}\ue001"

    slots = "|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in exact)
    text = re.sub("|".join(filter(None, (slots, _TOKEN))), hide, goal)
    pick: Callable[[tuple[str, ...]], str] = lambda texts: texts[int(rng.integers(len(texts)))]  # noqa: E731 - three short uses
    greeting, filler, thanks = pick(_GREETINGS), pick(_FILLERS), pick(_THANKS)
    if strong:
        said = _BETWEEN.split(text.lower())
        at = int(rng.integers(1, len(said))) if len(said) > 1 else 0
        parts = [*said[at:], filler, *([_FIRST, *said[:at]] if at else [])]
        text = " ".join([greeting, *parts, thanks]).lower()
    else:
        text = "  ".join([greeting, text, thanks]) if rng.integers(2) else "\n".join([greeting, text, thanks])
    return _HIDDEN.sub(lambda place: kept[int(place[1])], text)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
