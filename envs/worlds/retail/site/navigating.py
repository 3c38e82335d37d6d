"""Finds the way through the site: the next action towards the page that answers a call, or the form that carries it out."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail.site.pages import REASON_LABELS
from agent_gym.envs.worlds.retail.site.reading import answer, sheet_of

__all__ = ["way"]

View = Mapping[str, Any]
_CUSTOMER_FIELD = "E-mail address, or first and last name"


def way(call: ToolCall, views: Sequence[View]) -> ToolCall:
    """The next action on the page.

    Args:
        call: The operation that is wanted; none of the pages seen so far has answered it.
        views: The pages seen so far, oldest first; the last is the one that is shown.
    """
    arguments = call.arguments
    match call.name:
        case "find_user_by_email" | "find_users_by_name":
            return _search(views[-1], _CUSTOMER_FIELD, arguments.get("email") or arguments["name"], "Find customer", "/customers")
        case "get_user":
            return _to(f"/customers/{arguments['user_id']}", views)
        case "list_orders":
            return _to(f"/customers/{arguments['user_id']}/orders", views)
        case "get_order":
            return _to_order(arguments["order_id"], views)
        case "get_product":
            return _to_product(arguments["product_id"], views)
        case "cancel_order":
            return _cancel(arguments, views)
        case "change_address":
            return _change_address(arguments, views)
        case "exchange_item":
            return _exchange(arguments, views)
        case _:
            raise ValueError(f"there is no way known to {call}")


def _cancel(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    if _path(views[-1]) != f"/orders/{arguments['order_id']}":
        return _to_order(arguments["order_id"], views)
    return _choose(views[-1], "Reason", REASON_LABELS[arguments["reason"]], "Cancel order")


def _change_address(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    order = f"/orders/{arguments['order_id']}"
    if _path(views[-1]) != f"{order}/address":
        return _onward(f"{order}/address", order, arguments["order_id"], views)
    saved = [row for view in views for row in sheet_of(view).tables.get("Addresses", [])]
    label = next((f"{street.text}, {city.text}" for street, city, _, key in saved if key.text == arguments["address_id"]), "")
    return _choose(views[-1], "New address", label, "Change address")


def _exchange(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    order = f"/orders/{arguments['order_id']}"
    page = f"{order}/items/{arguments['item_id']}/exchange"
    if _path(views[-1]) != page:
        return _onward(page, order, arguments["order_id"], views)
    rows = sheet_of(views[-1]).tables["Variants"]
    label = next((f"{colour.text}, {style.text}" for colour, style, *_, key in rows if key.text == arguments["variant_id"]), "")
    return _choose(views[-1], "New variant", label, "Exchange ")


def _onward(page: str, order: str, order_id: str, views: Sequence[View]) -> ToolCall:
    """To a page that the order's own page leads to."""
    return _to(page, views) if _path(views[-1]) == order else _to_order(order_id, views)


def _to_order(order_id: str, views: Sequence[View]) -> ToolCall:
    page = f"/orders/{order_id}"
    if _led(page, views):
        return _to(page, views)
    return _search(views[-1], "Order number", order_id, "Find order", "/orders")


def _to_product(product_id: str, views: Sequence[View]) -> ToolCall:
    """By the link to exchange an item of it, if the page has one: the form shows the variants too."""
    page = f"/products/{product_id}"
    view = views[-1]
    order = answer(ToolCall("get_order", {"order_id": _path(view).rpartition("/")[2]}), view)
    for item in order["items"] if order else ():
        if item["product_id"] == product_id:
            return _to(f"{_path(view)}/items/{item['item_id']}/exchange", views)
    return _to(page, views)


def _to(path: str, views: Sequence[View]) -> ToolCall:
    """By the link that leads there; back, if an earlier page had it; else by the address itself."""
    link = _link(path, views[-1])
    if link:
        return ToolCall("click", {"bid": link})
    return ToolCall("go_back") if _led(path, views) else ToolCall("goto", {"url": path})


def _search(view: View, field: str, text: str, button: str, page: str) -> ToolCall:
    """Fills a search form and sends it; goes to the page that has it first."""
    shown = next((element for element in view["elements"] if element.get("name") == field), None)
    if shown is None:
        return ToolCall("click", {"bid": _link(page, view)})
    if shown.get("value", "") != text:
        return ToolCall("fill", {"bid": shown["bid"], "value": text})
    return _push(view, button)


def _choose(view: View, field: str, label: str, button: str) -> ToolCall:
    """Selects an option in a form and sends it."""
    select = next(element for element in view["elements"] if element.get("name") == field)
    if select.get("value", "") != label:
        return ToolCall("select_option", {"bid": select["bid"], "options": label})
    return _push(view, button)


def _push(view: View, button: str) -> ToolCall:
    buttons = (one["bid"] for one in view["elements"] if one["role"] == "button" and one.get("name", "").startswith(button))
    return ToolCall("click", {"bid": next(buttons)})


def _led(path: str, views: Sequence[View]) -> bool:
    return any(_link(path, view) for view in views)


def _link(path: str, view: View) -> str:
    return next((element["bid"] for element in view["elements"] if element.get("url") == path), "")


def _path(view: View) -> str:
    return urlsplit(view["url"]).path
