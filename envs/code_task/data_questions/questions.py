"""Kinds of questions about a shop: how each is asked, what is right, and by what program it can be answered.

What is right is worked out here, on what the files were made of; the programs read the files, and know only what the question says.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from agent_gym.envs.code_task.data_questions.shop import CITIES, STATUSES, TAGS, Shop

__all__ = ["QUESTIONS", "Question"]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WORDS = ("café", "gift", "straße")
_PRELUDE = """import csv, json, sqlite3, statistics
from collections import Counter, defaultdict
from datetime import date
from itertools import combinations

with open("customers.json", encoding="utf-8") as file:
    customers = {row["id"]: row for row in json.load(file)}
with open("orders.csv", encoding="utf-8", newline="") as file:
    orders = {int(row["order_id"]): row for row in csv.DictReader(file)}
base = sqlite3.connect("shop.sqlite")
products = {sku: (category, cents) for sku, category, cents in base.execute("SELECT sku, category, price_cents FROM products")}
lines = base.execute("SELECT order_id, sku, quantity FROM lines").fetchall()

def cents(order):
    return None if order["amount"] in ("", "n/a") else round(100 * float(order["amount"]))

"""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A kind of question.

    Attributes:
        text: How it is asked, with slots.
        draw: What may stand in the slots.
        answer: What is right; None where that is not clear, so that it is not asked.
        kind: See `agent_gym.envs.code_task.graders.answer`.
        program: Prints the answer; the slots are its variables.
        work: So many files, operations (joins, groups, filters, orders) and traps (missing values, dates, spellings) it takes.
    """

    text: str
    draw: Callable[[np.random.Generator, Shop], dict[str, str]]
    answer: Callable[[Shop, Mapping[str, str]], str | None]
    kind: str
    program: str
    work: tuple[int, int, int]

    @property
    def difficulty(self) -> float:
        """From 0 to 1: a third each for files (1 to 3), operations (1 to 5) and traps (0 to 3)."""
        files, operations, traps = self.work
        return round(((files - 1) / 2 + (operations - 1) / 4 + traps / 3) / 3, 2)

    def solve(self, slots: Mapping[str, str]) -> str:
        """The program for what stands in the slots."""
        return _PRELUDE + "".join(f"{name} = {value!r}\n" for name, value in sorted(slots.items())) + self.program


def _pick(rng: np.random.Generator, values: Any) -> str:
    return str(values[int(rng.integers(len(values)))])


def _first(counts: Mapping[str, float]) -> str | None:
    """The largest, if there is one of that size."""
    best = sorted(counts.items(), key=lambda pair: -pair[1])[:2]
    return best[0][0] if best and (len(best) == 1 or best[0][1] > best[1][1]) else None


def _money(cents: float) -> str:
    return f"{cents / 100:.2f}"


def _sum_of_city(shop: Shop, slots: Mapping[str, str]) -> str | None:
    amounts = [o.cents for o in shop.orders if o.status == slots["status"] and shop.customer[o.customer].city == slots["city"]]
    known = [cents for cents in amounts if cents is not None]
    return _money(sum(known)) if len(known) > 1 else None


def _best_month(shop: Shop, slots: Mapping[str, str]) -> str | None:
    sums: Counter[str] = Counter()
    for order in shop.orders:
        if order.status != slots["status"]:
            sums[order.placed.isoformat()[:7]] += order.cents or 0
    return _first(sums)


def _regulars(shop: Shop, slots: Mapping[str, str]) -> str | None:
    bought: dict[str, set[int]] = defaultdict(set)
    for line in shop.lines:
        if shop.product[line.sku].category == slots["category"]:
            bought[shop.order[line.order].customer].add(line.order)
    return str(sum(len(orders) >= int(slots["times"]) for orders in bought.values()))


def _never_ordered(shop: Shop, slots: Mapping[str, str]) -> str | None:
    ordered = {order.customer for order in shop.orders}
    found = sorted(c.id for c in shop.customers if c.id not in ordered and c.joined < date.fromisoformat(slots["day"]))
    return ", ".join(found) if len(found) > 1 else None


def _best_product(shop: Shop, slots: Mapping[str, str]) -> str | None:
    sums: Counter[str] = Counter()
    for line in shop.lines:
        product = shop.product[line.sku]
        if product.category == slots["category"] and shop.order[line.order].status != "cancelled":
            sums[line.sku] += line.quantity * product.cents
    return _first(sums)


def _median_of_weekday(shop: Shop, slots: Mapping[str, str]) -> str | None:
    known = [o.cents for o in shop.orders if o.cents is not None and _DAYS[o.placed.weekday()] == slots["weekday"]]
    return _money(statistics.median_low(known)) if len(known) > 3 else None


def _longest_gap(shop: Shop, slots: Mapping[str, str]) -> str | None:
    days = sorted(order.placed for order in shop.orders if shop.customer[order.customer].name == slots["name"])
    return str(max((later - day).days for day, later in pairwise(days))) if len(days) > 2 else None


def _city_of_tag(shop: Shop, slots: Mapping[str, str]) -> str | None:
    return _first(Counter(c.city for c in shop.customers if slots["tag"] in c.tags and slots["other"] not in c.tags))


def _pair_of_categories(shop: Shop, slots: Mapping[str, str]) -> str | None:
    inside: dict[int, set[str]] = defaultdict(set)
    for line in shop.lines:
        if shop.order[line.order].placed.year == int(slots["year"]):
            inside[line.order].add(shop.product[line.sku].category)
    return _first(Counter(", ".join(pair) for names in inside.values() for pair in combinations(sorted(names), 2)))


