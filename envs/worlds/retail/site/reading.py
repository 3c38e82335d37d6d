"""Reads records off the pages, as the operations behind them gave them: what an oracle learns by looking."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.site.pages import done
from agent_gym.world.scripts import refusal

__all__ = ["Cell", "Sheet", "answer", "clear_caches", "sheet_of"]

View = Mapping[str, Any]
Record = dict[str, Any]

_REFUSED = {403: "forbidden", 409: "conflict"}
"""The statuses by which the site refuses something for good, as the operations name them."""
_ASKED = {
    "get_user": "/customers/{user_id}",
    "get_order": "/orders/{order_id}",
    "change_payment": "/orders/{order_id}/payment",
    "exchange_item": "/orders/{order_id}/items/{item_id}/exchange",
    "apply_voucher": "/customers/{user_id}/voucher",
}
"""Where a page or a form is that may be refused."""
_CHOSEN = {"change_payment": "payment_id", "exchange_item": "variant_id", "apply_voucher": "voucher"}
"""What was chosen in the form; a refusal begins with it."""
_CONTROL = re.compile(r'\[(\d+)\] \w+ ("(?:[^"\\]|\\.)*").*')


class Cell(NamedTuple):
    """A piece of a page.

    Attributes:
        text: What it says; of a link its name.
        bid: The link's id, or nothing.
    """

    text: str
    bid: str = ""


class Sheet(NamedTuple):
    """A page, taken apart.

    Attributes:
        terms: Its definitions.
        tables: The rows of its tables, without the headings, by caption.
    """

    terms: Mapping[str, Cell]
    tables: Mapping[str, list[list[Cell]]]


def sheet_of(view: View) -> Sheet:
    """Takes a page apart."""
    return _taken_apart(view["outline"])


def answer(call: ToolCall, view: View) -> Record | None:
    """What an operation would answer, as far as a page tells it.

    Args:
        call: The operation and its arguments. One that changes something is answered by the page that says that just this was done.
        view: The page.

    Returns:
        The record, also of its being refused; or None if this page is not about it.
    """
    url = urlsplit(view["url"])
    if view["status"] != 200:
        return _refused(call, url.path, view)
    asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
    if call.name in _READERS:
        return _READERS[call.name](call.arguments, url.path, asked, view)
    said = f"! {done(call.name, call.arguments)}" in view["outline"].split("\n")
    if not said or not url.path.startswith(_about(call)):
        return None
    total = sheet_of(view).terms.get("Total")
    return {**call.arguments, **({} if total is None else {"total_cents": _cents(total.text)})}


def _refused(call: ToolCall, path: str, view: View) -> Record | None:
    """What the page says that a form or a link leads to in vain."""
    status = _REFUSED.get(view["status"])
    if status is None or call.name not in _ASKED or path != _ASKED[call.name].format(**call.arguments):
        return None
    alerts = [line.removeprefix("! ") for line in view["outline"].split("\n") if line.startswith("! ")]
    chosen = _CHOSEN.get(call.name)
    why = next((alert for alert in alerts if chosen is None or call.arguments[chosen] in alert.partition(";")[0]), None)
    return None if why is None else refusal(status, why)


def _about(call: ToolCall) -> str:
    """Where the page is that shows a change, or what its address begins with."""
    if "order_id" in call.arguments:
        return f"/orders/{call.arguments['order_id']}"
    return f"/customers/{call.arguments['user_id']}" if "user_id" in call.arguments else ""


def clear_caches() -> None:
    """Forgets the pages read."""
    _taken_apart.cache_clear()


@lru_cache(maxsize=1_024)
def _taken_apart(outline: str) -> Sheet:
    terms: dict[str, Cell] = {}
    tables: dict[str, list[list[Cell]]] = {}
    caption, heading = "", True
    for line in outline.split("\n"):
        if line.startswith("| "):
            if not heading:
                tables.setdefault(caption, []).append([_cell(part) for part in line.removeprefix("| ").removesuffix(" |").split(" | ")])
            heading = False
        else:
            caption, heading = line, True
            term, colon, value = line.partition(": ")
            if colon:
                terms.setdefault(term, _cell(value))
    return Sheet(terms, tables)


def _cell(text: str) -> Cell:
    found = _CONTROL.fullmatch(text.strip())
    return Cell(json.loads(found[2]), found[1]) if found else Cell(text.strip().replace("\\|", "|"))


def _people(view: View) -> list[Record]:
    rows = sheet_of(view).tables.get("Customers found", [])
    return [{"user_id": user_id.text, "name": name.text, "email": email.text} for name, email, user_id in rows]


def _by_email(arguments: Mapping[str, Any], path: str, asked: Mapping[str, str], view: View) -> Record | None:
    return next(iter(_people(view)), None) if path == "/customers" and asked.get("q") == arguments["email"] else None


def _by_name(arguments: Mapping[str, Any], path: str, asked: Mapping[str, str], view: View) -> Record | None:
    if path != "/customers" or asked.get("q") != arguments["name"] or asked.get("page", "1") != str(arguments.get("page", 1)):
        return None
    return {"users": _people(view), "more": any("page=" in link.get("url", "") for link in view["elements"])}


def _user(arguments: Mapping[str, Any], path: str, _: Mapping[str, str], view: View) -> Record | None:
    if path != f"/customers/{arguments['user_id']}":
        return None
    terms, tables = sheet_of(view)
    return {
        "user_id": arguments["user_id"],
        "name": terms["Name"].text,
        "email": terms["E-mail"].text,
        "standing": terms["Standing"].text,
        "addresses": [
            {"address_id": key.text, "street": street.text, "city": city.text, "zip": code.text}
            for street, city, code, key in tables.get("Addresses", [])
        ],
        "payment_methods": [{"payment_id": key.text, "kind": kind.text} for kind, key in tables.get("Payment methods", [])],
        "order_count": int(terms["Number of orders"].text),
    }


def _orders(arguments: Mapping[str, Any], path: str, asked: Mapping[str, str], view: View) -> Record | None:
    """The first orders of an account, or those after a cursor."""
    if asked.get("after") != arguments.get("cursor") or path != f"/customers/{arguments['user_id']}/orders":
        return None
    rows = sheet_of(view).tables.get("Orders", [])
    onward = [url.partition("?after=")[2] for link in view["elements"] if "?after=" in (url := link.get("url", ""))]
    orders = [{"order_id": order.text, "status": status.text, "products": products.text.split(", ")} for order, status, products in rows]
    return {"user_id": arguments["user_id"], "orders": orders, **({"cursor": onward[0]} if onward else {})}


def _order(arguments: Mapping[str, Any], path: str, _: Mapping[str, str], view: View) -> Record | None:
    if path != f"/orders/{arguments['order_id']}":
        return None
    terms, tables = sheet_of(view)
    leads = {element["bid"]: element.get("url", "") for element in view["elements"]}
    items = [
        {
            "item_id": item.text,
            "product_id": leads[product.bid].rpartition("/")[2],
            "product": product.text,
            "colour": colour.text,
            "style": style.text,
            "finish": finish.text,
            "state": state.text,
            "quantity": int(quantity.text),
            "price_cents": _cents(price.text),
        }
        for item, product, colour, style, finish, state, quantity, price, *_ in tables.get("Items", [])
    ]
    return {
        "order_id": arguments["order_id"],
        "user_id": terms["Customer"].text,
        "status": terms["Status"].text,
        "terms": terms["Terms"].text,
        "carrier": terms["Carrier"].text,
        "paid_with": terms["Paid with"].text,
        "exchange_window": terms["Exchange window"].text,
        "placed_on": terms["Placed on"].text,
        "delivered_on": terms["Delivered on"].text,
        "message": "" if terms["Message"].text == "none" else terms["Message"].text,
        "ship_to": terms["Ship to"].text,
        "items": items,
        "total_cents": _cents(terms["Total"].text),
    }


def _product(arguments: Mapping[str, Any], path: str, _: Mapping[str, str], view: View) -> Record | None:
    """Variants are shown on the product's own page, and where an item of it is exchanged."""
    own = f"/products/{arguments['product_id']}"
    links = {element["url"] for element in view["elements"] if element.get("url", "").startswith("/products/")}
    if path != own and not (path.endswith("/exchange") and own in links):
        return None
    terms, tables = sheet_of(view)
    variants = [
        {
            "variant_id": key.text,
            "colour": colour.text,
            "style": style.text,
            "price_cents": _cents(price.text),
            "stock": int(stock.text),
        }
        for colour, style, price, stock, key in tables.get("Variants", [])
    ]
    return {"product_id": arguments["product_id"], "product": terms["Product"].text, "variants": variants}


