"""The tools of the retail world as the agent sees them: descriptions with their preconditions, parameters, results."""

from collections.abc import Mapping
from typing import Any

from agent_gym.core import ToolSpec
from agent_gym.envs.worlds.retail.catalogue import CATEGORIES, REASONS

__all__ = ["PATTERNS", "TOOLS"]

Schema = dict[str, Any]

PATTERNS = {
    "order_id": r"^W\d{7}$",
    "user_id": r"^U\d{7}$",
    "item_id": r"^I\d{7}$",
    "product_id": r"^P\d{7}$",
    "variant_id": r"^V\d{7}$",
    "address_id": r"^A\d{7}$",
    "payment_id": r"^M\d{7}$",
    "line_id": r"^C\d{7}$",
    "cursor": r"^K\d{7}$",
    "voucher": r"^[A-Z]{5}-\d{2}$",
    "email": r"^[a-z0-9._+-]+@[a-z0-9-]+(\.[a-z0-9-]+)+$",
    "name": r"^[A-ZÀ-Þ][A-Za-zÀ-ÿ'’-]+ [A-ZÀ-Þ][A-Za-zÀ-ÿ'’-]+$",
    "query": r"^[0-9A-Za-zÀ-ÿ '’-]{0,80}$",
}
"""What ids, addresses, names and searches look like."""
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_WHOLE: Schema = {"type": "integer"}
_CENTS: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
_PAGE: Schema = {"type": "integer", "minimum": 1, "maximum": 100, "description": "Which page of five rows; the first by default."}


def _entity(kind: str) -> Schema:
    return {"type": "string", "pattern": PATTERNS[kind], "x-entity": kind}


def _object(optional: Mapping[str, Schema] | None = None, /, **required: Schema) -> Schema:
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _rows(**properties: Schema) -> Schema:
    return {"type": "array", "items": _object(**properties)}


def _ids(kind: str) -> Schema:
    return {"type": "string", "pattern": PATTERNS[kind]}


def _tool(name: str, description: str, parameters: Schema, result: Schema, *, writes: bool = False, destroys: bool = False) -> ToolSpec:
    hints = {"readOnlyHint": not writes, "destructiveHint": destroys, "idempotentHint": not writes, "openWorldHint": False}
    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        output_schema=result,
        annotations=hints,
        may_block=False,
        remote=True,  # the shop's service, which can fail by itself
    )


_CATEGORY: Schema = {"type": "string", "enum": list(CATEGORIES)}
_PERSON = {"user_id": _ids("user_id"), "name": _TEXT, "email": _TEXT}
_ITEM = {
    "item_id": _ids("item_id"),
    "product_id": _ids("product_id"),
    "product": _TEXT,
    "colour": _TEXT,
    "style": _TEXT,
    "finish": _TEXT,
    "state": _TEXT,
    "quantity": _WHOLE,
    "price_cents": _WHOLE,
}
_ORDERS = _object(
    {"cursor": _ids("cursor")}, user_id=_ids("user_id"), orders=_rows(order_id=_ids("order_id"), status=_TEXT, products=_TEXTS)
)

