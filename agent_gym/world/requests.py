"""What people of a world can ask for: the words of each request, and the script that carries it out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from agent_gym.world.scripts import Script, as_far_as_it_goes
from agent_gym.world.wording import Phrasebook

__all__ = ["Request", "Requests"]

_REMEMBERED = 4_096
"""Goals that were read and need not be read again."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One kind of request.

    Attributes:
        name: Its name.
        book: Its wordings.
        oracle: The script that solves it, from the slots that were read out of the goal.
    """

    name: str
    book: Phrasebook
    oracle: Callable[[Mapping[str, str]], Script]


R = TypeVar("R", bound=Request)


class Requests(Generic[R]):
    """All kinds of requests of a world.

    Args:
        requests: Them; of two that fit a goal's words the first counts.
    """

    def __init__(self, requests: Iterable[R]) -> None:
        self._requests = tuple(requests)
        self.read = lru_cache(maxsize=_REMEMBERED)(self._read)
        """The request that a goal's words make, and its slots; None for words that no phrasebook has."""

    def oracle(self, goal: str) -> Script | None:
        """The script that solves a goal; None for words that no phrasebook has."""
        found = self.read(goal)
        return None if found is None else as_far_as_it_goes(found[0].oracle(found[1]))

    def _read(self, goal: str) -> tuple[R, dict[str, str]] | None:
        return next(((request, slots) for request in self._requests if (slots := request.book.read(goal)) is not None), None)
