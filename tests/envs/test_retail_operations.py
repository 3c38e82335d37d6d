"""The retail world's operations: preconditions, atomicity, and what they conserve."""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.worlds import WORLDS, load_worlds
from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.envs.worlds.retail.generate import DAY, LEAP_DAY
from agent_gym.world import World
from tests.envs.till import BASE, call, goods, money, worth


@pytest.fixture
def world() -> Any:
    opened = World(RETAIL.schema, BASE)
    yield opened
    opened.close()


def one(world: World, sql: str, *parameters: Any) -> dict[str, Any]:
    return world.query(f"{sql} LIMIT 1", parameters)[0]


def order_in(world: World, status: str) -> dict[str, Any]:
    return one(world, "SELECT * FROM orders WHERE status = ?", status)


def test_a_base_has_distractors_and_money_that_adds_up(world: World) -> None:
    assert 400 <= sum(world.query(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in RETAIL.schema.tables) <= 500
    assert world.query("SELECT name FROM users GROUP BY name HAVING count(*) = 2")
    names = " ".join(row["name"] for row in world.query("SELECT name FROM users"))
    assert not names.isascii()
    counts = "SELECT (SELECT count(*) FROM orders WHERE orders.user_id = users.user_id) AS n FROM users ORDER BY n"
    assert [row["n"] for row in world.query(counts)][:: len(world.query(counts)) - 1] == [0, 12]
    prices = [row["price_cents"] for row in world.query("SELECT price_cents FROM variants ORDER BY price_cents")]
    assert (prices[0], prices[-1]) == (0, 99_999_990)
    assert max(row["n"] for row in world.query("SELECT count(*) AS n FROM items GROUP BY order_id")) <= 3
    assert max(row["n"] for row in world.query("SELECT count(*) AS n FROM variants GROUP BY product_id")) <= 8
    assert money(world) == worth(world)
    assert world.digest() == world.recomputed_digest()


def test_lookups(world: World) -> None:
    user = one(world, "SELECT * FROM users WHERE name IN (SELECT name FROM users GROUP BY name HAVING count(*) = 2)")
    assert call(world, "find_user_by_email", email=user["email"]).structured["user_id"] == user["user_id"]
    found = call(world, "find_users_by_name", name=user["name"]).structured
    assert len(found["users"]) == 2
    assert not found["more"]
    assert call(world, "find_users_by_name", name=user["name"], page=2).status == "empty"
    assert call(world, "find_users_by_name", name="Nobody Here").status == "empty"
    assert call(world, "find_user_by_email", email="nobody@here.example").status == "not_found"
    account = call(world, "get_user", user_id=user["user_id"]).structured
    listed = call(world, "list_orders", user_id=user["user_id"]).structured["orders"]
    assert len(listed) == account["order_count"]
    for order in listed:
        record = call(world, "get_order", order_id=order["order_id"]).structured
        assert [item["product"] for item in record["items"]] == order["products"]
        assert record["user_id"] == user["user_id"]
        product = call(world, "get_product", product_id=record["items"][0]["product_id"]).structured
        assert product["product"] == record["items"][0]["product"]
    assert len(call(world, "list_products", category="home").structured["products"]) == 4
    assert world.changes() == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_user", {"user_id": "U9999999"}),
        ("list_orders", {"user_id": "U9999999"}),
        ("get_order", {"order_id": "W9999999"}),
        ("get_product", {"product_id": "P9999999"}),
        ("cancel_order", {"order_id": "W9999999", "reason": "found_cheaper"}),
        ("change_address", {"order_id": "W9999999", "address_id": "A9999999"}),
        ("exchange_item", {"order_id": "W9999999", "item_id": "I9999999", "variant_id": "V9999999"}),
        ("return_item", {"order_id": "W9999999", "item_id": "I9999999"}),
        ("get_cart", {"user_id": "U9999999"}),
        ("add_to_cart", {"user_id": "U9999999", "variant_id": "V9999999", "quantity": 1}),
        ("list_orders_after", {"user_id": "U9999999", "cursor": "K9999999"}),
        ("apply_voucher", {"user_id": "U9999999", "voucher": "EMBER-10"}),
        ("place_order", {"user_id": "U9999999", "address_id": "A9999999", "payment_id": "M9999999"}),
        ("change_payment", {"order_id": "W9999999", "payment_id": "M9999999"}),
        ("close_account", {"user_id": "U9999999"}),
        ("set_cart_quantity", {"line_id": "C9999999", "quantity": 1}),
    ],
)
def test_what_does_not_exist_is_not_found(world: World, tool: str, arguments: dict[str, str]) -> None:
    result = call(world, tool, **arguments)
    assert result.status == "not_found"
    assert "9999999" in result.content


