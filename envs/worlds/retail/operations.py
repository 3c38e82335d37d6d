"""What the retail world can do. Each function is one transaction; its preconditions stand in the tool's description.

The rules of ``policy.md`` are not enforced here: a shop's software lets its staff do what its rules forbid.
"""

from collections.abc import Callable
from typing import Any

from agent_gym.envs.worlds.retail.generate import DAY
from agent_gym.envs.worlds.retail.tools import TOOLS
from agent_gym.world import Conflict, NotFound, Operation, World

__all__ = ["OPERATIONS", "WINDOW_DAYS"]

Record = dict[str, Any]

WINDOW_DAYS = 30
"""Days after delivery during which the exchange window is open."""
_PAGE = 5
_WRITE_TAKES_S = 60
"""Virtual seconds that a change takes."""
_NOTES = {
    "on hold": "On hold: this account is locked until our review is over.",
    "final sale": "Final sale: this sale is final, no money back.",
    "gift card": "Gift card: it was paid with a gift card, which takes no refund.",
    "freight": "Freight: a freight truck is booked and its route is fixed.",
    "closed": "Window closed: the time for an exchange is over, the window is closed.",
    "engraved": "Engraved: the {product} is engraved, made to order.",
}
"""What a record says of itself where a rule may matter."""


# --- Reading ---


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
    orders = world.query("SELECT order_id FROM orders WHERE user_id = ? ORDER BY order_id", (user_id,))
    return {
        "user_id": user_id,
        "name": user["name"],
        "email": user["email"],
        "standing": user["standing"],
        "notes": [_NOTES["on hold"]] if user["standing"] == "on hold" else [],
        "addresses": world.query(addresses, (user_id,)),
        "payment_methods": world.query(methods, (user_id,)),
        "order_ids": [order["order_id"] for order in orders],
    }


def list_orders(world: World, user_id: str) -> Record:
    world.get("users", user_id)
    rows = world.query(
        "SELECT order_id, status, products.name AS product FROM orders JOIN items USING (order_id)"
        " JOIN variants USING (variant_id) JOIN products USING (product_id) WHERE user_id = ? ORDER BY order_id, item_id",
        (user_id,),
    )
    orders: dict[str, Record] = {}
    for row in rows:
        blank = {"order_id": row["order_id"], "status": row["status"], "products": []}
        orders.setdefault(row["order_id"], blank)["products"].append(row["product"])
    return {"orders": list(orders.values())}


