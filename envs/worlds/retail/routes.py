"""Ways to say who is asking: what they look like in words, and how an oracle goes from there to the order and the account."""

from collections.abc import Generator, Mapping

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.catalogue import COLOURS, DOMAINS, PRODUCTS, REASONS, STYLES
from agent_gym.envs.worlds.retail.rules import broken_rule
from agent_gym.world import Phrasebook, Result, Route

__all__ = ["STEPS", "WORDINGS", "look_up", "phrasebook"]

WORDINGS = {"train": "train", "validation": "held_out", "test": "held_out", "synonyms": "synonyms"}
"""Which wordings a split draws from."""

STEPS = {"id": 4, "email": 6, "zip": 6, "domain": 6, "city": 6}
"""How many calls it takes by each route to a change and its end."""

_WHO = {
    "id": (),
    "email": ("My e-mail is {email}.", "I am registered as {email}.", "The account is under {email}."),
    "zip": ("My name is {name}, zip {zip}.", "This is {name} with the zip code {zip}.", "The account is that of {name} in {zip}."),
    "domain": (
        "My name is {name}, my mailbox is at {domain}.",
        "This is {name}, writing from {domain}.",
        "I am {name} and use {domain} for mail.",
    ),
    "city": ("My name is {name} and I live in {city}.", "This is {name} from {city}.", "I am {name}, {city} is where I live."),
}


def _one_of(*words: str) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


_SLOTS = {
    "order_id": r"W\d{7}",
    "email": r"\S+@\S+\.example",
    "name": r"[^\s,]+ [^\s,]+",
    "zip": r"\d{5}",
    "domain": _one_of(*DOMAINS),
    "city": r"[^\s,.]+",
    "product": _one_of(*PRODUCTS),
    "reason": _one_of(*(phrase for phrases in REASONS.values() for phrase in phrases)),
    "street": r"\d+ [^\s,]+",
    "town": r"[^\s,.?]+",
    "colour": _one_of(*COLOURS),
    "style": _one_of(*(style for styles in STYLES.values() for style in styles)),
}


def phrasebook(frames: Mapping[str, tuple[str, ...]], *, by_id: tuple[str, ...], by_product: tuple[str, ...]) -> Phrasebook:
    """The wordings of a request.

    Args:
        frames: Whole requests by wording.
        by_id: Phrases for the order (or the item in it) by the order's id.
        by_product: Phrases for it by the product, where the account is named another way.
    """
    routes = {name: Route(who, by_id if name == "id" else by_product) for name, who in _WHO.items()}
    return Phrasebook(frames, routes, _SLOTS)


def look_up(request: str, slots: Mapping[str, str]) -> Generator[ToolCall, Result, tuple[Result, str]]:
    """Reads account and order, and stops at the first record that shows a broken rule.

    Returns:
        The order's record, and the reason to refuse or nothing.
    """
    product = slots.get("product", "")
    if "order_id" in slots:
        order = yield ToolCall("get_order", {"order_id": slots["order_id"]})
        if reason := broken_rule(request, product, order=order):
            return order, reason
        user = yield ToolCall("get_user", {"user_id": order["user_id"]})
        return order, broken_rule(request, product, user=user)
    user = yield from _account(slots)
    if reason := broken_rule(request, product, user=user):
        return {}, reason
    listed = yield ToolCall("list_orders", {"user_id": user["user_id"]})
    order_id = next((order["order_id"] for order in listed["orders"] if product in order["products"]), "")
    order = yield ToolCall("get_order", {"order_id": order_id})
    return order, broken_rule(request, product, order=order)


def _account(slots: Mapping[str, str]) -> Generator[ToolCall, Result, Result]:
    """Finds the account: by e-mail, or among those who share the name by mailbox, zip or city."""
    if "email" in slots:
        found = yield ToolCall("find_user_by_email", {"email": slots["email"]})
        return (yield ToolCall("get_user", {"user_id": found["user_id"]}))
    people = (yield ToolCall("find_users_by_name", {"name": slots["name"]}))["users"]
    if "domain" in slots:
        people = [person for person in people if f"@{slots['domain']}." in person["email"]]
    for person in people:
        user = yield ToolCall("get_user", {"user_id": person["user_id"]})
        places = user["addresses"]
        if all(key not in slots or any(place[key] == slots[key] for place in places) for key in ("zip", "city")):
            return user
    return (yield ToolCall("get_user", {"user_id": ""}))
