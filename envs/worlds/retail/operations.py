"""What the retail world can do. Each function is one transaction; its preconditions stand in the tool's description.

The rules of ``policy.md`` are not enforced here: a shop's software lets its staff do what its rules forbid.
"""

from collections.abc import Callable
from typing import Any

from agent_gym.envs.worlds.retail.money import discount, due, lines_of, paid, worth
from agent_gym.envs.worlds.retail.queries import QUERIES, place
from agent_gym.envs.worlds.retail.tools import TOOLS
from agent_gym.world import Conflict, Operation, World
from agent_gym.world.undo import UNDO

__all__ = ["OPERATIONS"]

Record = dict[str, Any]

_WRITE_TAKES_S = 60
"""Virtual seconds that a change takes."""


def cancel_order(world: World, order_id: str, reason: str) -> Record:
    order = _in_status(world, order_id, "pending")
    for item in world.query("SELECT * FROM items WHERE order_id = ?", (order_id,)):
        _restock(world, item["variant_id"], item["quantity"])
        world.update("items", item["item_id"], state="cancelled")
    world.update("orders", order_id, status="cancelled", cancel_reason=reason)
    booked = _settle(world, order)
    _done(world, "cancel_order", order_id)
    return {"order_id": order_id, "status": "cancelled", "refunded_cents": -booked}


def change_address(world: World, order_id: str, address_id: str) -> Record:
    order = _in_status(world, order_id, "pending")
    address = _saved(world, "addresses", address_id, order["user_id"])
    if address_id == order["address_id"]:
        raise Conflict(f"order {order_id} goes to address {address_id} already")
    world.update("orders", order_id, address_id=address_id)
    _done(world, "change_address", order_id)
    return {"order_id": order_id, "ship_to": place(address)}


def exchange_item(world: World, order_id: str, item_id: str, variant_id: str) -> Record:
    order = _in_status(world, order_id, "delivered")
    item = _item_of(world, order_id, item_id)
    old, new = world.get("variants", item["variant_id"]), world.get("variants", variant_id)
    if new["product_id"] != old["product_id"]:
        raise Conflict(f"variant {variant_id} belongs to another product than item {item_id}")
    if variant_id == old["variant_id"]:
        raise Conflict(f"item {item_id} is of variant {variant_id} already")
    _check_stock(world, variant_id, item["quantity"])
    _restock(world, old["variant_id"], item["quantity"])
    _restock(world, variant_id, -item["quantity"])
    world.update("items", item_id, variant_id=variant_id, price_cents=new["price_cents"], state="exchanged")
    booked = _settle(world, order)
    _done(world, "exchange_item", order_id)
    return {"item_id": item_id, "colour": new["colour"], "style": new["style"], "difference_cents": booked}


def return_item(world: World, order_id: str, item_id: str) -> Record:
    order = _in_status(world, order_id, "delivered")
    item = _item_of(world, order_id, item_id)
    _restock(world, item["variant_id"], item["quantity"])
    world.update("items", item_id, state="returned")
    world.insert("returns", return_id=world.new_id("R"), item_id=item_id, order_id=order_id, booked_at=world.clock)
    booked = _settle(world, order)
    _done(world, "return_item", order_id)
    return {"item_id": item_id, "state": "returned", "refunded_cents": -booked}


def add_to_cart(world: World, user_id: str, variant_id: str, quantity: int) -> Record:
    _open_account(world, user_id)
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


def apply_voucher(world: World, user_id: str, voucher: str) -> Record:
    user, terms, lines = _open_account(world, user_id), world.get("vouchers", voucher), lines_of(world, user_id)
    if user["voucher"] == voucher:
        raise Conflict(f"voucher {voucher} is on the cart already")
    if not lines or worth(lines) < terms["minimum_cents"]:
        raise Conflict(f"voucher {voucher} needs a cart that is worth more than this one")
    world.update("users", user_id, voucher=voucher)
    _done(world, "apply_voucher", user_id)
    return {"with_voucher": voucher, "total_cents": worth(lines) - discount(world, lines, voucher)}


