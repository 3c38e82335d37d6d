"""Project: a colleague takes over, so all documents of a folder are to be shared and all mails of an inbox put away, one by one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose, looked_up, not_calling
from agent_gym.envs.worlds.workspace.routes import account, colleague, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_colleague
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please share every document in my folder {folder} to read with {colleague} from {their_team}, then move all mails in my "
        "inbox to {place}.",
        "{who} {colleague} from {their_team} takes over: share all that is in my folder {folder} to read, and move every mail of my inbox "
        "to {place}.",
        "Could you share all documents of my folder {folder} with {colleague} of {their_team} to read, and move the mails in my inbox to "
        "{place}? {who}",
        "Share with {colleague}, {their_team}, to read: each document in the folder {folder}. Move to {place}: each mail in the inbox. "
        "{who}",
    ),
    "held_out": (
        "{who} My request is to share whatever document is in my folder {folder} to read with {colleague} of {their_team}; and move "
        "whatever mail is in my inbox to {place}.",
        "To {place}, move each mail of my inbox, after you share all documents in {folder}, my folder, to read with {colleague} from "
        "{their_team}. {who}",
    ),
    "synonyms": (
        "{who} Please let {colleague} from {their_team} read everything in my folder {folder}, and put all that is in my inbox into "
        "{place}.",
    ),
}
_THREADS = 4
"""How many mails somebody has who is not busy."""


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    while True:
        few = "SELECT person_id FROM threads GROUP BY person_id HAVING count(*) = ? ORDER BY person_id"
        me = world.get("people", pick(rng, world.query(few, (_THREADS,)))["person_id"])
        other = a_colleague(world, rng, me["person_id"])
        theirs = "SELECT share_id FROM shares JOIN documents USING (document_id) WHERE person_id = ? AND colleague_id = ?"
        if not world.query(theirs, (me["person_id"], other["person_id"])):
            break
    folders = world.query("SELECT * FROM folders WHERE person_id = ? ORDER BY folder", (me["person_id"],))
    folder, elsewhere, _ = (folders[number] for number in rng.permutation(len(folders)))
    place, other_place = pick(rng, (("archive", "spam"), ("spam", "archive")))
    documents, mails = _some(world, rng, "documents", me, 2), _some(world, rng, "threads", me, 3)
    for document_id, meant in documents.items():
        world.update("documents", document_id, folder_id=(folder if meant else elsewhere)["folder_id"])
    for thread_id, meant in mails.items():
        world.update("threads", thread_id, folder="inbox" if meant else other_place)
    shares = [{"document_id": key, "colleague_id": other["person_id"]} for key, meant in documents.items() if meant]
    threads = [{"thread_id": key} for key, meant in mails.items() if meant]
    return Case(
        me=me,
        slots={"folder": folder["folder"], "colleague": other["person"], "their_team": other["team"], "place": place},
        looks=[looked_up(me, other)],
        steps=3 + 2 * len(shares) + 2 * len(threads),
        rows=[
            *({"table": "shares", "where": where, "values": {"access": "reader"}} for where in shares),
            *({"table": "threads", "where": where, "values": {"folder": place}} for where in threads),
        ],
        allowed=[
            *({"table": "shares", "where": where, "new": True} for where in shares),
            *({"table": "threads", "where": where, "columns": ["folder"]} for where in threads),
        ],
    )


def _some(world: World, rng: np.random.Generator, table: str, me: Mapping[str, str], least: int) -> dict[str, bool]:
    """The keys of somebody's rows, and which of them are meant: the least or one more."""
    key = world.schema.tables[table].key
    keys = [row[key] for row in world.query(f"SELECT {key} FROM {table} WHERE person_id = ? ORDER BY {key}", (me["person_id"],))]
    count = least + int(rng.integers(2))
    return {keys[number]: place < count for place, number in enumerate(rng.permutation(len(keys)))}


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    other = yield from colleague(slots, me)
    folder = next((one["folder_id"] for one in me["folders"] if one["folder"] == slots["folder"]), "")
    for document in (yield ToolCall("list_folder", {"folder_id": folder}))["documents"]:
        yield ToolCall("get_document", {"document_id": document["document_id"]})
        arguments = {"document_id": document["document_id"], "colleague_id": other["colleague_id"], "access": "reader"}
        yield ToolCall("share_document", arguments)
    for mail in (yield ToolCall("list_mail", {"person_id": me["person_id"], "folder": "inbox"}))["threads"]:
        yield ToolCall("get_thread", {"thread_id": mail["thread_id"]})
        yield ToolCall("move_mail", {"thread_id": mail["thread_id"], "folder": slots["place"]})
    yield ToolCall("finish")


REQUEST = Errand(name="project", book=phrasebook(_FRAMES), case=_case, oracle=_oracle, routes=("email", "team"))


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    case = REQUEST.case(world, rng, route, "")
    draft = compose(world, rng, split, REQUEST, route, case, distractors=7 - len(case.rows), facts=4)
    # Each thing must be read, the later ones after the first write; and that it is changed is a milestone, or there is none for long.
    done: list[dict[str, Any]] = []
    for number, row in enumerate(case.rows, 1):
        where = row["where"]
        if row["table"] == "shares":
            seen, changed = calling("get_document", document_id=where["document_id"]), calling("share_document", **where, access="reader")
        else:
            seen, changed = calling("get_thread", **where), calling("move_mail", **where, **row["values"])
        done += [{"name": f"{number}_read", "call": seen, "needed": True}, {"name": f"{number}_changed", "call": changed}]
    draft.milestones[1:1] = done
    return draft


FAMILY = Family(
    name="project",
    draft=_draft,
    capabilities=("long_horizon",),
    max_steps=40,
    cheats={"leaves the mails": not_calling((REQUEST,), {"list_mail": {"threads": []}})},
)
