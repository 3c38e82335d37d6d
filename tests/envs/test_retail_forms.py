"""The retail world's forms: each does to the world exactly what the tool of its name does."""

import math
from typing import Any

from werkzeug.test import TestResponse

from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.world import World, carry_out
from tests.envs.desk import Desk, alerts, checked, delivered, said, table, terms


def same_as_the_tool(desk: Desk, before: World, tool: str, **arguments: Any) -> None:
    """Whether the site left the world as the tool leaves it, values' types included."""
    assert [call for call in desk.calls if not RETAIL.operations[call[0]].spec.read_only] == [(tool, arguments)]
    assert not carry_out(before, RETAIL.operations[tool], arguments, math.inf).failed
    assert repr(desk.world.changes()) == repr(before.changes())
    assert desk.world.digest() == before.digest() == desk.world.recomputed_digest()
    assert (desk.world.clock, desk.world.serial) == (before.clock, before.serial)
    assert before.changes()
    before.close()


def followed(desk: Desk, response: TestResponse, path: str) -> Any:
    assert (response.status_code, response.location.partition("?")[0]) == (303, path)
    return desk.get(response.location)


def test_cancel(desk: Desk) -> None:
    order, before = desk.one("SELECT * FROM orders WHERE status = 'pending'"), desk.world.fork()
    path = f"/orders/{order['order_id']}"
    page = desk.get(path)
    assert alerts(checked(desk.submit(page, "Cancel order"), 400))[0] == "Choose a reason."
    response = desk.submit(page, "Cancel order", reason="Ordered by mistake")
    same_as_the_tool(desk, before, "cancel_order", order_id=order["order_id"], reason="ordered_by_mistake")
    page = followed(desk, response, path)
    assert said(page) == ["The order was cancelled: Ordered by mistake."]
    assert terms(page)["Status"] == "cancelled"
    assert said(desk.get(path)) == []
    again = checked(desk.submit(page, "Cancel order", reason="Found cheaper"), 409)
    assert alerts(again)[0] == f"order {order['order_id']} is cancelled, not pending"
    assert said(again) == []
    assert terms(again)["Order"] == order["order_id"]


def test_change_address(desk: Desk) -> None:
    order, before = desk.one("SELECT * FROM orders WHERE status = 'pending'"), desk.world.fork()
    path = f"/orders/{order['order_id']}"
    saved = desk.world.query("SELECT * FROM addresses WHERE user_id = ?", (order["user_id"],))
    labels = {one["address_id"] == order["address_id"]: f"{one['street']}, {one['city']}" for one in saved}
    page = desk.get(f"{path}/address")
    assert alerts(checked(desk.submit(page, "Change address"), 400))[0] == "Choose an address."
    assert "already" in alerts(checked(desk.submit(page, "Change address", address_id=labels[True]), 409))[0]
    response = desk.submit(page, "Change address", address_id=labels[False])
    other = next(one["address_id"] for one in saved if one["address_id"] != order["address_id"])
    same_as_the_tool(desk, before, "change_address", order_id=order["order_id"], address_id=other)
    page = followed(desk, response, path)
    assert said(page) == [f"The address was changed to {other}."]
    assert terms(page)["Ship to"] == labels[False]


def test_exchange(desk: Desk) -> None:
    order, item = delivered(desk)
    old = desk.world.get("variants", item["variant_id"])
    new = desk.one("SELECT * FROM variants WHERE product_id = ? AND variant_id != ? AND stock >= 2", old["product_id"], old["variant_id"])
    before, path = desk.world.fork(), f"/orders/{order['order_id']}"
    (link,) = desk.get(path).xpath(f"//a[.='Exchange {item['product']}']/@href")
    page, button = desk.get(link), f"Exchange {item['product']}"
    assert alerts(checked(desk.submit(page, button), 400))[0] == "Choose a variant."
    assert "already" in alerts(checked(desk.submit(page, button, variant_id=f"{old['colour']}, {old['style']}"), 409))[0]
    response = desk.submit(page, button, variant_id=f"{new['colour']}, {new['style']}")
    wanted = {"order_id": order["order_id"], "item_id": item["item_id"], "variant_id": new["variant_id"]}
    same_as_the_tool(desk, before, "exchange_item", **wanted)
    page = followed(desk, response, path)
    assert said(page) == [f"Item {item['item_id']} was exchanged for {new['variant_id']}."]
    assert table(page, "Items")[0][2:4] == [new["colour"], new["style"]]
    other = desk.one("SELECT item_id FROM items WHERE order_id != ?", order["order_id"])["item_id"]
    assert alerts(desk.get(f"{path}/items/{other}/exchange", 404))[0] == f"item {other} is not in order {order['order_id']}"


