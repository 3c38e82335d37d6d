"""Draws the rows of a base database: the same rows for the same seed, in any process."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from agent_gym.core.seeding import derive
from agent_gym.world.schema import Ids

__all__ = ["Rows", "mailbox", "pick"]

T = TypeVar("T")

_BLOCK = 1_024


class Rows:
    """The rows while they are drawn. Draws are taken from blocks of uniform numbers, which is much faster than one by one.

    Args:
        ids: Where ids come from.
        *path: What the draws are derived from: the world's name and the seed.

    Attributes:
        tables: The rows by table, in the order in which the tables came up: those that others refer to must come first.
        id: Gives the next id behind a prefix.
    """

    def __init__(self, ids: Ids, *path: Any) -> None:
        self.id = ids.new
        self.tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._draws = _uniform(derive(*path))

    def add(self, table: str, **columns: Any) -> dict[str, Any]:
        """Adds a row, and gives it."""
        self.tables[table].append(columns)
        return columns

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(next(self._draws) * (high - low + 1))

    def pick(self, things: Sequence[T]) -> T:
        """One of several, each as likely as the others."""
        return things[int(next(self._draws) * len(things))]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All of them, in any order."""
        return [thing for _, _, thing in sorted((next(self._draws), index, thing) for index, thing in enumerate(things))]


def pick(rng: np.random.Generator, things: Sequence[Any]) -> Any:
    """One of several, each as likely as the others."""
    return things[int(rng.integers(len(things)))]


def mailbox(name: str) -> str:
    """The name in plain lower-case letters and dots: Zoë O'Brien is zoe.obrien."""
    folded = unicodedata.normalize("NFKD", name.lower().replace("ø", "o").replace("ß", "ss").replace("æ", "ae"))
    return "".join(letter for letter in folded if letter.isascii() and (letter.isalpha() or letter == " ")).replace(" ", ".")


def _uniform(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(_BLOCK).tolist()
