"""Fill cart: so many of a variant are to be put into a cart; catalogue, product and account have to be brought together."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Errand, pick, reading
from agent_gym.envs.worlds.retail.routes import find_account, phrasebook
from agent_gym.world import Draft, Family, Script, World

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please put {count} of the {colour} {style} {product} into my cart; you find it under {category}.",
        "{who} I want {count} of the {colour} {product} in {style} put into my cart. It is under {category}.",
        "From {category}, put the {colour} {style} {product} into my cart, {count} pieces. {who}",
        "Could you put {count} pieces of the {style} {colour} {product} into my cart? See {category}. {who}",
        "{who} Into my cart, please put from {category}: {product}, {colour}, {style}, {count} times.",
        "{who} My cart needs {count} of the {product} in {colour} and {style}, from {category}; put them there.",
    ),
    "held_out": (
        "{who} Would you put {count} of the {colour} {style} {product}, listed under {category}, into the cart?",
        "Put into my cart, from {category}: {count} of the {product}, {colour} and {style}. {who}",
        "{who} I would like my cart to have {count} of the {style} {product} in {colour}; it is in {category}.",
    ),
    "synonyms": (
        "{who} Add the {colour} {style} {product} from {category} to my basket, {count} of it.",
        "My basket should get {count} pieces of the {style} {colour} {product} from {category}. {who}",
        "{who} I will take {count} of the {product} in {colour}, {style}, from the shelf for {category}.",
    ),
}
_MOST = 6


def _oracle(slots: Mapping[str, str]) -> Script:
    user, closing = yield from find_account("cart", slots)
    if closing:
        yield closing
        return
    listed = yield ToolCall("list_products", {"category": slots["category"]})
    product_id = next((one["product_id"] for one in listed["products"] if one["product"] == slots["product"]), "")
    product = yield ToolCall("get_product", {"product_id": product_id})
    wanted = (slots["colour"], slots["style"])
    variant_id = next((one["variant_id"] for one in product["variants"] if (one["colour"], one["style"]) == wanted), "")
    yield ToolCall("get_cart", {"user_id": user["user_id"]})
    yield ToolCall("add_to_cart", {"user_id": user["user_id"], "variant_id": variant_id, "quantity": int(slots["count"])})
    yield ToolCall("finish")


REQUEST = Errand(name="fill_cart", book=phrasebook(_FRAMES), oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    user_id = pick(rng, world.query("SELECT user_id FROM users ORDER BY user_id"))["user_id"]
    new = (
        "SELECT * FROM variants JOIN products USING (product_id) WHERE variant_id NOT IN (SELECT variant_id FROM carts WHERE user_id = ?)"
        " ORDER BY variant_id"
    )
    variant = pick(rng, world.query(new, (user_id,)))
    count = int(rng.integers(1, _MOST))
    if variant["stock"] < count:
        world.update("variants", variant["variant_id"], stock=count)
    line = {"user_id": user_id, "variant_id": variant["variant_id"]}
    shown = "SELECT count(*) AS n FROM variants WHERE product_id = ?"
    return REQUEST.draft(
        world,
        rng,
        split,
        user_id,
        {"count": str(count), "product": variant["name"], **{name: variant[name] for name in ("colour", "style", "category")}},
        steps=5,
        reads=[reading("product", variant["product_id"])],
        rows=[{"table": "carts", "where": line, "values": {"quantity": count}}],
        allowed=[{"table": "carts", "where": line, "new": True}],
        distractors=world.query(shown, (variant["product_id"],))[0]["n"] - 1,
        facts=3,
    )


FAMILY = Family(name="fill_cart", draft=_draft, capabilities=("form", "multi_hop"))