def test_return(desk: Desk) -> None:
    order, item = delivered(desk)
    before, path = desk.world.fork(), f"/orders/{order['order_id']}"
    response = desk.submit(desk.get(path), f"Return {item['product']}")
    same_as_the_tool(desk, before, "return_item", order_id=order["order_id"], item_id=item["item_id"])
    page = followed(desk, response, path)
    assert said(page) == [f"Item {item['item_id']} was taken back."]
    assert table(page, "Items")[0][5] == "returned"
    assert alerts(checked(desk.submit(page, f"Return {item['product']}"), 409))[0] == f"item {item['item_id']} was returned already"


def test_cart(desk: Desk) -> None:
    user = desk.one("SELECT * FROM users WHERE user_id NOT IN (SELECT user_id FROM carts)")
    variant = desk.one("SELECT * FROM variants WHERE stock BETWEEN 3 AND 9")
    desk.get(f"/customers/{user['user_id']}")
    path, label = f"/customers/{user['user_id']}/cart", f"{variant['colour']}, {variant['style']}"
    assert "The cart is empty." in desk.get(path).text_content()
    page, before = desk.get(f"/products/{variant['product_id']}"), desk.world.fork()
    checked(desk.submit(page, "Add to cart", quantity="2"), 400)
    checked(desk.submit(page, "Add to cart", variant_id=label, quantity="0"), 400)
    checked(desk.submit(page, "Add to cart", variant_id=label, quantity="1.5"), 400)
    assert "in stock" in alerts(checked(desk.submit(page, "Add to cart", variant_id=label, quantity="10"), 409))[0]
    response = desk.submit(page, "Add to cart", variant_id=label, quantity="2")
    same_as_the_tool(desk, before, "add_to_cart", user_id=user["user_id"], variant_id=variant["variant_id"], quantity=2)
    page, before = followed(desk, response, path), desk.world.fork()
    assert said(page) == [f"The cart has 2 more of {variant['variant_id']}."]
    assert terms(page) == {"With voucher": "none", "Total": f"${2 * variant['price_cents'] / 100:.2f}"}
    what = f"{variant['colour']} {variant['style']} {table(page, 'Cart')[0][0]}"
    line = desk.one("SELECT * FROM carts WHERE user_id = ?", user["user_id"])["line_id"]
    checked(desk.submit(page, f"Set quantity of {what}", quantity=""), 400)
    checked(desk.submit(page, f"Set quantity of {what}", quantity="99"), 409)
    response = desk.submit(page, f"Set quantity of {what}", quantity="3")
    same_as_the_tool(desk, before, "set_cart_quantity", line_id=line, quantity=3)
    page = followed(desk, response, path)
    assert page.xpath("//input[@type='number']/@value") == ["3"]
    page = followed(desk, desk.submit(page, f"Remove {what}"), path)
    assert desk.world.changes() == []
    assert "The cart is empty." in page.text_content()


def full_cart(desk: Desk) -> str:
    """The path of an account with something in its cart that costs something."""
    worth = "SELECT user_id, sum(quantity * price_cents) AS cents FROM carts JOIN variants USING (variant_id) GROUP BY user_id"
    return f"/customers/{desk.one(f'{worth} HAVING cents > 4000')['user_id']}"


def test_voucher_and_undo(desk: Desk) -> None:
    account = full_cart(desk)
    user_id, path = account.rpartition("/")[2], f"{account}/cart"
    with desk.world.transaction():
        desk.world.update("vouchers", "EMBER-10", percent=0, amount_cents=150, minimum_cents=0)
        desk.world.update("vouchers", "TRAIL-25", percent=0, amount_cents=1, minimum_cents=10**9)
    desk.world.settle()
    page, before = desk.get(path), desk.world.fork()
    total = float(terms(page)["Total"].removeprefix("$"))
    assert alerts(checked(desk.submit(page, "Apply voucher", voucher="ten off"), 400)) == [
        "A voucher is five letters, a dash and two digits."
    ]
    assert alerts(checked(desk.submit(page, "Apply voucher", voucher="TRAIL-25"), 409))[0].startswith("voucher TRAIL-25 needs")
    checked(desk.submit(page, "Apply voucher", voucher="NOSUC-11"), 404)
    response = desk.submit(page, "Apply voucher", voucher=" ember-10 ")
    same_as_the_tool(desk, before, "apply_voucher", user_id=user_id, voucher="EMBER-10")
    page = followed(desk, response, path)
    assert said(page) == ["Voucher EMBER-10 is on the cart."]
    assert terms(page) == {"With voucher": "EMBER-10", "Total": f"${total - 1.5:.2f}"}
    page = followed(desk, desk.submit(page, "Undo the last change"), path)
    assert said(page) == ["The last change was taken back."]
    assert terms(page) == {"With voucher": "none", "Total": f"${total:.2f}"}
    assert desk.world.changes() == []
    assert alerts(checked(desk.submit(page, "Undo the last change"), 409)) == ["there is nothing to take back"]


