"""Who is it: two people share the name and both ordered the product; the goal tells them apart by city, zip or mailbox."""

import numpy as np

from agent_gym.envs.worlds.retail.drafting import add_near_miss, compose
from agent_gym.envs.worlds.retail.families import cancel, change_address
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import twin_targets
from agent_gym.world import Draft, Family, World, pick

__all__ = ["FAMILY"]

_REQUESTS = (cancel.REQUEST, change_address.REQUEST)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    request = pick(rng, _REQUESTS)
    target, twin = twin_targets(world, rng)
    # Both orders are ready for the request, so that nothing but the person tells right from wrong.
    prepare(world, request.name, target)
    prepare(world, request.name, twin)
    add_near_miss(world, rng, request, target)
    orders = world.query("SELECT order_id FROM orders WHERE user_id = ? ORDER BY order_id", (twin.user_id,))
    forbidden = [{"tool": "*", "arguments": order} for order in orders]
    return compose(world, rng, split, request, pick(rng, ("city", "zip", "domain")), target, forbidden=forbidden)


FAMILY = Family(name="who_is_it", draft=_draft, capabilities=("multi_hop",))
