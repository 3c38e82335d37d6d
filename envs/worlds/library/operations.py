"""What the library's desk can do."""

from datetime import date, timedelta
from typing import Any

from agent_gym.world import Conflict, Operation, World
from agent_gym.world.specs import TEXT, WHOLE, record, rows, tool

__all__ = ["OPERATIONS", "PATTERNS"]

PATTERNS = {
    "member_id": r"^L\d{7}$",
    "book_id": r"^B\d{7}$",
    "loan_id": r"^N\d{7}$",
    "name": r"^[A-ZÀ-Þ][A-Za-zÀ-ÿ'’-]+ [A-ZÀ-Þ][A-Za-zÀ-ÿ'’-]+$",
    "title": r"^The [A-ZÀ-Þ][a-zà-ÿ'’]+ of [A-ZÀ-Þ][a-zà-ÿ'’]+$",
}
"""What ids, names and titles look like."""


def _takes(kind: str) -> dict[str, Any]:
    return record(**{kind: {"type": "string", "pattern": PATTERNS[kind], "x-entity": kind}})


def _find_members(world: World, name: str) -> dict[str, Any]:
    return {"members": world.query("SELECT member_id, name FROM members WHERE name = ? ORDER BY member_id", (name,))}


def _get_member(world: World, member_id: str) -> dict[str, Any]:
    loans = "SELECT loan_id, book_id, title, due, renewals FROM loans JOIN books USING (book_id) WHERE member_id = ? ORDER BY loan_id"
    return {**world.get("members", member_id), "loans": world.query(loans, (member_id,))}


def _get_book(world: World, book_id: str) -> dict[str, Any]:
    return world.get("books", book_id)


def _renew_loan(world: World, loan_id: str) -> dict[str, Any]:
    loan = world.get("loans", loan_id)
    if loan["renewals"] == 2:
        raise Conflict(f"{loan_id} was renewed twice already")
    due = (date.fromisoformat(loan["due"]) + timedelta(days=21)).isoformat()
    world.update("loans", loan_id, due=due, renewals=loan["renewals"] + 1)
    return {"loan_id": loan_id, "due": due}


_MEMBER, _BOOK = {"member_id": TEXT, "name": TEXT}, {"book_id": TEXT, "title": TEXT}
_ACCOUNT = record(**_MEMBER, standing=TEXT, loans=rows(loan_id=TEXT, **_BOOK, due=TEXT, renewals=WHOLE))
_RENEWED = record(loan_id=TEXT, due=TEXT)
_ALL = (
    Operation(tool("find_members", "Lists who has a name.", _takes("name"), record(members=rows(**_MEMBER))), _find_members, "members"),
    Operation(tool("get_member", "Reads an account and its loans.", _takes("member_id"), _ACCOUNT), _get_member),
    Operation(tool("get_book", "Reads a book.", _takes("book_id"), record(**_BOOK, waiting=WHOLE)), _get_book),
    Operation(tool("renew_loan", "Lends for 21 more days, twice at most.", _takes("loan_id"), _RENEWED, writes=True), _renew_loan),
)
OPERATIONS = {operation.spec.name: operation for operation in _ALL}
"""The operations by name."""
