"""Restore: a document is to go back to one of its earlier versions. Held out from training as a whole."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.clock import DAY, START
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose
from agent_gym.envs.worlds.workspace.routes import account, phrasebook, the_document
from agent_gym.envs.worlds.workspace.targets import a_document
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please restore version {old} of {thing}.",
        "{who} I want to restore {thing} to version {old}.",
        "Could you restore {thing} as it was in version {old}? {who}",
        "Restore {thing}: version {old} is the right one. {who}",
        "{who} I need you to restore {thing}, version {old}.",
        "{who} Kindly restore version {old} of {thing} as the newest.",
    )
}


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    document = a_document(world, rng)
    document_id, count = document["document_id"], document["version"]
    me = world.get("people", document["person_id"])
    for number in range(count + 1, 4):
        world.insert(
            "versions",
            version_id=world.new_id("VE"),
            document_id=document_id,
            number=number,
            author=me["person"],
            saved_at=START - (9 - number) * DAY,
            text=f"On the {document['title']}: draft {number}.",
        )
    world.update("documents", document_id, version=3)
    old = pick(rng, (1, 2))
    text = world.query("SELECT text FROM versions WHERE document_id = ? AND number = ?", (document_id, old))[0]["text"]
    row = {"document_id": document_id, "number": 4}
    return Case(
        me=me,
        slots={"title": document["title"], "old": str(old)},
        looks=[calling("get_document", document_id=document_id), calling("list_versions", document_id=document_id)],
        steps=4,
        rows=[
            {"table": "versions", "where": row, "values": {"text": text}},
            {"table": "documents", "where": {"document_id": document_id}, "values": {"version": 4}},
        ],
        allowed=[
            {"table": "versions", "where": row, "new": True},
            {"table": "documents", "where": {"document_id": document_id}, "columns": ["version"]},
        ],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    document_id = (yield from the_document(me, slots["title"]))["document_id"]
    yield ToolCall("get_document", {"document_id": document_id})
    listed = yield ToolCall("list_versions", {"document_id": document_id})
    version_id = next((one["version_id"] for one in listed["versions"] if str(one["version"]) == slots["old"]), "")
    yield ToolCall("restore_version", {"document_id": document_id, "version_id": version_id})
    yield ToolCall("finish")


REQUEST = Errand(
    name="restore",
    book=phrasebook(_FRAMES, "the document “{title}”", "my document “{title}”", "“{title}”", slots={"old": r"\d"}),
    case=_case,
    oracle=_oracle,
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=2)


FAMILY = Family(name="restore", draft=_draft, capabilities=("multi_hop", "form"), transfer=True)
