"""A site that the kit makes for the retail world, in the place of the world's own: nothing in it but which page is where."""

from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.world.site import Page, Section, Site

__all__ = ["SITE"]

_CUSTOMERS = (
    Page(
        operation="get_user",
        title="Customer",
        forms=("place_order", "apply_voucher", "close_account"),
        continues=("change_address", "change_payment"),
    ),
    "find_user_by_email",
    "find_users_by_name",
    Page(operation="list_orders", finds=False),
    Page(operation="list_orders_after", title="More orders", finds=False),
    Page(operation="get_cart", forms=("set_cart_quantity",)),
    Page(operation="get_order", forms=("cancel_order", "return_item")),
)
_PRODUCTS = (Page(operation="get_product", forms=("add_to_cart",), continues=("exchange_item",)), "list_products", "search_products")

SITE = Site(
    name="Hearth & Trail",
    origin="https://retail.example",
    operations=RETAIL.operations,
    sections=(Section(title="Customers", pages=_CUSTOMERS), Section(title="Products", pages=_PRODUCTS)),
    keeps=("user_id",),
)
