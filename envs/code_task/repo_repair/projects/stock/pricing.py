"""What an order costs."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.stock.items import StockError
from agent_gym.envs.code_task.repo_repair.projects.stock.ledger import Ledger

STEPS = ((100, 15), (50, 10), (10, 5))
SHIPPING_CENTS = 490
FREE_FROM_CENTS = 5000


def rebate(count: int) -> int:
    """Percent off for so many of one item."""
    for least, percent in STEPS:
        if count >= least:
            return percent
    return 0


def line_cents(cents: int, count: int) -> int:
    """The price of so many, rounded half up."""
    if count <= 0:
        raise StockError("count")
    full = cents * count
    return (full * (100 - rebate(count)) + 50) // 100


def order(ledger: Ledger, wanted: dict[str, int], voucher: int = 0) -> dict[str, int]:
    """The prices of an order in cents: goods, shipping, tax that is contained, total."""
    goods = sum(line_cents(ledger.items[ledger.key(sku)].cents, count) for sku, count in wanted.items())
    goods = max(goods - voucher, 0)
    shipping = 0 if goods >= FREE_FROM_CENTS or not wanted else SHIPPING_CENTS
    total = goods + shipping
    tax = (total * 19 + 59) // 119
    return {"goods": goods, "shipping": shipping, "tax": tax, "total": total}
