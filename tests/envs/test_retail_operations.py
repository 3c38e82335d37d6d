"""The retail world's operations: preconditions, atomicity, and what they conserve."""

import json
import math
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ToolResult
from agent_gym.envs.worlds.retail import RETAIL, SCHEMA, build
from agent_gym.world import World, carry_out

BASE = build(11)


@pytest.fixture
def world() -> Any:
    opened = World(SCHEMA, BASE)
    yield opened
    opened.close()


def call(world: World, tool: str, **arguments: Any) -> ToolResult:
    jsonschema_rs.validate(dict(RETAIL.operations[tool].spec.parameters), arguments)
    result = carry_out(world, RETAIL.operations[tool], arguments, math.inf)
    if not result.failed:
        jsonschema_rs.validate(dict(RETAIL.operations[tool].spec.output_schema or {}), result.structured)
        assert json.loads(result.content) == result.structured
    return result


def one(world: World, sql: str, *parameters: Any) -> dict[str, Any]:
    return world.query(f"{sql} LIMIT 1", parameters)[0]


def order_in(world: World, status: str) -> dict[str, Any]:
    return one(world, "SELECT * FROM orders WHERE status = ?", status)


def money(world: World) -> dict[str, int]:
    """What was charged less what was refunded, by order."""
    sums = "SELECT order_id, sum(CASE kind WHEN 'charge' THEN amount_cents ELSE -amount_cents END) AS cents FROM payments GROUP BY order_id"
    return {row["order_id"]: row["cents"] for row in world.query(sums)}


def worth(world: World) -> dict[str, int]:
    """What the items that people keep cost, by order."""
    sums = (
        "SELECT order_id, sum(CASE WHEN state IN ('kept', 'exchanged') THEN quantity * price_cents ELSE 0 END) AS cents"
        " FROM items GROUP BY order_id"
    )
    return {row["order_id"]: row["cents"] for row in world.query(sums)}


def goods(world: World) -> dict[str, int]:
    """Pieces of each variant, in stock and with people."""
    sums = (
        "SELECT variant_id, stock + coalesce((SELECT sum(quantity) FROM items WHERE items.variant_id = variants.variant_id"
        " AND state IN ('kept', 'exchanged')), 0) AS pieces FROM variants"
    )
    return {row["variant_id"]: row["pieces"] for row in world.query(sums)}


def test_a_base_has_distractors_and_money_that_adds_up(world: World) -> None:
    assert 380 <= sum(world.query(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in SCHEMA.tables) <= 460
    assert world.query("SELECT name FROM users GROUP BY name HAVING count(*) = 2")
    names = " ".join(row["name"] for row in world.query("SELECT name FROM users"))
    assert not names.isascii()
    assert max(row["n"] for row in world.query("SELECT count(*) AS n FROM orders GROUP BY user_id")) <= 4
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
    assert [order["order_id"] for order in listed] == account["order_ids"]
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
        ("add_to_cart", {"user_id": "U9999999", "variant_id": "V9999999"}),
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
    user, variant = one(world, "SELECT * FROM users"), one(world, "SELECT * FROM variants WHERE stock >= 3")
    other = one(world, "SELECT * FROM variants WHERE variant_id != ?", variant["variant_id"])
    line = {"user_id": user["user_id"], "variant_id": variant["variant_id"]}
    assert call(world, "get_cart", user_id=user["user_id"]).status == "empty"
    added = call(world, "add_to_cart", **line).structured
    assert added["quantity"] == 1
    assert call(world, "add_to_cart", **line, quantity=variant["stock"]).status == "conflict"
    assert call(world, "add_to_cart", **line, quantity=variant["stock"] - 1).structured["quantity"] == variant["stock"]
    assert call(world, "add_to_cart", **line).status == "conflict"
    second = call(world, "add_to_cart", user_id=user["user_id"], variant_id=other["variant_id"]).structured
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


def _keys(table: str) -> list[str]:
    opened = World(SCHEMA, BASE)
    keys = sorted(str(row[SCHEMA.tables[table].key]) for row in opened.query(f"SELECT * FROM {table}"))
    opened.close()
    return keys


ORDERS, ITEMS, VARIANTS, ADDRESSES = (_keys(table) for table in ("orders", "items", "variants", "addresses"))
writes = st.one_of(
    st.fixed_dictionaries({"order_id": st.sampled_from(ORDERS), "reason": st.just("found_cheaper")}).map(lambda a: ("cancel_order", a)),
    st.fixed_dictionaries({"order_id": st.sampled_from(ORDERS), "address_id": st.sampled_from(ADDRESSES)}).map(
        lambda a: ("change_address", a)
    ),
    st.tuples(st.sampled_from(ITEMS), st.integers(0, 9), st.booleans()).map(lambda a: ("item", a)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(writes, min_size=1, max_size=15))
def test_whatever_is_called_goods_and_money_are_conserved(plan: list[tuple[str, Any]]) -> None:
    world = World(SCHEMA, BASE)
    pieces = goods(world)
    products = {row["variant_id"]: row["product_id"] for row in world.query("SELECT * FROM variants")}
    for tool, arguments in plan:
        if tool == "item":  # an exchange or a return that fits together, so that many succeed
            item_id, number, back = arguments
            item = world.get("items", item_id)
            same = [key for key in VARIANTS if products[key] == products[item["variant_id"]]]
            tool, arguments = "return_item", {"order_id": item["order_id"], "item_id": item_id}
            if not back:
                tool, arguments = "exchange_item", {**arguments, "variant_id": same[number % len(same)]}
        before = world.snapshot()
        result = call(world, tool, **arguments)
        if result.failed:
            assert world.snapshot() == before
        assert money(world) == worth(world)
        after = goods(world)
        assert sum(after.values()) == sum(pieces.values())
        assert world.digest() == world.recomputed_digest()
    world.close()


def test_every_tool_says_what_it_takes_gives_and_does() -> None:
    kinds = set()
    for spec in RETAIL.tools:
        jsonschema_rs.meta.validate(dict(spec.parameters))
        jsonschema_rs.meta.validate(dict(spec.output_schema or {}))
        assert spec.parameters["additionalProperties"] is False
        assert set(spec.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        for name, schema in spec.parameters["properties"].items():
            if schema["type"] == "string" and "enum" not in schema:
                assert schema["pattern"].startswith("^")
                if name == "query":  # free text, which no candidate could guess
                    continue
                assert schema["x-entity"] == name
                kinds.add(name)
    assert len(RETAIL.tools) >= 10
    assert kinds == {"email", "name", "user_id", "order_id", "product_id", "item_id", "variant_id", "address_id", "line_id"}