def get_order(world: World, order_id: str) -> Record:
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
    }
    notes = [_NOTES[value] for value in shown.values() if value in _NOTES]
    notes += [_NOTES["engraved"].format(**item) for item in items if item["finish"] == "engraved"]
    return {
        "order_id": order_id,
        "user_id": order["user_id"],
        "status": order["status"],
        **shown,
        "notes": notes,
        "ship_to": _place(order),
        "items": items,
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
    world.get("users", user_id)
    lines = world.query(
        "SELECT line_id, variant_id, product_id, products.name AS product, colour, style, quantity, price_cents"
        " FROM carts JOIN variants USING (variant_id) JOIN products USING (product_id) WHERE user_id = ? ORDER BY line_id",
        (user_id,),
    )
    return {"lines": lines, "total_cents": sum(line["quantity"] * line["price_cents"] for line in lines)}


# --- Changing ---


def cancel_order(world: World, order_id: str, reason: str) -> Record:
    order = _in_status(world, order_id, "pending")
    refunded = 0
    for item in world.query("SELECT * FROM items WHERE order_id = ? AND state != 'returned'", (order_id,)):
        refunded += item["quantity"] * item["price_cents"]
        _restock(world, item["variant_id"], item["quantity"])
        world.update("items", item["item_id"], state="cancelled")
    world.update("orders", order_id, status="cancelled", cancel_reason=reason)
    _book(world, order, -refunded)
    _done(world, "cancel_order", order_id)
    return {"order_id": order_id, "status": "cancelled", "refunded_cents": refunded}


def change_address(world: World, order_id: str, address_id: str) -> Record:
    order = _in_status(world, order_id, "pending")
    address = world.get("addresses", address_id)
    if address["user_id"] != order["user_id"]:
        raise Conflict(f"address {address_id} is not saved in the account that owns order {order_id}")
    if address_id == order["address_id"]:
        raise Conflict(f"order {order_id} goes to address {address_id} already")
    world.update("orders", order_id, address_id=address_id)
    _done(world, "change_address", order_id)
    return {"order_id": order_id, "ship_to": _place(address)}


def exchange_item(world: World, order_id: str, item_id: str, variant_id: str) -> Record:
    order = _in_status(world, order_id, "delivered")
    item = _item_of(world, order_id, item_id)
    old, new = world.get("variants", item["variant_id"]), world.get("variants", variant_id)
    if new["product_id"] != old["product_id"]:
        raise Conflict(f"variant {variant_id} belongs to another product than item {item_id}")
    if variant_id == old["variant_id"]:
        raise Conflict(f"item {item_id} is of variant {variant_id} already")
    _check_stock(world, variant_id, item["quantity"])
    difference = item["quantity"] * (new["price_cents"] - item["price_cents"])
    _restock(world, old["variant_id"], item["quantity"])
    _restock(world, variant_id, -item["quantity"])
    world.update("items", item_id, variant_id=variant_id, price_cents=new["price_cents"], state="exchanged")
    _book(world, order, difference)
    _done(world, "exchange_item", order_id)
    return {"item_id": item_id, "colour": new["colour"], "style": new["style"], "difference_cents": difference}


def return_item(world: World, order_id: str, item_id: str) -> Record:
    order = _in_status(world, order_id, "delivered")
    item = _item_of(world, order_id, item_id)
    refunded = item["quantity"] * item["price_cents"]
    _restock(world, item["variant_id"], item["quantity"])
    world.update("items", item_id, state="returned")
    world.insert("returns", return_id=world.new_id("R"), item_id=item_id, order_id=order_id, booked_at=world.clock)
    _book(world, order, -refunded)
    _done(world, "return_item", order_id)
    return {"item_id": item_id, "state": "returned", "refunded_cents": refunded}


def add_to_cart(world: World, user_id: str, variant_id: str, quantity: int = 1) -> Record:
    world.get("users", user_id)
    lines = world.query("SELECT * FROM carts WHERE user_id = ? AND variant_id = ?", (user_id, variant_id))
    total = quantity + sum(line["quantity"] for line in lines)
    _check_stock(world, variant_id, total)
    line_id: str = lines[0]["line_id"] if lines else world.new_id("C")
    if lines:
        world.update("carts", line_id, quantity=total)
    else:
        world.insert("carts", line_id=line_id, user_id=user_id, variant_id=variant_id, quantity=total)
    _done(world, "add_to_cart", user_id)
    return {"line_id": line_id, "quantity": total}


def set_cart_quantity(world: World, line_id: str, quantity: int) -> Record:
    line = world.get("carts", line_id)
    if quantity == line["quantity"]:
        raise Conflict(f"line {line_id} has {quantity} already")
    _check_stock(world, line["variant_id"], quantity)
    if quantity:
        world.update("carts", line_id, quantity=quantity)
    else:
        world.delete("carts", line_id)
    _done(world, "set_cart_quantity", line["user_id"])
    return {"line_id": line_id, "quantity": quantity}


# --- Shared steps ---


def _in_status(world: World, order_id: str, status: str) -> Record:
    order = world.get("orders", order_id)
    if order["status"] != status:
        raise Conflict(f"order {order_id} is {order['status']}, not {status}")
    return order


def _item_of(world: World, order_id: str, item_id: str) -> Record:
    item = world.get("items", item_id)
    if item["order_id"] != order_id:
        raise Conflict(f"item {item_id} is not in order {order_id}")
    if item["state"] == "returned":
        raise Conflict(f"item {item_id} was returned already")
    return item


def _check_stock(world: World, variant_id: str, quantity: int) -> None:
    stock = world.get("variants", variant_id)["stock"]
    if stock < quantity:
        raise Conflict(f"variant {variant_id}: {stock} in stock, {quantity} needed")


def _restock(world: World, variant_id: str, quantity: int) -> None:
    world.update("variants", variant_id, stock=world.get("variants", variant_id)["stock"] + quantity)


def _book(world: World, order: Record, cents: int) -> None:
    """Books a charge (above 0) or a refund (below 0) on the order's payment method."""
    if cents:
        world.insert(
            "payments",
            entry_id=world.new_id("E"),
            order_id=order["order_id"],
            payment_id=order["payment_id"],
            kind="charge" if cents > 0 else "refund",
            amount_cents=abs(cents),
            booked_at=world.clock,
        )


def _done(world: World, operation: str, subject: str) -> None:
    world.insert("log_operations", entry_id=world.new_id("L"), operation=operation, subject=subject, booked_at=world.clock)
    world.advance(_WRITE_TAKES_S)


def _paged(field: str, rows: list[Record]) -> Record:
    return {field: rows[:_PAGE], "more": len(rows) > _PAGE}


def _place(address: Record) -> str:
    return f"{address['street']}, {address['city']}"


def _window(world: World, order: Record) -> str:
    if order["delivered_at"] is None:
        return "not yet"
    return "open" if world.clock - order["delivered_at"] <= WINDOW_DAYS * DAY else "closed"


_FUNCTIONS: tuple[Callable[..., Record], ...] = (
    find_user_by_email,
    find_users_by_name,
    get_user,
    list_orders,
    get_order,
    list_products,
    get_product,
    search_products,
    get_cart,
    cancel_order,
    change_address,
    exchange_item,
    return_item,
    add_to_cart,
    set_cart_quantity,
)
_LISTINGS = {
    "find_users_by_name": "users",
    "list_orders": "orders",
    "list_products": "products",
    "search_products": "products",
    "get_cart": "lines",
}

OPERATIONS = {spec.name: Operation(spec, function, _LISTINGS.get(spec.name, "")) for spec, function in zip(TOOLS, _FUNCTIONS, strict=True)}
"""The operations by name, in the order of their tools."""
