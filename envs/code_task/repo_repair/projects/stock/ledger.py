"""Who took what: movements, and what they leave."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.stock.items import Item, StockError, normal


class Ledger:
    """The movements of a store, and the number of each item."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.counts: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.moves: list[tuple[str, str, int]] = []

    def add(self, sku: str, name: str, cents: int, least: int = 0) -> str:
        """A new item, of which there is none yet."""
        item = Item(sku, name, cents, least)
        if item.sku in self.items:
            raise StockError(f"twice {item.sku}")
        self.items[item.sku] = item
        self.counts[item.sku] = 0
        self.held[item.sku] = 0
        return item.sku

    def free(self, sku: str) -> int:
        """How many of an item nobody has reserved."""
        key = self.key(sku)
        return self.counts[key] - self.held[key]

    def receive(self, sku: str, count: int) -> int:
        """More of an item; gives how many there are now."""
        key = self.key(sku)
        if count <= 0:
            raise StockError("count")
        self.counts[key] += count
        self.moves.append(("in", key, count))
        return self.counts[key]

    def reserve(self, sku: str, count: int) -> int:
        """Sets some aside, as many as there are at most; gives how many that was."""
        key = self.key(sku)
        taken = min(count, self.free(key))
        self.held[key] += taken
        return taken

    def ship(self, sku: str, count: int, reserved: bool = False) -> int:
        """Fewer of an item: of those set aside, or of the others. Gives how many are left."""
        key = self.key(sku)
        most = self.held[key] if reserved else self.free(key)
        if count <= 0 or count > most:
            raise StockError("count")
        self.counts[key] -= count
        if reserved:
            self.held[key] -= count
        self.moves.append(("out", key, count))
        return self.counts[key]

    def key(self, sku: str) -> str:
        """The number of a known item."""
        key = normal(sku)
        if key not in self.items:
            raise StockError(f"unknown {key}")
        return key

    def history(self, sku: str) -> list[int]:
        """How many there were after each movement of an item."""
        key = self.key(sku)
        total = 0
        seen = []
        for kind, moved, count in self.moves:
            if moved == key:
                total += count if kind == "in" else -count
                seen.append(total)
        return seen
