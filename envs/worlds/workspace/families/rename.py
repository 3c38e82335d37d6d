"""Rename: a document is to get another title."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.catalogue import TOPICS
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose
from agent_gym.envs.worlds.workspace.families.share import document_case, owned_document
from agent_gym.envs.worlds.workspace.routes import account, phrasebook
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please rename {thing} to «{new_title}».",
        "{who} I want to rename {thing}; it should be «{new_title}».",
        "Could you rename {thing} to «{new_title}»? {who}",
        "Rename {thing}: the title is to be «{new_title}». {who}",
        "{who} I need you to rename {thing}, to «{new_title}».",
        "{who} Kindly rename {thing} as «{new_title}».",
    ),
    "held_out": (
        "{who} My request is to rename {thing} to «{new_title}».",
        "Can you rename {thing}? It should be called «{new_title}». {who}",
        "{who} It would help to rename {thing}, namely to «{new_title}».",
    ),
    "synonyms": ("{who} Please call {thing} «{new_title}» from now on.", "Retitle {thing} as «{new_title}». {who}"),
}


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - all routes alike
    me, document = document_case(world, rng, "rename", rule)
    titles = world.query("SELECT title FROM documents WHERE person_id = ?", (document["person_id"],))
    taken = {one["title"] for one in titles}
    new_title = pick(rng, [f"{topic} {end}" for topic in TOPICS for end in ("memo", "plan") if f"{topic} {end}" not in taken])
    where = {"document_id": document["document_id"]}
    return Case(
        me=me,
        slots={"title": document["title"], "new_title": new_title},
        looks=[calling("get_document", **where)],
        steps=3,
        rows=[{"table": "documents", "where": where, "values": {"title": new_title}}],
        allowed=[{"table": "documents", "where": where, "columns": ["title"]}],
        about={"document_id": document["document_id"]},
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    document_id, reason = yield from owned_document("rename", me, slots["title"])
    if reason:
        yield ToolCall("refuse", {"reason": reason})
        return
    yield ToolCall("rename_document", {"document_id": document_id, "title": slots["new_title"]})
    yield ToolCall("finish")


REQUEST = Errand(
    name="rename",
    book=phrasebook(_FRAMES, "the document “{title}”", "my document “{title}”", "“{title}”"),
    case=_case,
    oracle=_oracle,
    writes=("rename_document", "restore_version"),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=1)


FAMILY = Family(name="rename", draft=_draft, capabilities=("form",))
