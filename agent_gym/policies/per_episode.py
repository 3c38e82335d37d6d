"""What a policy remembers of each episode it acts in."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["PerEpisode"]

T = TypeVar("T")


class PerEpisode(Generic[T]):
    """Something kept for each episode, made when it is first asked for; the episodes longest unasked for are forgotten.

    Args:
        make: Makes it, given the episode's id.
        limit: How many episodes are kept, at most; above how many ever run at once.
    """

    def __init__(self, make: Callable[[str], T], limit: int = 4_096) -> None:
        self._make, self._limit = make, limit
        self._kept: dict[str, T] = {}

    def __getitem__(self, episode_id: str) -> T:
        kept = self._kept.pop(episode_id) if episode_id in self._kept else self._make(episode_id)
        self._kept[episode_id] = kept
        if len(self._kept) > self._limit:
            del self._kept[next(iter(self._kept))]
        return kept

    def forget(self, episode_ids: Iterable[str]) -> None:
        """Drops what is kept of these episodes."""
        for episode_id in episode_ids:
            self._kept.pop(episode_id, None)
