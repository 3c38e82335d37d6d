"""Fills a retail world from a seed: about 420 rows, with shared names, near-miss products, and money that adds up."""

import unicodedata
from typing import Any

import numpy as np

from agent_gym.core.seeding import derive
from agent_gym.envs.worlds.retail.catalogue import CATEGORIES, CITIES, COLOURS, DOMAINS, FAMILY_NAMES, GIVEN_NAMES, STREETS, STYLES
from agent_gym.world import World

__all__ = ["DAY", "START", "fill"]

DAY = 86_400
START = 1_772_442_000
"""Monday, 2 March 2026, 09:00 UTC: when every episode begins."""

_NAMES = 18
_SHARED = 6
"""So many names belong to two people, who also ordered some of the same products."""


def fill(world: World, seed: int) -> None:
    """Inserts catalogue, people and orders."""
    rng = derive("retail", seed)
    products = _catalogue(world, rng)
    names = _names(rng)
    cities = [str(city) for city in rng.permutation(CITIES)]
    for index, name in enumerate(names):
        wanted = [str(product) for product in rng.permutation(list(products))]
        for twin in range(2 if index < _SHARED else 1):
            # Twins live in different cities and have mailboxes in different places, so that either tells them apart.
            places = [cities[(2 * index + 7 * twin) % len(cities)], cities[(2 * index + 7 * twin + 1) % len(cities)]]
            domain = DOMAINS[(index + twin) % len(DOMAINS)]
            _person(world, rng, name, domain, places, [products[product] for product in wanted])


def _catalogue(world: World, rng: np.random.Generator) -> dict[str, list[dict[str, Any]]]:
    products: dict[str, list[dict[str, Any]]] = {}
    for category, names in CATEGORIES.items():
        for name in names:
            product_id = world.new_id("P")
            world.insert("products", product_id=product_id, name=name, category=category)
            colours = rng.permutation(COLOURS)[:3]
            pairs = [(str(colour), style) for colour in colours for style in STYLES[category][:2]]
            price = int(rng.integers(8, 90)) * 100 + 90
            products[name] = []
            for colour, style in pairs[: int(rng.integers(4, 7))]:
                variant = {
                    "variant_id": world.new_id("V"),
                    "product_id": product_id,
                    "colour": colour,
                    "style": style,
                    "price_cents": price + int(rng.integers(-3, 4)) * 50,
                    "stock": int(rng.integers(1, 12)),
                }
                world.insert("variants", **variant)
                products[name].append(variant)
    return products


def _names(rng: np.random.Generator) -> list[str]:
    given = rng.permutation(GIVEN_NAMES)[:_NAMES]
    family = rng.permutation(FAMILY_NAMES)[:_NAMES]
    return [f"{one} {other}" for one, other in zip(given, family, strict=True)]


def _person(
    world: World, rng: np.random.Generator, name: str, domain: str, cities: list[str], wanted: list[list[dict[str, Any]]]
) -> None:
    user_id = world.new_id("U")
    standing = str(rng.choice(("good", "new", "trusted")))
    world.insert("users", user_id=user_id, name=name, email=f"{_mailbox(name)}@{domain}.example", standing=standing)
    addresses = []
    for city in cities:
        addresses.append(world.new_id("A"))
        street = f"{int(rng.integers(2, 200))} {rng.choice(STREETS)}"
        zip_code = f"{int(rng.integers(10_000, 99_999))}"
        world.insert("addresses", address_id=addresses[-1], user_id=user_id, street=street, city=city, zip=zip_code)
    methods = []
    for kind in rng.permutation(("visa", "mastercard", "paypal"))[:2]:
        methods.append(world.new_id("M"))
        world.insert("payment_methods", payment_id=methods[-1], user_id=user_id, kind=str(kind))
    remaining = list(wanted)
    for _ in range(int(rng.integers(2, 4))):
        count = int(rng.integers(1, 4))
        variants = [product[int(rng.integers(len(product)))] for product in remaining[:count]]
        del remaining[:count]
        _order(world, rng, user_id, str(rng.choice(addresses)), str(rng.choice(methods)), variants)


def _order(
    world: World, rng: np.random.Generator, user_id: str, address_id: str, payment_id: str, variants: list[dict[str, Any]]
) -> None:
    order_id = world.new_id("W")
    status = str(rng.choice(("pending", "pending", "shipped", "delivered", "delivered")))
    placed_at = START - int(rng.integers(2, 20)) * DAY
    world.insert(
        "orders",
        order_id=order_id,
        user_id=user_id,
        address_id=address_id,
        payment_id=payment_id,
        status=status,
        terms=str(rng.choice(("regular", "regular", "discounted", "final sale"))),
        carrier=str(rng.choice(("parcel", "courier", "freight"))),
        placed_at=placed_at,
        delivered_at=START - DAY if status == "delivered" else None,
    )
    total = 0
    for variant in variants:
        quantity = int(rng.integers(1, 3))
        total += quantity * variant["price_cents"]
        world.insert(
            "items",
            item_id=world.new_id("I"),
            order_id=order_id,
            variant_id=variant["variant_id"],
            quantity=quantity,
            price_cents=variant["price_cents"],
            finish=str(rng.choice(("plain", "plain", "wrapped"))),
            state="kept",
        )
    entry_id = world.new_id("E")
    world.insert(
        "payments",
        entry_id=entry_id,
        order_id=order_id,
        payment_id=payment_id,
        kind="charge",
        amount_cents=total,
        booked_at=placed_at,
    )


def _mailbox(name: str) -> str:
    """The name in plain lower-case letters and dots: Zoë O'Brien is zoe.obrien."""
    folded = unicodedata.normalize("NFKD", name.lower().replace("ø", "o").replace("ß", "ss"))
    return "".join(letter for letter in folded if letter.isascii() and (letter.isalpha() or letter == " ")).replace(" ", ".")
