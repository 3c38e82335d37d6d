"""Ways to say who is asking: what they look like in words, and how an oracle goes from there to the order and the account."""

from collections.abc import Generator, Mapping

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.catalogue import COLOURS, DOMAINS, METHODS, PRODUCTS, REASONS, STYLES
from agent_gym.envs.worlds.retail.counterpart import COUNTERPART
from agent_gym.envs.worlds.retail.rules import STATUS, broken_rule
from agent_gym.envs.worlds.retail.tools import PATTERNS
from agent_gym.world import Phrasebook, Result, Route, one_of

__all__ = ["FACTS", "find_account", "list_all", "look_up", "phrasebook"]

FACTS = {
    "total_cents": ("the total", "the total price"),
    "ship_to": ("the delivery address", "the address"),
    "carrier": ("the carrier", "the kind of carrier"),
    "placed_on": ("the date it was placed on", "the date of the order"),
}
"""What people want to know of an order, by the field that says it."""

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

_SLOTS = {
    "order_id": PATTERNS["order_id"],
    "email": r"\S+@\S+\.example",
    "name": r"[^\s,]+ [^\s,]+",
    "zip": r"\d{5}",
    "domain": one_of(*DOMAINS),
    "city": r"[^\s,.]+",
    "product": one_of(*PRODUCTS),
    "reason": one_of(*(phrase for phrases in REASONS.values() for phrase in phrases)),
    "street": r"\d+ [^\s,]+",
    "town": r"[^\s,.?]+",
    "colour": one_of(*COLOURS),
    "style": one_of(*(style for styles in STYLES.values() for style in styles)),
    "colour2": one_of(*COLOURS),
    "style2": one_of(*(style for styles in STYLES.values() for style in styles)),
    "fact": one_of(*(phrase for phrases in FACTS.values() for phrase in phrases)),
    "method": one_of(*METHODS),
    "product2": one_of(*PRODUCTS),
    "count": r"\d",
    "count2": r"\d",
    "voucher": PATTERNS["voucher"],
    "voucher2": PATTERNS["voucher"],
}


def phrasebook(frames: Mapping[str, tuple[str, ...]], *, by_id: tuple[str, ...] = (), by_product: tuple[str, ...] = ("",)) -> Phrasebook:
    """The wordings of a request.

    Args:
        frames: Whole requests by wording.
        by_id: Phrases for the order (or the item in it) by the order's id; none if the request names no order.
        by_product: Phrases for it by the product, where the account is named another way.
    """
    routes = {name: Route(who, by_id if name == "id" else by_product) for name, who in _WHO.items() if by_id or name != "id"}
    return Phrasebook(frames, routes, _SLOTS)


Closing = ToolCall | None
"""How an errand ends early, or None if it goes on."""


def look_up(request: str, slots: Mapping[str, str]) -> Generator[ToolCall, Result, tuple[Result, Closing]]:
    """Reads account and order, and stops at the first record that shows a broken rule or may not be read.

    Of several orders that fit, one is asked for; those that are in no state for the request fit only if no other does.

    Returns:
        The order's record, and how the errand ends early.
    """
    product = slots.get("product", "")
    if "order_id" in slots:
        order = yield ToolCall("get_order", {"order_id": slots["order_id"]})
        if closing := _obstacle(order) or _breach(broken_rule(request, product, order=order)):
            return order, closing
        user = yield ToolCall("get_user", {"user_id": order["user_id"]})
        return order, _breach(broken_rule(request, product, user=user))
    user, closing = yield from find_account(request, slots)
    if closing:
        return {}, closing
    fitting = [order for order in (yield from list_all(user)) if product in order["products"]]
    ready = [order for order in fitting if order["status"] == STATUS.get(request, order["status"])] or fitting or [{"order_id": ""}]
    which = ready[0]
    if len(ready) > 1:
        which = yield ToolCall("ask", {"question": COUNTERPART.intents["which"].question})
    order = yield ToolCall("get_order", {"order_id": which["order_id"]})
    return order, _obstacle(order) or _breach(broken_rule(request, product, order=order))


def find_account(request: str, slots: Mapping[str, str]) -> Generator[ToolCall, Result, tuple[Result, Closing]]:
    """Finds and reads the account: by e-mail, or among those who share the name by mailbox, zip or city.

    Returns:
        The account's record, and how the errand ends early.
    """
    if "email" in slots:
        people = [(yield ToolCall("find_user_by_email", {"email": slots["email"]}))]
    else:
        people = (yield ToolCall("find_users_by_name", {"name": slots["name"]}))["users"]
    if "domain" in slots:
        people = [person for person in people if f"@{slots['domain']}." in person["email"]]
    for person in people:
        user = yield ToolCall("get_user", {"user_id": person["user_id"]})
        if closing := _obstacle(user):
            return user, closing
        places = user["addresses"]
        if all(key not in slots or any(place[key] == slots[key] for place in places) for key in ("zip", "city")):
            return user, _breach(broken_rule(request, "", user=user))
    return (yield ToolCall("get_user", {"user_id": ""})), None


def list_all(user: Result) -> Generator[ToolCall, Result, list[Result]]:
    """All orders of an account, page by page. None, if some are missing in the lists."""
    listed = yield ToolCall("list_orders", {"user_id": user["user_id"]})
    orders = list(listed["orders"])
    while "cursor" in listed:
        listed = yield ToolCall("list_orders_after", {"user_id": user["user_id"], "cursor": listed["cursor"]})
        orders += listed["orders"]
    return orders if len(orders) == user["order_count"] else []


def _breach(reason: str) -> Closing:
    return ToolCall("refuse", {"reason": reason}) if reason else None


def _obstacle(record: Result) -> Closing:
    return ToolCall("hand_over", {"reason": "missing_permission"}) if record.get("refused") == "forbidden" else None
