"""The library's families: renew a loan, or not; tell when a book is due. Both are held out from training."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.library.operations import PATTERNS
from agent_gym.world import Draft, Family, Phrasebook, Route, Script, World

__all__ = ["FAMILIES", "oracle"]

_ROUTES = {
    "card": Route(("My card is {member_id}.", "I have the card {member_id}."), ("{title}",)),
    "name": Route(("My name is {name}.", "This is {name}."), ("{title}",)),
}
_FRAMES = {
    "renew": ("{who} Please renew {thing} for me.", "I want to keep {thing} for longer, renew it please. {who}"),
    "due": ("{who} When must I bring back {thing}?", "{who} By which day is {thing} due?"),
}
_SLOTS = {kind: pattern.strip("^$") for kind, pattern in PATTERNS.items()}
_BOOKS = {request: Phrasebook({"all": frames}, _ROUTES, _SLOTS) for request, frames in _FRAMES.items()}
_NAMED = "SELECT member_id FROM members WHERE name = ? ORDER BY member_id"
_LENT = "SELECT * FROM loans JOIN members USING (member_id) JOIN books USING (book_id)"


def _draft(request: str, world: World, rng: np.random.Generator, split: str) -> Draft:  # noqa: ARG001 - there is one wording
    lent = world.query(f"{_LENT} ORDER BY loan_id")
    loan = lent[int(rng.integers(len(lent)))]
    reasons = ("", "", "", "blocked", "others_waiting", "renewed_twice")
    refusal = reasons[int(rng.integers(len(reasons)))] if request == "renew" else ""
    world.update("members", loan["member_id"], standing="blocked" if refusal == "blocked" else "good")
    world.update("books", loan["book_id"], waiting=int(refusal == "others_waiting"))
    world.update("loans", loan["loan_id"], renewals=2 if refusal == "renewed_twice" else 0)
    named = world.query(f"{_LENT} WHERE name = ? AND title = ?", (loan["name"], loan["title"]))  # others of the name may have it too
    written = _BOOKS[request].write(rng, "all", "name" if len(named) == 1 and rng.integers(3) else "card", loan)
    where = {"loan_id": loan["loan_id"]}
    account = {"tool": "get_member", "arguments": {"member_id": loan["member_id"]}}
    book = {"tool": "get_book", "arguments": {"book_id": loan["book_id"]}}
    milestones: list[dict[str, Any]] = [{"name": "read_account", "call": account}]
    acts = request == "renew" and not refusal
    if acts or refusal == "others_waiting":
        milestones.append({"name": "read_book", "call": book})
    if acts:
        milestones.append({"name": "renewed", "goal": True})
    alike = [] if "member_id" in written.slots else [one["member_id"] for one in world.query(_NAMED, (loan["name"],))]
    return Draft(
        goal=written.text,
        params={"request": request, "slots": written.slots},
        rows=[{"table": "loans", "where": where, "values": {"renewals": 1}}] if acts else [],
        allowed=[{"table": "loans", "where": where, "columns": ["due", "renewals"]}] if acts else [],
        forbidden=[{"tool": "renew_loan", "arguments": where}] if refusal else [],
        look_first=[account, book] if acts else [book if refusal == "others_waiting" else account],
        milestones=milestones,
        refusal=refusal,
        asks="" if request == "renew" else "due",
        answer=None if request == "renew" else loan["due"],
        # By a name, all who have it are listed, and their accounts read until one has the book.
        steps=1 + len(milestones) + (1 + alike.index(loan["member_id"]) if alike else 0),
        distractors=max(0, len(alike) - 1),
        facts=2,
    )


def oracle(goal: str) -> Script | None:
    """The script that solves a goal; None for words that it cannot read."""
    return next((_script(request, slots) for request, book in _BOOKS.items() if (slots := book.read(goal)) is not None), None)


def _script(request: str, slots: Mapping[str, str]) -> Script:
    named = [slots] if "member_id" in slots else (yield ToolCall("find_members", {"name": slots["name"]}))["members"]
    for one in named:
        member = yield ToolCall("get_member", {"member_id": one["member_id"]})
        loan = next((lent for lent in member["loans"] if lent["title"] == slots["title"]), None)
        if loan is not None:
            break
    else:
        yield ToolCall("get_member", {"member_id": ""})
        return
    reason = "blocked" if member["standing"] == "blocked" else "renewed_twice" if loan["renewals"] == 2 else ""
    if request == "due":
        yield ToolCall("finish", {"answer": loan["due"]})
    elif not reason:
        book = yield ToolCall("get_book", {"book_id": loan["book_id"]})
        reason = "others_waiting" if book["waiting"] else ""
    if reason:
        yield ToolCall("refuse", {"reason": reason})
    yield ToolCall("renew_loan", {"loan_id": loan["loan_id"]})
    yield ToolCall("finish")


_TAGS = {"renew": ("multi_hop", "policy", "refuse"), "due": ("lookup",)}
FAMILIES = {name: Family(name=name, draft=partial(_draft, name), capabilities=tags, transfer=True) for name, tags in _TAGS.items()}
"""The families by name."""
