"""Ways to say who is asking and what about: what they look like in words, and how an oracle goes from there to the records."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.catalogue import COMPANIES, FOLDERS, MAIL_FOLDERS, TEAMS
from agent_gym.envs.worlds.workspace.tools import PATTERNS
from agent_gym.world import Phrasebook, Result, Route, World, one_of

__all__ = ["account", "colleague", "contact", "event", "phrasebook", "route_steps", "the_document", "thread", "who"]

Find = Generator[ToolCall, Result, Result]

_WHO = {
    "number": ("My staff number is {person_id}.", "I have the staff number {person_id}.", "This is staff number {person_id}."),
    "email": ("My address is {email}.", "My account is {email}.", "You find me under {email}."),
    "team": ("I am {me} from {team}.", "My name is {me}, I work in {team}.", "This is {me}, {team}."),
    "id": (),
}

_PERSON = r"[^\s,.;:?!]+ [^\s,.;:?!]+"
_TIME = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}"
_QUOTED = "[^“”«»]+"
_SLOTS = {
    **PATTERNS,
    "me": _PERSON,
    "email": r"\S+@\S+\.example",
    "team": one_of(*TEAMS),
    "colleague": _PERSON,
    "their_team": one_of(*TEAMS),
    "contact": _PERSON,
    "sender": _PERSON,
    "their_email": r"\S+@\S+\.example",
    "folder": one_of(*FOLDERS),
    "company": one_of(*COMPANIES),
    "day": r"\d{4}-\d{2}-\d{2}",
    "starts": _TIME,
    "otherwise": _TIME,
    "place": one_of(*MAIL_FOLDERS),
    **dict.fromkeys(("subject", "title", "new_title", "file", "one", "two", "three", "four", "five"), _QUOTED),
}


def phrasebook(
    frames: Mapping[str, tuple[str, ...]], *things: str, by_id: Sequence[str] = (), slots: Mapping[str, str] | None = None
) -> Phrasebook:
    """The wordings of a request.

    Args:
        frames: Whole requests by wording.
        things: Phrases for what it is about.
        by_id: Phrases for it by its id, which do without saying who is asking; none where that must be known.
        slots: Regular expressions for slots that no other request has.
    """
    routes = {name: Route(who, by_id if name == "id" else things or ("",)) for name, who in _WHO.items() if name != "id" or by_id}
    return Phrasebook(frames, routes, {**_SLOTS, **(slots or {})})


def who(route: str, me: Mapping[str, Any]) -> dict[str, str]:
    """The slots of a route."""
    return {"person_id": me["person_id"], "email": me["email"], "me": me["person"], "team": me["team"]} if route != "id" else {}


def route_steps(world: World, route: str, me: Mapping[str, Any]) -> int:
    """How many calls it takes by a route until it is known who is asking."""
    if route != "team":
        return int(route == "email")
    namesakes = world.query("SELECT person_id FROM people WHERE person = ? ORDER BY person_id", (me["person"],))
    return 2 + [one["person_id"] for one in namesakes].index(me["person_id"])


# --- What oracles do ---


def account(slots: Mapping[str, str]) -> Find:
    """Who is asking: at least the ``person_id``."""
    if "person_id" in slots:
        return {"person_id": slots["person_id"]}
    if "email" in slots:
        return (yield ToolCall("find_person", {"email": slots["email"]}))
    for person in (yield ToolCall("find_people", {"name": slots["me"]}))["people"]:
        found = yield ToolCall("get_person", {"person_id": person["person_id"]})
        if found["team"] == slots["team"]:
            return found
    return (yield ToolCall("get_person", {"person_id": ""}))


def thread(slots: Mapping[str, str]) -> Find:
    """The mail that is meant, read."""
    thread_id = slots.get("thread_id", "")
    if not thread_id:
        me = yield from account(slots)
        found = yield ToolCall("search_mail", {"person_id": me["person_id"], "subject": slots["subject"]})
        thread_id = _first(found["threads"], "thread_id", subject=slots["subject"])
    return (yield ToolCall("get_thread", {"thread_id": thread_id}))


def the_document(me: Result, title: str) -> Find:
    """The document of that title among those that somebody can see, as it is listed."""
    found = yield ToolCall("search_documents", {"person_id": me["person_id"], "title": title})
    return next((one for one in found["documents"] if one["title"] == title), {"document_id": "", "role": ""})


def event(slots: Mapping[str, str], me: Result) -> Find:
    """The meeting that is meant, as it is listed."""
    found = yield ToolCall("list_events", {"person_id": me["person_id"], "day": slots["day"]})
    blank = {"event_id": "", "occurrence_id": "", "role": ""}
    return next((one for one in found["events"] if one["title"] == slots["title"]), blank)


def colleague(slots: Mapping[str, str], me: Result) -> Find:
    """The colleague who is meant, as listed."""
    found = yield ToolCall("find_colleagues", {"person_id": me["person_id"], "name": slots["colleague"]})
    return next((one for one in found["colleagues"] if one["team"] == slots["their_team"]), {"colleague_id": "", "status": ""})


def contact(slots: Mapping[str, str], me: Result) -> Find:
    """The contact who is meant, as listed."""
    found = yield ToolCall("find_contacts", {"person_id": me["person_id"], "name": slots["contact"]})
    return next((one for one in found["contacts"] if one["company"] == slots["company"]), {"contact_id": ""})


def _first(rows: Sequence[Mapping[str, Any]], key: str, **values: str) -> str:
    return next((row[key] for row in rows if all(row[name] == value for name, value in values.items())), "")