def test_cancel_refunds_restocks_and_needs_a_pending_order(world: World) -> None:
    order, goods_before = order_in(world, "pending"), goods(world)
    paid = money(world)[order["order_id"]]
    result = call(world, "cancel_order", order_id=order["order_id"], reason="found_cheaper")
    assert result.structured["refunded_cents"] == paid
    assert money(world)[order["order_id"]] == 0
    assert goods(world) == goods_before
    assert call(world, "cancel_order", order_id=order["order_id"], reason="found_cheaper").status == "conflict"
    for status in ("shipped", "delivered"):
        assert call(world, "cancel_order", order_id=order_in(world, status)["order_id"], reason="found_cheaper").status == "conflict"


def test_an_address_must_be_the_owners_and_another_one(world: World) -> None:
    order = order_in(world, "pending")
    mine = one(world, "SELECT * FROM addresses WHERE user_id = ? AND address_id != ?", order["user_id"], order["address_id"])
    foreign = one(world, "SELECT * FROM addresses WHERE user_id != ?", order["user_id"])
    for wrong in (foreign["address_id"], order["address_id"]):
        assert call(world, "change_address", order_id=order["order_id"], address_id=wrong).status == "conflict"
    assert call(world, "change_address", order_id=order["order_id"], address_id=mine["address_id"]).status == "ok"
    assert [change.where for change in world.changes()] == ["orders"]
    late = order_in(world, "delivered")
    assert call(world, "change_address", order_id=late["order_id"], address_id=mine["address_id"]).status == "conflict"


def test_an_exchange_needs_another_variant_of_the_product_in_stock(world: World) -> None:
    order = order_in(world, "delivered")
    item = one(world, "SELECT * FROM items JOIN variants USING (variant_id) WHERE order_id = ?", order["order_id"])
    new = one(world, "SELECT * FROM variants WHERE product_id = ? AND variant_id != ?", item["product_id"], item["variant_id"])
    foreign = one(world, "SELECT * FROM variants WHERE product_id != ?", item["product_id"])
    other = one(world, "SELECT * FROM items WHERE order_id != ?", order["order_id"])
    wanted = {"order_id": order["order_id"], "item_id": item["item_id"], "variant_id": new["variant_id"]}
    for wrong in ({"variant_id": foreign["variant_id"]}, {"variant_id": item["variant_id"]}, {"item_id": other["item_id"]}):
        assert call(world, "exchange_item", **{**wanted, **wrong}).status == "conflict"
    with world.transaction():
        world.update("variants", new["variant_id"], stock=item["quantity"] - 1)
    before = world.snapshot()
    assert call(world, "exchange_item", **wanted).status == "conflict"
    assert world.snapshot() == before
    with world.transaction():
        world.update("variants", new["variant_id"], stock=item["quantity"])
    assert call(world, "exchange_item", **wanted).status == "ok"
    assert money(world) == worth(world)
    pending = order_in(world, "pending")
    assert call(world, "exchange_item", **{**wanted, "order_id": pending["order_id"]}).status == "conflict"


def test_an_item_is_returned_once(world: World) -> None:
    order = order_in(world, "delivered")
    item = one(world, "SELECT * FROM items WHERE order_id = ?", order["order_id"])
    wanted = {"order_id": order["order_id"], "item_id": item["item_id"]}
    assert call(world, "return_item", **wanted).structured["refunded_cents"] == item["quantity"] * item["price_cents"]
    assert call(world, "return_item", **wanted).status == "conflict"
    assert money(world) == worth(world)


