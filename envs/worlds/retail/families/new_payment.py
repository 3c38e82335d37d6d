"""New payment: an order is to be paid another way; the method that was named may be declined, and only trying it tells."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.catalogue import METHODS
from agent_gym.envs.worlds.retail.drafting import Ask, OrderErrand, compose
from agent_gym.envs.worlds.retail.money import paid
from agent_gym.envs.worlds.retail.routes import look_up, phrasebook
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import Target, any_target
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please charge {thing} to my {method} instead. If it is declined, take another one that is accepted.",
        "{who} I want {thing} charged to my {method}, or if that is declined, to one that is accepted.",
        "Could you charge {thing} to my {method}? Should it be declined, any other that is accepted will do. {who}",
        "Charge {thing} to the {method} in my account; if declined, to what is accepted. {who}",
        "{who} For {thing}, charge my {method}. Declined? Then charge whatever is accepted.",
        "{who} Kindly charge {thing} to {method}, and only if it is declined to another that is accepted.",
    ),
    "held_out": (
        "{who} My {method} should be charged for {thing}; if declined, please charge one that is accepted.",
        "The charge for {thing} belongs on my {method}, or where it is accepted if that is declined. {who}",
        "{who} Would you charge {thing} to {method}? In case it is declined: what is accepted.",
    ),
    "synonyms": (
        "{who} Pay {thing} with my {method}. If that fails, with one that works.",
        "Book {thing} on my {method}, or on any that works should it fail. {who}",
        "{who} I would rather pay {thing} by {method}; failing that, by what works.",
    ),
}
_OWN = "SELECT * FROM payment_methods WHERE user_id = ? AND payment_id != ? ORDER BY payment_id"


def _ask(world: World, rng: np.random.Generator, target: Target) -> Ask:
    others = world.query(_OWN, (target.user_id, target.payment_id))
    first, last = (others[index] for index in rng.permutation(len(others))[:2].tolist())
    declined = bool(rng.integers(3))
    for method in others if declined else ():
        world.update("payment_methods", method["payment_id"], accepted=int(method is last))
    new, amount = last if declined else first, paid(world, target.order_id)
    booked = [
        {"order_id": target.order_id, "payment_id": key, "kind": kind, "amount_cents": amount}
        for key, kind in ((target.payment_id, "refund"), (new["payment_id"], "charge"))
    ]
    where = {"order_id": target.order_id}
    return Ask(
        slots={"method": first["kind"]},
        rows=[
            {"table": "orders", "where": where, "values": {"payment_id": new["payment_id"]}},
            *({"table": "payments", "where": entry, "values": {}} for entry in booked if amount),
        ],
        allowed=[
            {"table": "orders", "where": where, "columns": ["payment_id"]},
            *({"table": "payments", "where": entry, "new": True} for entry in booked),
        ],
        reads=[
            {
                "tool": "change_payment",
                "arguments": {"order_id": target.order_id, "payment_id": first["payment_id"]},
                "status": "conflict",
            }
        ]
        if declined
        else [],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    order, closing = yield from look_up("change_payment", slots)
    if closing:
        yield closing
        return
    user = yield ToolCall("get_user", {"user_id": order["user_id"]})
    payment_id = next((one["payment_id"] for one in user["payment_methods"] if one["kind"] == slots["method"]), "")
    answer = yield ToolCall("change_payment", {"order_id": order["order_id"], "payment_id": payment_id})
    if accepted := re.search(r"accepted: (\w+)", answer.get("why", "")):
        yield ToolCall("change_payment", {"order_id": order["order_id"], "payment_id": accepted[1]})
    yield ToolCall("finish")


REQUEST = OrderErrand(
    name="change_payment",
    book=phrasebook(
        _FRAMES,
        by_id=("order {order_id}", "my order {order_id}"),
        by_product=("the order with the {product}", "my {product} order", "the order of the {product}"),
    ),
    ask=_ask,
    oracle=_oracle,
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    target = any_target(world, rng)
    prepare(world, "change_payment", target)
    known = {row["kind"] for row in world.query(_OWN, (target.user_id, ""))}
    for kind in [kind for kind in METHODS if kind not in known][:2]:
        world.insert("payment_methods", payment_id=world.new_id("M"), user_id=target.user_id, kind=kind, accepted=1)
    draft = compose(world, rng, split, REQUEST, pick(rng, ("id", "email", "zip")), target)
    return replace(draft, distractors=draft.distractors + 3)


FAMILY = Family(name="new_payment", draft=_draft, capabilities=("recover_from_error",))
