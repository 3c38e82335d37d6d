"""Many orders: the order that is meant stands on a later page of a long list."""

import numpy as np

from agent_gym.envs.worlds.retail.drafting import add_near_miss, compose
from agent_gym.envs.worlds.retail.families import cancel, change_address, order_facts
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import Target
from agent_gym.world import Draft, Family, World, pick

__all__ = ["FAMILY"]

_REQUESTS = (cancel.REQUEST, change_address.REQUEST, order_facts.REQUEST)
_PAGE = 5


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    request = pick(rng, _REQUESTS)
    many = "SELECT user_id FROM orders GROUP BY user_id HAVING count(*) > ? ORDER BY user_id"
    user_id = pick(rng, world.query(many, (_PAGE,)))["user_id"]
    later = (
        "SELECT user_id, order_id, item_id, payment_id, product_id FROM items JOIN orders USING (order_id) JOIN variants USING (variant_id)"
        " WHERE user_id = ? ORDER BY order_id, item_id"
    )
    target = Target(**pick(rng, world.query(later, (user_id,))[_PAGE:]))
    if request is not order_facts.REQUEST:
        prepare(world, request.name, target)
        add_near_miss(world, rng, request, target)
    return compose(world, rng, split, request, pick(rng, ("email", "zip", "city", "domain")), target)


FAMILY = Family(name="many_orders", draft=_draft, capabilities=("paging",))