def test_search_goes_by_the_beginnings_of_words_category_and_price(world: World) -> None:
    def found(query: str, **filters: Any) -> set[str]:
        return {row["product"] for row in call(world, "search_products", query=query, **filters).structured["products"]}

    assert found("LAMP") == {"desk lamp", "floor lamp"}
    assert found("lam floor") == {"floor lamp"}
    assert found("amp") == set()
    assert found("water") == {"water bottle", "water kettle"}
    assert found("water", category="kitchen") == {"water kettle"}
    prices = "SELECT price_cents FROM variants JOIN products USING (product_id) WHERE name = 'water kettle' ORDER BY price_cents"
    cheapest = one(world, prices)["price_cents"]
    assert found("kettle", max_price_cents=cheapest) == {"water kettle"}
    assert found("kettle", max_price_cents=cheapest - 1) == set()
    pages = [call(world, "search_products", query="", page=page) for page in (1, 2, 3, 4, 5)]
    assert [len(page.structured["products"]) for page in pages] == [5, 5, 5, 1, 0]
    assert [page.structured["more"] for page in pages] == [True, True, True, False, False]
    assert pages[4].status == "empty"
    every = {row["product"]: row["from_cents"] for page in pages for row in page.structured["products"]}
    assert len(every) == 16
    assert every["water kettle"] == cheapest


def test_a_cart_holds_no_more_than_is_in_stock(world: World) -> None:
    user = one(world, "SELECT * FROM users WHERE user_id NOT IN (SELECT user_id FROM carts)")
    variant = one(world, "SELECT * FROM variants WHERE stock >= 3")
    other = one(world, "SELECT * FROM variants WHERE variant_id != ?", variant["variant_id"])
    line = {"user_id": user["user_id"], "variant_id": variant["variant_id"]}
    assert call(world, "get_cart", user_id=user["user_id"]).status == "empty"
    added = call(world, "add_to_cart", **line, quantity=1).structured
    assert added["quantity"] == 1
    assert call(world, "add_to_cart", **line, quantity=variant["stock"]).status == "conflict"
    assert call(world, "add_to_cart", **line, quantity=variant["stock"] - 1).structured["quantity"] == variant["stock"]
    assert call(world, "add_to_cart", **line, quantity=1).status == "conflict"
    second = call(world, "add_to_cart", user_id=user["user_id"], variant_id=other["variant_id"], quantity=1).structured
    cart = call(world, "get_cart", user_id=user["user_id"]).structured
    assert {(row["variant_id"], row["quantity"]) for row in cart["lines"]} == {
        (variant["variant_id"], variant["stock"]),
        (other["variant_id"], 1),
    }
    assert cart["total_cents"] == variant["stock"] * variant["price_cents"] + other["price_cents"]
    assert [change.where for change in world.changes()] == ["carts", "carts"]
    assert call(world, "set_cart_quantity", line_id=added["line_id"], quantity=variant["stock"] + 1).status == "conflict"
    assert call(world, "set_cart_quantity", line_id=added["line_id"], quantity=variant["stock"]).status == "conflict"
    assert call(world, "set_cart_quantity", line_id=added["line_id"], quantity=2).status == "ok"
    assert call(world, "set_cart_quantity", line_id=second["line_id"], quantity=0).status == "ok"
    (change,) = world.changes()
    assert change.after is not None
    assert change.after["quantity"] == 2
    assert call(world, "set_cart_quantity", line_id=added["line_id"], quantity=0).status == "ok"
    assert world.changes() == []
    assert world.digest() == world.recomputed_digest()


def test_only_changes_move_the_clock_and_logs_are_no_change(world: World) -> None:
    clock, order = world.clock, order_in(world, "pending")
    call(world, "get_order", order_id=order["order_id"])
    call(world, "cancel_order", order_id="W9999999", reason="found_cheaper")
    assert world.clock == clock
    call(world, "cancel_order", order_id=order["order_id"], reason="found_cheaper")
    assert world.clock > clock
    assert [row["operation"] for row in world.query("SELECT operation FROM log_operations")] == ["cancel_order"]
    assert not any(change.where.startswith("log_") for change in world.changes())


