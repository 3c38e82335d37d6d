"""Order facts: something that an order's record says is to be told; the other orders say it too, of themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Ask, OrderErrand, compose
from agent_gym.envs.worlds.retail.queries import get_order
from agent_gym.envs.worlds.retail.routes import FACTS, look_up, phrasebook
from agent_gym.envs.worlds.retail.targets import Target, any_target
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST", "field_of"]

_FRAMES = {
    "train": (
        "{who} Please tell me {fact} of {thing}.",
        "{who} I want you to tell me {fact} of {thing}.",
        "Could you tell me {fact} of {thing}? {who}",
        "Tell me {fact} of {thing}. {who}",
        "{who} I need to know of {thing} one thing: {fact}. Please tell me.",
        "{who} Can you tell me, of {thing}, {fact}?",
    ),
    "held_out": (
        "{who} Of {thing} I forgot {fact}, please tell me.",
        "Would you tell me {fact} of {thing}, please? {who}",
        "{who} It is {fact} of {thing} that you should tell me.",
    ),
    "synonyms": (
        "{who} What is {fact} of {thing}?",
        "Let me know {fact} of {thing}. {who}",
        "{who} I am looking for {fact} of {thing}.",
    ),
}


def field_of(fact: str) -> str:
    """The field that says a fact, by the words for it."""
    return next(field for field, phrases in FACTS.items() if fact in phrases)


def _ask(world: World, rng: np.random.Generator, target: Target) -> Ask:
    field = pick(rng, tuple(FACTS))
    return Ask({"fact": pick(rng, FACTS[field])}, [], [], asks=field, answer=get_order(world, target.order_id)[field])


def _oracle(slots: Mapping[str, str]) -> Script:
    order, closing = yield from look_up("tell", slots)
    if closing:
        yield closing
        return
    yield ToolCall("finish", {"answer": str(order[field_of(slots["fact"])])})


REQUEST = OrderErrand(
    name="tell",
    book=phrasebook(
        _FRAMES,
        by_id=("order {order_id}", "my order {order_id}"),
        by_product=("the order with the {product}", "my {product} order", "the order of the {product}"),
    ),
    ask=_ask,
    oracle=_oracle,
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    return compose(world, rng, split, REQUEST, pick(rng, ("email", "zip", "city")), any_target(world, rng))


def _unread(_: Sequence[Mapping[str, Any]]) -> ToolCall:
    return ToolCall("finish", {"answer": "parcel"})


FAMILY = Family(name="order_facts", draft=_draft, capabilities=("lookup",), cheats={"answers unread": _unread})
