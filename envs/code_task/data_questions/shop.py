"""A shop's files: customers as JSON, orders as CSV, products and order lines as SQLite. Made anew for each question."""

import csv
import io
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

__all__ = ["CITIES", "STATUSES", "TAGS", "Customer", "Line", "Order", "Product", "Shop", "make"]

CITIES = ("Łódź", "Malmö", "Évora", "Århus", "Brno", "İzmir", "Cork", "São Tomé")
STATUSES = ("shipped", "open", "cancelled", "returned")
TAGS = ("press", "wholesale", "staff", "newsletter", "vip")
_FIRST = ("Zoë", "Łukasz", "Mia", "Søren", "Inês", "Björn", "Aylin", "Noé", "Tom", "Ştefan", "Ada", "Jürgen")
_LAST = ("Novák", "O'Neil", "García", "Şahin", "Lindström", "Weiß", "Kowalska", "Çelik", "Dubois", "Marsh")
_CATEGORIES = ("garden", "kitchen", "office", "toys", "books")
_THINGS = ("lamp", "chair", "kettle", "box", "set", "press", "rack", "brush")
_NOTES = (
    "",
    "",
    "gift",
    "CAFÉ delivery",
    "Fragile, please",
    'said "soon"',
    "café closed",
    "GIFT wrap",
    "two\nlines",
    "Straße 5",
    "call first",
)
T = TypeVar("T")
_START, _DAYS = date(2022, 11, 1), 500


class Customer(NamedTuple):
    """Somebody who may order."""

    id: str
    name: str
    city: str
    tags: tuple[str, ...]
    joined: date


class Order(NamedTuple):
    """An order; ``cents`` is None where nobody has written down an amount."""

    id: int
    customer: str
    placed: date
    status: str
    cents: int | None
    note: str


class Product(NamedTuple):
    """Something on sale."""

    sku: str
    name: str
    category: str
    cents: int


class Line(NamedTuple):
    """So many of a product in an order."""

    order: int
    sku: str
    quantity: int


@dataclass(frozen=True)
class Shop:
    """All there is to know of a shop."""

    customers: tuple[Customer, ...]
    orders: tuple[Order, ...]
    products: tuple[Product, ...]
    lines: tuple[Line, ...]

    @cached_property
    def customer(self) -> dict[str, Customer]:
        """Customers by id."""
        return {customer.id: customer for customer in self.customers}

    @cached_property
    def order(self) -> dict[int, Order]:
        """Orders by id."""
        return {order.id: order for order in self.orders}

    @cached_property
    def product(self) -> dict[str, Product]:
        """Products by number."""
        return {product.sku: product for product in self.products}

    def files(self) -> dict[str, str | bytes]:
        """As files: ``customers.json``, ``orders.csv``, ``shop.sqlite``."""
        customers = [
            {"id": c.id, "name": c.name, "address": {"city": c.city}, "tags": c.tags, "joined": c.joined.isoformat()}
            for c in self.customers
        ]
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(("order_id", "customer_id", "placed", "status", "amount", "note"))
        for number, order in enumerate(self.orders):
            amount = ("", "n/a")[number % 2] if order.cents is None else f"{order.cents / 100:.2f}"
            writer.writerow((order.id, order.customer, order.placed.isoformat(), order.status, amount, order.note))
        base = sqlite3.connect(":memory:")
        base.execute("CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT, category TEXT, price_cents INTEGER)")
        base.execute("CREATE TABLE lines (order_id INTEGER, sku TEXT, quantity INTEGER)")
        base.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", self.products)
        base.executemany("INSERT INTO lines VALUES (?, ?, ?)", self.lines)
        base.commit()
        try:
            return {
                "customers.json": json.dumps(customers, ensure_ascii=False, indent=1) + "\n",
                "orders.csv": table.getvalue(),
                "shop.sqlite": base.serialize(),
            }
        finally:
            base.close()


def make(rng: np.random.Generator) -> Shop:
    """A shop with some 40 customers and 150 orders."""

    def pick(values: Sequence[T]) -> T:
        return values[int(rng.integers(len(values)))]

    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    chosen = [names[int(index)] for index in rng.permutation(len(names))[: int(rng.integers(35, 45))]]
    customers = tuple(
        Customer(
            id=f"C{number:03d}",
            name=name,
            city=pick(CITIES),
            tags=tuple(tag for tag in TAGS if rng.random() < 0.3),
            joined=_START + timedelta(days=int(rng.integers(_DAYS))),
        )
        for number, name in enumerate(chosen, 1)
    )
    active = customers[: -int(rng.integers(5, 9))]  # the last have never ordered
    orders = tuple(
        Order(
            id=1000 + number,
            customer=pick(active).id,
            placed=_START + timedelta(days=int(rng.integers(_DAYS))),
            status=pick(STATUSES),
            cents=None if rng.random() < 0.1 else int(rng.integers(500, 90_000)),
            note=pick(_NOTES),
        )
        for number in range(int(rng.integers(140, 170)))
    )
    products = tuple(
        Product(f"{category[:2].upper()}-{number:02d}", f"{category} {thing}", category, int(rng.integers(2, 200)) * 50)
        for category in _CATEGORIES
        for number, thing in enumerate(_THINGS[: int(rng.integers(4, 8))], 1)
    )
    lines = tuple(
        Line(order.id, products[int(index)].sku, int(rng.integers(1, 6)))
        for order in orders
        for index in rng.permutation(len(products))[: int(rng.integers(1, 4))]
    )
    return Shop(customers, tuple(orders[int(index)] for index in rng.permutation(len(orders))), products, lines)
