"""What to tell about a stock."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.stock.ledger import Ledger


def money(cents: int) -> str:
    """An amount, such as ``1,234.50``."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole:,}.{rest:02d}"


def value(ledger: Ledger) -> int:
    """What everything is worth, in cents."""
    return sum(ledger.items[sku].cents * count for sku, count in ledger.counts.items())


def to_order(ledger: Ledger) -> list[tuple[str, int]]:
    """Items of which there are too few, and how many are missing; the most urgent first, then by number."""
    missing = [(sku, item.least - ledger.free(sku)) for sku, item in ledger.items.items() if ledger.free(sku) < item.least]
    return sorted(missing, key=lambda row: (-row[1], row[0]))


def top(ledger: Ledger, count: int) -> list[str]:
    """The items of which most were shipped."""
    shipped: dict[str, int] = {}
    for kind, sku, number in ledger.moves:
        if kind == "out":
            shipped[sku] = shipped.get(sku, 0) + number
    return sorted(shipped, key=lambda sku: (-shipped[sku], sku))[:count]


def table(ledger: Ledger) -> str:
    """One line for each item: number, name, count and worth."""
    width = max((len(item.name) for item in ledger.items.values()), default=0)
    lines = []
    for sku in sorted(ledger.items):
        item = ledger.items[sku]
        count = ledger.counts[sku]
        mark = " *" if ledger.free(sku) < item.least else ""
        lines.append(f"{sku} {item.name:<{width}} {count:>5} {money(count * item.cents):>10}{mark}")
    return "\n".join(lines)