def test_orders_are_listed_five_at_a_time(world: World) -> None:
    most = one(world, "SELECT user_id, count(*) AS n FROM orders GROUP BY user_id ORDER BY n DESC")
    page = call(world, "list_orders", user_id=most["user_id"]).structured
    sizes, seen = [], []
    while True:
        sizes.append(len(page["orders"]))
        seen += [order["order_id"] for order in page["orders"]]
        if "cursor" not in page:
            break
        page = call(world, "list_orders_after", user_id=most["user_id"], cursor=page["cursor"]).structured
    assert sizes == [5, 5, 2]
    assert seen == sorted(set(seen))
    nobody = one(world, "SELECT user_id FROM users WHERE user_id NOT IN (SELECT user_id FROM orders)")["user_id"]
    assert call(world, "list_orders", user_id=nobody).status == "empty"
    assert call(world, "get_user", user_id=nobody).structured["order_count"] == 0


def test_a_leap_day_is_a_day(world: World) -> None:
    order = order_in(world, "delivered")
    with world.transaction():
        world.update("orders", order["order_id"], placed_at=LEAP_DAY - DAY, delivered_at=LEAP_DAY)
    record = call(world, "get_order", order_id=order["order_id"]).structured
    assert (record["placed_on"], record["delivered_on"], record["exchange_window"]) == ("2024-02-28", "2024-02-29", "closed")


def a_cart(world: World) -> tuple[str, int]:
    """Whose cart has something in it that costs something, and what it is worth."""
    found = one(
        world,
        "SELECT user_id, sum(quantity * price_cents) AS cents FROM carts JOIN variants USING (variant_id) GROUP BY user_id"
        " HAVING cents > 0",
    )
    return found["user_id"], found["cents"]