def place_order(world: World, user_id: str, address_id: str, payment_id: str) -> Record:
    user, lines = _open_account(world, user_id), lines_of(world, user_id)
    _saved(world, "addresses", address_id, user_id)
    _accepted(world, _saved(world, "payment_methods", payment_id, user_id), "")
    if not lines:
        raise Conflict(f"the cart of {user_id} is empty")
    order_id = world.new_id("W")
    order = {
        "order_id": order_id,
        "user_id": user_id,
        "address_id": address_id,
        "payment_id": payment_id,
        "status": "pending",
        "terms": "regular",
        "carrier": "parcel",
        "message": "",
        "discount_cents": discount(world, lines, user["voucher"]),
        "placed_at": world.clock,
    }
    world.insert("orders", **order)
    for line in lines:
        _check_stock(world, line["variant_id"], line["quantity"])
        _restock(world, line["variant_id"], -line["quantity"])
        item = {name: line[name] for name in ("variant_id", "quantity", "price_cents")}
        world.insert("items", item_id=world.new_id("I"), order_id=order_id, **item, finish="plain", state="kept")
        world.delete("carts", line["line_id"])
    world.update("users", user_id, voucher=None)
    booked = _settle(world, order)
    _done(world, "place_order", order_id)
    return {"order_id": order_id, "total_cents": booked}


def change_payment(world: World, order_id: str, payment_id: str) -> Record:
    order = _in_status(world, order_id, "pending")
    method = _saved(world, "payment_methods", payment_id, order["user_id"])
    if payment_id == order["payment_id"]:
        raise Conflict(f"order {order_id} is paid with {payment_id} already")
    _accepted(world, method, order["payment_id"])
    amount = paid(world, order_id)
    _book(world, order, -amount)
    _book(world, {**order, "payment_id": payment_id}, amount)
    world.update("orders", order_id, payment_id=payment_id)
    _done(world, "change_payment", order_id)
    return {"order_id": order_id, "paid_with": method["kind"]}


def close_account(world: World, user_id: str) -> Record:
    _open_account(world, user_id)
    under_way = world.query("SELECT order_id, status FROM orders WHERE user_id = ? AND status IN ('pending', 'shipped')", (user_id,))
    if under_way:
        raise Conflict(f"order {under_way[0]['order_id']} is {under_way[0]['status']}")
    world.update("users", user_id, standing="closed")
    _done(world, "close_account", user_id)
    return {"user_id": user_id, "standing": "closed"}


# --- Shared steps ---


def _open_account(world: World, user_id: str) -> Record:
    user = world.get("users", user_id)
    if user["standing"] == "closed":
        raise Conflict(f"account {user_id} is closed")
    return user


def _saved(world: World, table: str, key: str, user_id: str) -> Record:
    row = world.get(table, key)
    if row["user_id"] != user_id:
        raise Conflict(f"{key} is not saved in account {user_id}")
    return row


def _accepted(world: World, method: Record, other_than: str) -> None:
    if not method["accepted"]:
        sql = "SELECT payment_id FROM payment_methods WHERE user_id = ? AND accepted AND payment_id != ? ORDER BY payment_id"
        others = [row["payment_id"] for row in world.query(sql, (method["user_id"], other_than))]
        raise Conflict(f"{method['kind']} {method['payment_id']} was declined; accepted: {', '.join(others) or 'none'}")


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


def _settle(world: World, order: Record) -> int:
    """Books what is due less what was paid; gives that."""
    items = world.query("SELECT quantity, price_cents, state FROM items WHERE order_id = ?", (order["order_id"],))
    cents = due(items, order["discount_cents"]) - paid(world, order["order_id"])
    _book(world, order, cents)
    return cents


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


_FUNCTIONS: tuple[Callable[..., Record], ...] = (
    *QUERIES,
    cancel_order,
    change_address,
    exchange_item,
    return_item,
    add_to_cart,
    set_cart_quantity,
    apply_voucher,
    place_order,
    change_payment,
    close_account,
)
_LISTINGS = {
    "find_users_by_name": "users",
    "list_orders": "orders",
    "list_orders_after": "orders",
    "list_products": "products",
    "search_products": "products",
    "get_cart": "lines",
}

OPERATIONS = {
    spec.name: Operation(spec, function, _LISTINGS.get(spec.name, ""), final=spec.name == "close_account")
    for spec, function in zip(TOOLS, _FUNCTIONS, strict=True)
}
OPERATIONS[UNDO.spec.name] = UNDO
"""The operations by name, in the order of their tools; and taking back."""
