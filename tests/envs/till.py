"""What is counted in the retail world, and a way to call its operations that checks what goes in and comes out."""

import json
import math
from typing import Any

import jsonschema_rs

from agent_gym.core import ToolResult
from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.world import World, carry_out

BASE = RETAIL.build(11)


def call(world: World, tool: str, **arguments: Any) -> ToolResult:
    jsonschema_rs.validate(dict(RETAIL.operations[tool].spec.parameters), arguments)
    result = carry_out(world, RETAIL.operations[tool], arguments, math.inf)
    if not result.failed:
        jsonschema_rs.validate(dict(RETAIL.operations[tool].spec.output_schema or {}), result.structured)
        assert json.loads(result.content) == result.structured
    return result


def money(world: World) -> dict[str, int]:
    """What was charged less what was refunded, by order."""
    sums = (
        "SELECT order_id, coalesce(sum(CASE kind WHEN 'charge' THEN amount_cents ELSE -amount_cents END), 0) AS cents"
        " FROM orders LEFT JOIN payments USING (order_id) GROUP BY order_id"
    )
    return {row["order_id"]: row["cents"] for row in world.query(sums)}


def worth(world: World) -> dict[str, int]:
    """What the items that people keep cost, less the discount, by order."""
    sums = (
        "SELECT order_id, max(0, sum(CASE WHEN state IN ('kept', 'exchanged') THEN quantity * price_cents ELSE 0 END) - discount_cents)"
        " AS cents FROM items JOIN orders USING (order_id) GROUP BY order_id"
    )
    return {row["order_id"]: row["cents"] for row in world.query(sums)}


def goods(world: World) -> dict[str, int]:
    """Pieces of each variant, in stock and with people."""
    sums = (
        "SELECT variant_id, stock + coalesce((SELECT sum(quantity) FROM items WHERE items.variant_id = variants.variant_id"
        " AND state IN ('kept', 'exchanged')), 0) AS pieces FROM variants"
    )
    return {row["variant_id"]: row["pieces"] for row in world.query(sums)}
