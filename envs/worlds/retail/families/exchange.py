"""Exchange: an item of a delivered order is to be exchanged for another variant, which has to be looked up first."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Ask, OrderErrand, add_near_miss, compose, the_only
from agent_gym.envs.worlds.retail.routes import look_up, phrasebook
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import Target, any_target
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please exchange {thing} for the {colour} {style} one.",
        "{who} I want to exchange {thing} for a {colour} one, {style}.",
        "Could you exchange {thing} for the {style} one in {colour}? {who}",
        "Exchange {thing} for the {colour} {style} version. {who}",
        "{who} I need to exchange {thing}: {colour} and {style} is what I want.",
        "{who} Can you exchange {thing} for one that is {colour} and {style}?",
        "I would like to exchange {thing} for the {style} {colour} one. {who}",
        "{who} Kindly exchange {thing}, for {colour} and {style}.",
    ),
    "held_out": (
        "{who} Is it possible to exchange {thing} for the {colour} one in {style}?",
        "My wish is to exchange {thing} for {style}, {colour}. {who}",
        "{who} May I exchange {thing} and have the {colour} {style} one?",
    ),
    "synonyms": (
        "{who} Please swap {thing} for the {colour} {style} one.",
        "Replace {thing} with the {style} one in {colour}. {who}",
        "{who} I want to trade {thing} for a {colour} one, {style}.",
        "{who} Could you switch {thing} to {colour} and {style}?",
    ),
}


def _ask(world: World, rng: np.random.Generator, target: Target) -> Ask:
    item = world.get("items", target.item_id)
    old = world.get("variants", item["variant_id"])
    others = "SELECT * FROM variants WHERE product_id = ? AND variant_id != ? ORDER BY variant_id"
    new = pick(rng, world.query(others, (old["product_id"], old["variant_id"])))
    named = "SELECT variant_id FROM variants WHERE product_id = ? AND colour = ? AND style = ?"
    the_only(world.query(named, (old["product_id"], new["colour"], new["style"])), f"{new['colour']} {new['style']}")
    quantity = item["quantity"]
    if new["stock"] < quantity:
        world.update("variants", new["variant_id"], stock=new["stock"] + quantity)
        new = world.get("variants", new["variant_id"])
    difference = quantity * (new["price_cents"] - item["price_cents"])
    booked = {"order_id": target.order_id, "payment_id": target.payment_id, "amount_cents": abs(difference)}
    booked["kind"] = "charge" if difference > 0 else "refund"
    exchanged = {"variant_id": new["variant_id"], "price_cents": new["price_cents"], "state": "exchanged"}
    stocks = {old["variant_id"]: old["stock"] + quantity, new["variant_id"]: new["stock"] - quantity}
    rows = [{"table": "items", "where": {"item_id": target.item_id}, "values": exchanged}]
    rows += [{"table": "variants", "where": {"variant_id": key}, "values": {"stock": stock}} for key, stock in stocks.items()]
    if difference:
        rows.append({"table": "payments", "where": booked, "values": {}})
    return Ask(
        slots={"colour": new["colour"], "style": new["style"]},
        rows=rows,
        allowed=[
            {"table": "items", "where": {"item_id": target.item_id}, "columns": list(exchanged)},
            {"table": "payments", "where": {"order_id": target.order_id}, "new": True},
            *({"table": "variants", "where": {"variant_id": key}, "columns": ["stock"]} for key in stocks),
        ],
        reads=[{"tool": "get_product", "arguments": {"product_id": old["product_id"]}}],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    order, closing = yield from look_up("exchange", slots)
    if closing:
        yield closing
        return
    item = next((one for one in order["items"] if one["product"] == slots["product"]), {"item_id": "", "product_id": ""})
    product = yield ToolCall("get_product", {"product_id": item["product_id"]})
    wanted = (slots["colour"], slots["style"])
    variant = next((one for one in product["variants"] if (one["colour"], one["style"]) == wanted), {"variant_id": ""})
    arguments = {"order_id": order["order_id"], "item_id": item["item_id"], "variant_id": variant["variant_id"]}
    yield ToolCall("exchange_item", arguments)
    yield ToolCall("finish")


REQUEST = OrderErrand(
    name="exchange",
    book=phrasebook(
        _FRAMES,
        by_id=("the {product} in order {order_id}", "the {product} of order {order_id}"),
        by_product=("my {product}", "the {product} I ordered", "the {product} from my order"),
    ),
    ask=_ask,
    oracle=_oracle,
    harmless=("gift_card", "freight"),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    target = any_target(world, rng)
    prepare(world, "exchange", target)
    add_near_miss(world, rng, REQUEST, target)
    return compose(world, rng, split, REQUEST, pick(rng, ("id", "email", "zip")), target)


FAMILY = Family(name="exchange", draft=_draft, capabilities=("form", "multi_hop"))
