"""The pages of the site: what each reads, what its forms do."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from werkzeug import Response
from werkzeug.exceptions import abort

from agent_gym.envs.worlds.retail.catalogue import CATEGORIES, REASONS
from agent_gym.envs.worlds.retail.site.visit import Person, Visit, fits, redirect, status_of, whole

__all__ = ["REASON_LABELS", "ROUTES", "done"]

REASON_LABELS = {code: code.replace("_", " ").capitalize() for code in REASONS}
"""The reasons for which an order is cancelled, as people read them."""
_DONE = {
    "cancel_order": "The order was cancelled: {reason}.",
    "change_address": "The address was changed to {address_id}.",
    "exchange_item": "Item {item_id} was exchanged for {variant_id}.",
    "return_item": "Item {item_id} was taken back.",
    "add_to_cart": "The cart has {quantity} more of {variant_id}.",
    "set_cart_quantity": "Line {line_id} of the cart has {quantity} now.",
    "apply_voucher": "Voucher {voucher} is on the cart.",
    "place_order": "The order was placed: to {address_id}, paid with {payment_id}.",
    "change_payment": "It is paid with {payment_id} now.",
    "close_account": "The account was closed.",
    "undo": "The last change was taken back.",
}
_DOLLARS = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,2}))?")
_MOST = 99
"""The most pieces that a cart takes of one variant."""


def done(operation: str, arguments: Mapping[str, Any]) -> str:
    """What the page after it says once an operation was done."""
    told = {**arguments, "reason": REASON_LABELS.get(arguments.get("reason", ""), "")}
    return _DONE[operation].format(**told)


# --- Finding ---


def home(visit: Visit) -> Response:
    return visit.show("home.html", "Service desk")


def customers(visit: Visit) -> Response:
    """Finds accounts by e-mail address or name."""
    asked = visit.asked("q")
    people: list[dict[str, Any]] = []
    turns: dict[str, str] = {}
    status, problem = 200, ""
    if fits("email", asked.lower()):
        result = visit.operate("find_user_by_email", {"email": asked.lower()})
        status, problem = status_of(result), result.content if result.failed else ""
        people = [] if result.failed else [result.structured]
    elif fits("name", asked):
        found = visit.read("find_users_by_name", name=asked, page=visit.page())
        people, turns = found["users"], visit.turns(found["more"], q=asked)
        status, problem = (200, "") if people else (404, f"Nobody here is called {asked}.")
    elif asked:
        status, problem = 400, "That is neither an e-mail address nor a first and last name."
    return visit.show("customers.html", "Customers", status=status, problem=problem, asked=asked, people=people, turns=turns)


def order_search(visit: Visit) -> Response:
    """Goes to an order by its number."""
    asked = visit.asked("order_id")
    if fits("order_id", asked.upper()):
        return redirect(f"/orders/{asked.upper()}")
    problem = "An order's number is a W and seven digits." if asked else ""
    return visit.show("order_search.html", "Orders", status=400 if problem else 200, problem=problem, asked=asked)


def products(visit: Visit) -> Response:
    """Searches the catalogue."""
    asked = {name: visit.asked(name) for name in ("q", "category", "max_price")}
    arguments: dict[str, Any] = {"query": asked["q"]}
    problems = []
    if not fits("query", asked["q"]):
        problems.append("Products are found by words of their names.")
    if asked["category"]:
        arguments["category"] = asked["category"]
        if asked["category"] not in CATEGORIES:
            problems.append("There is no such category.")
    if asked["max_price"]:
        arguments["max_price_cents"] = _cents(asked["max_price"])
        if arguments["max_price_cents"] is None:
            problems.append("A price is in dollars, such as 19.90.")
    facts: dict[str, Any] = {"asked": asked, "categories": tuple(CATEGORIES), "found": [], "turns": {}}
    if problems:
        return visit.show("products.html", "Products", status=400, problem=" ".join(problems), **facts)
    found = visit.read("search_products", **arguments, page=visit.page())
    facts |= {"found": found["products"], "turns": visit.turns(found["more"], **asked)}
    return visit.show("products.html", "Products", **facts)


# --- Customers ---


def account(visit: Visit, user_id: str, problem: str = "", status: int = 200) -> Response:
    """An account. Who opens it helps this customer from here on."""
    user = visit.read("get_user", user_id=user_id)
    visit.help(Person(user_id, user["name"]))
    return _page(visit, "account.html", user["name"], problem, status, user=user)


def close_account(visit: Visit, user_id: str) -> Response:
    path = f"/customers/{user_id}"
    return _carry_out(visit, "close_account", {"user_id": user_id}, path, partial(account, visit, user_id))


def orders_of(visit: Visit, user_id: str) -> Response:
    """An account's orders, five at a time."""
    after = visit.asked("after")
    if after and not fits("cursor", after):
        return abort(400, "There is no such page of this list.")
    found = visit.read("list_orders_after", user_id=user_id, cursor=after) if after else visit.read("list_orders", user_id=user_id)
    facts = {"user_id": user_id, "orders": found["orders"], "cursor": found.get("cursor", "")}
    return visit.show("orders.html", f"Orders of customer {user_id}", **facts)


