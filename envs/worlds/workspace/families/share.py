"""Share: a document is to be shared with a colleague, or with somebody outside, or its link switched on. Rules decide on each."""

from collections.abc import Generator, Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, Row, compose, looked_up
from agent_gym.envs.worlds.workspace.routes import account, colleague, contact, phrasebook, the_document
from agent_gym.envs.worlds.workspace.rules import broken_rule
from agent_gym.envs.worlds.workspace.targets import a_colleague, a_contact, a_document, a_given_document
from agent_gym.world import Draft, Family, Result, Script, World, calling, pick

__all__ = ["FAMILY", "LINK", "OUTSIDE", "SHARE", "document_case", "owned_document"]

_ACCESS = {"reader": "to read", "editor": "to edit"}
_SHARE_FRAMES = {
    "train": (
        "{who} Please share {thing} with {colleague} from {their_team}, {access}.",
        "{who} I want to share {thing} with {colleague}, {their_team}, {access}.",
        "Could you share {thing} with {colleague} of {their_team} {access}? {who}",
        "{colleague} from {their_team} is to have {thing} {access}; share it. {who}",
        "{who} I need you to share {thing} {access} with {colleague}, {their_team}.",
        "{who} Kindly share {thing} with {colleague} in {their_team} {access}.",
    ),
    "held_out": (
        "{who} My request is to share {thing}, {access}, with {colleague} from {their_team}.",
        "Can you share {thing} {access}? It is for {colleague} from {their_team}. {who}",
        "{who} It would help to share {thing} with {colleague} of {their_team}, {access}.",
    ),
    "synonyms": (
        "{who} Please give {colleague} from {their_team} access to {thing} {access}.",
        "Open up {thing} {access} for {colleague} from {their_team}. {who}",
    ),
}
_OUTSIDE_FRAMES = {
    "train": (
        "{who} Please share {thing} outside, with {contact} of {company}.",
        "{who} I want to share {thing} with {contact} at {company}, outside the office.",
        "Could you share {thing} outside with {contact} from {company}? {who}",
        "Share {thing} with {contact} of {company}, who is outside. {who}",
        "{who} I need you to share {thing} outside: it is for {contact} of {company}.",
        "{who} Kindly share {thing} with our outside contact {contact}, {company}.",
    ),
    "held_out": (
        "{who} My request is to share {thing} outside, namely with {contact} of {company}.",
        "Can you share {thing} with somebody outside, {contact} of {company}? {who}",
        "{who} There is something to share with {contact} of {company}, outside: {thing}.",
    ),
    "synonyms": (
        "{who} Please let {contact} of {company} see {thing}.",
        "Make {thing} visible to {contact} of {company}. {who}",
    ),
}
_LINK_FRAMES = {
    "train": (
        "{who} Please switch on the link of {thing}.",
        "{who} I want the link of {thing} switched on.",
        "Could you switch the link of {thing} on? {who}",
        "Switch on a link to {thing} for everybody. {who}",
        "{who} I need the link for {thing} to be on.",
        "{who} Kindly switch on the public link of {thing}.",
    ),
    "held_out": (
        "{who} My request: the link of {thing} should be on.",
        "Can you see to it that the link of {thing} is on? {who}",
        "{who} Anybody may read {thing}, so switch its link on.",
    ),
    "synonyms": ("{who} Please make {thing} public by its URL.", "Give {thing} an address that anybody can open. {who}"),
}
_THINGS = ("the document “{title}”", "my document “{title}”", "“{title}”")


def document_case(world: World, rng: np.random.Generator, request: str, rule: str) -> tuple[Row, Row]:
    """Who asks and the document: theirs, unless it is for that that a rule forbids it; harmless rules may hold for it."""
    document = a_given_document(world, rng) if rule == "not_owner" else a_document(world, rng)
    if request == "rename" and rng.integers(3) == 0:
        world.update("documents", document["document_id"], **{"class": "confidential"})
    if request != "rename" and rng.integers(3) == 0:
        world.update("documents", document["document_id"], state="signed")
    if request == "share" and rng.integers(3) == 0:
        world.update("documents", document["document_id"], **{"class": "confidential"})
    return world.get("people", document["who"] if "who" in document else document["person_id"]), document


def owned_document(request: str, me: Result, title: str) -> Generator[ToolCall, Result, tuple[str, str]]:
    """Finds and reads a document: its id, and the reason to refuse a request or nothing."""
    listed = yield from the_document(me, title)
    record = yield ToolCall("get_document", {"document_id": listed["document_id"]})
    return record["document_id"], broken_rule(request, {**record, "role": listed["role"]})


