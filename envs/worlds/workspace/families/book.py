"""Book: half an hour is to be booked with a colleague at a time; a second time is named in case that somebody takes the first."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.catalogue import MEETINGS
from agent_gym.envs.worlds.workspace.clock import to_utc
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, Row, compose, looked_up, not_calling
from agent_gym.envs.worlds.workspace.operations import OPERATIONS
from agent_gym.envs.worlds.workspace.routes import account, colleague, phrasebook
from agent_gym.envs.worlds.workspace.rules import broken_rule
from agent_gym.envs.worlds.workspace.targets import a_colleague, a_day, a_person
from agent_gym.world import Draft, Family, Result, Script, World, calling, pick

__all__ = ["EITHER", "FAMILY", "REQUEST", "booked", "free_times"]

_FRAMES = {
    "train": (
        "{who} Please book half an hour with {colleague} from {their_team} for {starts}, called «{title}».",
        "{who} I want to book {colleague}, {their_team}, for «{title}» on {starts}.",
        "Could you book me «{title}» with {colleague} of {their_team} at {starts}? {who}",
        "Book «{title}» with {colleague} from {their_team}: {starts}. {who}",
        "{who} I need you to book «{title}» for {starts}, with {colleague} from {their_team}.",
        "{who} Kindly book a meeting «{title}» with {colleague} in {their_team}, {starts}.",
    ),
    "held_out": (
        "{who} My request is to book «{title}» on {starts} with {colleague} of {their_team}.",
        "Please book «{title}» for {starts}; it is with {colleague} from {their_team}. {who}",
        "{who} Can you book {starts} for «{title}»? It is with {colleague} of {their_team}.",
    ),
    "synonyms": (
        "{who} Please set up «{title}» with {colleague} from {their_team} at {starts}.",
        "Arrange «{title}» for me and {colleague} of {their_team} on {starts}. {who}",
    ),
}
_EITHER_FRAMES = {
    wording: tuple(frame.replace("{starts}", "{starts}, or {otherwise} if that is taken") for frame in frames)
    for wording, frames in _FRAMES.items()
}


def free_times(world: World, me: str, other: str, day: str, *, inside: bool = True) -> list[str]:
    """The times of a day at which two people can meet, within the other's working hours or outside them."""
    found = OPERATIONS["find_free_time"].run(world, me, other, day)["free"]
    return [one["starts"] for one in found if one["hours"].startswith("within") == inside]


def booked(me: Row, other: Row, starts: str, title: str) -> dict[str, Any]:
    """The goal rows and the allowed changes of a booking."""
    at = to_utc(starts, me["time_zone"])
    who = {"person_id": me["person_id"], "guest_id": other["person_id"]}
    row = {**who, "title": title, "starts_at": at}
    return {
        "rows": [{"table": "events", "where": {**who, "title": title}, "values": {"starts_at": at, "state": "on"}}],
        "allowed": [
            {"table": "events", "where": row, "new": True},
            {"table": "occurrences", "where": {"starts_at": at}, "new": True},
            {"table": "attendees", "where": {"person_id": me["person_id"], "answer": "accepted"}, "new": True},
            {"table": "attendees", "where": {"person_id": other["person_id"], "answer": "invited"}, "new": True},
        ],
    }


def _pair(world: World, rng: np.random.Generator, rule: str, count: int) -> tuple[Row, Row, str, list[str]]:
    """Two people, a day, and so many times at which they can meet."""
    inside = rule != "outside_hours"
    while True:
        me = a_person(world, rng)
        other = a_colleague(world, rng, me["person_id"])
        day = a_day(rng, me["time_zone"])
        times = free_times(world, me["person_id"], other["person_id"], day, inside=inside)
        if len(times) >= count:
            chosen = sorted(rng.choice(len(times), size=count, replace=False).tolist())
            return me, other, day, [times[number] for number in chosen]


def _case(world: World, rng: np.random.Generator, route: str, rule: str, count: int = 1) -> Case:  # noqa: ARG001 - all routes alike
    me, other, day, times = _pair(world, rng, rule, count)
    title = pick(rng, MEETINGS)
    namesakes = world.query("SELECT person_id FROM people WHERE person = ? AND person_id != ?", (other["person"], other["person_id"]))
    for one in namesakes:
        if one["person_id"] != me["person_id"] and rng.integers(2):
            world.update("people", one["person_id"], status="on leave")
    slots = {"colleague": other["person"], "their_team": other["team"], "title": title, "starts": times[0]}
    return Case(
        me=me,
        slots={**slots, **({"otherwise": times[1]} if count > 1 else {})},
        looks=[
            looked_up(me, other),
            calling("find_free_time", person_id=me["person_id"], colleague_id=other["person_id"], day=day),
        ],
        steps=3,
        **booked(me, other, times[0], title),
        proof={"on_leave": 0},
        refused_after={"on_leave": 1},
        about={"colleague_id": other["person_id"]},
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    other = yield from colleague(slots, me)
    if reason := broken_rule("book", other):
        yield ToolCall("refuse", {"reason": reason})
        return
    pair = {"person_id": me["person_id"], "colleague_id": other["colleague_id"]}
    found = yield ToolCall("find_free_time", {**pair, "day": slots["starts"][:10]})
    slot: Result = next((one for one in found["free"] if one["starts"] == slots["starts"]), {})
    if reason := broken_rule("book", slot):
        yield ToolCall("refuse", {"reason": reason})
        return
    said = yield ToolCall("create_event", {**pair, "starts": slots["starts"], "title": slots["title"]})
    if "refused" in said and "otherwise" in slots:
        yield ToolCall("create_event", {**pair, "starts": slots["otherwise"], "title": slots["title"]})
    yield ToolCall("finish")


REQUEST = Errand(name="book", book=phrasebook(_FRAMES), case=_case, oracle=_oracle, writes=("create_event",))
EITHER = Errand(
    name="book",
    book=phrasebook(_EITHER_FRAMES),
    case=lambda world, rng, route, rule: _case(world, rng, route, rule, 2),
    oracle=_oracle,
    writes=("create_event",),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=1)


FAMILY = Family(
    name="book",
    draft=_draft,
    capabilities=("form", "policy"),
    cheats={"looks for no time": not_calling((REQUEST,), {"find_free_time": {"free": []}})},
)
