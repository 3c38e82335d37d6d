"""The rows of a retail world from a seed: about 450, with shared names, near-miss products, and money that adds up.

Beside the usual there are people with more orders than a list shows at once and somebody without any, orders of a leap day,
something that costs nothing and something that costs a fortune.
"""

from typing import Any

from agent_gym.envs.worlds.retail.catalogue import (
    CATEGORIES,
    CITIES,
    COLOURS,
    DOMAINS,
    FAMILY_NAMES,
    GIVEN_NAMES,
    MESSAGES,
    METHODS,
    PRODUCTS,
    STREETS,
    STYLES,
    VOUCHERS,
)
from agent_gym.world import Ids, Rows, mailbox

__all__ = ["DAY", "LEAP_DAY", "START", "rows"]

Row = dict[str, Any]
DAY = 86_400
START = 1_772_442_000
"""Monday, 2 March 2026, 09:00 UTC: when every episode begins."""

LEAP_DAY = 1_709_164_800
"""Thursday, 29 February 2024, 00:00 UTC."""

_NAMES = 17
_SHARED = 6
"""So many names belong to two people, who also ordered some of the same products."""
_MANY = (8, 12)
"""How many orders those have who have many: more than one and more than two pages of them."""
_FREE, _FORTUNE = 0, 99_999_990
"""Prices in cents."""


def rows(ids: Ids, seed: int) -> Rows:
    """All rows: catalogue, people, orders."""
    shop = _Shop(ids, seed)
    products = shop.stock_up()
    cities = shop.shuffled(CITIES)
    names = [f"{one} {other}" for one, other in zip(shop.shuffled(GIVEN_NAMES), shop.shuffled(FAMILY_NAMES), strict=True)][:_NAMES]
    for index, name in enumerate(names):
        shared = index < _SHARED
        wanted = [products[product] for product in shop.shuffled(list(products))]
        for twin in range(2 if shared else 1):
            # Twins live in different cities and have mailboxes in different places, so that either tells them apart.
            places = [cities[(2 * index + 7 * twin + step) % len(cities)] for step in range(2)]
            domain = DOMAINS[(index + twin) % len(DOMAINS)]
            single = index - _SHARED
            if 0 <= single < len(_MANY):
                shop.add_person(name, domain, places, _MANY[single], 1, wanted)
            else:
                orders = 0 if index == _NAMES - 1 else 2 if shared else shop.between(2, 3)
                shop.add_person(name, domain, places, orders, shop.between(1, 2), wanted)
            if index % 2:
                shop.fill_cart(wanted[-3:])
    return shop


class _Shop(Rows):
    """The tables while they are filled."""

    def __init__(self, ids: Ids, seed: int) -> None:
        super().__init__(ids, "retail", seed)
        for index, voucher in enumerate(VOUCHERS):
            percent = index % 2
            off = {"percent": 5 * self.between(1, 6) * percent, "amount_cents": 100 * self.between(3, 40) * (1 - percent)}
            self.add("vouchers", voucher=voucher, **off, minimum_cents=self.pick((0, 0, 2_000)))

    def stock_up(self) -> dict[str, list[Row]]:
        """Adds the catalogue and gives the variants by product."""
        products: dict[str, list[Row]] = {}
        for category, names in CATEGORIES.items():
            for name in names:
                product_id = self.add("products", product_id=self.id("P"), name=name, category=category)["product_id"]
                pairs = [(colour, style) for colour in self.shuffled(COLOURS)[:3] for style in STYLES[category][:2]]
                price = self.between(8, 90) * 100 + 90
                products[name] = [
                    self.add(
                        "variants",
                        variant_id=self.id("V"),
                        product_id=product_id,
                        colour=colour,
                        style=style,
                        price_cents=price + self.between(-3, 3) * 50,
                        stock=self.between(1, 12),
                    )
                    for colour, style in pairs[: self.between(4, 6)]
                ]
        for price in (_FREE, _FORTUNE):
            self.pick(products[self.pick(PRODUCTS)])["price_cents"] = price
        return products

    def add_person(self, name: str, domain: str, cities: list[str], orders: int, items: int, wanted: list[list[Row]]) -> None:
        """Adds an account with two addresses, two payment methods, and orders of one to ``items`` different products each."""
        email = f"{mailbox(name)}@{domain}.example"
        standing = self.pick(("good", "new", "trusted"))
        user_id = self.add("users", user_id=self.id("U"), name=name, email=email, standing=standing, voucher=None)["user_id"]
        addresses = [
            self.add(
                "addresses",
                address_id=self.id("A"),
                user_id=user_id,
                street=f"{self.between(2, 199)} {self.pick(STREETS)}",
                city=city,
                zip=f"{self.between(10_000, 99_999)}",
            )["address_id"]
            for city in cities
        ]
        methods = [
            self.add("payment_methods", payment_id=self.id("M"), user_id=user_id, kind=kind, accepted=1)["payment_id"]
            for kind in self.shuffled(METHODS)[:2]
        ]
        first = 0
        for _ in range(orders):
            count = self.between(1, items)
            self._add_order(user_id, self.pick(addresses), self.pick(methods), wanted[first : first + count])
            first += count

    def fill_cart(self, products: list[list[Row]]) -> None:
        """Puts something of each product into the cart of whoever was added last."""
        user_id = self.tables["users"][-1]["user_id"]
        for product in products[: self.between(1, 3)]:
            variant = self.pick(product)
            quantity = self.between(1, min(2, variant["stock"]))
            self.add("carts", line_id=self.id("C"), user_id=user_id, variant_id=variant["variant_id"], quantity=quantity)

    def _add_order(self, user_id: str, address_id: str, payment_id: str, products: list[list[Row]]) -> None:
        order_id = self.id("W")
        status = self.pick(("pending", "pending", "shipped", "delivered", "delivered"))
        placed_at = START - self.between(2, 19) * DAY
        delivered_at = START - DAY if status == "delivered" else None
        if status == "delivered" and self.between(1, 8) == 1:
            placed_at, delivered_at = LEAP_DAY - DAY, LEAP_DAY
        self.add(
            "orders",
            order_id=order_id,
            user_id=user_id,
            address_id=address_id,
            payment_id=payment_id,
            status=status,
            terms=self.pick(("regular", "regular", "discounted", "final sale")),
            carrier=self.pick(("parcel", "courier", "freight")),
            message=self.pick(MESSAGES),
            discount_cents=0,
            placed_at=placed_at,
            delivered_at=delivered_at,
        )
        total = 0
        for product in products:
            variant, quantity = self.pick(product), self.between(1, 2)
            total += quantity * variant["price_cents"]
            self.add(
                "items",
                item_id=self.id("I"),
                order_id=order_id,
                variant_id=variant["variant_id"],
                quantity=quantity,
                price_cents=variant["price_cents"],
                finish=self.pick(("plain", "plain", "wrapped")),
                state="kept",
            )
        if total:
            charge = {"kind": "charge", "amount_cents": total, "booked_at": placed_at}
            self.add("payments", entry_id=self.id("E"), order_id=order_id, payment_id=payment_id, **charge)
