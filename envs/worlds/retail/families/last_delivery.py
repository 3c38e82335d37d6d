"""Last delivery: a fact of the order that was delivered last; which one that is, only all the records together say."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Errand, order_count, reading
from agent_gym.envs.worlds.retail.families.order_facts import field_of
from agent_gym.envs.worlds.retail.generate import DAY, START
from agent_gym.envs.worlds.retail.queries import get_order
from agent_gym.envs.worlds.retail.routes import FACTS, find_account, list_all, phrasebook
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Which of my orders was delivered last? Tell me {fact} of that one.",
        "{who} Please tell me {fact} of the order that was delivered last.",
        "Tell me {fact} of the order of mine that you delivered last. {who}",
        "{who} I want to know about the order that was delivered last: tell me {fact}.",
        "Could you tell me {fact} of my order that was delivered last? {who}",
        "{who} Of all my orders, one was delivered last. Please tell me {fact} of it.",
    ),
    "held_out": (
        "{who} Some orders of mine were delivered; of the last I need you to tell me {fact}.",
        "Please look up which order was delivered last and tell me {fact} of it. {who}",
        "{who} Would you tell me {fact} of whatever was delivered last?",
    ),
    "synonyms": (
        "{who} What is {fact} of the order that reached me most recently?",
        "The newest arrival: let me know {fact} of it. {who}",
        "{who} Find the order that came in most recently and give me {fact}.",
    ),
}
_FEW = (2, 5)


def _oracle(slots: Mapping[str, str]) -> Script:
    user, closing = yield from find_account("tell", slots)
    if closing:
        yield closing
        return
    delivered = [order for order in (yield from list_all(user)) if order["status"] == "delivered"]
    records = []
    for order in delivered or [{"order_id": ""}]:
        records.append((yield ToolCall("get_order", {"order_id": order["order_id"]})))
    last = max(records, key=lambda record: str(record["delivered_on"]))
    yield ToolCall("finish", {"answer": str(last[field_of(slots["fact"])])})


REQUEST = Errand(name="last_delivery", book=phrasebook(_FRAMES), oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    some = "SELECT user_id FROM orders GROUP BY user_id HAVING count(*) BETWEEN ? AND ? ORDER BY user_id"
    user_id = pick(rng, world.query(some, _FEW))["user_id"]
    orders = [row["order_id"] for row in world.query("SELECT order_id FROM orders WHERE user_id = ? ORDER BY order_id", (user_id,))]
    days = rng.permutation(len(orders)).tolist()
    for order_id, day in zip(orders, days, strict=True):
        # Placed in any order, so that only the day of the delivery tells.
        placed = START - (12 + int(rng.integers(9))) * DAY
        world.update("orders", order_id, status="delivered", placed_at=placed, delivered_at=START - (1 + 2 * day) * DAY)
    still = orders[days.index(0)] if len(orders) > 2 and rng.integers(2) else None
    if still:  # the one that would be the last is not delivered yet
        world.update("orders", still, status="shipped", delivered_at=None)
        orders.remove(still)
        days.remove(0)
    last = orders[days.index(min(days))]
    field = pick(rng, tuple(FACTS))
    return REQUEST.draft(
        world,
        rng,
        split,
        user_id,
        {"fact": pick(rng, FACTS[field])},
        steps=len(orders) + 2,
        reads=[reading("order", order_id) for order_id in orders],
        asks=field,
        answer=get_order(world, last)[field],
        distractors=order_count(world, user_id) - 1,
    )


def _first(observations: Sequence[Mapping[str, Any]]) -> ToolCall:
    """Takes a day for an answer without looking at the orders."""
    return ToolCall("finish", {"answer": "courier" if len(observations) % 2 else "parcel"})


FAMILY = Family(name="last_delivery", draft=_draft, capabilities=("lookup", "multi_hop"), cheats={"answers unread": _first})
