"""Returns: everything in a delivered order is to be taken back, but for what a rule keeps from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.drafting import Ask, OrderErrand, compose
from agent_gym.envs.worlds.retail.routes import look_up, phrasebook
from agent_gym.envs.worlds.retail.rules import prepare
from agent_gym.envs.worlds.retail.targets import Target
from agent_gym.world import Draft, Family, Script, World, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please return all that can be returned of {thing}.",
        "{who} I want to return {thing}, whatever of it you may take back.",
        "Return everything of {thing} that the rules allow. {who}",
        "Could you return {thing} for me, all items that may be returned? {who}",
    ),
}
_SLOTS = "SELECT * FROM items JOIN variants USING (variant_id) WHERE order_id = ? ORDER BY item_id"


def _ask(world: World, rng: np.random.Generator, target: Target) -> Ask:  # noqa: ARG001 - nothing is left to choose
    items = world.query(_SLOTS, (target.order_id,))
    back = [item for item in items if item["finish"] != "engraved"]
    rows = [{"table": "items", "where": {"item_id": item["item_id"]}, "values": {"state": "returned"}} for item in back]
    return Ask(
        slots={},
        rows=rows,
        allowed=[
            *({"table": "items", "where": {"item_id": item["item_id"]}, "columns": ["state"]} for item in back),
            *({"table": "returns", "where": {"item_id": item["item_id"]}, "new": True} for item in back),
            *({"table": "variants", "where": {"variant_id": item["variant_id"]}, "columns": ["stock"]} for item in back),
            {"table": "payments", "where": {"order_id": target.order_id, "kind": "refund"}, "new": True},
        ],
    )


def _script(slots: Mapping[str, str], *, engraved: bool = False) -> Script:
    order, closing = yield from look_up("return", slots)
    if closing:
        yield closing
        return
    for item in order["items"]:
        if item["state"] == "kept" and (engraved or item["finish"] != "engraved"):
            yield ToolCall("return_item", {"order_id": order["order_id"], "item_id": item["item_id"]})
    yield ToolCall("finish")


REQUEST = OrderErrand(
    name="return",
    book=phrasebook(
        _FRAMES,
        by_id=("order {order_id}", "my order {order_id}"),
        by_product=("the order with the {product}", "my {product} order", "the order of the {product}"),
    ),
    ask=_ask,
    oracle=_script,
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    pairs = "SELECT order_id FROM items GROUP BY order_id HAVING count(*) = 2 ORDER BY order_id"
    order_id = pick(rng, world.query(pairs))["order_id"]
    of_order = (
        "SELECT user_id, order_id, item_id, payment_id, product_id FROM items JOIN orders USING (order_id) JOIN variants USING (variant_id)"
        " WHERE order_id = ? ORDER BY item_id"
    )
    target = Target(**pick(rng, world.query(of_order, (order_id,))))
    prepare(world, "return", target)
    items = [row["item_id"] for row in world.query("SELECT item_id FROM items WHERE order_id = ? ORDER BY item_id", (order_id,))]
    kept = pick(rng, items) if rng.integers(2) else ""
    for item_id in items:
        world.update("items", item_id, finish="engraved" if item_id == kept else "plain")
    forbidden = [{"tool": "return_item", "arguments": {"item_id": kept}}] if kept else []
    draft = compose(world, rng, split, REQUEST, pick(rng, ("id", "email", "zip")), target, forbidden=forbidden)
    return replace(draft, steps=draft.steps + (0 if kept else 1), distractors=draft.distractors + bool(kept))


def _unread(_: Sequence[Mapping[str, Any]]) -> ToolCall:
    """Refuses it all for the sake of what might be engraved."""
    return ToolCall("refuse", {"reason": "engraved"})


FAMILY = Family(name="returns", draft=_draft, capabilities=("policy", "form"), transfer=True, cheats={"refuses all": _unread})
