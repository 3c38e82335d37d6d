"""Which one: a mail is to be moved, but two have that subject, or it is not said where to; the colleague must be asked."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.counterpart import FOLDER, WHICH
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, cheat, compose, forbid
from agent_gym.envs.worlds.workspace.families.forward import mail_thing
from agent_gym.envs.worlds.workspace.routes import account, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_thread
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST", "SOMEWHERE"]

_FRAMES = {
    "train": (
        "{who} Please move {thing} to {place}.",
        "{who} I want to move {thing} into {place}.",
        "Could you move {thing} to {place}? {who}",
        "Move {thing} into the folder {place}. {who}",
        "{who} I need you to move {thing} to {place}.",
        "{who} Kindly move {thing} to the folder {place}.",
    ),
    "held_out": (
        "{who} My request is to move {thing} to {place}.",
        "Can you move {thing}? It belongs in {place}. {who}",
        "{who} To {place}, please move {thing}.",
    ),
    "synonyms": ("{who} Please put {thing} into {place}.", "File {thing} under {place}. {who}"),
}
_SOMEWHERE = {
    wording: tuple(frame.replace("the folder {place}", "{place}").replace("{place}", "another folder") for frame in frames)
    for wording, frames in _FRAMES.items()
}


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    mail = a_thread(world, rng)
    place = pick(rng, ("archive", "spam"))
    return Case(
        me=world.get("people", mail["person_id"]),
        slots={"subject": mail["subject"], "place": place},
        looks=[calling("get_thread", thread_id=mail["thread_id"])],
        steps=3,
        rows=[{"table": "threads", "where": {"thread_id": mail["thread_id"]}, "values": {"folder": place}}],
        allowed=[{"table": "threads", "where": {"thread_id": mail["thread_id"]}, "columns": ["folder"]}],
        about={"thread_id": mail["thread_id"]},
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    found = yield ToolCall("search_mail", {"person_id": me["person_id"], "subject": slots["subject"]})
    meant = [one["thread_id"] for one in found["threads"] if one["subject"] == slots["subject"]]
    thread_id = meant[0] if len(meant) == 1 else (yield ToolCall("ask", {"question": WHICH}))["thread_id"] if meant else ""
    yield ToolCall("get_thread", {"thread_id": thread_id})
    folder = slots["place"] if "place" in slots else (yield ToolCall("ask", {"question": FOLDER}))["folder"]
    yield ToolCall("move_mail", {"thread_id": thread_id, "folder": folder})
    yield ToolCall("finish")


def _guess(_: Errand, slots: Mapping[str, str]) -> Script:
    """Takes the first mail that fits, and the first folder."""
    me = yield from account(slots)
    found = yield ToolCall("search_mail", {"person_id": me["person_id"], "subject": slots["subject"]})
    thread_id = next((one["thread_id"] for one in found["threads"] if one["subject"] == slots["subject"]), "")
    yield ToolCall("get_thread", {"thread_id": thread_id})
    yield ToolCall("move_mail", {"thread_id": thread_id, "folder": slots.get("place", "archive")})


REQUEST = Errand(name="which_one", book=phrasebook(_FRAMES, *mail_thing), case=_case, oracle=_oracle)
SOMEWHERE = Errand(name="somewhere", book=phrasebook(_SOMEWHERE, *mail_thing), case=_case, oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    request = pick(rng, (REQUEST, SOMEWHERE))
    route = pick(rng, request.routes)
    case = request.case(world, rng, route, "")
    answers = {}
    forbidden = []
    if request is REQUEST or rng.integers(2):
        thread_id = case.about["thread_id"]
        sql = "SELECT * FROM threads WHERE person_id = ? AND thread_id != ? AND folder != 'spam' ORDER BY subject != ?, thread_id LIMIT 6"
        other = pick(rng, world.query(sql, (case.me["person_id"], thread_id, case.slots["subject"])))
        world.update("threads", other["thread_id"], subject=case.slots["subject"], folder="inbox")
        answers["which"] = {"answer": f"I mean the one with the number {thread_id}.", "thread_id": thread_id}
        forbidden = forbid(("move_mail", "delete_mail"), thread_id=other["thread_id"])
        case.looks.insert(0, calling("ask", intent="which"))
        case.steps += 1
    if request is SOMEWHERE:
        answers["folder"] = {"answer": f"To {case.slots['place']}, please.", "folder": case.slots["place"]}
        case.looks.append(calling("ask", intent="folder"))
        case.steps += 1
    return compose(world, rng, split, request, route, case, answers=answers, forbidden=forbidden, distractors=1 + bool(forbidden))


FAMILY = Family(
    name="which_one", draft=_draft, capabilities=("clarify_missing_information",), cheats={"guesses": cheat((REQUEST, SOMEWHERE), _guess)}
)
