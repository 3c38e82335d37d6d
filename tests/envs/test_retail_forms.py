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
