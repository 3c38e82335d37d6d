"""The store."""

from __future__ import annotations

from typing import Any

from agent_gym.envs.code_task.repo_repair.projects.kv.errors import WrongKind
from agent_gym.envs.code_task.repo_repair.projects.kv.layers import GONE, Layers


class Store:
    """Keys with values, and a clock that is told how late it is."""

    def __init__(self, now: int = 0) -> None:
        self.layers = Layers()
        self.now = now

    def tick(self, seconds: int) -> int:
        """Lets time pass; gives the time."""
        self.now += max(seconds, 0)
        return self.now

    def set(self, key: str, value: Any, ttl: int = 0) -> None:
        """Sets a value; with a time to live it is gone after so many seconds."""
        self.layers.put(key, (value, self.now + ttl if ttl > 0 else 0))

    def get(self, key: str, default: Any = None) -> Any:
        """A value, or the default."""
        found = self.layers.get(key)
        if found is GONE or self.expired(found):
            return default
        return found[0]

    def expired(self, entry: Any) -> bool:
        """Whether an entry's time is over."""
        until: int = entry[1]
        return 0 < until <= self.now

    def delete(self, key: str) -> bool:
        """Removes a key; tells whether it was there."""
        if key not in self.names():
            return False
        self.layers.put(key, GONE)
        return True

    def names(self, prefix: str = "") -> list[str]:
        """The keys that begin so."""
        return [key for key in self.layers.names() if key.startswith(prefix) and not self.expired(self.layers.get(key))]

    def add(self, key: str, number: int = 1) -> int:
        """Adds to a number, which begins at 0; its time to live stays."""
        found = self.layers.get(key)
        value, until = (0, 0) if found is GONE or self.expired(found) else found
        if not isinstance(value, int):
            raise WrongKind(key)
        self.layers.put(key, (value + number, until))
        return value + number

    def ttl(self, key: str) -> int:
        """The seconds that a key has left; -1 for ever, -2 if it is not there."""
        found = self.layers.get(key)
        if found is GONE or self.expired(found):
            return -2
        return found[1] - self.now if found[1] else -1

    def begin(self) -> int:
        """Begins a transaction; gives how many are open."""
        return self.layers.begin()

    def commit(self) -> int:
        """Keeps the changes of the innermost transaction."""
        return self.layers.commit()

    def rollback(self) -> int:
        """Undoes them."""
        return self.layers.rollback()
