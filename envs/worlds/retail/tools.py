"""The tools of the retail world as the agent sees them: descriptions with their preconditions, parameters, results."""

from typing import Any

from agent_gym.envs.worlds.retail.catalogue import CATEGORIES, REASONS
from agent_gym.world.specs import TEXT, TEXTS, WHOLE, choice, entities, record, rows, shaped, tool

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
_CENTS: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
_PAGE: Schema = {"type": "integer", "minimum": 1, "maximum": 100, "description": "Which page of five rows; the first by default."}
_ENTITIES, _IDS = entities(PATTERNS), shaped(PATTERNS)

_CATEGORY = choice(tuple(CATEGORIES))
_PERSON = {"user_id": _IDS["user_id"], "name": TEXT, "email": TEXT}
_ITEM = {
    "item_id": _IDS["item_id"],
    "product_id": _IDS["product_id"],
    "product": TEXT,
    "colour": TEXT,
    "style": TEXT,
    "finish": TEXT,
    "state": TEXT,
    "quantity": WHOLE,
    "price_cents": WHOLE,
}
_ORDERS = record({"cursor": _IDS["cursor"]}, user_id=_IDS["user_id"], orders=rows(order_id=_IDS["order_id"], status=TEXT, products=TEXTS))

TOOLS = (
    tool(
        "find_user_by_email",
        "Finds the account with an e-mail address.",
        record(email=_ENTITIES["email"]),
        record(**_PERSON),
    ),
    tool(
        "find_users_by_name",
        "Lists everybody with a first and last name, five a page; several people may share one.",
        record({"page": _PAGE}, name=_ENTITIES["name"]),
        record(users=rows(**_PERSON), more={"type": "boolean"}),
    ),
    tool(
        "get_user",
        "Reads an account: its standing, saved addresses, payment methods, and how many orders it has.",
        record(user_id=_ENTITIES["user_id"]),
        record(
            **_PERSON,
            standing=TEXT,
            notes=TEXTS,
            addresses=rows(address_id=_IDS["address_id"], street=TEXT, city=TEXT, zip=TEXT),
            payment_methods=rows(payment_id=_IDS["payment_id"], kind=TEXT),
            order_count=WHOLE,
        ),
    ),
    tool(
        "list_orders",
        "Lists an account's orders and the products in each, the first five; with a cursor where more come after them.",
        record(user_id=_ENTITIES["user_id"]),
        _ORDERS,
    ),
    tool(
        "list_orders_after",
        "Lists an account's next five orders, from a list's cursor on.",
        record(user_id=_ENTITIES["user_id"], cursor=_ENTITIES["cursor"]),
        _ORDERS,
    ),
    tool(
        "get_order",
        "Reads an order: status, terms, carrier, how it was paid, where it goes, when it was placed and delivered, whether its exchange "
        "window is open, its customer's message to the carrier, its items, and what they come to now.",
        record(order_id=_ENTITIES["order_id"]),
        record(
            order_id=_IDS["order_id"],
            user_id=_IDS["user_id"],
            status=TEXT,
            terms=TEXT,
            carrier=TEXT,
            paid_with=TEXT,
            exchange_window=TEXT,
            placed_on=TEXT,
            delivered_on=TEXT,
            notes=TEXTS,
            message=TEXT,
            ship_to=TEXT,
            items=rows(**_ITEM),
            total_cents=WHOLE,
        ),
    ),
    tool(
        "list_products",
        "Lists the products of a category, five a page.",
        record({"page": _PAGE}, category=_CATEGORY),
        record(products=rows(product_id=_IDS["product_id"], product=TEXT), more={"type": "boolean"}),
    ),
    tool(
        "get_product",
        "Reads a product and its variants: colour, style, price and stock of each.",
        record(product_id=_ENTITIES["product_id"]),
        record(
            product_id=_IDS["product_id"],
            product=TEXT,
            category=TEXT,
            variants=rows(variant_id=_IDS["variant_id"], colour=TEXT, style=TEXT, price_cents=WHOLE, stock=WHOLE),
        ),
    ),
    tool(
        "search_products",
        "Lists the products whose names have words that begin so, five a page: of one category, or with a variant at no more than a "
        "price, if that is asked.",
        record({"category": _CATEGORY, "max_price_cents": _CENTS, "page": _PAGE}, query=_IDS["query"]),
        record(
            products=rows(product_id=_IDS["product_id"], product=TEXT, category=TEXT, from_cents=WHOLE),
            more={"type": "boolean"},
        ),
    ),
    tool(
        "get_cart",
        "Reads what is in an account's cart, which voucher is on it, and what it comes to with it.",
        record(user_id=_ENTITIES["user_id"]),
        record(
            lines=rows(
                line_id=_IDS["line_id"],
                variant_id=_IDS["variant_id"],
                product_id=_IDS["product_id"],
                product=TEXT,
                colour=TEXT,
                style=TEXT,
                quantity=WHOLE,
                price_cents=WHOLE,
            ),
            with_voucher=TEXT,
            total_cents=WHOLE,
        ),
    ),
    tool(
        "cancel_order",
        "Cancels a pending order as a whole: refunds what was paid and puts its items back into stock. Needs status pending.",
        record(order_id=_ENTITIES["order_id"], reason=choice(REASONS)),
        record(order_id=_IDS["order_id"], status=TEXT, refunded_cents=WHOLE),
        writes=True,
        destroys=True,
    ),
    tool(
        "change_address",
        "Sends a pending order to another address saved in its owner's account. Needs status pending and a different address.",
        record(order_id=_ENTITIES["order_id"], address_id=_ENTITIES["address_id"]),
        record(order_id=_IDS["order_id"], ship_to=TEXT),
        writes=True,
    ),
    tool(
        "exchange_item",
        "Exchanges an item of a delivered order for another variant of the same product and books the difference in price. Needs "
        "status delivered, an item not yet returned, a different variant, and stock for the item's quantity.",
        record(order_id=_ENTITIES["order_id"], item_id=_ENTITIES["item_id"], variant_id=_ENTITIES["variant_id"]),
        record(item_id=_IDS["item_id"], colour=TEXT, style=TEXT, difference_cents=WHOLE),
        writes=True,
    ),
    tool(
        "return_item",
        "Takes back an item of a delivered order: refunds its price and puts it into stock. Needs status delivered and an item not "
        "yet returned.",
        record(order_id=_ENTITIES["order_id"], item_id=_ENTITIES["item_id"]),
        record(item_id=_IDS["item_id"], state=TEXT, refunded_cents=WHOLE),
        writes=True,
        destroys=True,
    ),
    tool(
        "add_to_cart",
        "Puts pieces of a variant into an account's cart, beside what is there of it. Needs stock for all of them and an account "
        "that is not closed.",
        record(
            user_id=_ENTITIES["user_id"],
            variant_id=_ENTITIES["variant_id"],
            quantity={"type": "integer", "minimum": 1, "maximum": 99},
        ),
        record(line_id=_IDS["line_id"], quantity=WHOLE),
        writes=True,
    ),
    tool(
        "set_cart_quantity",
        "Changes how many pieces a line of a cart has; 0 takes it out. Needs another number than now, and stock for all of them.",
        record(line_id=_ENTITIES["line_id"], quantity={"type": "integer", "minimum": 0, "maximum": 99}),
        record(line_id=_IDS["line_id"], quantity=WHOLE),
        writes=True,
    ),
    tool(
        "apply_voucher",
        "Puts a voucher on an account's cart, in the place of any other, and tells what the cart then comes to. Needs a cart that is worth "
        "the voucher's minimum and an account that is not closed.",
        record(user_id=_ENTITIES["user_id"], voucher=_ENTITIES["voucher"]),
        record(with_voucher=TEXT, total_cents=WHOLE),
        writes=True,
    ),
    tool(
        "place_order",
        "Orders all that is in an account's cart, with its voucher, and empties the cart. Needs an account that is not closed, an address "
        "and a payment method saved in it, a method that is accepted, and stock for every line.",
        record(user_id=_ENTITIES["user_id"], address_id=_ENTITIES["address_id"], payment_id=_ENTITIES["payment_id"]),
        record(order_id=_IDS["order_id"], total_cents=WHOLE),
        writes=True,
    ),
    tool(
        "change_payment",
        "Charges a pending order to another payment method saved in its owner's account and pays back the one before. Needs status "
        "pending, another method, and one that is accepted.",
        record(order_id=_ENTITIES["order_id"], payment_id=_ENTITIES["payment_id"]),
        record(order_id=_IDS["order_id"], paid_with=TEXT),
        writes=True,
    ),
    tool(
        "close_account",
        "Closes an account for good; neither that nor what was done before can be undone then. "
        "Needs an account that is not closed and no order of it that is pending or shipped.",
        record(user_id=_ENTITIES["user_id"]),
        record(user_id=_IDS["user_id"], standing=TEXT),
        writes=True,
        destroys=True,
    ),
)
