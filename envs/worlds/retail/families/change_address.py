"""Change address: a pending order is to go to another of the addresses that its owner has saved."""

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
        "{who} Please change the address of {thing} to {street} in {town}.",
        "{who} I want to change the address of {thing}; it should be {street}, {town}.",
        "Could you change the delivery address of {thing} to {street} in {town}? {who}",
        "Change the address for {thing}: {street}, {town}. {who}",
        "{who} I need the address of {thing} to change to {street} in {town}.",
        "{who} Can the address of {thing} change? It must go to {street}, {town}.",
        "I would like to change the address on {thing} to {street} in {town}. {who}",
        "{who} Kindly change where {thing} goes: the new address is {street}, {town}.",
    ),
    "held_out": (
        "{who} I moved, so change the address of {thing} to {street} in {town}, please.",
        "The address of {thing} has to change to {street}, {town}. {who}",
        "{who} My request is an address change for {thing}, to {street} in {town}.",
    ),
    "synonyms": (
        "{who} Please send {thing} to {street} in {town} instead.",
        "Redirect {thing} to {street}, {town}. {who}",
        "{who} Could you have {thing} delivered to {street} in {town}?",
        "{who} I want {thing} rerouted to {street}, {town}.",
    ),
}


def _ask(world: World, rng: np.random.Generator, target: Target) -> Ask:
    saved = "SELECT * FROM addresses WHERE user_id = ? AND address_id != ? ORDER BY address_id"
    address = pick(rng, world.query(saved, (target.user_id, world.get("orders", target.order_id)["address_id"])))
    named = "SELECT address_id FROM addresses WHERE user_id = ? AND street = ? AND city = ?"
    the_only(world.query(named, (target.user_id, address["street"], address["city"])), f"{address['street']}, {address['city']}")
    where = {"order_id": target.order_id}
    return Ask(
        slots={"street": address["street"], "town": address["city"]},
        rows=[{"table": "orders", "where": where, "values": {"address_id": address["address_id"]}}],
        allowed=[{"table": "orders", "where": where, "columns": ["address_id"]}],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    order, closing = yield from look_up("change_address", slots)
    if closing:
        yield closing
        return
    user = yield ToolCall("get_user", {"user_id": order["user_id"]})
    address = next(
        (one for one in user["addresses"] if (one["street"], one["city"]) == (slots["street"], slots["town"])), {"address_id": ""}
    )
    yield ToolCall("change_address", {"order_id": order["order_id"], "address_id": address["address_id"]})
    yield ToolCall("finish")


REQUEST = OrderErrand(
    name="change_address",
    book=phrasebook(
        _FRAMES,
        by_id=("order {order_id}", "my order {order_id}"),
        by_product=("the order with the {product}", "my {product} order", "the order of the {product}"),
    ),
    ask=_ask,
    oracle=_oracle,
    harmless=("final_sale", "gift_card", "engraved"),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    target = any_target(world, rng)
    prepare(world, "change_address", target)
    add_near_miss(world, rng, REQUEST, target)
    return compose(world, rng, split, REQUEST, pick(rng, ("id", "email", "zip")), target)


FAMILY = Family(name="change_address", draft=_draft, capabilities=("form",))
