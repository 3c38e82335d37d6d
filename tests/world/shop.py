"""A site that the kit makes for the retail world, in the place of the world's own: nothing in it but which page is where."""

from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.world.site import Page, Section, Site

__all__ = ["ORIGIN", "SITE", "answer", "application", "clear_caches", "way"]

_PAGES = (
    Page(operation="get_user", title="Customer", continues=("change_address",)),
    "find_user_by_email",
    "find_users_by_name",
    Page(operation="list_orders", finds=False),
    Page(operation="get_order", forms=("cancel_order", "return_item")),
    Page(operation="get_product", forms=("add_to_cart",), continues=("exchange_item",)),
    Page(operation="get_cart", forms=("set_cart_quantity",), finds=False),
)
_NAMED = {page if isinstance(page, str) else page.operation for page in _PAGES}
_OTHERS = tuple(name for name, operation in RETAIL.operations.items() if operation.spec.read_only and name not in _NAMED)

SITE = Site(
    name="Hearth & Trail",
    origin="https://retail.example",
    operations=RETAIL.operations,
    sections=(Section(title="Desk", pages=_PAGES), Section(title="Catalogue", pages=_OTHERS)),
    keeps=("user_id",),
)
ORIGIN = SITE.origin
application, answer, way, clear_caches = SITE.application, SITE.answer, SITE.way, SITE.clear_caches