def test_checkout(desk: Desk) -> None:
    account = full_cart(desk)
    user_id, before = account.rpartition("/")[2], desk.world.fork()
    (link,) = desk.get(f"{account}/cart").xpath("//a[.='Check out']/@href")
    page = desk.get(link)
    assert desk.names() == ["get_user"]
    address = desk.one("SELECT * FROM addresses WHERE user_id = ?", user_id)
    method = desk.one("SELECT * FROM payment_methods WHERE user_id = ?", user_id)
    to = {"address_id": f"{address['street']}, {address['city']}", "payment_id": f"{method['kind']}, {method['payment_id']}"}
    assert alerts(checked(desk.submit(page, "Place order"), 400))[0] == "Choose an address and a payment method."
    response = desk.submit(page, "Place order", **to)
    same_as_the_tool(desk, before, "place_order", user_id=user_id, address_id=address["address_id"], payment_id=method["payment_id"])
    page = followed(desk, response, f"{account}/cart")
    assert said(page) == [f"The order was placed: to {address['address_id']}, paid with {method['payment_id']}."]
    assert "The cart is empty." in page.text_content()


def test_change_payment(desk: Desk) -> None:
    order, before = desk.one("SELECT * FROM orders WHERE status = 'pending'"), desk.world.fork()
    path = f"/orders/{order['order_id']}"
    (link,) = desk.get(path).xpath("//a[.='Change payment']/@href")
    page = desk.get(link)
    assert desk.names() == ["get_order", "get_user"]
    methods = desk.world.query("SELECT * FROM payment_methods WHERE user_id = ?", (order["user_id"],))
    labels = {one["payment_id"] == order["payment_id"]: f"{one['kind']}, {one['payment_id']}" for one in methods}
    assert alerts(checked(desk.submit(page, "Change payment"), 400))[0] == "Choose a payment method."
    assert "already" in alerts(checked(desk.submit(page, "Change payment", payment_id=labels[True]), 409))[0]
    response = desk.submit(page, "Change payment", payment_id=labels[False])
    other = labels[False].partition(", ")[2]
    same_as_the_tool(desk, before, "change_payment", order_id=order["order_id"], payment_id=other)
    page = followed(desk, response, path)
    assert said(page) == [f"It is paid with {other} now."]
    assert terms(page)["Paid with"] == labels[False].partition(",")[0]


def test_close_account(desk: Desk) -> None:
    busy = desk.one("SELECT user_id FROM orders WHERE status = 'pending'")["user_id"]
    assert "pending" in alerts(checked(desk.submit(desk.get(f"/customers/{busy}"), "Close account"), 409))[0]
    idle, before = desk.one("SELECT user_id FROM users WHERE user_id NOT IN (SELECT user_id FROM orders)")["user_id"], desk.world.fork()
    path = f"/customers/{idle}"
    response = desk.submit(desk.get(path), "Close account")
    same_as_the_tool(desk, before, "close_account", user_id=idle)
    page = followed(desk, response, path)
    assert (said(page), terms(page)["Standing"]) == (["The account was closed."], "closed")
    assert "There are no orders." in desk.get(f"{path}/orders").text_content()


def test_forms_that_are_malformed_reach_no_operation_that_changes(desk: Desk) -> None:
    order, item = delivered(desk)
    path = f"/orders/{order['order_id']}"
    for action, form in (
        (f"{path}/cancel", {"reason": "because"}),
        (f"{path}/address", {"address_id": "A1"}),
        (f"{path}/items/{item['item_id']}/exchange", {"variant_id": "V1234567'"}),
        (f"/products/{item['product_id']}/cart", {"user_id": "me", "variant_id": item["variant_id"], "quantity": "1"}),
        (f"/customers/{order['user_id']}/cart", {"line_id": "C1234567", "quantity": "many"}),
    ):
        desk.calls.clear()
        checked(desk.client.post(action, data=form), 400)
        assert all(RETAIL.operations[name].spec.read_only for name in desk.names())
    assert desk.client.delete(path).status_code == 405
    assert desk.client.post(path).headers["Allow"]
