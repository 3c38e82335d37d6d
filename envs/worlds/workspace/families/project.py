"""Project: three documents are to be shared with a colleague and two mails put away, each of which must be found and read."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Request, compose, looked_up, not_calling, pick, read
from agent_gym.envs.worlds.workspace.routes import account, colleague, phrasebook, the_document, thread
from agent_gym.envs.worlds.workspace.targets import a_colleague, a_thread, seen
from agent_gym.world import Draft, Family, Script, World

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please share “{one}”, “{two}” and “{three}” to read with {colleague} from {their_team}, then move the mails “{four}” and "
        "“{five}” to {place}.",
        "{who} {colleague} from {their_team} takes over: share “{one}”, “{two}” and “{three}” to read, and move my mails “{four}” and "
        "“{five}” to {place}.",
        "Could you share “{one}”, “{two}”, “{three}” with {colleague} of {their_team} to read, and move the mails “{four}” and “{five}” to "
        "{place}? {who}",
        "Share with {colleague}, {their_team}, to read: “{one}”, “{two}”, “{three}”. Move to {place}: the mails “{four}”, “{five}”. {who}",
    ),
    "held_out": (
        "{who} My request is to share “{one}”, “{two}”, “{three}” to read with {colleague} of {their_team}; and move the mails “{four}” "
        "and “{five}” to {place}.",
        "To {place}, move my mails “{four}” and “{five}”, after you share “{one}”, “{two}” and “{three}” to read with {colleague} from "
        "{their_team}. {who}",
    ),
    "synonyms": (
        "{who} Please let {colleague} from {their_team} read “{one}”, “{two}” and “{three}”, and put the mails “{four}” and “{five}” into "
        "{place}.",
    ),
}


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    while True:
        me = world.get("people", a_thread(world, rng)["person_id"])
        person_id = me["person_id"]
        documents = world.query("SELECT * FROM documents WHERE person_id = ? ORDER BY document_id", (person_id,))
        other = a_colleague(world, rng, person_id)
        shared = world.query(
            "SELECT share_id FROM shares JOIN documents USING (document_id) WHERE person_id = ? AND colleague_id = ?",
            (person_id, other["person_id"]),
        )
        if not shared and all(len(seen(world, person_id, one["title"])) == 1 for one in documents):
            break
    mails = world.query("SELECT * FROM threads WHERE person_id = ? AND folder = 'inbox' ORDER BY thread_id", (person_id,))
    mails = [mails[number] for number in rng.permutation(len(mails))[:2]]
    documents = [documents[number] for number in rng.permutation(len(documents))[:3]]
    place = pick(rng, ("archive", "spam"))
    names = ("one", "two", "three", "four", "five")
    titles = [*(one["title"] for one in documents), *(one["subject"] for one in mails)]
    shares = [{"document_id": one["document_id"], "colleague_id": other["person_id"]} for one in documents]
    threads = [{"thread_id": one["thread_id"]} for one in mails]
    return Case(
        me=me,
        slots={**dict(zip(names, titles, strict=True)), "colleague": other["person"], "their_team": other["team"], "place": place},
        looks=[looked_up(me, other)],
        steps=16,
        rows=[
            *({"table": "shares", "where": where, "values": {"access": "reader"}} for where in shares),
            *({"table": "threads", "where": where, "values": {"folder": place}} for where in threads),
        ],
        allowed=[
            *({"table": "shares", "where": where, "new": True} for where in shares),
            *({"table": "threads", "where": where, "columns": ["folder"]} for where in threads),
        ],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    other = yield from colleague(slots, me)
    for name in ("one", "two", "three"):
        document = yield from the_document(me, slots[name])
        yield ToolCall("get_document", {"document_id": document["document_id"]})
        arguments = {"document_id": document["document_id"], "colleague_id": other["colleague_id"], "access": "reader"}
        yield ToolCall("share_document", arguments)
    for name in ("four", "five"):
        mail = yield from thread({**slots, "subject": slots[name]})
        yield ToolCall("move_mail", {"thread_id": mail["thread_id"], "folder": slots["place"]})
    yield ToolCall("finish")


REQUEST = Request(name="project", book=phrasebook(_FRAMES), case=_case, oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    case = REQUEST.case(world, rng, route, "")
    # Each document that is shared is a milestone of its own: otherwise there would be none for a long time.
    shares = [row["where"] for row in case.rows if row["table"] == "shares"]
    done = [
        {"name": f"shared_{name}", "call": read("share_document", **where, access="reader")}
        for name, where in zip(("one", "two", "three"), shares, strict=True)
    ]
    draft = compose(world, rng, split, REQUEST, route, case, distractors=4, facts=6)
    draft.milestones[1:1] = done
    return draft


FAMILY = Family(
    name="project",
    draft=_draft,
    capabilities=("long_horizon",),
    max_steps=40,
    cheats={"leaves the mails": not_calling((REQUEST,), {"move_mail": {}})},
)
