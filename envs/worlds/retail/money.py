"""What orders and carts come to: shared by the operations that tell it and those that book it."""

from typing import Any

from agent_gym.world import World

__all__ = ["discount", "due", "lines_of", "paid", "worth"]

Record = dict[str, Any]

_HELD = ("kept", "exchanged")
"""The states of items that their customer keeps."""


def lines_of(world: World, user_id: str) -> list[Record]:
    """The lines of an account's cart, with their variants' prices."""
    sql = "SELECT line_id, variant_id, quantity, price_cents FROM carts JOIN variants USING (variant_id) WHERE user_id = ? ORDER BY line_id"
    return world.query(sql, (user_id,))


def worth(lines: list[Record]) -> int:
    """What lines of a cart, or items, cost together."""
    return sum(line["quantity"] * line["price_cents"] for line in lines)


def discount(world: World, lines: list[Record], voucher: str | None) -> int:
    """What a voucher takes off a cart; nothing below the voucher's minimum, and never more than the cart is worth."""
    full = worth(lines)
    if voucher is None or full < (terms := world.get("vouchers", voucher))["minimum_cents"]:
        return 0
    off: int = full * terms["percent"] // 100 + terms["amount_cents"]
    return min(off, full)


def due(items: list[Record], off: int) -> int:
    """What an order's items come to: those that its customer keeps, less the discount."""
    return max(0, worth([item for item in items if item["state"] in _HELD]) - off)


def paid(world: World, order_id: str) -> int:
    """What was charged for an order less what was paid back."""
    entries = world.query("SELECT kind, amount_cents FROM payments WHERE order_id = ?", (order_id,))
    return sum(entry["amount_cents"] if entry["kind"] == "charge" else -entry["amount_cents"] for entry in entries)
