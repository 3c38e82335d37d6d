"""How a task is drawn up: pick what it is about, put the records into shape, say it in words, state what will be judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_gym.envs.worlds.retail.routes import STEPS, WORDINGS
from agent_gym.envs.worlds.retail.rules import RULES
from agent_gym.envs.worlds.retail.targets import Target
from agent_gym.world import Draft, Phrasebook, Script, World

__all__ = ["Ask", "Request", "add_near_miss", "compose", "pick", "the_only"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """What exactly is asked for.

    Attributes:
        slots: The request's own slots.
        rows: The goal rows.
        allowed: What may change.
        reads: Records beside order and account that lead to it, for the milestones.
    """

    slots: dict[str, str]
    rows: list[Row]
    allowed: list[Row]
    reads: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Request:
    """One kind of request.

    Attributes:
        name: The name by which rules forbid it.
        book: Its wordings.
        ask: Draws what exactly is asked of a target.
        oracle: The script that solves it from the slots that were read out of the goal.
        harmless: Rules that do not forbid it and can hold for its order all the same.
        reads: How many records it reads beyond the route's.
    """

    name: str
    book: Phrasebook
    ask: Callable[[World, np.random.Generator, Target], Ask]
    oracle: Callable[[Mapping[str, str]], Script]
    harmless: tuple[str, ...]
    reads: int


def pick(rng: np.random.Generator, things: Sequence[Any]) -> Any:
    """One of several, each as likely as the others."""
    return things[int(rng.integers(len(things)))]


def the_only(rows: Sequence[Row], what: str) -> Row:
    """The one row there is. A goal that fits none or several would be ambiguous: that is a defect of the generator."""
    if len(rows) != 1:
        raise RuntimeError(f"{what} names {len(rows)} things; a goal must name exactly one")
    return rows[0]


def add_near_miss(world: World, rng: np.random.Generator, request: Request, target: Target) -> None:
    """Makes something hold, now and then, that looks like a reason to refuse and is none."""
    other_order = "SELECT order_id FROM orders WHERE user_id = ? AND order_id != ? ORDER BY order_id LIMIT 1"
    other_method = "SELECT payment_id FROM payment_methods WHERE user_id = ? AND payment_id != ? LIMIT 1"
    other_item = "SELECT item_id FROM items WHERE order_id = ? AND item_id != ? ORDER BY item_id LIMIT 1"
    match int(rng.integers(8)):
        case 0 | 1:
            RULES[pick(rng, request.harmless)].impose(world, target)
        case 2:
            for order in world.query(other_order, (target.user_id, target.order_id)):
                world.update("orders", order["order_id"], terms="final sale")
        case 3:
            used = {row["payment_id"] for row in world.query("SELECT payment_id FROM orders WHERE order_id = ?", (target.order_id,))}
            for method in world.query(other_method, (target.user_id, used.pop())):
                world.update("payment_methods", method["payment_id"], kind="giftcard")
        case 4:
            for item in world.query(other_item, (target.order_id, target.item_id)):
                world.update("items", item["item_id"], finish="engraved")


def compose(
    world: World,
    rng: np.random.Generator,
    split: str,
    request: Request,
    route: str,
    target: Target,
    *,
    refusal: str = "",
    forbidden: Sequence[Row] = (),
) -> Draft:
    """Puts a request about a target into words and states what will be judged.

    Args:
        world: The world, prepared for it.
        rng: What wording and details are drawn from.
        split: The task's split; it decides on the wordings.
        request: What kind of request.
        route: How the person and the order are named.
        target: What it is about.
        refusal: The reason for which it must be refused, or nothing.
        forbidden: Calls that must not take effect.
    """
    ask = request.ask(world, rng, target)
    slots = {**_named(world, rng, route, target), **ask.slots}
    written = request.book.write(rng, WORDINGS[split], route, slots)
    user = {"tool": "get_user", "arguments": {"user_id": target.user_id}}
    order = {"tool": "get_order", "arguments": {"order_id": target.order_id}}
    reads = {"read_order": order, "read_account": user} if route == "id" else {"read_account": user, "read_order": order}
    if refusal:
        proof = "read_account" if RULES[refusal].record == "user" else "read_order"
        names = list(reads)
        milestones: list[Row] = [{"name": name, "call": reads[name]} for name in names[: names.index(proof) + 1]]
        look_first = [reads[proof]]
    else:
        milestones = [{"name": name, "call": call} for name, call in reads.items()]
        milestones += [{"name": f"read_{call['tool'].removeprefix('get_')}", "call": call} for call in ask.reads]
        milestones.append({"name": "done", "goal": True})
        look_first = list(reads.values())
    return Draft(
        goal=written.text,
        params={"request": request.name, "route": route, "slots": written.slots, "order_id": target.order_id},
        rows=[] if refusal else ask.rows,
        allowed=[] if refusal else ask.allowed,
        forbidden=list(forbidden),
        look_first=look_first,
        milestones=milestones,
        refusal=refusal,
        steps=STEPS[route] + request.reads,
    )


def _named(world: World, rng: np.random.Generator, route: str, target: Target) -> dict[str, str]:
    """The slots of a route, each checked to name one account and one order."""
    item = world.query(
        "SELECT name FROM items JOIN variants USING (variant_id) JOIN products USING (product_id) WHERE item_id = ?", (target.item_id,)
    )
    product: str = item[0]["name"]
    within = ("order_id", target.order_id) if route == "id" else ("user_id", target.user_id)
    same_product = (
        "SELECT order_id FROM orders JOIN items USING (order_id) JOIN variants USING (variant_id) JOIN products USING (product_id)"
        f" WHERE {within[0]} = ? AND products.name = ?"
    )
    the_only(world.query(same_product, (within[1], product)), f"the {product} of {within[1]}")
    if route == "id":
        return {"order_id": target.order_id, "product": product}
    user = world.get("users", target.user_id)
    if route == "email":
        return {"email": user["email"], "product": product}
    if route == "domain":
        domain = user["email"].partition("@")[2].partition(".")[0]
        clues = {"domain": domain}
        fitting = world.query("SELECT user_id FROM users WHERE name = ? AND email LIKE ?", (user["name"], f"%@{domain}.%"))
    else:
        place = pick(rng, world.query("SELECT * FROM addresses WHERE user_id = ? ORDER BY address_id", (target.user_id,)))
        clues = {route: place[route]}
        same_place = f"SELECT DISTINCT user_id FROM users JOIN addresses USING (user_id) WHERE name = ? AND {route} = ?"
        fitting = world.query(same_place, (user["name"], place[route]))
    the_only(fitting, f"{user['name']} with {clues}")
    return {"name": user["name"], "product": product, **clues}
