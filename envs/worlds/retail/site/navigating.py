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
        case "list_orders_after":
            return _to(f"/customers/{arguments['user_id']}/orders?after={arguments['cursor']}", views)
        case "get_cart":
            return _to(f"/customers/{arguments['user_id']}/cart", views)
        case "get_order":
            return _to_order(arguments["order_id"], views)
        case "get_product":
            return _to_product(arguments["product_id"], views)
        case "cancel_order":
            return _cancel(arguments, views)
        case "change_address":
            return _change_address(arguments, views)
        case "change_payment":
            return _change_payment(arguments, views)
        case "return_item":
            return _return(arguments, views)
        case "set_cart_quantity":
            return _set_cart_quantity(arguments, views)
        case "apply_voucher":
            page = f"/customers/{arguments['user_id']}/cart"
            return _search(views[-1], "Voucher", arguments["voucher"], "Apply voucher", page)
        case "place_order":
            return _place_order(arguments, views)
        case "close_account":
            return _push_at(f"/customers/{arguments['user_id']}", "Close account", views)
        case "undo":
            return _push(views[-1], "Undo the last change")
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
    return _choose(views[-1], "New address", _address(arguments["address_id"], views), "Change address")


def _change_payment(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    order = f"/orders/{arguments['order_id']}"
    if _path(views[-1]) != f"{order}/payment":
        return _onward(f"{order}/payment", order, arguments["order_id"], views)
    return _choose(views[-1], "New payment method", _option(arguments["payment_id"], views[-1]), "Change payment")


def _return(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    if _path(views[-1]) != f"/orders/{arguments['order_id']}":
        return _to_order(arguments["order_id"], views)
    rows = sheet_of(views[-1]).tables["Items"]
    return _push(views[-1], f"Return {next(product.text for item, product, *_ in rows if item.text == arguments['item_id'])}")


def _set_cart_quantity(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    """On the page that shows the cart: the newest that has the line."""
    cart = next(view for view in reversed(views) if _line(arguments["line_id"], view))
    if _path(views[-1]) != _path(cart):
        return _to(_path(cart), views)
    what = _line(arguments["line_id"], views[-1])
    return _fill(views[-1], f"Quantity of {what}", str(arguments["quantity"]), f"Set quantity of {what}")


def _place_order(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    page = f"/customers/{arguments['user_id']}/checkout"
    if _path(views[-1]) != page:
        cart = f"/customers/{arguments['user_id']}/cart"
        return _to(page if _link(page, views[-1]) else cart, views)
    field = _field(views[-1], "Address")
    label = _address(arguments["address_id"], views)
    if field.get("value", "") != label:
        return ToolCall("select_option", {"bid": field["bid"], "options": label})
    return _choose(views[-1], "Payment method", _option(arguments["payment_id"], views[-1]), "Place order")


def _exchange(arguments: Mapping[str, Any], views: Sequence[View]) -> ToolCall:
    order = f"/orders/{arguments['order_id']}"
    page = f"{order}/items/{arguments['item_id']}/exchange"
    if _path(views[-1]) != page:
        return _onward(page, order, arguments["order_id"], views)
    return _choose(views[-1], "New variant", _variant(arguments["variant_id"], views[-1]), "Exchange ")


def _onward(page: str, order: str, order_id: str, views: Sequence[View]) -> ToolCall:
    """To a page that the order's own page leads to."""
    return _to(page, views) if _path(views[-1]) == order else _to_order(order_id, views)


def _address(key: str, views: Sequence[View]) -> str:
    """An address as the options of forms name it."""
    saved = [row for view in views for row in sheet_of(view).tables.get("Addresses", [])]
    return next((f"{street.text}, {city.text}" for street, city, _, number in saved if number.text == key), "")


def _variant(key: str, view: View) -> str:
    """A variant as the options of forms name it."""
    rows = sheet_of(view).tables.get("Variants", [])
    return next((f"{colour.text}, {style.text}" for colour, style, *_, number in rows if number.text == key), "")


def _line(key: str, view: View) -> str:
    """What a line of a cart is called."""
    rows = sheet_of(view).tables.get("Cart", [])
    found = (f"{colour.text} {style.text} {product.text}" for product, line, colour, style, *_ in rows if line.text == key)
    return next(found, "")


def _option(key: str, view: View) -> str:
    """The option that names an id."""
    return next(str(option) for element in view["elements"] for option in element.get("options", ()) if key in option)


def _push_at(page: str, button: str, views: Sequence[View]) -> ToolCall:
    return _push(views[-1], button) if _path(views[-1]) == page else _to(page, views)


def _to_order(order_id: str, views: Sequence[View]) -> ToolCall:
    """By a link; of another page that had one, by a link to that page or to the list that it is of; else by the number."""
    page = f"/orders/{order_id}"
    had = next((urlsplit(view["url"]) for view in reversed(views) if _link(page, view)), None)
    here = [element for element in views[-1]["elements"] if element.get("url")]
    links = [element for element in here if element["url"] == page]
    if not links and had is not None:  # a list goes on on its next page, and begins on its first
        onward = f"{had.path}?after=" if _path(views[-1]) == had.path else had.path
        links = [element for element in here if element["url"].startswith(onward)]
    if links:
        return ToolCall("click", {"bid": links[0]["bid"]})
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
    return ToolCall("go_back") if _led(path, views) and _path(views[-1]) != "/" else ToolCall("goto", {"url": path})


def _search(view: View, field: str, text: str, button: str, page: str) -> ToolCall:
    """Fills a search form and sends it; goes to the page that has it first."""
    if all(element.get("name") != field for element in view["elements"]):
        return ToolCall("click", {"bid": _link(page, view)})
    return _fill(view, field, text, button)


def _fill(view: View, field: str, text: str, button: str) -> ToolCall:
    """Fills in a field of a form and sends it."""
    shown = _field(view, field)
    if shown.get("value", "") != text:
        return ToolCall("fill", {"bid": shown["bid"], "value": text})
    return _push(view, button)


def _choose(view: View, field: str, label: str, button: str) -> ToolCall:
    """Selects an option in a form and sends it."""
    select = _field(view, field)
    if select.get("value", "") != label:
        return ToolCall("select_option", {"bid": select["bid"], "options": label})
    return _push(view, button)


def _field(view: View, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(element for element in view["elements"] if element.get("name") == name)
    return found


def _push(view: View, button: str) -> ToolCall:
    buttons = (one["bid"] for one in view["elements"] if one["role"] == "button" and one.get("name", "").startswith(button))
    return ToolCall("click", {"bid": next(buttons)})


def _led(path: str, views: Sequence[View]) -> bool:
    return any(_link(path, view) for view in views)


def _link(path: str, view: View) -> str:
    return next((element["bid"] for element in view["elements"] if element.get("url") == path), "")


def _path(view: View) -> str:
    return urlsplit(view["url"]).path
