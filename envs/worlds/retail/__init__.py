"""Retail: a shop with accounts, orders, stock and payments, and the rules its staff must keep to."""

from agent_gym.envs.worlds.retail.counterpart import COUNTERPART
from agent_gym.envs.worlds.retail.drafting import Errand
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
from agent_gym.world import Requests, WorldKind

__all__ = ["REQUESTS", "RETAIL"]

REQUESTS = Requests[Errand](
    (
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
)
"""What people ask for."""
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

RETAIL = WorldKind.beside(
    __file__,
    start=START,
    rows=rows,
    operations=OPERATIONS,
    reasons=tuple(RULES),
    families={family.name: family for family in _FAMILIES},
    oracle=REQUESTS.oracle,
    site="agent_gym.envs.worlds.retail.site",
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
)
"""The retail world."""
