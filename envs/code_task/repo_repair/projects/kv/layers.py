"""Changes on top of each other."""

from __future__ import annotations

from typing import Any

from agent_gym.envs.code_task.repo_repair.projects.kv.errors import NoTransaction

GONE = object()


class Layers:
    """Values by key, where the uppermost layer that knows a key counts."""

    def __init__(self) -> None:
        self.stack: list[dict[str, Any]] = [{}]

    def get(self, key: str) -> Any:
        """The value of a key, or `GONE`."""
        for layer in reversed(self.stack):
            if key in layer:
                return layer[key]
        return GONE

    def put(self, key: str, value: Any) -> None:
        """Sets it in the uppermost layer; `GONE` removes it."""
        self.stack[-1][key] = value
        if len(self.stack) == 1 and value is GONE:
            del self.stack[0][key]

    def names(self) -> list[str]:
        """The keys that have a value, sorted."""
        known = {key for layer in self.stack for key in layer}
        return sorted(key for key in known if self.get(key) is not GONE)

    def begin(self) -> int:
        """One more layer; gives how many transactions are open."""
        self.stack.append({})
        return len(self.stack) - 1

    def commit(self) -> int:
        """Puts the uppermost layer into the one below; gives how many keys it changed."""
        if len(self.stack) == 1:
            raise NoTransaction("commit")
        changes = self.stack.pop()
        for key, value in changes.items():
            self.put(key, value)
        return len(changes)

    def rollback(self) -> int:
        """Forgets the uppermost layer; gives how many keys it had changed."""
        if len(self.stack) == 1:
            raise NoTransaction("rollback")
        return len(self.stack.pop())