def _noted(shop: Shop, slots: Mapping[str, str]) -> str | None:
    found = [o for o in shop.orders if slots["word"].casefold() in o.note.casefold() and o.status == slots["status"]]
    return str(len(found)) if found else None


QUESTIONS: dict[str, Question] = {
    "sum_of_city": Question(
        text="What do the {status} orders of customers in {city} amount to, those without an amount left out? Two digits after the point.",
        draw=lambda rng, _: {"status": _pick(rng, STATUSES), "city": _pick(rng, CITIES)},
        answer=_sum_of_city,
        kind="number",
        program="""of_city = [o for o in orders.values() if customers[o["customer_id"]]["address"]["city"] == city]
found = [cents(o) for o in of_city if o["status"] == status]
print(f"{sum(c for c in found if c is not None) / 100:.2f}")
""",
        work=(2, 3, 2),
    ),
    "best_month": Question(
        text="In which month was the sum of the amounts of all orders that are not {status} the largest? As YYYY-MM.",
        draw=lambda rng, _: {"status": _pick(rng, STATUSES)},
        answer=_best_month,
        kind="text",
        program="""sums = Counter()
for o in orders.values():
    if o["status"] != status:
        sums[o["placed"][:7]] += cents(o) or 0
print(sums.most_common(1)[0][0])
""",
        work=(1, 3, 2),
    ),
    "regulars": Question(
        text="How many customers have at least {times} orders with something of the category {category} in them?",
        draw=lambda rng, shop: {"times": _pick(rng, (2, 3)), "category": _pick(rng, [p.category for p in shop.products])},
        answer=_regulars,
        kind="number",
        program="""bought = defaultdict(set)
for order, sku, _ in lines:
    if products[sku][0] == category:
        bought[orders[order]["customer_id"]].add(order)
print(sum(len(found) >= int(times) for found in bought.values()))
""",
        work=(2, 5, 0),
    ),
    "never_ordered": Question(
        text="Which customers who joined before {day} have never ordered anything? Their ids in ascending order, between commas.",
        draw=lambda rng, _: {"day": (date(2023, 6, 1) + timedelta(days=int(rng.integers(280)))).isoformat()},
        answer=_never_ordered,
        kind="list",
        program="""ordered = {o["customer_id"] for o in orders.values()}
print(", ".join(sorted(c for c, row in customers.items() if c not in ordered and row["joined"] < day)))
""",
        work=(2, 3, 1),
    ),
    "best_product": Question(
        text="Which product of the category {category} has brought in the most (quantity times price), cancelled orders left out? Its sku.",
        draw=lambda rng, shop: {"category": _pick(rng, [p.category for p in shop.products])},
        answer=_best_product,
        kind="text",
        program="""sums = Counter()
for order, sku, quantity in lines:
    if products[sku][0] == category and orders[order]["status"] != "cancelled":
        sums[sku] += quantity * products[sku][1]
print(sums.most_common(1)[0][0])
""",
        work=(2, 5, 0),
    ),
    "median_of_weekday": Question(
        text="What is the median amount of the orders placed on a {weekday}, the lower of the two middle ones if need be, those without an "
        "amount left out? Two digits after the point.",
        draw=lambda rng, _: {"weekday": _pick(rng, _DAYS)},
        answer=_median_of_weekday,
        kind="number",
        program=f"""days = {_DAYS!r}
found = [cents(o) for o in orders.values() if days[date.fromisoformat(o["placed"]).weekday()] == weekday and cents(o) is not None]
print(f"{{statistics.median_low(found) / 100:.2f}}")
""",
        work=(1, 3, 3),
    ),
    "longest_gap": Question(
        text="How many days lie at most between one order of the customer named {name} and the next?",
        draw=lambda rng, shop: {"name": _pick(rng, [customer.name for customer in shop.customers])},
        answer=_longest_gap,
        kind="number",
        program="""placed = sorted(date.fromisoformat(o["placed"]) for o in orders.values() if customers[o["customer_id"]]["name"] == name)
print(max((later - day).days for day, later in zip(placed, placed[1:])))
""",
        work=(2, 4, 2),
    ),
    "city_of_tag": Question(
        text="In which city live the most of the customers who have the tag {tag} but not the tag {other}?",
        draw=lambda rng, _: dict(zip(("tag", "other"), (TAGS[int(index)] for index in rng.permutation(len(TAGS))), strict=False)),
        answer=_city_of_tag,
        kind="text",
        program="""found = Counter(c["address"]["city"] for c in customers.values() if tag in c["tags"] and other not in c["tags"])
print(found.most_common(1)[0][0])
""",
        work=(1, 3, 1),
    ),
    "pair_of_categories": Question(
        text="Which two categories are together in the most orders placed in {year}? In the order of the alphabet, with a comma between.",
        draw=lambda rng, _: {"year": _pick(rng, ("2023", "2024"))},
        answer=_pair_of_categories,
        kind="list",
        program="""inside = defaultdict(set)
for order, sku, _ in lines:
    if orders[order]["placed"].startswith(year):
        inside[order].add(products[sku][0])
print(", ".join(Counter(pair for names in inside.values() for pair in combinations(sorted(names), 2)).most_common(1)[0][0]))
""",
        work=(2, 5, 1),
    ),
    "noted": Question(
        text="How many {status} orders have the word “{word}” in their note, in small or capital letters?",
        draw=lambda rng, _: {"status": _pick(rng, STATUSES), "word": _pick(rng, _WORDS)},
        answer=_noted,
        kind="number",
        program="""print(sum(word.casefold() in o["note"].casefold() for o in orders.values() if o["status"] == status))
""",
        work=(1, 2, 2),
    ),
}
"""The kinds, by name."""
