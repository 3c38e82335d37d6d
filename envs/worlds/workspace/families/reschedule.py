"""Reschedule: one date of a meeting is to be moved; if somebody who accepted is taken then, to another time."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.clock import to_utc, wall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, Row, compose, not_calling
from agent_gym.envs.worlds.workspace.operations.calendar import accepted_by, bookings, overlapping
from agent_gym.envs.worlds.workspace.routes import account, event, phrasebook
from agent_gym.envs.worlds.workspace.rules import broken_rule
from agent_gym.envs.worlds.workspace.targets import a_day, a_meeting
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please move {thing} to {starts}, or to {otherwise} if somebody is taken then.",
        "{who} I want to move {thing}: to {starts}, else to {otherwise}.",
        "Could you move {thing} to {starts}? If not everybody can, then to {otherwise}. {who}",
        "Move {thing} to {starts}; should that not work, to {otherwise}. {who}",
        "{who} I need you to move {thing}, best to {starts}, else to {otherwise}.",
        "{who} Kindly move {thing} to {starts}, failing that to {otherwise}.",
    ),
    "held_out": (
        "{who} My request is to move {thing} to {starts}, and only if that fails to {otherwise}.",
        "First try to move {thing} to {starts}, then to {otherwise}. {who}",
        "{who} Can you move {thing}? {starts} is best, {otherwise} is second best.",
    ),
    "synonyms": (
        "{who} Please put {thing} off to {starts}, or to {otherwise} if that is impossible.",
        "Shift {thing} to {starts}; {otherwise} would do as well if need be. {who}",
    ),
}
_THINGS = ("“{title}” of {day}", "the “{title}” on {day}", "my “{title}” of {day}, only that date")


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - all routes alike
    while True:
        date = a_meeting(world, rng, guest=rule == "not_organiser")
        taken, free = _times(world, rng, date)
        if taken and len(free) > 1:
            break
    first = pick(rng, taken if rng.integers(3) else free)
    second = pick(rng, [starts for starts in free if starts != first])
    right = first if first in free else second
    where = {"occurrence_id": date["occurrence_id"]}
    return Case(
        me=world.get("people", date["who"]),
        slots={"title": date["title"], "day": date["day"], "starts": first, "otherwise": second},
        looks=[calling("get_event", event_id=date["event_id"])],
        steps=3 + (first in taken),
        rows=[{"table": "occurrences", "where": where, "values": {"starts_at": to_utc(right, date["time_zone"])}}],
        allowed=[{"table": "occurrences", "where": where, "columns": ["starts_at"]}],
        refused_after={"not_organiser": 2},
        about={"event_id": date["event_id"], "occurrence_id": date["occurrence_id"]},
    )


def _times(world: World, rng: np.random.Generator, date: Row) -> tuple[list[str], list[str]]:
    """Times to which a date cannot be moved, because somebody who accepted or the room is taken then, and some to which it can."""
    zone, people = date["time_zone"], [one["person_id"] for one in accepted_by(world, date["event_id"])]
    others = [one for one in bookings(world, people, date["room_id"]) if one.occurrence_id != date["occurrence_id"]]
    clashes = sorted({wall(one.start, zone) for one in others if one.start >= world.clock})
    taken = [starts for starts in clashes if "08:00" <= starts[11:] < "18:00"]
    drawn = {f"{a_day(rng, zone)} {int(rng.integers(9, 17)):02d}:00" for _ in range(4)} - {wall(date["at"], zone)}
    return taken, sorted(starts for starts in drawn if not overlapping(others, [to_utc(starts, zone)], date["minutes"]))


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    date = yield from event(slots, me)
    yield ToolCall("get_event", {"event_id": date["event_id"]})
    if reason := broken_rule("reschedule", date):
        yield ToolCall("refuse", {"reason": reason})
        return
    said = yield ToolCall("move_occurrence", {"occurrence_id": date["occurrence_id"], "starts": slots["starts"]})
    if "refused" in said:
        yield ToolCall("move_occurrence", {"occurrence_id": date["occurrence_id"], "starts": slots["otherwise"]})
    yield ToolCall("finish")


REQUEST = Errand(
    name="reschedule",
    book=phrasebook(_FRAMES, *_THINGS),
    case=_case,
    oracle=_oracle,
    writes=("move_occurrence", "move_series", "cancel_occurrence", "cancel_series"),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=2)


FAMILY = Family(
    name="reschedule",
    draft=_draft,
    capabilities=("recover_from_error",),
    cheats={"reads nothing": not_calling((REQUEST,), {"get_event": {}})},
)
