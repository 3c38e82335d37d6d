"""Move house: every pending order of somebody with many is to go to another address, one after the other."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Errand, order_count
from agent_gym.envs.worlds.retail.generate import DAY, START
from agent_gym.envs.worlds.retail.queries import place
from agent_gym.envs.worlds.retail.routes import find_account, list_all, phrasebook
from agent_gym.world import Draft, Family, Script, World, next_call, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please change the address of all my pending orders to {street} in {town}.",
        "{who} I moved. Change the address of every pending order to {street}, {town}.",
        "All my pending orders must go to {street} in {town}; change the address of each. {who}",
        "Could you change the address of all pending orders of mine to {street}, {town}? {who}",
        "{who} For all that is pending, change the address to {street} in {town}.",
        "{who} Change where all my pending orders go, the address is {street} in {town}.",
    ),
    "held_out": (
        "{who} Since I moved, all pending orders need a change of address, to {street} in {town}.",
        "The address of all my pending orders has to change to {street}, {town}. {who}",
        "{who} Would you change the address, {street} in {town}, for all orders that are pending?",
    ),
    "synonyms": (
        "{who} Redirect everything that has not left yet to {street} in {town}.",
        "Whatever is still open should be delivered to {street}, {town}. {who}",
        "{who} Reroute all open parcels of mine to {street} in {town}.",
    ),
}
_MANY = 8
"""Somebody with at least so many orders."""


def _script(slots: Mapping[str, str], *, most: int = 99) -> Script:
    user, closing = yield from find_account("move", slots)
    if closing:
        yield closing
        return
    pending = [order for order in (yield from list_all(user)) if order["status"] == "pending"]
    wanted = f"{slots['street']}, {slots['town']}"
    address = next((one for one in user["addresses"] if place(one) == wanted), {"address_id": ""})
    for order in pending[:most] or [{"order_id": ""}]:
        found = yield ToolCall("get_order", {"order_id": order["order_id"]})
        if found["ship_to"] != wanted:
            yield ToolCall("change_address", {"order_id": order["order_id"], "address_id": address["address_id"]})
    yield ToolCall("finish")


REQUEST = Errand(name="move", book=phrasebook(_FRAMES), oracle=_script)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    many = "SELECT user_id FROM orders GROUP BY user_id HAVING count(*) >= ? ORDER BY user_id"
    user_id = pick(rng, world.query(many, (_MANY,)))["user_id"]
    addresses = world.query("SELECT * FROM addresses WHERE user_id = ? ORDER BY address_id", (user_id,))
    new = addresses[int(rng.integers(2))]
    old = next(one for one in addresses if one is not new)
    orders = [row["order_id"] for row in world.query("SELECT order_id FROM orders WHERE user_id = ? ORDER BY order_id", (user_id,))]
    pending = sorted(orders[index] for index in rng.permutation(len(orders))[: 6 + int(rng.integers(2))].tolist())
    there = pick(rng, pending) if rng.integers(2) else ""  # goes to the new address already
    for order_id in orders:
        address_id = new["address_id"] if order_id == there else old["address_id"]
        if order_id in pending:
            world.update("orders", order_id, status="pending", carrier="parcel", address_id=address_id, delivered_at=None)
        else:
            world.update("orders", order_id, status="delivered", address_id=address_id, delivered_at=START - DAY)
    pages = -(-order_count(world, user_id) // 5)
    changed = [order_id for order_id in pending if order_id != there]
    return REQUEST.draft(
        world,
        rng,
        split,
        user_id,
        {"street": new["street"], "town": new["city"]},
        steps=pages + len(pending) + len(changed) + 1,
        rows=[{"table": "orders", "where": {"order_id": order_id}, "values": {"address_id": new["address_id"]}} for order_id in pending],
        allowed=[{"table": "orders", "where": {"order_id": order_id}, "columns": ["address_id"]} for order_id in changed],
        distractors=len(orders) - len(changed),
        facts=6,
    )


def _one(observations: Sequence[Mapping[str, Any]]) -> ToolCall:
    """Changes one order and says that it is done."""
    slots = REQUEST.book.read(observations[0]["data"]["goal"])
    return next_call(_script(slots or {}, most=1), observations)


FAMILY = Family(name="move_house", draft=_draft, capabilities=("long_horizon", "paging"), max_steps=50, cheats={"changes one": _one})