TOOLS = (
    _tool(
        "find_user_by_email",
        "Finds the account with an e-mail address.",
        _object(email=_entity("email")),
        _object(**_PERSON),
    ),
    _tool(
        "find_users_by_name",
        "Lists everybody with a first and last name, five a page; several people may share one.",
        _object({"page": _PAGE}, name=_entity("name")),
        _object(users=_rows(**_PERSON), more={"type": "boolean"}),
    ),
    _tool(
        "get_user",
        "Reads an account: its standing, saved addresses, payment methods, and how many orders it has.",
        _object(user_id=_entity("user_id")),
        _object(
            **_PERSON,
            standing=_TEXT,
            notes=_TEXTS,
            addresses=_rows(address_id=_ids("address_id"), street=_TEXT, city=_TEXT, zip=_TEXT),
            payment_methods=_rows(payment_id=_ids("payment_id"), kind=_TEXT),
            order_count=_WHOLE,
        ),
    ),
    _tool(
        "list_orders",
        "Lists an account's orders and the products in each, the first five; with a cursor where more come after them.",
        _object(user_id=_entity("user_id")),
        _ORDERS,
    ),
    _tool(
        "list_orders_after",
        "Lists an account's next five orders, from a list's cursor on.",
        _object(user_id=_entity("user_id"), cursor=_entity("cursor")),
        _ORDERS,
    ),
    _tool(
        "get_order",
        "Reads an order: status, terms, carrier, how it was paid, where it goes, when it was placed and delivered, whether its exchange "
        "window is open, its customer's message to the carrier, its items, and what they come to now.",
        _object(order_id=_entity("order_id")),
        _object(
            order_id=_ids("order_id"),
            user_id=_ids("user_id"),
            status=_TEXT,
            terms=_TEXT,
            carrier=_TEXT,
            paid_with=_TEXT,
            exchange_window=_TEXT,
            placed_on=_TEXT,
            delivered_on=_TEXT,
            notes=_TEXTS,
            message=_TEXT,
            ship_to=_TEXT,
            items=_rows(**_ITEM),
            total_cents=_WHOLE,
        ),
    ),
    _tool(
        "list_products",
        "Lists the products of a category, five a page.",
        _object({"page": _PAGE}, category=_CATEGORY),
        _object(products=_rows(product_id=_ids("product_id"), product=_TEXT), more={"type": "boolean"}),
    ),
    _tool(
        "get_product",
        "Reads a product and its variants: colour, style, price and stock of each.",
        _object(product_id=_entity("product_id")),
        _object(
            product_id=_ids("product_id"),
            product=_TEXT,
            category=_TEXT,
            variants=_rows(variant_id=_ids("variant_id"), colour=_TEXT, style=_TEXT, price_cents=_WHOLE, stock=_WHOLE),
        ),
    ),
    _tool(
        "search_products",
        "Lists the products whose names have words that begin so, five a page: of one category, or with a variant at no more than a "
        "price, if that is asked.",
        _object({"category": _CATEGORY, "max_price_cents": _CENTS, "page": _PAGE}, query=_ids("query")),
        _object(
            products=_rows(product_id=_ids("product_id"), product=_TEXT, category=_TEXT, from_cents=_WHOLE),
            more={"type": "boolean"},
        ),
    ),
    _tool(
        "get_cart",
        "Reads what is in an account's cart, which voucher is on it, and what it comes to with it.",
        _object(user_id=_entity("user_id")),
        _object(
            lines=_rows(
                line_id=_ids("line_id"),
                variant_id=_ids("variant_id"),
                product_id=_ids("product_id"),
                product=_TEXT,
                colour=_TEXT,
                style=_TEXT,
                quantity=_WHOLE,
                price_cents=_WHOLE,
            ),
            with_voucher=_TEXT,
            total_cents=_WHOLE,
        ),
    ),
    _tool(
        "cancel_order",
        "Cancels a pending order as a whole: refunds what was paid and puts its items back into stock. Needs status pending.",
        _object(order_id=_entity("order_id"), reason={"type": "string", "enum": list(REASONS)}),
        _object(order_id=_ids("order_id"), status=_TEXT, refunded_cents=_WHOLE),
        writes=True,
        destroys=True,
    ),
    _tool(
        "change_address",
        "Sends a pending order to another address saved in its owner's account. Needs status pending and a different address.",
        _object(order_id=_entity("order_id"), address_id=_entity("address_id")),
        _object(order_id=_ids("order_id"), ship_to=_TEXT),
        writes=True,
    ),
    _tool(
        "exchange_item",
        "Exchanges an item of a delivered order for another variant of the same product and books the difference in price. Needs "
        "status delivered, an item not yet returned, a different variant, and stock for the item's quantity.",
        _object(order_id=_entity("order_id"), item_id=_entity("item_id"), variant_id=_entity("variant_id")),
        _object(item_id=_ids("item_id"), colour=_TEXT, style=_TEXT, difference_cents=_WHOLE),
        writes=True,
    ),
    _tool(
        "return_item",
        "Takes back an item of a delivered order: refunds its price and puts it into stock. Needs status delivered and an item not "
        "yet returned.",
        _object(order_id=_entity("order_id"), item_id=_entity("item_id")),
        _object(item_id=_ids("item_id"), state=_TEXT, refunded_cents=_WHOLE),
        writes=True,
        destroys=True,
    ),
    _tool(
        "add_to_cart",
        "Puts pieces of a variant into an account's cart, beside what is there of it. Needs stock for all of them and an account "
        "that is not closed.",
        _object(
            user_id=_entity("user_id"),
            variant_id=_entity("variant_id"),
            quantity={"type": "integer", "minimum": 1, "maximum": 99},
        ),
        _object(line_id=_ids("line_id"), quantity=_WHOLE),
        writes=True,
    ),
    _tool(
        "set_cart_quantity",
        "Changes how many pieces a line of a cart has; 0 takes it out. Needs another number than now, and stock for all of them.",
        _object(line_id=_entity("line_id"), quantity={"type": "integer", "minimum": 0, "maximum": 99}),
        _object(line_id=_ids("line_id"), quantity=_WHOLE),
        writes=True,
    ),
    _tool(
        "apply_voucher",
        "Puts a voucher on an account's cart, in the place of any other, and tells what the cart then comes to. Needs a cart that is worth "
        "the voucher's minimum and an account that is not closed.",
        _object(user_id=_entity("user_id"), voucher=_entity("voucher")),
        _object(with_voucher=_TEXT, total_cents=_WHOLE),
        writes=True,
    ),
    _tool(
        "place_order",
        "Orders all that is in an account's cart, with its voucher, and empties the cart. Needs an account that is not closed, an address "
        "and a payment method saved in it, a method that is accepted, and stock for every line.",
        _object(user_id=_entity("user_id"), address_id=_entity("address_id"), payment_id=_entity("payment_id")),
        _object(order_id=_ids("order_id"), total_cents=_WHOLE),
        writes=True,
    ),
    _tool(
        "change_payment",
        "Charges a pending order to another payment method saved in its owner's account and pays back the one before. Needs status "
        "pending, another method, and one that is accepted.",
        _object(order_id=_entity("order_id"), payment_id=_entity("payment_id")),
        _object(order_id=_ids("order_id"), paid_with=_TEXT),
        writes=True,
    ),
    _tool(
        "close_account",
        "Closes an account for good; neither that nor what was done before can be undone then. "
        "Needs an account that is not closed and no order of it that is pending or shipped.",
        _object(user_id=_entity("user_id")),
        _object(user_id=_ids("user_id"), standing=_TEXT),
        writes=True,
        destroys=True,
    ),
)
