"""The retail world's pages: what they show and read, and that nothing a request holds breaks them."""

import io
import math
import re
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.test import run_wsgi_app

from agent_gym.core import ToolResult
from agent_gym.core.tool import CALL_FAILED
from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.envs.worlds.retail.site.pages import ROUTES
from agent_gym.world import carry_out
from tests.envs.desk import Desk, alerts, checked, delivered, name_of, said, table, terms

HOSTILE = """<b onclick="x">O'Neil & "Sons" {{ 7 * 7 }}"""


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


def test_long_lists_of_orders_go_on_by_a_link(desk: Desk) -> None:
    most = desk.one("SELECT user_id, count(*) AS n FROM orders GROUP BY user_id ORDER BY n DESC")
    path, seen = f"/customers/{most['user_id']}/orders", []
    while path:
        page = desk.get(path)
        seen += [row[0] for row in table(page, "Orders")]
        path = next(iter(page.xpath("//a[.='More orders']/@href")), "")
    assert len(seen) == len(set(seen)) == most["n"] == 12
    assert desk.names() == ["list_orders_after"]


def test_an_account_is_read_once_and_its_customer_helped_from_there_on(desk: Desk) -> None:
    user = desk.one("SELECT * FROM users WHERE standing != 'on hold'")
    page = desk.get(f"/customers/{user['user_id']}")
    assert desk.calls == [("get_user", {"user_id": user["user_id"]})]
    record = carry_out(desk.world, RETAIL.operations["get_user"], {"user_id": user["user_id"]}, math.inf).structured
    facts = {"Name": user["name"], "E-mail": user["email"], "Customer": user["user_id"], "Standing": user["standing"]}
    assert terms(page) == {**facts, "Number of orders": str(record["order_count"])}
    assert table(page, "Addresses") == [[one["street"], one["city"], one["zip"], one["address_id"]] for one in record["addresses"]]
    assert table(page, "Payment methods") == [[one["kind"], one["payment_id"]] for one in record["payment_methods"]]
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
    assert len(table(orders, "Orders")) == min(record["order_count"], 5)


def test_an_order_shows_its_record_and_does_not_read_the_account(desk: Desk) -> None:
    order, item = delivered(desk)
    with desk.world.transaction():
        desk.world.update("orders", order["order_id"], terms="final sale", carrier="parcel")
        desk.world.update("items", item["item_id"], finish="engraved")
    path = f"/orders/{order['order_id']}"
    page = desk.get(path)
    assert desk.calls == [("get_order", {"order_id": order["order_id"]})]
    record = carry_out(desk.world, RETAIL.operations["get_order"], {"order_id": order["order_id"]}, math.inf).structured
    shown = ("order_id", "user_id", "status", "terms", "carrier", "paid_with", "exchange_window", "placed_on", "delivered_on", "ship_to")
    labels = ("Order", "Customer", "Status", "Terms", "Carrier", "Paid with", "Exchange window", "Placed on", "Delivered on", "Ship to")
    facts = dict(zip(labels, (record[name] for name in shown), strict=True))
    facts |= {"Message": record["message"] or "none", "Total": f"${record['total_cents'] / 100:.2f}"}
    assert terms(page) == facts
    assert alerts(page) == record["notes"]
    assert len(record["notes"]) == 2
    with desk.world.transaction():
        desk.world.update("users", order["user_id"], standing="on hold")
    # whatever reads the order shows all that forbids something, so that nobody can say to have looked without having seen it
    other = desk.one("SELECT item_id FROM items WHERE order_id != ?", order["order_id"])["item_id"]
    for rest, status, beside in (
        ("/address", 200, ["On hold: this account is locked until our review is over."]),
        (f"/items/{item['item_id']}/exchange", 200, []),
        (f"/items/{other}/exchange", 404, [f"item {other} is not in order {order['order_id']}"]),
    ):
        form = desk.get(path + rest, status)
        assert facts.items() <= terms(form).items()
        assert alerts(form) == [*beside, *record["notes"]]
        assert terms(form).get("Standing") == ("on hold" if rest == "/address" else None)
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


@pytest.mark.parametrize(
    ("path", "status", "called"),
    [
        ("/orders/W9999999", 404, ["get_order"]),
        ("/orders/W9999999/address", 404, ["get_order"]),
        ("/orders/W9999999/items/I9999999/exchange", 404, ["get_order"]),
        ("/customers/U9999999", 404, ["get_user"]),
        ("/customers/U9999999/orders", 404, ["list_orders"]),
        ("/customers/U9999999/cart", 404, ["get_cart"]),
        ("/customers/U9999999/checkout", 404, ["get_user"]),
        ("/customers/U9999999/orders?after=K1234567", 404, ["list_orders_after"]),
        ("/customers/U9999999/orders?after=5", 400, []),
        ("/orders/W9999999/payment", 404, ["get_order"]),
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
    assert said(desk.get(f"{path}?done=cancel_order")) == []
    desk.client.set_cookie("said", f"{path}/address {HOSTILE}".replace(" ", "%20").replace(";", ""))
    assert said(desk.get(path)) == []


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
    RETAIL.schema.tables[name].key: [str(row[RETAIL.schema.tables[name].key]) for row in FUZZED.world.query(f"SELECT * FROM {name}")]
    for name in TABLES
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
    FUZZED.calls.clear()
