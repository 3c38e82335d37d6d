"""How a task is drawn up: pick what it is about, put the records into shape, say it in words, state what will be judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_gym.envs.worlds.retail.rules import RULES
from agent_gym.envs.worlds.retail.targets import Target
from agent_gym.world import Draft, Request, World, calling, milestones, pick

__all__ = [
    "Ask",
    "OrderErrand",
    "account_steps",
    "add_near_miss",
    "alike",
    "compose",
    "name_person",
    "order_count",
    "reading",
    "the_only",
]

Row = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """What exactly is asked for.

    Attributes:
        slots: The request's own slots.
        rows: The goal rows.
        allowed: What may change.
        reads: Calls beside reading order and account that must come before the first write.
        asks: The field that is asked for; nothing if something is to be done.
        answer: Its value.
        events: What somebody else does meanwhile.
    """

    slots: dict[str, str]
    rows: list[Row]
    allowed: list[Row]
    reads: list[Row] = field(default_factory=list)
    asks: str = ""
    answer: str | int | None = None
    events: list[Row] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Errand(Request):
    """One kind of thing that people want; its name is the one by which rules forbid it."""

    def draft(
        self,
        world: World,
        rng: np.random.Generator,
        split: str,
        user_id: str,
        slots: Mapping[str, str],
        *,
        steps: int,
        reads: Sequence[Row] = (),
        **fields: Any,
    ) -> Draft:
        """A task about an account rather than an order of it.

        Args:
            world: The world, prepared for it.
            rng: What wording and route are drawn from.
            split: The task's split; it decides on the wordings.
            user_id: The account.
            slots: The errand's own slots.
            steps: How many calls its oracle makes once it has read the account.
            reads: Calls that must come before the first write, beside reading the account.
            **fields: Further fields of the draft. Of milestones, those after the reads; by default that the goal is reached.
        """
        route = pick(rng, ("email", "zip", "domain"))
        written = self.book.write(rng, split, route, {**name_person(world, rng, route, user_id), **slots})
        look_first = [reading("user", user_id), *reads]
        more = fields.pop("milestones", None)
        reached = [*milestones(look_first, done=more is None and bool(fields.get("allowed"))), *(more or ())]
        return Draft(
            goal=written.text,
            params={"request": self.name, "route": route, "slots": written.slots, "user_id": user_id},
            look_first=look_first,
            milestones=reached,
            steps=account_steps(world, route, user_id) + steps,
            **{"distractors": alike(world, user_id), "facts": len(look_first), **fields},
        )


@dataclass(frozen=True, kw_only=True)
class OrderErrand(Errand):
    """An errand about one order.

    Attributes:
        ask: Draws what exactly is asked of a target.
        harmless: Rules that do not forbid it and can hold for its order all the same.
    """

    ask: Callable[[World, np.random.Generator, Target], Ask]
    harmless: tuple[str, ...] = ()


def the_only(rows: Sequence[Row], what: str) -> Row:
    """The one row there is. A goal that fits none or several would be ambiguous: that is a defect of the generator."""
    if len(rows) != 1:
        raise RuntimeError(f"{what} names {len(rows)} things; a goal must name exactly one")
    return rows[0]


def add_near_miss(world: World, rng: np.random.Generator, request: OrderErrand, target: Target) -> None:
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
    request: OrderErrand,
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
    written = request.book.write(rng, split, route, slots)
    reads = {
        f"read_{'account' if table == 'user' else table}": reading(table, getattr(target, f"{table}_id")) for table in ("user", "order")
    }
    looked = 2 if route == "id" else account_steps(world, route, target.user_id) + -(-order_count(world, target.user_id) // 5) + 1
    reached: list[Row] = [{"name": name, "call": reads[name]} for name in (reversed(reads) if route == "id" else reads)]
    if refusal:
        proof = "read_account" if RULES[refusal].record == "user" else "read_order"
        first = next(index for index, milestone in enumerate(reached) if milestone["name"] == proof)
        looked = looked - 1 + first if route == "id" else looked if first else account_steps(world, route, target.user_id)
        reached = reached[: first + 1]
        look_first = [reads[proof]]
    else:
        reached += [{"name": f"read_{call['tool'].removeprefix('get_')}", "call": call} for call in ask.reads]
        if not ask.asks:
            reached.append({"name": "done", "goal": True})
        look_first = [*reads.values(), *ask.reads]
    return Draft(
        goal=written.text,
        params={"request": request.name, "route": route, "slots": written.slots, "order_id": target.order_id},
        rows=[] if refusal else ask.rows,
        allowed=[] if refusal else ask.allowed,
        forbidden=list(forbidden),
        look_first=look_first,
        milestones=reached,
        refusal=refusal,
        asks="" if refusal else ask.asks,
        answer=None if refusal else ask.answer,
        events=[] if refusal else ask.events,
        steps=looked + 1 if refusal or ask.asks else looked + len(ask.reads) + 2,
        distractors=order_count(world, target.user_id) - 1 + alike(world, target.user_id),
        facts=len(look_first),
    )


def reading(table: str, key: str) -> Row:
    """The call that reads a record, such as ``get_user``."""
    return calling(f"get_{table}", **{f"{table}_id": key})


def account_steps(world: World, route: str, user_id: str) -> int:
    """How many calls it takes to find and read an account: those of the same name who are listed before it are read too."""
    if route in ("email", "domain"):
        return 2
    before = "SELECT count(*) AS n FROM users WHERE name = (SELECT name FROM users WHERE user_id = ?) AND user_id <= ?"
    return 1 + int(world.query(before, (user_id, user_id))[0]["n"])


def order_count(world: World, user_id: str) -> int:
    """How many orders an account has."""
    return int(world.query("SELECT count(*) AS n FROM orders WHERE user_id = ?", (user_id,))[0]["n"])


def alike(world: World, user_id: str) -> int:
    """How many others have the name of an account."""
    same = "SELECT count(*) - 1 AS n FROM users WHERE name = (SELECT name FROM users WHERE user_id = ?)"
    return int(world.query(same, (user_id,))[0]["n"])


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
    return {"product": product, **name_person(world, rng, route, target.user_id)}


def name_person(world: World, rng: np.random.Generator, route: str, user_id: str) -> dict[str, str]:
    """The slots by which a route names an account, checked to name just one."""
    user = world.get("users", user_id)
    if route == "email":
        return {"email": user["email"]}
    if route == "domain":
        domain = user["email"].partition("@")[2].partition(".")[0]
        clues = {"domain": domain}
        fitting = world.query("SELECT user_id FROM users WHERE name = ? AND email LIKE ?", (user["name"], f"%@{domain}.%"))
    else:
        place = pick(rng, world.query("SELECT * FROM addresses WHERE user_id = ? ORDER BY address_id", (user_id,)))
        clues = {route: place[route]}
        same_place = f"SELECT DISTINCT user_id FROM users JOIN addresses USING (user_id) WHERE name = ? AND {route} = ?"
        fitting = world.query(same_place, (user["name"], place[route]))
    the_only(fitting, f"{user['name']} with {clues}")
    return {"name": user["name"], **clues}
