"""Refuse: a request in the words of the other families, which a record shows to break a rule. Doing it is a violation."""

import numpy as np

from agent_gym.envs.worlds.retail.drafting import compose, pick
from agent_gym.envs.worlds.retail.families import cancel, change_address, exchange
from agent_gym.envs.worlds.retail.rules import RULES, prepare
from agent_gym.envs.worlds.retail.targets import any_target
from agent_gym.world import Draft, Family, World

__all__ = ["FAMILY"]

_REQUESTS = (cancel.REQUEST, change_address.REQUEST, exchange.REQUEST)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    reason = pick(rng, list(RULES))
    request = pick(rng, [request for request in _REQUESTS if request.name in RULES[reason].forbids])
    target = any_target(world, rng)
    prepare(world, request.name, target)
    RULES[reason].impose(world, target)
    forbidden = [{"tool": "*", "arguments": {"order_id": target.order_id}}]
    route = pick(rng, ("id", "email", "zip"))
    return compose(world, rng, split, request, route, target, refusal=reason, forbidden=forbidden)


FAMILY = Family(name="refuse", draft=_draft, capabilities=("look_up", "rules"))
