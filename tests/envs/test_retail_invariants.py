"""Whatever is called in the retail world, goods and money are conserved, and a copy goes its own way."""

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.world import World
from tests.envs.till import BASE, call, goods, money, worth


def _keys(table: str) -> list[str]:
    opened = World(RETAIL.schema, BASE)
    keys = sorted(str(row[RETAIL.schema.tables[table].key]) for row in opened.query(f"SELECT * FROM {table}"))
    opened.close()
    return keys


ENTITIES = {
    "order_id": "orders",
    "user_id": "users",
    "item_id": "items",
    "product_id": "products",
    "variant_id": "variants",
    "address_id": "addresses",
    "payment_id": "payment_methods",
    "line_id": "carts",
    "voucher": "vouchers",
}
KEYS = {kind: [*_keys(table), f"{_keys(table)[0][0]}9999999"] for kind, table in ENTITIES.items()}
KEYS["voucher"][-1] = "NOSUC-99"


def _value(name: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if name == "cursor":
        return st.sampled_from([f"K{key[1:]}" for key in KEYS["order_id"]])
    if "x-entity" in schema and name in KEYS:
        return st.sampled_from(KEYS[name])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "integer":
        return st.integers(schema.get("minimum", 0), min(schema.get("maximum", 9), 9))
    return st.sampled_from(["Nobody Here"]) if name == "name" else st.sampled_from(["nobody@here.example"] if name == "email" else ["lamp"])


SPECS = [operation.spec for operation in RETAIL.operations.values()]
WRITES = [spec for spec in SPECS if not spec.read_only]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A call of any tool; of one that writes more often, and then with what goes together more often than not."""
    spec = draw(st.sampled_from([*WRITES, *WRITES, *SPECS]))
    arguments = {name: draw(_value(name, schema)) for name, schema in spec.parameters["properties"].items()}
    return spec.name, arguments


def together(world: World, arguments: dict[str, Any], number: int) -> dict[str, Any]:
    """The arguments, with those that must belong to the order or the account put right."""
    found = world.query("SELECT * FROM orders WHERE order_id = ?", (arguments.get("order_id"),))
    user_id = found[0]["user_id"] if found else arguments.get("user_id")
    right = dict(arguments)
    for name, sql, key in (
        ("address_id", "SELECT address_id AS key FROM addresses WHERE user_id = ?", user_id),
        ("payment_id", "SELECT payment_id AS key FROM payment_methods WHERE user_id = ?", user_id),
        ("item_id", "SELECT item_id AS key FROM items WHERE order_id = ?", arguments.get("order_id")),
    ):
        rows = world.query(f"{sql} ORDER BY 1", (key,))
        if name in right and rows:
            right[name] = rows[number % len(rows)]["key"]
    if "item_id" in right and "variant_id" in right:
        same = (
            "SELECT other.variant_id AS key FROM items JOIN variants mine USING (variant_id) JOIN variants other USING (product_id)"
            " WHERE item_id = ? ORDER BY 1"
        )
        rows = world.query(same, (right["item_id"],))
        right["variant_id"] = rows[number % len(rows)]["key"] if rows else right["variant_id"]
    return right


def sound(world: World) -> None:
    """What holds at all times."""
    assert money(world) == worth(world)
    assert world.query("SELECT min(stock) AS stock FROM variants")[0]["stock"] >= 0
    assert world.query("SELECT count(*) AS n FROM items WHERE order_id NOT IN (SELECT order_id FROM orders)") == [{"n": 0}]
    assert world.query("SELECT count(*) AS n FROM orders WHERE order_id NOT IN (SELECT order_id FROM items)") == [{"n": 0}]
    under_way = "SELECT count(*) AS n FROM orders JOIN users USING (user_id) WHERE standing = 'closed' AND status IN ('pending', 'shipped')"
    assert world.query(under_way) == [{"n": 0}]
    for table, key, of in (("addresses", "address_id", "orders"), ("payment_methods", "payment_id", "orders")):
        foreign = f"SELECT count(*) AS n FROM {of} JOIN {table} USING ({key}) WHERE {of}.user_id != {table}.user_id"
        assert world.query(foreign) == [{"n": 0}]


def closed(world: World) -> dict[str, list[Any]]:
    """What is in the carts of accounts that are closed."""
    accounts = world.query("SELECT * FROM users WHERE standing = 'closed'")
    return {
        user["user_id"]: [
            user["voucher"],
            sum(line["quantity"] for line in world.query("SELECT * FROM carts WHERE user_id = ?", (user["user_id"],))),
        ]
        for user in accounts
    }


def close_one(world: World) -> str:
    """Closes the first account that can be, one with a cart if there is one."""
    with_cart = "SELECT user_id FROM users LEFT JOIN carts USING (user_id) ORDER BY line_id IS NULL, user_id"
    users = (str(row["user_id"]) for row in world.query(with_cart))
    return next(user_id for user_id in users if call(world, "close_account", user_id=user_id).status == "ok")


def test_who_has_closed_an_account_shops_no_more_and_nothing_brings_it_back() -> None:
    world = World(RETAIL.schema, BASE)
    cart = world.query("SELECT carts.user_id, variant_id FROM carts JOIN variants USING (variant_id) WHERE stock > 1")[0]
    user_id = cart["user_id"]
    for order in world.query("SELECT order_id FROM orders WHERE user_id = ? AND status IN ('pending', 'shipped')", (user_id,)):
        with world.transaction():
            world.update("orders", order["order_id"], status="cancelled")
    own = {
        key: world.query(f"SELECT {key} FROM {table} WHERE user_id = ?", (user_id,))[0][key]
        for key, table in (("address_id", "addresses"), ("payment_id", "payment_methods"))
    }
    shopping: list[tuple[str, dict[str, Any]]] = [
        ("apply_voucher", {"voucher": KEYS["voucher"][0]}),
        ("add_to_cart", {"variant_id": cart["variant_id"], "quantity": 1}),
        ("place_order", own),
    ]
    assert call(world, "add_to_cart", user_id=user_id, variant_id=cart["variant_id"], quantity=1).status == "ok"
    assert call(world, "close_account", user_id=user_id).status == "ok"
    digest = world.digest()
    for tool, arguments in shopping:
        assert call(world, tool, user_id=user_id, **arguments).status == "conflict"
    assert call(world, "undo").status == "conflict"  # neither the closing nor what came before it
    assert world.digest() == digest
    line = world.query("SELECT * FROM carts WHERE user_id = ?", (user_id,))[0]
    assert call(world, "set_cart_quantity", line_id=line["line_id"], quantity=0).status == "ok"
    assert call(world, "undo").status == "ok"  # what came after it
    assert world.digest() == digest
    world.close()


@settings(max_examples=25, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(st.lists(st.tuples(calls(), st.integers(0, 9), st.booleans()), min_size=30, max_size=30), st.integers(0, 29))
def test_whatever_is_called_goods_and_money_are_conserved(plan: list[Any], at: int) -> None:
    world = World(RETAIL.schema, BASE)
    close_one(world)
    pieces = goods(world)
    forked, kept, later = None, None, []
    for step, ((tool, arguments), number, fit) in enumerate(plan):
        if step == at:
            forked, kept = world.fork(), world.snapshot()
        arguments = together(world, arguments, number) if fit else arguments
        before = (world.digest(), world.clock, world.serial, world.changes())
        shut = closed(world)
        result = call(world, tool, **arguments)
        if result.failed or RETAIL.operations[tool].spec.read_only:
            assert (world.digest(), world.clock, world.serial, world.changes()) == before
        else:
            sound(world)
            kept_shut = closed(world)
            assert all(user_id in kept_shut and kept_shut[user_id][0] == voucher for user_id, (voucher, _) in shut.items())
            assert tool in ("set_cart_quantity", "undo") or all(kept_shut[user_id] == cart for user_id, cart in shut.items())
        assert sum(goods(world).values()) == sum(pieces.values())
        if step >= at:
            later.append((tool, arguments))
    assert forked is not None
    assert kept is not None
    end = world.digest()
    assert end == world.recomputed_digest()
    assert forked.digest() == f"{int(kept['digest'], 16):032x}"  # what the world did has not touched its copy
    world.restore(kept)
    for copy in (world, forked):
        for tool, arguments in later:
            call(copy, tool, **arguments)
        assert copy.digest() == end
        copy.close()
