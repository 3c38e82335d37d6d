"""Meeting facts: where one of the meetings of a day takes place or who organises it, which only its record says."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, Row, compose
from agent_gym.envs.worlds.workspace.operations import OPERATIONS
from agent_gym.envs.worlds.workspace.routes import account, event, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_meeting
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_WHAT = {"room": "room", "organiser": "organiser", "time_zone": "time zone"}
_FRAMES = {
    "train": (
        "{who} What is the {what} of {thing}?",
        "{who} I need to know the {what} of {thing}.",
        "Could you tell me the {what} of {thing}? {who}",
        "Tell me the {what} for {thing}. {who}",
        "{who} Please look up the {what} of {thing}.",
        "{who} Kindly look at {thing} and tell me its {what}.",
    ),
    "held_out": (
        "{who} My question is about {thing}: what is the {what}?",
        "Which {what} does {thing} have? {who}",
        "{who} Can you find the {what} of {thing}?",
    ),
    "synonyms": ("{who} What does the record of {thing} give as {what}?", "Find out the {what} that {thing} goes by. {who}"),
}
_THINGS = ("“{title}” on {day}", "the meeting “{title}” of {day}", "my “{title}” on {day}")


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    events: list[Row] = []
    while len(events) < 2:  # more often as a guest: what organisers ask about is mostly in their own account too
        date = a_meeting(world, rng, guest=bool(rng.integers(4)))
        events = OPERATIONS["list_events"].run(world, date["who"], date["day"])["events"]
    return Case(
        me=world.get("people", date["who"]),
        slots={"title": date["title"], "day": date["day"], "what": _WHAT[pick(rng, list(_WHAT))]},
        looks=[calling("list_events", person_id=date["who"], day=date["day"]), calling("get_event", event_id=date["event_id"])],
        steps=2,
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    date = yield from event(slots, me)
    found = yield ToolCall("get_event", {"event_id": date["event_id"]})
    yield ToolCall("finish", {"answer": found[_asked(slots)]})


def _asked(slots: Mapping[str, str]) -> str:
    return next(field for field, words in _WHAT.items() if words == slots["what"])


REQUEST = Errand(
    name="meeting_facts", book=phrasebook(_FRAMES, *_THINGS, slots={"what": "|".join(_WHAT.values())}), case=_case, oracle=_oracle
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    case = REQUEST.case(world, rng, route, "")
    asks = _asked(case.slots)
    event_id = case.looks[-1]["arguments"]["event_id"]
    sql = (
        "SELECT coalesce(room, 'none') AS room, person AS organiser, events.time_zone FROM events JOIN people USING (person_id)"
        " LEFT JOIN rooms USING (room_id) WHERE event_id = ?"
    )
    answer = world.query(sql, (event_id,))[0][asks]
    return compose(world, rng, split, REQUEST, route, case, asks=asks, answer=answer, distractors=2)


FAMILY = Family(name="meeting_facts", draft=_draft, capabilities=("lookup", "multi_hop"))
