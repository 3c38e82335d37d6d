"""What the retail world tells: the operations that only read."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from agent_gym.envs.worlds.retail.generate import DAY
from agent_gym.envs.worlds.retail.money import discount, due, worth
from agent_gym.world import NotFound, World

__all__ = ["QUERIES", "get_order", "owner", "place"]

Record = dict[str, Any]

_WINDOW_DAYS = 30
"""Days after delivery during which the exchange window is open."""
_PAGE = 5
_OWNED = {
    **{table: table for table in ("users", "addresses", "payment_methods", "orders", "carts")},
    **{table: f"{table} JOIN orders USING (order_id)" for table in ("items", "payments", "returns")},
}
"""Where to find out whose a row is, by its table."""
_NOTES = {
    "on hold": "On hold: this account is locked until our review is over.",
    "final sale": "Final sale: this sale is final, no money back.",
    "gift card": "Gift card: it was paid with a gift card, which takes no refund.",
    "freight": "Freight: a freight truck is booked and its route is fixed.",
    "closed": "Window closed: the time for an exchange is over, the window is closed.",
    "engraved": "Engraved: the {product} is engraved, made to order.",
}
"""What a record says of itself where a rule may matter."""


def find_user_by_email(world: World, email: str) -> Record:
    users = world.query("SELECT user_id, name, email FROM users WHERE email = ?", (email,))
    if not users:
        raise NotFound(f"no account has the e-mail address {email}")
    return users[0]


def find_users_by_name(world: World, name: str, page: int = 1) -> Record:
    sql = "SELECT user_id, name, email FROM users WHERE name = ? ORDER BY user_id LIMIT ? OFFSET ?"
    return _paged("users", world.query(sql, (name, _PAGE + 1, (page - 1) * _PAGE)))


def get_user(world: World, user_id: str) -> Record:
    user = world.get("users", user_id)
    addresses = "SELECT address_id, street, city, zip FROM addresses WHERE user_id = ? ORDER BY address_id"
    methods = "SELECT payment_id, kind FROM payment_methods WHERE user_id = ? ORDER BY payment_id"
    orders = world.query("SELECT count(*) AS n FROM orders WHERE user_id = ?", (user_id,))
    return {
        "user_id": user_id,
        "name": user["name"],
        "email": user["email"],
        "standing": user["standing"],
        "notes": [_NOTES["on hold"]] if user["standing"] == "on hold" else [],
        "addresses": world.query(addresses, (user_id,)),
        "payment_methods": world.query(methods, (user_id,)),
        "order_count": orders[0]["n"],
    }


def list_orders(world: World, user_id: str) -> Record:
    world.get("users", user_id)
    return _orders(world, user_id, "")


def list_orders_after(world: World, user_id: str, cursor: str) -> Record:
    world.get("users", user_id)
    return _orders(world, user_id, f"W{cursor[1:]}")


def get_order(world: World, order_id: str) -> Record:
    """An order and its items, with a note for each thing in it that a rule may be about."""
    found = world.query(
        "SELECT orders.*, street, city, zip, kind FROM orders JOIN addresses USING (address_id) JOIN payment_methods USING (payment_id)"
        " WHERE order_id = ?",
        (order_id,),
    )
    if not found:
        raise NotFound(f"order_id {order_id!r} does not exist")
    order = found[0]
    items = world.query(
        "SELECT item_id, product_id, products.name AS product, colour, style, finish, state, quantity, items.price_cents"
        " FROM items JOIN variants USING (variant_id) JOIN products USING (product_id) WHERE order_id = ? ORDER BY item_id",
        (order_id,),
    )
    shown = {
        "terms": order["terms"],
        "carrier": order["carrier"],
        "paid_with": "gift card" if order["kind"] == "giftcard" else order["kind"],
        "exchange_window": _window(world, order),
        "placed_on": _day(order["placed_at"]),
        "delivered_on": "not yet" if order["delivered_at"] is None else _day(order["delivered_at"]),
    }
    notes = [_NOTES[value] for value in shown.values() if value in _NOTES]
    notes += [_NOTES["engraved"].format(**item) for item in items if item["finish"] == "engraved"]
    return {
        "order_id": order_id,
        "user_id": order["user_id"],
        "status": order["status"],
        **shown,
        "notes": notes,
        "message": order["message"],
        "ship_to": place(order),
        "items": items,
        "total_cents": due(items, order["discount_cents"]),
    }


def list_products(world: World, category: str, page: int = 1) -> Record:
    sql = "SELECT product_id, name AS product FROM products WHERE category = ? ORDER BY product_id LIMIT ? OFFSET ?"
    return _paged("products", world.query(sql, (category, _PAGE + 1, (page - 1) * _PAGE)))


def get_product(world: World, product_id: str) -> Record:
    product = world.get("products", product_id)
    variants = "SELECT variant_id, colour, style, price_cents, stock FROM variants WHERE product_id = ? ORDER BY variant_id"
    return {
        "product_id": product_id,
        "product": product["name"],
        "category": product["category"],
        "variants": world.query(variants, (product_id,)),
    }


def search_products(world: World, query: str, category: str | None = None, max_price_cents: int | None = None, page: int = 1) -> Record:
    words = query.lower().split()
    named = " AND instr(' ' || lower(name), ' ' || ?)" * len(words)
    sql = (
        "SELECT product_id, name AS product, category, min(price_cents) AS from_cents FROM products JOIN variants USING (product_id)"
        f" WHERE category = coalesce(?, category){named} GROUP BY product_id HAVING from_cents <= coalesce(?, from_cents)"
        " ORDER BY product_id LIMIT ? OFFSET ?"
    )
    return _paged("products", world.query(sql, (category, *words, max_price_cents, _PAGE + 1, (page - 1) * _PAGE)))


def get_cart(world: World, user_id: str) -> Record:
    voucher = world.get("users", user_id)["voucher"]
    lines = world.query(
        "SELECT line_id, variant_id, product_id, products.name AS product, colour, style, quantity, price_cents"
        " FROM carts JOIN variants USING (variant_id) JOIN products USING (product_id) WHERE user_id = ? ORDER BY line_id",
        (user_id,),
    )
    return {"lines": lines, "with_voucher": voucher or "", "total_cents": worth(lines) - discount(world, lines, voucher)}


def _orders(world: World, user_id: str, after: str) -> Record:
    """Five orders of an account that come after one, and a cursor if there are more."""
    rows = world.query(
        "SELECT order_id, status, products.name AS product FROM (SELECT order_id, status FROM orders WHERE user_id = ? AND order_id > ?"
        f" ORDER BY order_id LIMIT {_PAGE + 1}) JOIN items USING (order_id) JOIN variants USING (variant_id)"
        " JOIN products USING (product_id) ORDER BY order_id, item_id",
        (user_id, after),
    )
    orders: dict[str, Record] = {}
    for row in rows:
        blank = {"order_id": row["order_id"], "status": row["status"], "products": []}
        orders.setdefault(row["order_id"], blank)["products"].append(row["product"])
    shown = list(orders.values())[:_PAGE]
    return {"user_id": user_id, "orders": shown} | ({"cursor": f"K{shown[-1]['order_id'][1:]}"} if len(orders) > _PAGE else {})


def _paged(field: str, rows: list[Record]) -> Record:
    return {field: rows[:_PAGE], "more": len(rows) > _PAGE}


def place(address: Record) -> str:
    """An address as it is shown."""
    return f"{address['street']}, {address['city']}"


def _window(world: World, order: Record) -> str:
    if order["delivered_at"] is None:
        return "not yet"
    return "open" if world.clock - order["delivered_at"] <= _WINDOW_DAYS * DAY else "closed"


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def owner(world: World, table: str, key: str) -> str | None:
    """Whose a row is; nobody's in the catalogue."""
    if table not in _OWNED:
        return None
    rows = world.query(f"SELECT user_id FROM {_OWNED[table]} WHERE {world.schema.tables[table].key} = ?", (key,))
    return str(rows[0]["user_id"]) if rows else None


QUERIES: tuple[Callable[..., Record], ...] = (
    find_user_by_email,
    find_users_by_name,
    get_user,
    list_orders,
    list_orders_after,
    get_order,
    list_products,
    get_product,
    search_products,
    get_cart,
)
"""The operations that only read, in the order of their tools."""
