"""Save attachment: one of the files attached to a mail is to be saved in a folder for documents."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose
from agent_gym.envs.worlds.workspace.families.forward import mail_thing
from agent_gym.envs.worlds.workspace.routes import account, phrasebook, thread
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please save the file {file} from {thing} in my folder {folder}.",
        "{who} I want to save {file}, attached to {thing}, in the folder {folder}.",
        "Could you save {file} of {thing} in the folder {folder}? {who}",
        "Save {file} from {thing} in {folder}. {who}",
        "{who} I need you to save the attachment {file} of {thing}; it belongs in {folder}.",
        "{who} Kindly save in {folder} the file {file} that came with {thing}.",
    ),
    "held_out": (
        "{who} My request is to save {file} of {thing}, namely in {folder}.",
        "In the folder {folder}, please save {file} from {thing}. {who}",
        "{who} Can you save what is attached to {thing} as {file}? The folder is {folder}.",
    ),
    "synonyms": (
        "{who} Please file {file} from {thing} under {folder}.",
        "Keep the attachment {file} of {thing} in {folder}. {who}",
    ),
}


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    attached = "SELECT * FROM attachments JOIN threads USING (thread_id) WHERE folder = 'inbox' ORDER BY attachment_id"
    found = pick(rng, world.query(attached))
    me, thread_id = world.get("people", found["person_id"]), found["thread_id"]
    folder = pick(rng, world.query("SELECT * FROM folders WHERE person_id = ? ORDER BY folder", (found["person_id"],)))
    row = {"person_id": me["person_id"], "title": found["file"].removesuffix(".pdf"), "folder_id": folder["folder_id"]}
    return Case(
        me=me,
        slots={"subject": found["subject"], "thread_id": thread_id, "file": found["file"], "folder": folder["folder"]},
        looks=[calling("get_thread", thread_id=thread_id), calling("list_attachments", thread_id=thread_id)],
        steps=3 + (route != "id") + (route in ("id", "number")),
        rows=[{"table": "documents", "where": row, "values": {"version": 1}}],
        allowed=[{"table": "documents", "where": row, "new": True}, {"table": "versions", "where": {"text": found["text"]}, "new": True}],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    mail = yield from thread(slots)
    listed = yield ToolCall("list_attachments", {"thread_id": mail["thread_id"]})
    me = {} if "thread_id" in slots else (yield from account(slots))
    if "folders" not in me:
        me = yield ToolCall("get_person", {"person_id": mail["person_id"]})
    attachment = next((one["attachment_id"] for one in listed["attachments"] if one["file"] == slots["file"]), "")
    folder = next((one["folder_id"] for one in me["folders"] if one["folder"] == slots["folder"]), "")
    yield ToolCall("save_attachment", {"attachment_id": attachment, "folder_id": folder})
    yield ToolCall("finish")


REQUEST = Errand(
    name="save_attachment",
    book=phrasebook(_FRAMES, *mail_thing, by_id=("mail {thread_id}", "the mail {thread_id}"), slots={"file": r"[a-z-]+\.pdf"}),
    case=_case,
    oracle=_oracle,
    routes=("number", "email", "team", "id"),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=3)


FAMILY = Family(name="save_attachment", draft=_draft, capabilities=("multi_hop", "form"))
