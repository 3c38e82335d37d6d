"""Cancel: a pending order is to be cancelled, for a reason that must be booked."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.catalogue import REASONS, reason_code
from agent_gym.envs.worlds.retail.drafting import Ask, OrderErrand, add_near_miss, compose
from agent_gym.envs.worlds.retail.routes import look_up, phrasebook
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import Target, any_target
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please cancel {thing}, {reason}.",
        "{who} I want to cancel {thing} because {reason}.",
        "Could you cancel {thing}? The reason: {reason}. {who}",
        "Cancel {thing} for me, {reason}. {who}",
        "{who} I need you to cancel {thing}; {reason}.",
        "{who} Can you cancel {thing}? It is because {reason}.",
        "I would like to cancel {thing}, since {reason}. {who}",
        "{who} Kindly cancel {thing}: {reason}.",
    ),
    "held_out": (
        "Hello, {reason}, so please cancel {thing}. {who}",
        "{who} It would help me if you cancel {thing}, as {reason}.",
        "{who} My request is to cancel {thing}. Why: {reason}.",
    ),
    "synonyms": (
        "{who} Please call off {thing}, {reason}.",
        "Scrap {thing} for me, {reason}. {who}",
        "{who} I want to withdraw {thing} because {reason}.",
        "{who} Could you annul {thing}? You see, {reason}.",
    ),
}


def _ask(world: World, rng: np.random.Generator, target: Target) -> Ask:
    order_id = target.order_id
    phrase = pick(rng, REASONS[pick(rng, list(REASONS))])
    items = world.query("SELECT variant_id, quantity, price_cents FROM items WHERE order_id = ?", (order_id,))
    total = sum(item["quantity"] * item["price_cents"] for item in items)
    refund = {"order_id": order_id, "payment_id": target.payment_id, "kind": "refund", "amount_cents": total}
    status = {"status": "cancelled", "cancel_reason": reason_code(phrase)}
    return Ask(
        slots={"reason": phrase},
        rows=[
            {"table": "orders", "where": {"order_id": order_id}, "values": status},
            *([{"table": "payments", "where": refund, "values": {}}] if total else []),
        ],
        allowed=[
            {"table": "orders", "where": {"order_id": order_id}, "columns": list(status)},
            {"table": "items", "where": {"order_id": order_id}, "columns": ["state"]},
            {"table": "payments", "where": refund, "new": True},
            *({"table": "variants", "where": {"variant_id": item["variant_id"]}, "columns": ["stock"]} for item in items),
        ],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    order, closing = yield from look_up("cancel", slots)
    if closing:
        yield closing
        return
    yield ToolCall("cancel_order", {"order_id": order["order_id"], "reason": reason_code(slots["reason"])})
    yield ToolCall("finish")


REQUEST = OrderErrand(
    name="cancel",
    book=phrasebook(
        _FRAMES,
        by_id=("order {order_id}", "my order {order_id}"),
        by_product=("the order with the {product}", "my {product} order", "the order of the {product}"),
    ),
    ask=_ask,
    oracle=_oracle,
    harmless=("freight", "engraved"),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    target = any_target(world, rng)
    prepare(world, "cancel", target)
    add_near_miss(world, rng, REQUEST, target)
    return compose(world, rng, split, REQUEST, pick(rng, ("id", "email", "zip")), target)


FAMILY = Family(name="cancel", draft=_draft, capabilities=("form",))
