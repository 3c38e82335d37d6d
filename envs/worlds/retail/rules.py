"""The rules of ``policy.md`` as values: which requests each forbids, how a record shows it, how a task's own rows bring it about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_gym.envs.worlds.retail.generate import DAY, START
from agent_gym.envs.worlds.retail.targets import Target
from agent_gym.world import World

__all__ = ["RULES", "STATUS", "Rule", "broken_rule", "prepare"]

Record = Mapping[str, Any]

STATUS = {"cancel": "pending", "change_address": "pending", "change_payment": "pending", "exchange": "delivered", "return": "delivered"}
"""The status in which an order must be, by request."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        forbids: The requests it forbids.
        record: The record that shows it: ``user`` or ``order``.
        shows: Whether a record (and the product that the request names) shows it.
        impose: Makes it hold for a target.
    """

    forbids: frozenset[str]
    record: str
    shows: Callable[[Record, str], bool]
    impose: Callable[[World, Target], None]


def _engraved(order: Record, product: str) -> bool:
    return any(item["product"] == product and item["finish"] == "engraved" for item in order["items"])


RULES = {
    "on_hold": Rule(
        frozenset({*STATUS, "close", "move", "cart"}),
        "user",
        lambda user, _: bool(user["standing"] == "on hold"),
        lambda world, target: world.update("users", target.user_id, standing="on hold"),
    ),
    "final_sale": Rule(
        frozenset({"cancel", "exchange", "return"}),
        "order",
        lambda order, _: bool(order["terms"] == "final sale"),
        lambda world, target: world.update("orders", target.order_id, terms="final sale"),
    ),
    "gift_card": Rule(
        frozenset({"cancel"}),
        "order",
        lambda order, _: bool(order["paid_with"] == "gift card"),
        lambda world, target: world.update("payment_methods", target.payment_id, kind="giftcard"),
    ),
    "freight": Rule(
        frozenset({"change_address"}),
        "order",
        lambda order, _: bool(order["carrier"] == "freight"),
        lambda world, target: world.update("orders", target.order_id, carrier="freight"),
    ),
    "engraved": Rule(
        frozenset({"exchange"}),  # what of an order is returned leaves out what is engraved
        "order",
        _engraved,
        lambda world, target: world.update("items", target.item_id, finish="engraved"),
    ),
    "window_closed": Rule(
        frozenset({"exchange", "return"}),
        "order",
        lambda order, _: bool(order["exchange_window"] == "closed"),
        lambda world, target: world.update("orders", target.order_id, placed_at=START - 48 * DAY, delivered_at=START - 44 * DAY),
    ),
}
"""The rules by the reason that a refusal gives."""


def broken_rule(request: str, product: str, *, user: Record | None = None, order: Record | None = None) -> str:
    """The reason for which a request must be refused as far as these records show, or nothing."""
    records = {"user": user, "order": order}
    for reason, rule in RULES.items():
        record = records[rule.record]
        if record is not None and request in rule.forbids and rule.shows(record, product):
            return reason
    return ""


def prepare(world: World, request: str, target: Target) -> None:
    """Brings an order into the state in which a request can be carried out and no rule forbids it."""
    delivered = STATUS[request] == "delivered"
    order = world.get("orders", target.order_id)
    world.update(
        "orders",
        target.order_id,
        status=STATUS[request],
        terms="regular" if order["terms"] == "final sale" and request != "change_address" else order["terms"],
        carrier="parcel" if order["carrier"] == "freight" and request == "change_address" else order["carrier"],
        placed_at=max(order["placed_at"], START - 9 * DAY),
        delivered_at=START - 3 * DAY if delivered else None,
    )
