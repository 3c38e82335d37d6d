"""Library: members, books, loans and who waits for what. The smallest world, and held out from training as a whole."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.seeding import derive
from agent_gym.envs.worlds.library.families import FAMILIES, oracle
from agent_gym.envs.worlds.library.operations import OPERATIONS
from agent_gym.world import Schema, World, WorldKind
from agent_gym.world.schema import Ids

__all__ = ["LIBRARY"]

_HERE = Path(__file__).parent
_START = 1_834_131_600  # a Monday morning in February 2028
_FIRST, _LAST = ("Ana", "Søren", "Mei", "Zoë", "Tariq", "Íris"), ("O’Neil", "Castro", "Müller-Ek", "Adé", "Ng")
_OF, _PLACES = ("Garden", "Café", "Bridge", "Witches", "Winter"), ("Oslo", "Ys", "Évora", "Rome", "Atlantis", "Lima")
_SCHEMA = Schema.parse((_HERE / "schema.sql").read_text(encoding="utf-8"))


def _rows(ids: Ids, seed: int) -> dict[str, list[dict[str, Any]]]:
    rng = derive("library", seed)
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    names = [names[int(rng.integers(len(names)))] for _ in range(40)]  # so that some share one
    members = [{"member_id": ids.new("L"), "name": name, "standing": "good"} for name in names]
    titles = [f"The {noun} of {place}" for noun in _OF for place in _PLACES]
    books = [{"book_id": ids.new("B"), "title": title, "waiting": int(rng.integers(3))} for title in titles]
    loans = [
        {
            "loan_id": ids.new("N"),
            "member_id": member["member_id"],
            "book_id": books[int(number)]["book_id"],
            "due": _day(rng),
            "renewals": 1,
        }
        for member in members
        for number in rng.permutation(len(books))[: (0, 2, 3, 4, 5)[int(rng.integers(5))]]
    ]
    return {"members": members, "books": books, "loans": loans}


def _day(rng: np.random.Generator) -> str:
    return (date(2028, 2, 14) + timedelta(days=int(rng.integers(30)))).isoformat()  # over a leap day


LIBRARY = WorldKind(
    name="library",
    schema=_SCHEMA,
    build=lambda seed: World.build(_SCHEMA, seed, _START, lambda ids: _rows(ids, seed)),
    operations=OPERATIONS,
    rules=(_HERE / "policy.md").read_text(encoding="utf-8").strip(),
    reasons=("blocked", "others_waiting", "renewed_twice"),
    families=FAMILIES,
    tasks={"transfer": 200},
    bases={"transfer": 4},
    oracle=oracle,
    verified_by={"renew_loan": "get_member"},
    site="agent_gym.envs.worlds.library.site",
)
"""The library world."""