def cart(visit: Visit, user_id: str, problem: str = "", status: int = 200) -> Response:
    found = visit.read("get_cart", user_id=user_id)
    return _page(visit, "cart.html", f"Cart of customer {user_id}", problem, status, user_id=user_id, cart=found)


def set_cart_quantity(visit: Visit, user_id: str) -> Response:
    line_id, quantity = visit.sent("line_id"), whole(visit.sent("quantity"), 0, _MOST)
    if quantity is None or not fits("line_id", line_id):
        return cart(visit, user_id, f"Choose a line of the cart and a number from 0 to {_MOST}.", 400)
    arguments = {"line_id": line_id, "quantity": quantity}
    return _carry_out(visit, "set_cart_quantity", arguments, f"/customers/{user_id}/cart", partial(cart, visit, user_id))


def apply_voucher(visit: Visit, user_id: str) -> Response:
    voucher = visit.sent("voucher").upper()
    if not fits("voucher", voucher):
        return cart(visit, user_id, "A voucher is five letters, a dash and two digits.", 400)
    arguments = {"user_id": user_id, "voucher": voucher}
    return _carry_out(visit, "apply_voucher", arguments, f"/customers/{user_id}/cart", partial(cart, visit, user_id))


def undo_at_cart(visit: Visit, user_id: str) -> Response:
    return _carry_out(visit, "undo", {}, f"/customers/{user_id}/cart", partial(cart, visit, user_id))


def checkout(visit: Visit, user_id: str, problem: str = "", status: int = 200) -> Response:
    """The form for an order of all that is in the cart. It reads the account."""
    user = visit.read("get_user", user_id=user_id)
    return _page(visit, "checkout.html", f"Check out for customer {user_id}", problem, status, user_id=user_id, user=user)


def place_order(visit: Visit, user_id: str) -> Response:
    address_id, payment_id = visit.sent("address_id"), visit.sent("payment_id")
    if not fits("address_id", address_id) or not fits("payment_id", payment_id):
        return checkout(visit, user_id, "Choose an address and a payment method.", 400)
    arguments = {"user_id": user_id, "address_id": address_id, "payment_id": payment_id}
    return _carry_out(visit, "place_order", arguments, f"/customers/{user_id}/cart", partial(checkout, visit, user_id))


# --- Orders ---


def order(visit: Visit, order_id: str, problem: str = "", status: int = 200) -> Response:
    return _order(visit, visit.read("get_order", order_id=order_id), problem, status)


def _order(visit: Visit, found: dict[str, Any], problem: str, status: int) -> Response:
    return _page(visit, "order.html", f"Order {found['order_id']}", problem, status, order=found, reasons=REASON_LABELS)


def cancel_order(visit: Visit, order_id: str) -> Response:
    reason = visit.sent("reason")
    if reason not in REASONS:
        return order(visit, order_id, "Choose a reason.", 400)
    arguments = {"order_id": order_id, "reason": reason}
    return _carry_out(visit, "cancel_order", arguments, f"/orders/{order_id}", partial(order, visit, order_id))


def return_item(visit: Visit, order_id: str, item_id: str) -> Response:
    arguments = {"order_id": order_id, "item_id": item_id}
    return _carry_out(visit, "return_item", arguments, f"/orders/{order_id}", partial(order, visit, order_id))


def address(visit: Visit, order_id: str, problem: str = "", status: int = 200) -> Response:
    """The form for another address. It shows the order's facts, and the owner's saved addresses and standing: it reads both."""
    found = visit.read("get_order", order_id=order_id)
    user = visit.read("get_user", user_id=found["user_id"])
    title = f"Change the address of order {order_id}"
    return _page(visit, "address.html", title, problem, status, order=found, user=user)


def change_address(visit: Visit, order_id: str) -> Response:
    address_id = visit.sent("address_id")
    if not fits("address_id", address_id):
        return address(visit, order_id, "Choose an address.", 400)
    arguments = {"order_id": order_id, "address_id": address_id}
    return _carry_out(visit, "change_address", arguments, f"/orders/{order_id}", partial(address, visit, order_id))


def payment(visit: Visit, order_id: str, problem: str = "", status: int = 200) -> Response:
    """The form for another payment method of the owner's. It shows the order's and the account's facts: it reads both."""
    found = visit.read("get_order", order_id=order_id)
    user = visit.read("get_user", user_id=found["user_id"])
    return _page(visit, "payment.html", f"Change the payment of order {order_id}", problem, status, order=found, user=user)


def change_payment(visit: Visit, order_id: str) -> Response:
    payment_id = visit.sent("payment_id")
    if not fits("payment_id", payment_id):
        return payment(visit, order_id, "Choose a payment method.", 400)
    arguments = {"order_id": order_id, "payment_id": payment_id}
    return _carry_out(visit, "change_payment", arguments, f"/orders/{order_id}", partial(payment, visit, order_id))


