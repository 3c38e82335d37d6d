"""Answer: an invitation is to be accepted or declined. Held out from training as a whole."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose
from agent_gym.envs.worlds.workspace.routes import account, event, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_meeting
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_ANSWERS = {"accepted": "accept", "declined": "decline"}
_FRAMES = {
    "train": (
        "{who} Please {verb} {thing}.",
        "{who} I want to {verb} {thing}.",
        "Could you {verb} {thing} for me? {who}",
        "For {thing}, {verb} the invitation. {who}",
        "{who} I need you to {verb} {thing}.",
        "{who} Kindly {verb} {thing} on my behalf.",
    )
}
_THINGS = ("“{title}” on {day}", "the invitation to “{title}” of {day}", "the meeting “{title}” on {day}")


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    date = a_meeting(world, rng, guest=True)
    where = {"event_id": date["event_id"], "person_id": date["who"]}
    attendee = world.query("SELECT * FROM attendees WHERE event_id = ? AND person_id = ?", tuple(where.values()))[0]
    world.update("attendees", attendee["attendee_id"], answer="invited")
    answer = pick(rng, list(_ANSWERS))
    return Case(
        me=world.get("people", date["who"]),
        slots={"title": date["title"], "day": date["day"], "verb": _ANSWERS[answer]},
        looks=[calling("list_events", person_id=date["who"], day=date["day"]), calling("get_event", event_id=date["event_id"])],
        steps=3,
        rows=[{"table": "attendees", "where": where, "values": {"answer": answer}}],
        allowed=[{"table": "attendees", "where": where, "columns": ["answer"]}],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    date = yield from event(slots, me)
    yield ToolCall("get_event", {"event_id": date["event_id"]})
    answer = next(answer for answer, verb in _ANSWERS.items() if verb == slots["verb"])
    yield ToolCall("answer_invitation", {"event_id": date["event_id"], "person_id": me["person_id"], "answer": answer})
    yield ToolCall("finish")


REQUEST = Errand(name="answer", book=phrasebook(_FRAMES, *_THINGS, slots={"verb": "|".join(_ANSWERS.values())}), case=_case, oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=2)


FAMILY = Family(name="answer", draft=_draft, capabilities=("form",), transfer=True)
