"""What a task is about: an item, the order it is in, who owns that."""

from dataclasses import dataclass

import numpy as np

from agent_gym.world import World

__all__ = ["Target", "any_target", "twin_targets"]


@dataclass(frozen=True)
class Target:
    """What a request is about.

    Attributes:
        user_id: Who owns the order.
        order_id: The order.
        item_id: The item that the request names, or the one by whose product the order is named.
        payment_id: The payment method that paid.
        product_id: The item's product.
    """

    user_id: str
    order_id: str
    item_id: str
    payment_id: str
    product_id: str


_SELECT = (
    "SELECT user_id, order_id, item_id, payment_id, product_id FROM items JOIN orders USING (order_id) JOIN variants USING (variant_id)"
)
_ON_ONE_PAGE = (
    "SELECT item_id FROM items JOIN orders USING (order_id)"
    " WHERE user_id IN (SELECT user_id FROM orders GROUP BY user_id HAVING count(*) <= 5) ORDER BY item_id"
)
_TWINS = (
    "SELECT one.user_id, other.user_id AS twin_id FROM users one JOIN users other ON one.name = other.name"
    " WHERE one.user_id != other.user_id ORDER BY one.user_id, other.user_id"
)


def any_target(world: World, rng: np.random.Generator) -> Target:
    """Any item of any order of somebody whose orders fit on one page."""
    items = world.query(_ON_ONE_PAGE)
    item = items[int(rng.integers(len(items)))]["item_id"]
    return Target(**world.query(f"{_SELECT} WHERE item_id = ?", (item,))[0])


def twin_targets(world: World, rng: np.random.Generator) -> tuple[Target, Target]:
    """Two items of one product, ordered by two people of one name."""
    twins = world.query(_TWINS)
    pair = twins[int(rng.integers(len(twins)))]
    sql = f"{_SELECT} WHERE user_id = ? ORDER BY item_id"
    theirs = {row["product_id"]: row for row in world.query(sql, (pair["twin_id"],))}
    shared = [row for row in world.query(sql, (pair["user_id"],)) if row["product_id"] in theirs]
    mine = shared[int(rng.integers(len(shared)))]
    return Target(**mine), Target(**theirs[mine["product_id"]])
