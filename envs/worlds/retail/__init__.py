"""Retail: a shop with accounts, orders, stock and payments, and the rules its staff must keep to."""

from functools import lru_cache
from pathlib import Path

from agent_gym.envs.worlds.retail.counterpart import COUNTERPART
from agent_gym.envs.worlds.retail.families import (
    best_voucher,
    cancel,
    change_address,
    checkout,
    close_account,
    exchange,
    injected,
    last_delivery,
    many_orders,
    move_house,
    new_payment,
    not_allowed,
    order_facts,
    refuse,
    returns,
    second_choice,
    set_cart,
    which_order,
    who_is_it,
)
from agent_gym.envs.worlds.retail.generate import START, rows
from agent_gym.envs.worlds.retail.operations import OPERATIONS
from agent_gym.envs.worlds.retail.queries import owner
from agent_gym.envs.worlds.retail.rules import RULES
from agent_gym.world import Base, Schema, Script, World, WorldKind

__all__ = ["RETAIL", "SCHEMA", "build", "read_goal"]

_HERE = Path(__file__).parent
_ERRANDS = (
    cancel.REQUEST,
    change_address.REQUEST,
    exchange.REQUEST,
    second_choice.REQUEST,
    new_payment.REQUEST,
    returns.REQUEST,
    order_facts.REQUEST,
    last_delivery.REQUEST,
    set_cart.REQUEST,
    best_voucher.REQUEST,
    checkout.REQUEST,
    close_account.REQUEST,
    move_house.REQUEST,
)
_REQUESTS = {errand.name: errand for errand in _ERRANDS}
_FAMILIES = (
    cancel.FAMILY,
    change_address.FAMILY,
    exchange.FAMILY,
    refuse.FAMILY,
    who_is_it.FAMILY,
    order_facts.FAMILY,
    last_delivery.FAMILY,
    many_orders.FAMILY,
    set_cart.FAMILY,
    best_voucher.FAMILY,
    new_payment.FAMILY,
    second_choice.FAMILY,
    which_order.FAMILY,
    close_account.FAMILY,
    not_allowed.FAMILY,
    injected.FAMILY,
    move_house.FAMILY,
    returns.FAMILY,
    checkout.FAMILY,
)

SCHEMA = Schema.parse((_HERE / "schema.sql").read_text(encoding="utf-8"))
"""The tables."""


def build(seed: int) -> Base:
    """Builds a base database from nothing."""
    return World.build(SCHEMA, seed, START, lambda ids: rows(ids, seed))


@lru_cache(maxsize=4_096)
def read_goal(goal: str) -> tuple[str, dict[str, str]] | None:
    """The request that a goal's words make, and its slots; None for words that no phrasebook has."""
    for name, request in _REQUESTS.items():
        if (slots := request.book.read(goal)) is not None:
            return name, slots
    return None


def _oracle(goal: str) -> Script | None:
    found = read_goal(goal)
    return None if found is None else _REQUESTS[found[0]].oracle(found[1])


RETAIL = WorldKind(
    name="retail",
    schema=SCHEMA,
    build=build,
    operations=OPERATIONS,
    rules=(_HERE / "policy.md").read_text(encoding="utf-8").strip(),
    reasons=tuple(RULES),
    families={family.name: family for family in _FAMILIES},
    tasks={"train": 2_000, "validation": 100, "test": 200, "synonyms": 100, "transfer": 200},
    bases={"train": 12, "validation": 4, "test": 6, "synonyms": 4, "transfer": 4},
    oracle=_oracle,
    verified_by={
        "cancel_order": "get_order",
        "change_address": "get_order",
        "exchange_item": "get_order",
        "return_item": "get_order",
        "add_to_cart": "get_cart",
        "set_cart_quantity": "get_cart",
        "apply_voucher": "get_cart",
        "place_order": "get_cart",
        "change_payment": "get_order",
        "close_account": "get_user",
        "undo": "get_cart",
    },
    counterpart=COUNTERPART,
    owner=owner,
    site="agent_gym.envs.worlds.retail.site",
)
"""The retail world."""
