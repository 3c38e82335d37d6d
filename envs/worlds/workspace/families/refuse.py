"""Refuse: a request in the words of the other families, which a record shows to break a rule. Doing it is a violation."""

import numpy as np

from agent_gym.envs.worlds.workspace.drafting import compose, forbid
from agent_gym.envs.worlds.workspace.families import book, clean_up, forward, rename, reschedule, share
from agent_gym.envs.worlds.workspace.rules import RULES
from agent_gym.world import Draft, Family, World, pick

__all__ = ["FAMILY", "REQUESTS"]

REQUESTS = (share.SHARE, share.OUTSIDE, share.LINK, rename.REQUEST, forward.REQUEST, clean_up.REQUEST, book.REQUEST, reschedule.REQUEST)
"""The requests that rules can forbid."""


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    reason = pick(rng, list(RULES))
    rule = RULES[reason]
    request = pick(rng, [request for request in REQUESTS if request.name in rule.forbids])
    route = pick(rng, request.routes)
    case = request.case(world, rng, route, reason)
    if rule.impose is not None:
        rule.impose(world, case.about)
    forbidden = [pattern for kind, key in case.about.items() for pattern in forbid(request.writes, **{kind: key})]
    return compose(world, rng, split, request, route, case, refusal=reason, forbidden=forbidden, distractors=2)


FAMILY = Family(name="refuse", draft=_draft, capabilities=("refuse", "policy"))
