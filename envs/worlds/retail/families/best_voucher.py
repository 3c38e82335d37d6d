"""Best voucher: what a voucher takes off, only putting it on the cart tells. One is tried after the other, the worse taken back."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.catalogue import VOUCHERS
from agent_gym.envs.worlds.retail.drafting import Errand
from agent_gym.envs.worlds.retail.routes import find_account, phrasebook
from agent_gym.world import Draft, Family, Script, World, next_call, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please put the voucher on my cart that makes it cheaper: {voucher} or {voucher2}.",
        "{who} I have the vouchers {voucher} and {voucher2}. Put the better one on my cart.",
        "Which voucher is better for my cart, {voucher} or {voucher2}? Put that one on it. {who}",
        "Put a voucher on my cart, {voucher} or {voucher2}, whichever saves more. {who}",
        "{who} There are {voucher} and {voucher2}; I want the voucher on my cart that saves more.",
        "{who} Try the vouchers {voucher} and {voucher2}: my cart should end with the better one.",
    ),
    "held_out": (
        "{who} Can you see to it that my cart has the better voucher of the two, {voucher} or {voucher2}?",
        "I got {voucher} and {voucher2}; the voucher that saves more belongs on my cart. {who}",
        "{who} For my cart I could use {voucher} or {voucher2}. Leave the better voucher on it.",
    ),
    "synonyms": (
        "{who} Apply the code that gives the lowest sum for my basket: {voucher} or {voucher2}.",
        "My basket: redeem {voucher} or {voucher2}, whichever takes off most. {who}",
        "{who} Two codes, {voucher} and {voucher2}. Redeem the one that leaves me with less to pay.",
    ),
}


def _script(slots: Mapping[str, str], *, guesses: bool) -> Script:
    user, closing = yield from find_account("cart", slots)
    if closing:
        yield closing
        return
    yield ToolCall("get_cart", {"user_id": user["user_id"]})
    one = yield ToolCall("apply_voucher", {"user_id": user["user_id"], "voucher": slots["voucher"]})
    if guesses:
        yield ToolCall("finish")
        return
    other = yield ToolCall("apply_voucher", {"user_id": user["user_id"], "voucher": slots["voucher2"]})
    if "refused" not in one and "refused" not in other and one["total_cents"] < other["total_cents"]:
        yield ToolCall("undo")
    yield ToolCall("finish")


REQUEST = Errand(name="best_voucher", book=phrasebook(_FRAMES), oracle=partial(_script, guesses=False))


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    carts = (
        "SELECT user_id, sum(quantity * price_cents) AS cents FROM carts JOIN variants USING (variant_id) GROUP BY user_id"
        " HAVING cents >= 1000 ORDER BY user_id"
    )
    cart = pick(rng, world.query(carts))
    first, second = (VOUCHERS[index] for index in rng.permutation(len(VOUCHERS))[:2].tolist())
    percent = int(rng.integers(5, 31))
    off = cart["cents"] * percent // 100
    more = bool(rng.integers(2))  # whether the first saves more
    amount = max(1, off - int(rng.integers(1, 200)) if more else off + int(rng.integers(1, 200)))
    terms = [{"percent": percent, "amount_cents": 0}, {"percent": 0, "amount_cents": amount}]
    if rng.integers(2):  # which of the two is a share and which a sum tells nothing
        terms.reverse()
    one_off, other_off = (cart["cents"] * one["percent"] // 100 + one["amount_cents"] for one in terms)
    refused = int(rng.integers(16))  # one of the two now and then, else neither
    for index, (voucher, term) in enumerate(zip((first, second), terms, strict=True)):
        world.update("vouchers", voucher, **term, minimum_cents=cart["cents"] + 1 if refused == index else 0)
    best = second if refused == 0 or (refused != 1 and other_off > one_off) else first
    where = {"user_id": cart["user_id"]}
    tried = [{"tool": "apply_voucher", "arguments": {**where, "voucher": voucher}} for voucher in (first, second)]
    if refused < len(tried):
        tried[refused]["status"] = "conflict"
    return REQUEST.draft(
        world,
        rng,
        split,
        cart["user_id"],
        {"voucher": first, "voucher2": second},
        steps=5 if best == first and refused > 1 else 4,
        reads=[{"tool": "get_cart", "arguments": where}],
        rows=[{"table": "users", "where": where, "values": {"voucher": best}}],
        allowed=[{"table": "users", "where": where, "columns": ["voucher"]}],
        milestones=[{"name": f"tried_{number}", "call": call, "needed": True} for number, call in enumerate(tried, 1)],
        distractors=1,
        facts=4,
    )


def _untried(_: Sequence[Mapping[str, Any]]) -> ToolCall:
    """Says that it is as good as it can be."""
    return ToolCall("finish")


def _guess(observations: Sequence[Mapping[str, Any]]) -> ToolCall:
    """Takes the first for the better one."""
    slots = REQUEST.book.read(observations[0]["data"]["goal"])
    return next_call(_script(slots or {}, guesses=True), observations)


FAMILY = Family(
    name="best_voucher",
    draft=_draft,
    capabilities=("reversible_probe",),
    cheats={"tries none": _untried, "tries one": _guess},
)