def test_a_voucher_shows_what_it_takes_off_only_when_it_is_on_the_cart(world: World) -> None:
    user_id, full = a_cart(world)
    with world.transaction():
        world.update("vouchers", "EMBER-10", percent=10, amount_cents=0, minimum_cents=full)
        world.update("vouchers", "TRAIL-25", percent=0, amount_cents=full + 1, minimum_cents=0)
        world.update("vouchers", "FROST-15", percent=0, amount_cents=1, minimum_cents=full + 1)
    assert call(world, "get_cart", user_id=user_id).structured["total_cents"] == full
    assert call(world, "apply_voucher", user_id=user_id, voucher="FROST-15").status == "conflict"
    for voucher, total in (("EMBER-10", full - full // 10), ("TRAIL-25", 0)):
        assert call(world, "apply_voucher", user_id=user_id, voucher=voucher).structured["total_cents"] == total
        assert call(world, "apply_voucher", user_id=user_id, voucher=voucher).status == "conflict"
        cart = call(world, "get_cart", user_id=user_id).structured
        assert (cart["with_voucher"], cart["total_cents"]) == (voucher, total)
    nobody = one(world, "SELECT user_id FROM users WHERE user_id NOT IN (SELECT user_id FROM carts)")["user_id"]
    assert call(world, "apply_voucher", user_id=nobody, voucher="EMBER-10").status == "conflict"


def test_what_is_ordered_leaves_the_cart_and_the_stock_and_is_paid_less_the_discount(world: World) -> None:
    user_id, full = a_cart(world)
    with world.transaction():
        world.update("vouchers", "EMBER-10", percent=0, amount_cents=1, minimum_cents=0)
    call(world, "apply_voucher", user_id=user_id, voucher="EMBER-10")
    lines = call(world, "get_cart", user_id=user_id).structured["lines"]
    address, method = (one(world, f"SELECT * FROM {table} WHERE user_id = ?", user_id) for table in ("addresses", "payment_methods"))
    to = {"address_id": address["address_id"], "payment_id": method["payment_id"]}
    foreign = one(world, "SELECT * FROM payment_methods WHERE user_id != ?", user_id)["payment_id"]
    assert call(world, "place_order", user_id=user_id, **{**to, "payment_id": foreign}).status == "conflict"
    pieces = goods(world)
    placed = call(world, "place_order", user_id=user_id, **to).structured
    assert placed["total_cents"] == full - 1
    assert goods(world) == pieces
    assert money(world) == worth(world)
    record = call(world, "get_order", order_id=placed["order_id"]).structured
    assert (record["status"], record["total_cents"]) == ("pending", full - 1)
    assert [(item["product"], item["quantity"]) for item in record["items"]] == [(line["product"], line["quantity"]) for line in lines]
    assert call(world, "get_cart", user_id=user_id).structured == {"lines": [], "with_voucher": "", "total_cents": 0}
    assert call(world, "place_order", user_id=user_id, **to).status == "conflict"
    assert call(world, "cancel_order", order_id=placed["order_id"], reason="found_cheaper").structured["refunded_cents"] == full - 1


def test_a_declined_method_says_which_ones_are_accepted(world: World) -> None:
    order = order_in(world, "pending")
    others = "SELECT payment_id FROM payment_methods WHERE user_id = ? AND payment_id != ?"
    other = one(world, others, order["user_id"], order["payment_id"])["payment_id"]
    with world.transaction():
        world.update("payment_methods", other, accepted=0)
        world.insert("payment_methods", payment_id="M0000001", user_id=order["user_id"], kind="visa", accepted=1)
    declined = call(world, "change_payment", order_id=order["order_id"], payment_id=other)
    assert declined.status == "conflict"
    assert declined.content.endswith("was declined; accepted: M0000001")
    assert call(world, "change_payment", order_id=order["order_id"], payment_id=order["payment_id"]).status == "conflict"
    before = money(world)
    assert call(world, "change_payment", order_id=order["order_id"], payment_id="M0000001").structured["paid_with"] == "visa"
    assert money(world) == before == worth(world)


def test_an_account_is_closed_once_and_not_while_an_order_is_under_way(world: World) -> None:
    busy = order_in(world, "pending")["user_id"]
    assert call(world, "close_account", user_id=busy).status == "conflict"
    idle = one(world, "SELECT user_id FROM users WHERE user_id NOT IN (SELECT user_id FROM orders)")["user_id"]
    assert call(world, "close_account", user_id=idle).structured == {"user_id": idle, "standing": "closed"}
    assert call(world, "close_account", user_id=idle).status == "conflict"


def test_every_tool_says_what_it_takes_gives_and_does() -> None:
    kinds = set()
    for spec in (operation.spec for operation in RETAIL.operations.values()):
        jsonschema_rs.meta.validate(dict(spec.parameters))
        jsonschema_rs.meta.validate(dict(spec.output_schema or {}))
        assert spec.parameters["additionalProperties"] is False
        assert set(spec.annotations) >= {"readOnlyHint", "idempotentHint", "openWorldHint"}
        assert spec.read_only or "destructiveHint" in spec.annotations
        for name, schema in spec.parameters["properties"].items():
            if schema["type"] == "string" and "enum" not in schema:
                assert schema["pattern"].startswith("^")
                if name == "query":  # free text, which no candidate could guess
                    continue
                assert schema["x-entity"] == name
                kinds.add(name)
    assert len(RETAIL.operations) >= 16
    assert kinds == {"email", "name", "user_id", "order_id", "product_id", "item_id", "variant_id", "address_id", "line_id"} | {
        "payment_id",
        "voucher",
        "cursor",
    }


@pytest.mark.parametrize("name", WORLDS)
def test_every_whole_number_that_a_tool_takes_has_bounds(name: str) -> None:
    (kind,) = load_worlds([name], scripts=True)
    numbers = [(spec.name, part) for spec in kind.tools for part in parts_of(spec.parameters) if part.get("type") == "integer"]
    assert [(tool, part) for tool, part in numbers if not ({"minimum", "maximum"} <= part.keys() or "enum" in part)] == []
    assert all(abs(part[end]) < 2**53 for _, part in numbers for end in ("minimum", "maximum") if end in part)
    assert name != "retail" or len(numbers) > 4


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all that are in it."""
    if isinstance(schema, Mapping):
        yield dict(schema)
    for inner in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list | tuple) else ():
        yield from parts_of(inner)


def test_a_price_beyond_all_bounds_is_an_invalid_argument() -> None:
    env = ToolTask(worlds=["retail"])
    env.reset(seed=0)
    for cents, status in ((2**63, "invalid_arguments"), (10**9, "invalid_arguments"), (10**9 - 1, "ok")):
        assert env.step(ToolCall("search_products", {"query": "", "max_price_cents": cents}))[4]["status"] == status
    env.close()
