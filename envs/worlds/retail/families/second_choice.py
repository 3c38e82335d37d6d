"""Second choice: an exchange for one variant, or else another; somebody may take the last one after it was looked at."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Ask, OrderErrand, compose
from agent_gym.envs.worlds.retail.generate import DAY, START
from agent_gym.envs.worlds.retail.routes import look_up, phrasebook
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import Target, any_target
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please exchange {thing} for the {colour} {style} one, or if there is too little of it for the {colour2} {style2} one.",
        "{who} I want to exchange {thing}: first choice {colour} {style}, second choice {colour2} {style2}.",
        "Could you exchange {thing} for {colour} and {style}? If that is gone, for {colour2} and {style2}. {who}",
        "Exchange {thing} for {colour}, {style}; if that cannot be had for {colour2}, {style2}. {who}",
        "{who} I need to exchange {thing}. I want the {colour} one, {style}; if it is gone the {colour2} one, {style2}.",
        "{who} Can you exchange {thing} for a {colour} {style} one, or else a {colour2} {style2} one?",
    ),
    "held_out": (
        "{who} It would help me if you exchange {thing} for the {colour} {style} one, or failing that the {colour2} {style2} one.",
        "My wish is to exchange {thing}: {colour} {style}, and only if that is gone {colour2} {style2}. {who}",
        "{who} Would an exchange of {thing} be possible? I would take {colour} {style}, else {colour2} {style2}.",
    ),
    "synonyms": (
        "{who} Swap {thing} for the {colour} {style} one, or the {colour2} {style2} one should it be sold out.",
        "Replace {thing} with {colour}, {style}; plan B is {colour2}, {style2}. {who}",
        "{who} Trade {thing} in for {colour} {style}. Sold out? Then {colour2} {style2}.",
    ),
}
_SAME = (
    "SELECT items.*, orders.user_id, stock FROM items JOIN orders USING (order_id) JOIN variants USING (variant_id)"
    " WHERE product_id = ? AND user_id != ? ORDER BY item_id"
)


def _ask(world: World, rng: np.random.Generator, target: Target) -> Ask:
    item = world.get("items", target.item_id)
    quantity: int = item["quantity"]
    others = "SELECT * FROM variants WHERE product_id = ? AND variant_id != ? ORDER BY variant_id"
    variants = world.query(others, (target.product_id, item["variant_id"]))
    first, second = (variants[index] for index in rng.permutation(len(variants))[:2].tolist())
    rivals = [row for row in world.query(_SAME, (target.product_id, target.user_id)) if row["variant_id"] != first["variant_id"]]
    rival = pick(rng, rivals) if rivals and rng.integers(3) else None
    # Just enough for one of the two, so that whoever comes second is too late.
    world.update("variants", first["variant_id"], stock=max(quantity, rival["quantity"] if rival else 0))
    world.update("variants", second["variant_id"], stock=max(quantity, second["stock"]))
    new = second if rival else first
    taken = {"variant_id": new["variant_id"], "price_cents": new["price_cents"], "state": "exchanged"}
    stocks = [item["variant_id"], new["variant_id"]]
    allowed: list[dict[str, Any]] = [
        {"table": "items", "where": {"item_id": target.item_id}, "columns": list(taken)},
        {"table": "payments", "where": {"order_id": target.order_id}, "new": True},
    ]
    if rival:
        world.update("orders", rival["order_id"], status="delivered", delivered_at=START - DAY)
        allowed += [
            {"table": "items", "where": {"item_id": rival["item_id"]}, "columns": list(taken)},
            {"table": "payments", "where": {"order_id": rival["order_id"]}, "new": True},
        ]
        stocks += [rival["variant_id"], first["variant_id"]]
    allowed += [{"table": "variants", "where": {"variant_id": key}, "columns": ["stock"]} for key in stocks]
    slots = {"colour": first["colour"], "style": first["style"], "colour2": second["colour"], "style2": second["style"]}
    product: dict[str, Any] = {"tool": "get_product", "arguments": {"product_id": target.product_id}}
    event = {**{name: rival[name] for name in ("order_id", "item_id")}, "variant_id": first["variant_id"]} if rival else {}
    return Ask(
        slots=slots,
        rows=[{"table": "items", "where": {"item_id": target.item_id}, "values": taken}],
        allowed=allowed,
        reads=[product],
        events=[{"after": product, "operation": "exchange_item", "arguments": event}] if rival else [],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    order, closing = yield from look_up("exchange", slots)
    if closing:
        yield closing
        return
    item = next((one for one in order["items"] if one["product"] == slots["product"]), {"item_id": "", "product_id": ""})
    product = yield ToolCall("get_product", {"product_id": item["product_id"]})
    for wanted in ((slots["colour"], slots["style"]), (slots["colour2"], slots["style2"])):
        variant = next((one for one in product["variants"] if (one["colour"], one["style"]) == wanted), {"variant_id": ""})
        arguments = {"order_id": order["order_id"], "item_id": item["item_id"], "variant_id": variant["variant_id"]}
        if "refused" not in (yield ToolCall("exchange_item", arguments)):
            break
    yield ToolCall("finish")


REQUEST = OrderErrand(
    name="exchange_or",
    book=phrasebook(
        _FRAMES,
        by_id=("the {product} in order {order_id}", "the {product} of order {order_id}"),
        by_product=("my {product}", "the {product} I ordered", "the {product} from my order"),
    ),
    ask=_ask,
    oracle=_oracle,
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    target = any_target(world, rng)
    prepare(world, "exchange", target)
    world.update("items", target.item_id, finish="plain")
    draft = compose(world, rng, split, REQUEST, pick(rng, ("id", "email", "zip")), target)
    return replace(draft, steps=draft.steps + len(draft.events))


FAMILY = Family(name="second_choice", draft=_draft, capabilities=("conflict", "multi_hop"))
