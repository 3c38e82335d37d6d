"""Set cart: lines of a cart are to have so many pieces; of one that has them already there is nothing to change."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Errand
from agent_gym.envs.worlds.retail.routes import find_account, phrasebook
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} My cart should have {count} of the {product} and {count2} of the {product2}.",
        "{who} Please set my cart to {count} of the {product}, and to {count2} of the {product2}.",
        "Set the numbers in my cart: {count} for the {product}, {count2} for the {product2}. {who}",
        "Could you set the {product} in my cart to {count} and the {product2} to {count2}? {who}",
        "{who} In my cart I want the {product} set to {count}, the {product2} set to {count2}.",
        "{who} For the {product} in my cart, make it {count}; for the {product2}, make it {count2}.",
    ),
    "held_out": (
        "{who} See to it that my cart has the {product} {count} times and the {product2} {count2} times.",
        "The cart of mine needs to be set: {count} of the {product}, {count2} of the {product2}. {who}",
        "{who} Would you set {count} for the {product} and {count2} for the {product2} in the cart?",
    ),
    "synonyms": (
        "{who} Adjust my basket so that it holds {count} of the {product} and {count2} of the {product2}.",
        "My basket: {count} pieces of the {product}, {count2} pieces of the {product2}. {who}",
        "{who} I will take the {product} {count} times and the {product2} {count2} times; adjust the basket.",
    ),
}
_MOST = 9


def _oracle(slots: Mapping[str, str]) -> Script:
    user, closing = yield from find_account("cart", slots)
    if closing:
        yield closing
        return
    cart = yield ToolCall("get_cart", {"user_id": user["user_id"]})
    for product, count in ((slots["product"], int(slots["count"])), (slots["product2"], int(slots["count2"]))):
        line = next((one for one in cart["lines"] if one["product"] == product), {"line_id": "", "quantity": 0})
        if line["quantity"] != count:
            yield ToolCall("set_cart_quantity", {"line_id": line["line_id"], "quantity": count})
    yield ToolCall("finish")


REQUEST = Errand(name="set_cart", book=phrasebook(_FRAMES), oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    several = "SELECT user_id FROM carts GROUP BY user_id HAVING count(*) > 1 ORDER BY user_id"
    user_id = pick(rng, world.query(several))["user_id"]
    of_cart = (
        "SELECT line_id, variant_id, quantity, stock, name FROM carts JOIN variants USING (variant_id) JOIN products USING (product_id)"
        " WHERE user_id = ? ORDER BY line_id"
    )
    lines = world.query(of_cart, (user_id,))
    chosen = [lines[index] for index in rng.permutation(len(lines))[:2].tolist()]
    wanted = [int(rng.integers(1, _MOST)) for _ in chosen]
    if rng.integers(3) == 0:  # one of them is as it should be
        wanted[0] = chosen[0]["quantity"]
    if chosen[1]["quantity"] == wanted[1]:
        wanted[1] += 1
    for line, count in zip(chosen, wanted, strict=True):
        world.update("variants", line["variant_id"], stock=max(count, line["stock"]))
    changed = [line["line_id"] for line, count in zip(chosen, wanted, strict=True) if line["quantity"] != count]
    if rng.integers(2):
        chosen.reverse()
        wanted.reverse()
    return REQUEST.draft(
        world,
        rng,
        split,
        user_id,
        {"count": str(wanted[0]), "product": chosen[0]["name"], "count2": str(wanted[1]), "product2": chosen[1]["name"]},
        steps=2 + len(changed),
        reads=[{"tool": "get_cart", "arguments": {"user_id": user_id}}],
        rows=[
            {"table": "carts", "where": {"line_id": line["line_id"]}, "values": {"quantity": count}}
            for line, count in zip(chosen, wanted, strict=True)
        ],
        allowed=[{"table": "carts", "where": {"line_id": line_id}, "columns": ["quantity"]} for line_id in changed],
        distractors=len(lines) - 1,
        facts=3,
    )


def _unset(_: Sequence[Mapping[str, Any]]) -> ToolCall:
    """Says that it is as it should be."""
    return ToolCall("finish")


FAMILY = Family(name="set_cart", draft=_draft, capabilities=("form",), cheats={"sets nothing": _unset})