def _cart(arguments: Mapping[str, Any], path: str, _: Mapping[str, str], view: View) -> Record | None:
    if path != f"/customers/{arguments['user_id']}/cart":
        return None
    terms, tables = sheet_of(view)
    lines = [
        {
            "line_id": line.text,
            "product": product.text,
            "colour": colour.text,
            "style": style.text,
            "quantity": int(quantity.text),
            "price_cents": _cents(price.text),
        }
        for product, line, colour, style, price, quantity, *_ in tables.get("Cart", [])
    ]
    voucher, total = terms.get("With voucher"), terms.get("Total")
    return {
        "lines": lines,
        "with_voucher": "" if voucher is None or voucher.text == "none" else voucher.text,
        "total_cents": 0 if total is None else _cents(total.text),
    }


def _cents(money: str) -> int:
    dollars, _, cents = money.removeprefix("$").partition(".")
    return 100 * int(dollars) + int(cents)


_READERS: dict[str, Callable[[Mapping[str, Any], str, Mapping[str, str], View], Record | None]] = {
    "find_user_by_email": _by_email,
    "find_users_by_name": _by_name,
    "get_user": _user,
    "list_orders": _orders,
    "list_orders_after": _orders,
    "get_cart": _cart,
    "get_order": _order,
    "get_product": _product,
}
