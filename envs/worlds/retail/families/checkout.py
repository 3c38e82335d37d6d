"""Checkout: what is in the cart is to be ordered, to an address and by a method that the customer names."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Errand
from agent_gym.envs.worlds.retail.generate import DAY, START
from agent_gym.envs.worlds.retail.money import lines_of
from agent_gym.envs.worlds.retail.queries import place
from agent_gym.envs.worlds.retail.routes import find_account, phrasebook
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please order what is in my cart: to {street} in {town}, paid by {method}.",
        "{who} I want to order my cart. It goes to {street}, {town}, and I pay by {method}.",
        "Order all that is in my cart, by {method}, to {street} in {town}. {who}",
        "Could you order my cart and send it to {street} in {town}? I pay by {method}. {who}",
    ),
}


def _oracle(slots: Mapping[str, str]) -> Script:
    user, closing = yield from find_account("cart", slots)
    if closing:
        yield closing
        return
    yield ToolCall("get_cart", {"user_id": user["user_id"]})
    wanted = f"{slots['street']}, {slots['town']}"
    address_id = next((one["address_id"] for one in user["addresses"] if place(one) == wanted), "")
    payment_id = next((one["payment_id"] for one in user["payment_methods"] if one["kind"] == slots["method"]), "")
    yield ToolCall("place_order", {"user_id": user["user_id"], "address_id": address_id, "payment_id": payment_id})
    yield ToolCall("finish")


REQUEST = Errand(name="checkout", book=phrasebook(_FRAMES), oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    user_id = pick(rng, world.query("SELECT DISTINCT user_id FROM carts ORDER BY user_id"))["user_id"]
    waiting = "SELECT order_id FROM orders WHERE user_id = ? AND status = 'pending' ORDER BY order_id"
    for order in world.query(waiting, (user_id,)):  # so that a pending order is the new one
        world.update("orders", order["order_id"], status="delivered", delivered_at=START - DAY)
    address = pick(rng, world.query("SELECT * FROM addresses WHERE user_id = ? ORDER BY address_id", (user_id,)))
    method = pick(rng, world.query("SELECT * FROM payment_methods WHERE user_id = ? ORDER BY payment_id", (user_id,)))
    lines = lines_of(world, user_id)
    placed = {"user_id": user_id, "status": "pending"}
    to = {"address_id": address["address_id"], "payment_id": method["payment_id"]}
    return REQUEST.draft(
        world,
        rng,
        split,
        user_id,
        {"street": address["street"], "town": address["city"], "method": method["kind"]},
        steps=3,
        reads=[{"tool": "get_cart", "arguments": {"user_id": user_id}}],
        rows=[{"table": "orders", "where": placed, "values": to}],
        allowed=[
            {"table": "orders", "where": {**placed, **to}, "new": True},
            *({"table": "items", "where": {"variant_id": line["variant_id"], "quantity": line["quantity"]}, "new": True} for line in lines),
            *({"table": "variants", "where": {"variant_id": line["variant_id"]}, "columns": ["stock"]} for line in lines),
            *({"table": "carts", "where": {"line_id": line["line_id"]}, "gone": True} for line in lines),
            {"table": "payments", "where": {"payment_id": method["payment_id"], "kind": "charge"}, "new": True},
        ],
        distractors=2,
        facts=3,
    )


def _unread(_: Sequence[Mapping[str, Any]]) -> ToolCall:
    """Says that it is ordered."""
    return ToolCall("finish")


FAMILY = Family(name="checkout", draft=_draft, capabilities=("form",), transfer=True, cheats={"orders nothing": _unread})
