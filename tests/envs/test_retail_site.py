"""The retail world's web site: its pages, its forms, and that nothing is shown or changed but by an operation."""

import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html
from werkzeug.test import Client, TestResponse, run_wsgi_app

from agent_gym.core import ToolResult
from agent_gym.core.tool import CALL_FAILED
from agent_gym.envs.worlds.retail import RETAIL, SCHEMA, build
from agent_gym.envs.worlds.retail.site import application
from agent_gym.envs.worlds.retail.site.pages import ROUTES
from agent_gym.world import World, carry_out

BASE = build(11)
VALIDATORS = {name: jsonschema.Draft202012Validator(dict(operation.spec.parameters)) for name, operation in RETAIL.operations.items()}
HOSTILE = """<b onclick="x">O'Neil & "Sons" {{ 7 * 7 }}"""


class Desk:
    """A browser's worth of the site on a world of its own, with the operations that it called."""

    def __init__(self) -> None:
        self.world = World(SCHEMA, BASE)
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.answer: Callable[[str], ToolResult | None] = lambda _: None
        self.application = application(self.operate)
        self.client = Client(self.application)

    def operate(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        VALIDATORS[name].validate(dict(arguments))
        self.calls.append((name, dict(arguments)))
        return self.answer(name) or carry_out(self.world, RETAIL.operations[name], arguments, math.inf)

    def get(self, path: str, status: int = 200) -> Any:
        """The page at a path, as a checked document."""
        self.calls.clear()
        return checked(self.client.get(path), status)

    def submit(self, page: Any, button: str, **fields: str) -> TestResponse:
        """Fills a page's form as a person does, by labels' field names and options' texts, and pushes its button."""
        (pushed,) = [one for one in page.iter("button") if name_of(one) == button]
        form = next(above for above in pushed.iterancestors() if above.tag == "form")
        for name, value in fields.items():
            control = form.xpath(f".//*[@name='{name}'][not(@type='hidden')]")[0]
            control.value = option(control, value) if control.tag == "select" else value
        self.calls.clear()
        send = self.client.post if form.method == "POST" else self.client.get
        values = dict(form.form_values())
        return send(form.action, data=values) if form.method == "POST" else send(form.action, query_string=values)

    def one(self, sql: str, *parameters: Any) -> dict[str, Any]:
        return self.world.query(f"{sql} LIMIT 1", parameters)[0]

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def option(select: Any, text: str) -> str:
    (value,) = [one.get("value", one.text) for one in select.iter("option") if one.text == text]
    return str(value)


def name_of(element: Any) -> str:
    return " ".join((element.get("aria-label") or element.text_content()).split())


def checked(response: TestResponse, status: int) -> Any:
    """The document, once it is seen to be well made."""
    assert response.status_code == status, response.text
    assert response.content_type == "text/html; charset=utf-8"
    assert response.text.startswith("<!doctype html>")
    for tag in ("table", "tbody", "tr", "td", "dl", "dd", "form", "select", "div", "main", "nav"):
        assert len(re.findall(rf"<{tag}[ >]", response.text)) == response.text.count(f"</{tag}>"), tag
    page: Any = html.document_fromstring(response.text)
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert len(page.xpath("//main")) == len(page.xpath("//h1")) == 1
    assert page.findtext(".//title").startswith(page.findtext(".//h1"))
    assert not page.xpath("//script | //style | //*[@style]")
    assert len(page.xpath("//form")) == len(page.xpath("//form[.//button]"))
    for control in page.xpath("//select | //input[not(@type='hidden')]"):
        assert control.get("aria-label") or page.xpath(f"//label[@for='{control.get('id')}']"), control.get("name")
    for table in page.iter("table"):
        assert table.findtext("caption")
        assert {len(row) for row in table.iter("tr")} == {len(table.xpath("./thead/tr/th[@scope='col']"))}
    for path in page.xpath("//a/@href | //form/@action | //link[@rel='stylesheet']/@href"):
        assert path.startswith("/")
    assert len({(name_of(link), link.get("href")) for link in page.iter("a")}) == len({name_of(link) for link in page.iter("a")})
    buttons = [name_of(button) for button in page.iter("button")]
    assert len(buttons) == len(set(buttons))
    options = sum(len(page.xpath(f"//{tag}")) for tag in ("a", "button", "option")) + len(page.xpath("//input[not(@type='hidden')]"))
    assert (len(list(page.iter())) <= 150, options <= 45) == (True, True)
    return page


def terms(page: Any) -> dict[str, str]:
    return {dt.text_content(): dt.getnext().text_content() for dt in page.iter("dt")}


def table(page: Any, caption: str) -> list[list[str]]:
    (found,) = page.xpath(f"//table[caption='{caption}']")
    return [[" ".join(cell.text_content().split()) for cell in row] for row in found.xpath("./tbody/tr")]


def alerts(page: Any) -> list[str]:
    return [str(text) for text in page.xpath("//*[@role='alert']/text()")]


def said(page: Any) -> list[str]:
    return [str(text) for text in page.xpath("//*[@role='status']/text()")]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.world.close()


def delivered(desk: Desk) -> tuple[dict[str, Any], dict[str, Any]]:
    """A delivered order and an item in it."""
    order = desk.one("SELECT * FROM orders WHERE status = 'delivered'")
    items = (
        "SELECT items.*, product_id, products.name AS product FROM items JOIN variants USING (variant_id) JOIN products USING (product_id)"
    )
    return order, desk.one(f"{items} WHERE order_id = ?", order["order_id"])


# --- Pages ---


def test_home_leads_to_orders_customers_and_products(desk: Desk) -> None:
    home = desk.get("/")
    assert desk.calls == []
    assert [name_of(link) for link in home.xpath("//header//a")] == ["Home", "Products", "Customers", "Orders"]
    order, user = desk.one("SELECT * FROM orders"), desk.one("SELECT * FROM users")
    found = desk.submit(home, "Find order", order_id=f" {order['order_id'].lower()} ")
    assert (found.status_code, found.location, desk.calls) == (303, f"/orders/{order['order_id']}", [])
    found = desk.submit(home, "Find customer", q=user["email"].upper())
    assert table(checked(found, 200), "Customers found") == [[user["name"], user["email"], user["user_id"]]]
    found = desk.submit(home, "Find product", q="LAMP")
    assert {row[0] for row in table(checked(found, 200), "Products found")} == {"desk lamp", "floor lamp"}


def test_customers_are_found_by_email_or_name(desk: Desk) -> None:
    twins = desk.world.query(
        "SELECT * FROM users WHERE name IN (SELECT name FROM users GROUP BY name HAVING count(*) = 2) ORDER BY name LIMIT 2"
    )
    page = desk.submit(desk.get("/customers"), "Find customer", q=f"  {twins[0]['name'].replace(' ', '   ')} ")
    rows = table(checked(page, 200), "Customers found")
    assert {row[2] for row in rows} == {twin["user_id"] for twin in twins}
    assert desk.calls == [("find_users_by_name", {"name": twins[0]["name"], "page": 1})]
    for asked, status, called in (
        ("nobody@here.example", 404, ["find_user_by_email"]),
        ("Nobody Here", 404, ["find_users_by_name"]),
        ("someone@", 400, []),
        ("nobody", 400, []),
        ("", 200, []),
    ):
        page = desk.get(f"/customers?q={asked}", status)
        assert desk.names() == called
        assert bool(alerts(page)) == (status != 200)
        assert page.xpath("//input[@name='q']/@value") == [asked]
    desk.get("/customers?q=Nobody+Here&page=0", 400)
    desk.get("/customers?q=Nobody+Here&page=x", 400)
    assert desk.calls == []


def test_lists_are_turned_over_by_links(desk: Desk) -> None:
    page, seen = desk.get("/products?max_price=999"), []
    for _ in range(3):
        seen += [row[0] for row in table(page, "Products found")]
        (onward,) = page.xpath("//a[.='Next page']/@href")
        page = desk.get(onward)
    seen += [row[0] for row in table(page, "Products found")]
    assert len(seen) == len(set(seen)) == 16
    assert desk.calls == [("search_products", {"query": "", "max_price_cents": 99_900, "page": 4})]
    assert not page.xpath("//a[.='Next page']")
    (back,) = page.xpath("//a[.='Previous page']/@href")
    assert "max_price=999" in back
    with desk.world.transaction():
        for user in desk.world.query("SELECT user_id FROM users LIMIT 7"):
            desk.world.update("users", user["user_id"], name="Ana Castro")
    assert len(table(desk.get("/customers?q=Ana+Castro&page=2"), "Customers found")) >= 2


def test_an_account_is_read_once_and_its_customer_helped_from_there_on(desk: Desk) -> None:
    user = desk.one("SELECT * FROM users WHERE standing != 'on hold'")
    page = desk.get(f"/customers/{user['user_id']}")
    assert desk.calls == [("get_user", {"user_id": user["user_id"]})]
    record = carry_out(desk.world, RETAIL.operations["get_user"], {"user_id": user["user_id"]}, math.inf).structured
    assert terms(page) == {"Name": user["name"], "E-mail": user["email"], "Customer": user["user_id"], "Standing": user["standing"]}
    assert table(page, "Addresses") == [[one["street"], one["city"], one["zip"], one["address_id"]] for one in record["addresses"]]
    assert table(page, "Payment methods") == [[one["kind"], one["payment_id"]] for one in record["payment_methods"]]
    assert table(page, "Orders") == [[order_id] for order_id in record["order_ids"]]
    assert alerts(page) == []
    for shown in (page, desk.get("/")):
        assert f"Helping: {user['name']}" in shown.text_content()
        assert shown.xpath("//nav[@aria-label='Customer']/a/@href") == [
            f"/customers/{user['user_id']}{rest}" for rest in ("", "/orders", "/cart")
        ]
    with desk.world.transaction():
        desk.world.update("users", user["user_id"], standing="on hold")
    assert alerts(desk.get(f"/customers/{user['user_id']}")) == ["On hold: this account is locked until our review is over."]
    orders = desk.get(f"/customers/{user['user_id']}/orders")
    assert desk.names() == ["list_orders"]
    assert [row[0] for row in table(orders, "Orders")] == record["order_ids"]


def test_an_order_shows_its_record_and_does_not_read_the_account(desk: Desk) -> None:
    order, item = delivered(desk)
    with desk.world.transaction():
        desk.world.update("orders", order["order_id"], terms="final sale")
        desk.world.update("items", item["item_id"], finish="engraved")
    page = desk.get(f"/orders/{order['order_id']}")
    assert desk.calls == [("get_order", {"order_id": order["order_id"]})]
    record = carry_out(desk.world, RETAIL.operations["get_order"], {"order_id": order["order_id"]}, math.inf).structured
    shown = ("order_id", "user_id", "status", "terms", "carrier", "paid_with", "exchange_window", "ship_to")
    labels = ("Order", "Customer", "Status", "Terms", "Carrier", "Paid with", "Exchange window", "Ship to")
    assert terms(page) == dict(zip(labels, (record[name] for name in shown), strict=True))
    assert alerts(page) == record["notes"]
    assert len(record["notes"]) == 2
    first = table(page, "Items")[0]
    assert first[:7] == [
        item["item_id"],
        item["product"],
        *(str(record["items"][0][name]) for name in ("colour", "style", "finish", "state", "quantity")),
    ]
    assert first[7:] == [f"${item['price_cents'] / 100:.2f}", f"Exchange {item['product']}", f"Return {item['product']}"]
    assert page.xpath("//button[.='Cancel order']")
    assert page.xpath("//a[.='Change address']")


def test_the_pages_of_forms_read_what_they_show(desk: Desk) -> None:
    order, item = delivered(desk)
    desk.get(f"/orders/{order['order_id']}/address")
    assert desk.names() == ["get_order", "get_user"]
    page = desk.get(f"/orders/{order['order_id']}/items/{item['item_id']}/exchange")
    assert desk.names() == ["get_order", "get_product"]
    assert len(table(page, "Variants")) == len(page.xpath("//select/option")) - 1
    page = desk.get(f"/products/{item['product_id']}")
    assert desk.names() == ["get_product"]
    assert not page.xpath("//form")  # nobody is being helped
    desk.get(f"/customers/{order['user_id']}/cart")
    assert desk.names() == ["get_cart"]
    css = desk.client.get("/static/shop.css")
    assert css.content_type == "text/css; charset=utf-8"
    assert "@import" not in css.text
    assert "url(" not in css.text


# --- Forms ---


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
    assert said(page) == ["The order was cancelled."]
    assert terms(page)["Status"] == "cancelled"
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
    assert alerts(checked(desk.submit(page, "Change address"), 400)) == ["Choose an address."]
    assert "already" in alerts(checked(desk.submit(page, "Change address", address_id=labels[True]), 409))[0]
    response = desk.submit(page, "Change address", address_id=labels[False])
    other = next(one["address_id"] for one in saved if one["address_id"] != order["address_id"])
    same_as_the_tool(desk, before, "change_address", order_id=order["order_id"], address_id=other)
    page = followed(desk, response, path)
    assert said(page) == ["The address was changed."]
    assert terms(page)["Ship to"] == labels[False]


def test_exchange(desk: Desk) -> None:
    order, item = delivered(desk)
    old = desk.world.get("variants", item["variant_id"])
    new = desk.one("SELECT * FROM variants WHERE product_id = ? AND variant_id != ? AND stock >= 2", old["product_id"], old["variant_id"])
    before, path = desk.world.fork(), f"/orders/{order['order_id']}"
    (link,) = desk.get(path).xpath(f"//a[.='Exchange {item['product']}']/@href")
    page, button = desk.get(link), f"Exchange {item['product']}"
    assert alerts(checked(desk.submit(page, button), 400)) == ["Choose a variant."]
    assert "already" in alerts(checked(desk.submit(page, button, variant_id=f"{old['colour']}, {old['style']}"), 409))[0]
    response = desk.submit(page, button, variant_id=f"{new['colour']}, {new['style']}")
    wanted = {"order_id": order["order_id"], "item_id": item["item_id"], "variant_id": new["variant_id"]}
    same_as_the_tool(desk, before, "exchange_item", **wanted)
    page = followed(desk, response, path)
    assert said(page) == ["The item was exchanged."]
    assert table(page, "Items")[0][2:4] == [new["colour"], new["style"]]
    other = desk.one("SELECT item_id FROM items WHERE order_id != ?", order["order_id"])["item_id"]
    assert alerts(desk.get(f"{path}/items/{other}/exchange", 404)) == [f"item {other} is not in order {order['order_id']}"]


def test_return(desk: Desk) -> None:
    order, item = delivered(desk)
    before, path = desk.world.fork(), f"/orders/{order['order_id']}"
    response = desk.submit(desk.get(path), f"Return {item['product']}")
    same_as_the_tool(desk, before, "return_item", order_id=order["order_id"], item_id=item["item_id"])
    page = followed(desk, response, path)
    assert said(page) == ["The item was taken back."]
    assert table(page, "Items")[0][5] == "returned"
    assert alerts(checked(desk.submit(page, f"Return {item['product']}"), 409))[0] == f"item {item['item_id']} was returned already"


def test_cart(desk: Desk) -> None:
    user, variant = desk.one("SELECT * FROM users"), desk.one("SELECT * FROM variants WHERE stock BETWEEN 3 AND 9")
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
    assert said(page) == ["The cart has it now."]
    assert terms(page) == {"Total": f"${2 * variant['price_cents'] / 100:.2f}"}
    what = f"{variant['colour']} {variant['style']} {table(page, 'Cart')[0][0]}"
    line = desk.one("SELECT * FROM carts")["line_id"]
    checked(desk.submit(page, f"Set quantity of {what}", quantity=""), 400)
    checked(desk.submit(page, f"Set quantity of {what}", quantity="99"), 409)
    response = desk.submit(page, f"Set quantity of {what}", quantity="3")
    same_as_the_tool(desk, before, "set_cart_quantity", line_id=line, quantity=3)
    page = followed(desk, response, path)
    assert page.xpath("//input[@type='number']/@value") == ["3"]
    page = followed(desk, desk.submit(page, f"Remove {what}"), path)
    assert desk.world.changes() == []
    assert "The cart is empty." in page.text_content()


# --- What is not there, or not meant well ---


@pytest.mark.parametrize(
    ("path", "status", "called"),
    [
        ("/orders/W9999999", 404, ["get_order"]),
        ("/orders/W9999999/address", 404, ["get_order"]),
        ("/orders/W9999999/items/I9999999/exchange", 404, ["get_order"]),
        ("/customers/U9999999", 404, ["get_user"]),
        ("/customers/U9999999/orders", 404, ["list_orders"]),
        ("/customers/U9999999/cart", 404, ["get_cart"]),
        ("/products/P9999999", 404, ["get_product"]),
        ("/orders/w1", 404, []),
        ("/orders/W123456٣", 404, []),
        ("/orders/W1234567%0A", 404, []),
        ("/customers/W1234567", 404, []),
        ("/nowhere", 404, []),
        ("/orders/", 404, []),
        ("/orders?order_id=X", 400, []),
        ("/orders/W1234567/cancel", 405, []),
        ("/products?q=%3Cb%3E", 400, []),
        ("/products?q=" + 81 * "x", 400, []),
        ("/products?category=cars", 400, []),
        ("/products?max_price=1e3", 400, []),
        ("/products?max_price=-1", 400, []),
        ("/products?page=101", 400, []),
        ("/products?q=nothing", 200, ["search_products"]),
    ],
)
def test_what_is_not_there_or_malformed_is_a_page_too(desk: Desk, path: str, status: int, called: list[str]) -> None:
    page = desk.get(path, status)
    assert desk.names() == called
    assert bool(alerts(page)) == (status != 200)
    assert page.xpath("//header//a")


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


def test_what_people_are_called_is_text(desk: Desk) -> None:
    order, item = delivered(desk)
    with desk.world.transaction():
        desk.world.update("users", order["user_id"], name=HOSTILE, email=HOSTILE)
        desk.world.update("products", item["product_id"], name=HOSTILE)
        desk.world.update("addresses", order["address_id"], street=HOSTILE)
        desk.world.insert("carts", line_id="C0000001", user_id=order["user_id"], variant_id=item["variant_id"], quantity=1)
    path = f"/orders/{order['order_id']}"
    account, pages = f"/customers/{order['user_id']}", ["/orders", "/cart"]
    paths = [account, *(account + rest for rest in pages), path, f"{path}/address", f"{path}/items/{item['item_id']}/exchange"]
    for where in (*paths, f"/products/{item['product_id']}", "/products?q=o'neil"):
        page = desk.get(where)
        assert not page.xpath("//b | //@onclick")
        assert f"Helping: {HOSTILE}" in page.text_content()
    for asked in ("customers?q=", "orders?order_id=", "products?q=", "products?max_price="):
        page = checked(desk.client.get(f"/{asked}{HOSTILE.replace('&', '%26').replace(' ', '+')}"), 400)
        assert HOSTILE in page.xpath("//input/@value")
        assert not page.xpath("//b | //@onclick")
    assert said(desk.get(f"{path}?done=<b>")) == []


def test_who_is_helped_is_only_what_the_site_itself_wrote(desk: Desk) -> None:
    for cookie in ("U123:x", "U1234567", "U1234567:", ":", '"/><b>:Ana', "U1234567/x:Ana"):
        desk.client.set_cookie("helping", cookie)
        assert not desk.get("/").xpath("//nav[@aria-label='Customer']")
    user = desk.one("SELECT * FROM users WHERE name LIKE '%ø%' OR name LIKE '%é%'")
    desk.get(f"/customers/{user['user_id']}")
    assert desk.client.get_cookie("helping") is not None
    assert f"Helping: {user['name']}" in desk.get("/").text_content()


@pytest.mark.parametrize("status", sorted(CALL_FAILED))
def test_whatever_an_operation_answers_is_a_page(desk: Desk, status: str) -> None:
    order, item = delivered(desk)
    desk.answer = lambda _: ToolResult(status=status, content="It <did> not work.")
    for path in (f"/orders/{order['order_id']}", f"/customers/{order['user_id']}", "/customers?q=a@b.example", "/products?q=x"):
        response = desk.client.get(path)
        assert response.status_code not in (200, 500)
        assert alerts(checked(response, response.status_code)) == ["It <did> not work."]
    desk.answer = lambda name: None if name.startswith("get") else ToolResult(status=status, content="It <did> not work.")
    response = desk.client.post(f"/orders/{order['order_id']}/items/{item['item_id']}/return")
    assert response.status_code not in (200, 303, 500)
    assert "It <did> not work." in alerts(checked(response, response.status_code))
    assert desk.world.changes() == []


FUZZED = Desk()
TABLES = ("users", "orders", "items", "products", "variants", "addresses")
KEYS = {
    SCHEMA.tables[name].key: [str(row[SCHEMA.tables[name].key]) for row in FUZZED.world.query(f"SELECT * FROM {name}")] for name in TABLES
}
IDS = st.sampled_from([*(key for keys in KEYS.values() for key in keys[:4]), "W9999999", "U9999999", "C9999999"]) | st.text(max_size=9)
VALUES = IDS | st.sampled_from(["a@b.example", "Ana Castro", "lamp", "home", "9.90", "2", "found_cheaper", "cancel_order"])
FIELDS = st.dictionaries(
    st.sampled_from(
        ["q", "order_id", "page", "category", "max_price", "done", "reason", "address_id", "variant_id", "user_id", "line_id", "quantity"]
    ),
    VALUES,
    max_size=4,
)


@st.composite
def routed(draw: st.DrawFn) -> str:
    """An address of the site, with ids of the right kind or with anything."""
    _, path, _ = draw(st.sampled_from(ROUTES))
    fitting = draw(st.booleans())
    return re.sub(r"<id\((\w+)\):\w+>", lambda kind: draw(st.sampled_from(KEYS[kind[1]]) if fitting else IDS), path)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["GET", "POST", "HEAD", "PUT", "X"]), routed() | st.text(max_size=30), FIELDS, FIELDS, st.text(max_size=20))
def test_no_request_raises(method: str, path: str, query: dict[str, str], form: dict[str, str], cookie: str) -> None:
    body = urlencode(form).encode()
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path.encode().decode("latin-1"),
        "QUERY_STRING": urlencode(query),
        "SERVER_NAME": "retail.example",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/x-www-form-urlencoded",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_COOKIE": f"helping={cookie}".encode().decode("latin-1"),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
    }
    pages, status, headers = run_wsgi_app(FUZZED.application, environ)
    assert int(status[:3]) < 500
    assert "\n" not in headers.get("Location", "")
    assert method == "HEAD" or status.startswith("303") or b"".join(pages)
    json.dumps(FUZZED.calls)
    FUZZED.calls.clear()
