"""Which order: two orders fit what was said, and only the customer knows which one is meant; or their records tell after all."""

from dataclasses import replace

import numpy as np

from agent_gym.envs.worlds.retail.drafting import compose
from agent_gym.envs.worlds.retail.families import cancel, change_address
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import Target, any_target
from agent_gym.world import Draft, Family, World, pick

__all__ = ["FAMILY"]

_REQUESTS = (cancel.REQUEST, change_address.REQUEST)
_WHICH = {"tool": "ask", "arguments": {"intent": "which"}}
_ANSWERS = ("I mean order {order_id}.", "It is {order_id} that I mean.", "The one with the number {order_id}.")
_OTHERS = (
    "SELECT user_id, order_id, item_id, payment_id, product_id FROM items JOIN orders USING (order_id) JOIN variants USING (variant_id)"
    " WHERE user_id = ? AND order_id != ? ORDER BY item_id"
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    request = pick(rng, _REQUESTS)
    target = any_target(world, rng)
    while not (others := world.query(_OTHERS, (target.user_id, target.order_id))):
        target = any_target(world, rng)
    other = Target(**pick(rng, others))
    prepare(world, request.name, target)
    draft = compose(world, rng, split, request, pick(rng, ("email", "zip", "city")), target)
    # Only now is there the same product in the other order too.
    world.update("items", other.item_id, variant_id=world.get("items", target.item_id)["variant_id"])
    draft = replace(draft, forbidden=[{"tool": "*", "arguments": {"order_id": other.order_id}}], facts=draft.facts + 1)
    if rng.integers(4) == 0:
        world.update("orders", other.order_id, status="shipped", delivered_at=None)
        return draft
    prepare(world, request.name, other)
    answer = {"answer": pick(rng, _ANSWERS).format(order_id=target.order_id), "order_id": target.order_id}
    return replace(
        draft,
        answers={"which": answer},
        look_first=[*draft.look_first, _WHICH],
        milestones=[draft.milestones[0], {"name": "asked", "call": _WHICH}, *draft.milestones[1:]],
        steps=draft.steps + 1,
    )


FAMILY = Family(name="which_order", draft=_draft, capabilities=("clarify_missing_information",))