def undo_at_order(visit: Visit, order_id: str) -> Response:
    return _carry_out(visit, "undo", {}, f"/orders/{order_id}", partial(order, visit, order_id))


def exchange(visit: Visit, order_id: str, item_id: str, problem: str = "", status: int = 200) -> Response:
    """The form for another variant of an item. It shows the order's facts and the variants: it reads the order and the product."""
    found = visit.read("get_order", order_id=order_id)
    item = next((item for item in found["items"] if item["item_id"] == item_id), None)
    if item is None:
        return _order(visit, found, f"item {item_id} is not in order {order_id}", 404)
    variants = visit.read("get_product", product_id=item["product_id"])["variants"]
    title = f"Exchange the {item['product']} of order {order_id}"
    return _page(visit, "exchange.html", title, problem, status, order=found, item=item, variants=variants)


def exchange_item(visit: Visit, order_id: str, item_id: str) -> Response:
    variant_id = visit.sent("variant_id")
    if not fits("variant_id", variant_id):
        return exchange(visit, order_id, item_id, "Choose a variant.", 400)
    arguments = {"order_id": order_id, "item_id": item_id, "variant_id": variant_id}
    return _carry_out(visit, "exchange_item", arguments, f"/orders/{order_id}", partial(exchange, visit, order_id, item_id))


# --- Products ---


def product(visit: Visit, product_id: str, problem: str = "", status: int = 200) -> Response:
    found = visit.read("get_product", product_id=product_id)
    return _page(visit, "product.html", found["product"].capitalize(), problem, status, product=found)


def add_to_cart(visit: Visit, product_id: str) -> Response:
    user_id, variant_id, quantity = visit.sent("user_id"), visit.sent("variant_id"), whole(visit.sent("quantity"), 1, _MOST)
    if quantity is None or not fits("user_id", user_id) or not fits("variant_id", variant_id):
        return product(visit, product_id, f"Choose a variant and a number from 1 to {_MOST}.", 400)
    arguments = {"user_id": user_id, "variant_id": variant_id, "quantity": quantity}
    return _carry_out(visit, "add_to_cart", arguments, f"/customers/{user_id}/cart", partial(product, visit, product_id))


def _carry_out(visit: Visit, operation: str, arguments: dict[str, Any], onward: str, again: Callable[[str, int], Response]) -> Response:
    """Carries out what a form asks for and goes on to the page that shows it; or shows the form again, and why it could not be done."""
    result = visit.operate(operation, arguments)
    return again(result.content, status_of(result)) if result.failed else redirect(onward, said=done(operation, arguments))


def _page(visit: Visit, template: str, title: str, problem: str, status: int, **facts: Any) -> Response:
    """A page that says once what was done before it was opened, unless there is a problem."""
    return visit.show(template, title, status=status, problem=problem, done="" if problem else visit.said, **facts)


def _cents(dollars: str) -> int | None:
    found = _DOLLARS.fullmatch(dollars)
    return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0")) if found else None


_CUSTOMER = "/customers/<id(user_id):user_id>"
_ORDER = "/orders/<id(order_id):order_id>"
_ITEM = f"{_ORDER}/items/<id(item_id):item_id>"
_PRODUCT = "/products/<id(product_id):product_id>"

ROUTES: tuple[tuple[str, str, Callable[..., Response]], ...] = (
    ("GET", "/", home),
    ("GET", "/customers", customers),
    ("GET", _CUSTOMER, account),
    ("GET", f"{_CUSTOMER}/orders", orders_of),
    ("GET", f"{_CUSTOMER}/cart", cart),
    ("POST", f"{_CUSTOMER}/cart", set_cart_quantity),
    ("POST", f"{_CUSTOMER}/cart/undo", undo_at_cart),
    ("POST", f"{_CUSTOMER}/voucher", apply_voucher),
    ("GET", f"{_CUSTOMER}/checkout", checkout),
    ("POST", f"{_CUSTOMER}/checkout", place_order),
    ("POST", f"{_CUSTOMER}/close", close_account),
    ("GET", "/orders", order_search),
    ("GET", _ORDER, order),
    ("POST", f"{_ORDER}/cancel", cancel_order),
    ("GET", f"{_ORDER}/address", address),
    ("POST", f"{_ORDER}/address", change_address),
    ("GET", f"{_ORDER}/payment", payment),
    ("POST", f"{_ORDER}/payment", change_payment),
    ("POST", f"{_ORDER}/undo", undo_at_order),
    ("GET", f"{_ITEM}/exchange", exchange),
    ("POST", f"{_ITEM}/exchange", exchange_item),
    ("POST", f"{_ITEM}/return", return_item),
    ("GET", "/products", products),
    ("GET", _PRODUCT, product),
    ("POST", f"{_PRODUCT}/cart", add_to_cart),
)
"""Every page and form: method, address, and what answers. ``<id(kind):name>`` is an id as the tools know it."""
