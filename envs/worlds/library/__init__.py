"""Library: members and their loans, which are renewed or not. The smallest world, and held out from training as a whole."""

from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.world import Conflict, Draft, Family, Ids, Operation, Phrasebook, Route, Script, World, WorldKind
from agent_gym.world.generating import Rows, pick
from agent_gym.world.grading import calling, milestones
from agent_gym.world.requests import Request, Requests
from agent_gym.world.specs import TEXT, WHOLE, entities, record, rows, tool

__all__ = ["LIBRARY"]

_REASONS = ("blocked", "others_waiting", "renewed_twice")
_FIRST, _LAST = ("Ana", "Søren", "Mei", "Zoë", "Tariq", "Íris"), ("O’Neil", "Castro", "Müller-Ek", "Adé", "Ng")
_TITLES = [f"The {what} of {place}" for what in ("Garden", "Café", "Bridge", "Winter") for place in ("Oslo", "Ys", "Évora", "Rome")]


def _rows(ids: Ids, seed: int) -> Rows:
    drawn = Rows(ids, "library", seed)
    for _ in range(40):  # so that some share a name
        member = drawn.add("members", member_id=drawn.id("L"), name=f"{drawn.pick(_FIRST)} {drawn.pick(_LAST)}", standing="good")
        for title in drawn.shuffled(_TITLES)[: drawn.pick((0, 2, 3, 4, 5))]:
            due = str(date(2028, 2, 14) + timedelta(days=drawn.between(0, 29)))  # over a leap day
            drawn.add("loans", loan_id=drawn.id("N"), member_id=member["member_id"], title=title, due=due, renewals=1, waiting=0)
    return drawn


# --- What the desk can do ---


def _find_members(world: World, name: str) -> dict[str, Any]:
    return {"members": world.query("SELECT member_id, name FROM members WHERE name = ? ORDER BY member_id", (name,))}


def _get_member(world: World, member_id: str) -> dict[str, Any]:
    loans = "SELECT loan_id, title, due, renewals, waiting FROM loans WHERE member_id = ? ORDER BY loan_id"
    return {**world.get("members", member_id), "loans": world.query(loans, (member_id,))}


def _renew_loan(world: World, loan_id: str) -> dict[str, Any]:
    loan = world.get("loans", loan_id)
    if loan["renewals"] == 2:
        raise Conflict(f"{loan_id} was renewed twice already")
    due = str(date.fromisoformat(loan["due"]) + timedelta(days=21))
    world.update("loans", loan_id, due=due, renewals=loan["renewals"] + 1)
    return {"loan_id": loan_id, "due": due}


_PATTERNS = {"member_id": r"^L\d{7}$", "loan_id": r"^N\d{7}$", "name": r"^[A-ZÀ-Þ][A-Za-zÀ-ÿ'’-]+ [A-ZÀ-Þ][A-Za-zÀ-ÿ'’-]+$"}
_TAKES = {kind: record(**{kind: schema}) for kind, schema in entities(_PATTERNS).items()}
_MEMBER, _LOAN = {"member_id": TEXT, "name": TEXT}, {"loan_id": TEXT, "due": TEXT}
_ACCOUNT = record(**_MEMBER, standing=TEXT, loans=rows(**_LOAN, title=TEXT, renewals=WHOLE, waiting=WHOLE))
_OPERATIONS = (
    Operation(tool("find_members", "Lists who has a name.", _TAKES["name"], record(members=rows(**_MEMBER))), _find_members, "members"),
    Operation(tool("get_member", "Reads an account and its loans.", _TAKES["member_id"], _ACCOUNT), _get_member),
    Operation(tool("renew_loan", "Lends for 21 more days.", _TAKES["loan_id"], record(**_LOAN), writes=True), _renew_loan),
)

# --- What members ask ---

