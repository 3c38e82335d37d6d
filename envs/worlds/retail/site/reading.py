"""Reads records off the pages, as the operations behind them gave them: what an oracle learns by looking."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.site.pages import done

__all__ = ["Cell", "Sheet", "answer", "clear_caches", "sheet_of"]

View = Mapping[str, Any]
Record = dict[str, Any]

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
        The record, or None if this page is not about it.
    """
    if view["status"] != 200:
        return None
    url = urlsplit(view["url"])
    asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
    if call.name in _READERS:
        return _READERS[call.name](call.arguments, url.path, asked, view)
    about, said = f"/orders/{call.arguments['order_id']}", f"! {done(call.name, call.arguments)}"
    return {"order_id": call.arguments["order_id"]} if url.path == about and said in view["outline"].split("\n") else None


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
        "order_ids": [order.text for (order,) in tables.get("Orders", [])],
    }


def _orders(arguments: Mapping[str, Any], path: str, _: Mapping[str, str], view: View) -> Record | None:
    if path != f"/customers/{arguments['user_id']}/orders":
        return None
    rows = sheet_of(view).tables.get("Orders", [])
    return {
        "orders": [
            {"order_id": order.text, "status": status.text, "products": products.text.split(", ")} for order, status, products in rows
        ]
    }


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
        "ship_to": terms["Ship to"].text,
        "items": items,
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


def _cents(money: str) -> int:
    dollars, _, cents = money.removeprefix("$").partition(".")
    return 100 * int(dollars) + int(cents)


_READERS: dict[str, Callable[[Mapping[str, Any], str, Mapping[str, str], View], Record | None]] = {
    "find_user_by_email": _by_email,
    "find_users_by_name": _by_name,
    "get_user": _user,
    "list_orders": _orders,
    "get_order": _order,
    "get_product": _product,
}
