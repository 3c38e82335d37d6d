"""Refuse: a request in the words of the other families, which a record shows to break a rule. Doing it is a violation."""

import numpy as np

from agent_gym.envs.worlds.retail.drafting import add_near_miss, compose
from agent_gym.envs.worlds.retail.families import cancel, change_address, exchange
from agent_gym.envs.worlds.retail.rules import RULES, prepare
from agent_gym.envs.worlds.retail.targets import any_target
from agent_gym.world import Draft, Family, World, pick

__all__ = ["FAMILY"]

_REQUESTS = (cancel.REQUEST, change_address.REQUEST, exchange.REQUEST)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    request = pick(rng, _REQUESTS)
    reason = pick(rng, [reason for reason, rule in RULES.items() if request.name in rule.forbids])
    target = any_target(world, rng)
    prepare(world, request.name, target)
    add_near_miss(world, rng, request, target)
    RULES[reason].impose(world, target)
    forbidden = [{"tool": "*", "arguments": {"order_id": target.order_id}}]
    route = pick(rng, ("id", "email", "zip"))
    return compose(world, rng, split, request, route, target, refusal=reason, forbidden=forbidden)


FAMILY = Family(name="refuse", draft=_draft, capabilities=("policy", "refuse"))