_ROUTES = {
    "card": Route(("My card is {member_id}.", "I have the card {member_id}.")),
    "name": Route(("My name is {name}.", "This is {name}.")),
}
_FRAMES = {
    "renew": ("{who} Please renew {title} for me.", "I want to keep {title} for longer, renew it please. {who}"),
    "due": ("{who} When must I bring back {title}?", "{who} By which day is {title} due?"),
}
_TAGS = {"renew": ("multi_hop", "policy", "refuse"), "due": ("lookup",)}


def _draft(request: Request, world: World, rng: np.random.Generator, split: str) -> Draft:
    lent = world.query("SELECT * FROM loans JOIN members USING (member_id) ORDER BY loan_id")
    loan = pick(rng, lent)
    member_id, where = loan["member_id"], {"loan_id": loan["loan_id"]}
    refusal = pick(rng, ("", "", "", *_REASONS)) if request.name == "renew" else ""
    world.update("members", member_id, standing="blocked" if refusal == "blocked" else "good")
    world.update("loans", loan["loan_id"], renewals=2 if refusal == "renewed_twice" else 0, waiting=int(refusal == "others_waiting"))
    alike = [one["member_id"] for one in world.query("SELECT * FROM members WHERE name = ? ORDER BY member_id", (loan["name"],))]
    by_name = [(one["name"], one["title"]) for one in lent].count((loan["name"], loan["title"])) == 1 and rng.integers(3) > 0
    goal, slots = request.book.write(rng, split, "name" if by_name else "card", loan)
    outcome: dict[str, Any] = {"asks": "due", "answer": loan["due"]}
    if refusal:
        outcome = {"refusal": refusal, "forbidden": [calling("renew_loan", **where)]}
    elif request.name == "renew":
        allowed = [{"table": "loans", "where": where, "columns": ["due", "renewals"]}]
        outcome = {"rows": [{"table": "loans", "where": where, "values": {"renewals": 1}}], "allowed": allowed}
    look = [calling("get_member", member_id=member_id)]
    return Draft(
        goal=goal,
        params={"request": request.name, "slots": slots},
        look_first=look,
        milestones=milestones(look, done="rows" in outcome),
        steps=2 + ("rows" in outcome) + (1 + alike.index(member_id) if by_name else 0),  # accounts are read until one has the book
        distractors=len(alike) - 1 if by_name else 0,
        facts=2,
        **outcome,
    )


def _script(request: str, slots: Mapping[str, str]) -> Script:
    named = [slots] if "member_id" in slots else (yield ToolCall("find_members", {"name": slots["name"]}))["members"]
    for one in [*named, {"member_id": ""}]:  # the last for a list in which somebody was missing
        member = yield ToolCall("get_member", {"member_id": one["member_id"]})
        if loan := next((lent for lent in member["loans"] if lent["title"] == slots["title"]), None):
            broken = (member["standing"] == "blocked", loan["waiting"] > 0, loan["renewals"] == 2)
            reason = next((reason for reason, holds in zip(_REASONS, broken, strict=True) if holds), "")
            if request == "due":
                yield ToolCall("finish", {"answer": loan["due"]})
            yield ToolCall("refuse", {"reason": reason}) if reason else ToolCall("renew_loan", {"loan_id": loan["loan_id"]})
            yield ToolCall("finish")


_SLOTS = {**_PATTERNS, "title": r"The \S+ of \w+"}
_BOOKS = {name: Phrasebook({"train": frames}, _ROUTES, _SLOTS) for name, frames in _FRAMES.items()}
_REQUESTS = [Request(name=name, book=book, oracle=partial(_script, name)) for name, book in _BOOKS.items()]
_FAMILIES = [Family(name=one.name, draft=partial(_draft, one), capabilities=_TAGS[one.name], transfer=True) for one in _REQUESTS]

LIBRARY = WorldKind.beside(
    __file__,
    start=1_834_131_600,  # a Monday morning in February 2028
    rows=_rows,
    operations={operation.spec.name: operation for operation in _OPERATIONS},
    reasons=_REASONS,
    families={family.name: family for family in _FAMILIES},
    oracle=Requests(_REQUESTS).oracle,
    verified_by={"renew_loan": "get_member"},
    site="agent_gym.world.site",
)
"""The library world."""