def _share_case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - all routes alike
    me, document = document_case(world, rng, "share", rule)
    document_id = document["document_id"]
    other = a_colleague(world, rng, me["person_id"], document["person_id"])
    shared = world.query("SELECT access FROM shares WHERE document_id = ? AND colleague_id = ?", (document_id, other["person_id"]))
    access = pick(rng, [one for one in _ACCESS if not shared or shared[0]["access"] != one])
    row = {"document_id": document_id, "colleague_id": other["person_id"]}
    return Case(
        me=me,
        slots={"title": document["title"], "colleague": other["person"], "their_team": other["team"], "access": _ACCESS[access]},
        looks=[calling("get_document", document_id=document_id), looked_up(me, other)],
        steps=4,
        rows=[{"table": "shares", "where": row, "values": {"access": access}}],
        allowed=[{"table": "shares", "where": row, "new": True, "columns": ["access"]}],
        proof={"not_owner": 0},
        refused_after={"not_owner": 2},
        about={"document_id": document_id},
    )


def _share_oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    document_id, reason = yield from owned_document("share", me, slots["title"])
    if reason:
        yield ToolCall("refuse", {"reason": reason})
        return
    other = yield from colleague(slots, me)
    access = next(access for access, words in _ACCESS.items() if words == slots["access"])
    yield ToolCall("share_document", {"document_id": document_id, "colleague_id": other["colleague_id"], "access": access})
    yield ToolCall("finish")


def _outside_case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - all routes alike
    me, document = document_case(world, rng, "share_outside", rule)
    document_id = document["document_id"]
    while True:
        other = a_contact(world, rng)
        row = {"document_id": document_id, "contact_id": other["contact_id"]}
        if not world.query("SELECT share_id FROM shares WHERE document_id = ? AND contact_id = ?", tuple(row.values())):
            break
    return Case(
        me=me,
        slots={"title": document["title"], "contact": other["contact"], "company": other["company"]},
        looks=[
            calling("get_document", document_id=document_id),
            calling("find_contacts", person_id=me["person_id"], name=other["contact"]),
        ],
        steps=4,
        rows=[{"table": "shares", "where": row, "values": {"access": "reader"}}],
        allowed=[{"table": "shares", "where": row, "new": True}],
        proof={"not_owner": 0, "confidential": 0},
        refused_after={"not_owner": 2, "confidential": 2},
        about={"document_id": document_id},
    )


def _outside_oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    document_id, reason = yield from owned_document("share_outside", me, slots["title"])
    if reason:
        yield ToolCall("refuse", {"reason": reason})
        return
    other = yield from contact(slots, me)
    yield ToolCall("share_outside", {"document_id": document_id, "contact_id": other["contact_id"]})
    yield ToolCall("finish")


def _link_case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - all routes alike
    me, document = document_case(world, rng, "link", rule)
    where = {"document_id": document["document_id"]}
    return Case(
        me=me,
        slots={"title": document["title"]},
        looks=[calling("get_document", **where)],
        steps=3,
        rows=[{"table": "documents", "where": where, "values": {"link": "on"}}],
        allowed=[{"table": "documents", "where": where, "columns": ["link"]}],
        about={"document_id": document["document_id"]},
    )


def _link_oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    document_id, reason = yield from owned_document("link", me, slots["title"])
    if reason:
        yield ToolCall("refuse", {"reason": reason})
        return
    yield ToolCall("set_link", {"document_id": document_id, "link": "on"})
    yield ToolCall("finish")


SHARE = Errand(
    name="share",
    book=phrasebook(_SHARE_FRAMES, *_THINGS, slots={"access": "|".join(_ACCESS.values())}),
    case=_share_case,
    oracle=_share_oracle,
    writes=("share_document",),
)
OUTSIDE = Errand(
    name="share_outside",
    book=phrasebook(_OUTSIDE_FRAMES, *_THINGS),
    case=_outside_case,
    oracle=_outside_oracle,
    writes=("share_outside", "set_link"),
)
LINK = Errand(
    name="link", book=phrasebook(_LINK_FRAMES, *_THINGS), case=_link_case, oracle=_link_oracle, writes=("set_link", "share_outside")
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    request = pick(rng, (SHARE, OUTSIDE, LINK))
    route = pick(rng, request.routes)
    case = request.case(world, rng, route, "")
    near = world.query("SELECT count(*) AS n FROM documents WHERE title LIKE ? || '%'", (case.slots["title"].rpartition(" ")[0],))[0]["n"]
    return compose(world, rng, split, request, route, case, distractors=min(near, 8))


FAMILY = Family(name="share", draft=_draft, capabilities=("policy", "form"))
