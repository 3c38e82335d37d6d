"""Probe: a series is to be moved to the one of two times at which all can. Only moving it shows that; the wrong try is taken back."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.clock import shifted, to_utc, wall, wall_gap
from agent_gym.envs.worlds.workspace.drafting import Case, Request, Row, cheat, compose, pick, read
from agent_gym.envs.worlds.workspace.operations.calendar import accepted_by, bookings, overlapping, to_come
from agent_gym.envs.worlds.workspace.routes import account, event, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_meeting
from agent_gym.world import Draft, Family, Script, World

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please move the series {thing} to {starts} or {otherwise}, whichever leaves nobody out.",
        "{who} I want to move the series {thing} so that it begins {starts} or {otherwise}; all must still accept.",
        "Could you move the series {thing}? It can be {starts} or {otherwise}, but nobody may have to decline. {who}",
        "Move the series {thing} to {starts} or to {otherwise}, so that all still come. {who}",
        "{who} I need you to move the series {thing}, to {starts} or else {otherwise}, without anybody declining.",
        "{who} Kindly move the series {thing}: {starts} or {otherwise}, whatever suits everybody.",
    ),
    "held_out": (
        "{who} My request is to move the series {thing} to {starts} or {otherwise}; pick what suits all.",
        "The series {thing} has to move, to {starts} or {otherwise}, and all must be able to come. {who}",
        "{who} Can you move the series {thing}? Of {starts} and {otherwise}, take the one that all accept.",
    ),
    "synonyms": (
        "{who} Please reschedule every {thing}: {starts} or {otherwise}, as long as everyone can make it.",
        "Shift all of {thing} to {starts} or {otherwise}, depending on which suits everyone. {who}",
    ),
}
_THINGS = ("“{title}” of {day}", "“{title}” (next on {day})", "“{title}” from {day} on")


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    while True:
        date = a_meeting(world, rng, series=True)
        dates = to_come(world, date["event_id"])
        for one in world.query("SELECT * FROM attendees WHERE event_id = ? AND answer = 'invited'", (date["event_id"],)):
            world.update("attendees", one["attendee_id"], answer="accepted")
        bad, good = _times(world, rng, date, [one["starts_at"] for one in dates])
        if bad and good:
            break
    right, wrong = pick(rng, good), pick(rng, bad)
    starts, otherwise = (right, wrong) if rng.integers(2) else (wrong, right)
    zone = date["time_zone"]
    gap = wall_gap(date["at"], to_utc(right, zone), zone)
    times = {one["occurrence_id"]: shifted(one["starts_at"], zone, gap) for one in dates}
    answers = accepted_by(world, date["event_id"])
    return Case(
        me=world.get("people", date["who"]),
        slots={"title": date["title"], "day": date["day"], "starts": starts, "otherwise": otherwise},
        looks=[read("get_event", event_id=date["event_id"])],
        steps=3 if right == starts else 5,
        rows=[
            *({"table": "occurrences", "where": {"occurrence_id": key}, "values": {"starts_at": at}} for key, at in times.items()),
            *({"table": "attendees", "where": {"attendee_id": one["attendee_id"]}, "values": {"answer": "accepted"}} for one in answers),
        ],
        allowed=[
            {"table": "events", "where": {"event_id": date["event_id"]}, "columns": ["starts_at"]},
            {"table": "occurrences", "where": {"event_id": date["event_id"]}, "columns": ["starts_at"]},
        ],
    )


def _times(world: World, rng: np.random.Generator, date: Row, times: list[int]) -> tuple[list[str], list[str]]:
    """Times to which the series can be moved though somebody has to decline, and some at which all can come."""
    zone, people = date["time_zone"], [one["person_id"] for one in accepted_by(world, date["event_id"])]
    others = [one for one in bookings(world, people, date["room_id"]) if one.event_id != date["event_id"]]
    fixed = [one for one in others if one.who in (date["person_id"], date["room_id"])]
    drawn = {f"{date['day']} {hour:02d}:00" for hour in range(8, 18)} | {wall(one.start, zone) for one in others if one.start > world.clock}
    bad: list[str] = []
    good: list[str] = []
    for starts in sorted(starts for starts in drawn - {wall(date["at"], zone)} if "08:00" <= starts[11:] < "18:00"):
        gap = wall_gap(date["at"], to_utc(starts, zone), zone)
        moved = [shifted(at, zone, gap) for at in times]
        if moved[0] < world.clock or overlapping(fixed, moved, date["minutes"]):
            continue
        (bad if overlapping(others, moved, date["minutes"]) else good).append(starts)
    return bad, [good[number] for number in rng.permutation(len(good))[:4]]


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    event_id = (yield from event(slots, me))["event_id"]
    yield ToolCall("get_event", {"event_id": event_id})
    said = yield ToolCall("move_series", {"event_id": event_id, "starts": slots["starts"]})
    if any(one["answer"] != "accepted" for one in said["attendees"]):
        yield ToolCall("undo", {})
        yield ToolCall("move_series", {"event_id": event_id, "starts": slots["otherwise"]})
    yield ToolCall("finish")


def _both(_: Request, slots: Mapping[str, str]) -> Script:
    """Moves it to one time and then to the other."""
    me = yield from account(slots)
    event_id = (yield from event(slots, me))["event_id"]
    yield ToolCall("get_event", {"event_id": event_id})
    for starts in ("starts", "otherwise"):
        yield ToolCall("move_series", {"event_id": event_id, "starts": slots[starts]})


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=2)


REQUEST = Request(name="move_series", book=phrasebook(_FRAMES, *_THINGS), case=_case, oracle=_oracle)

FAMILY = Family(name="probe", draft=_draft, capabilities=("reversible_probe",), cheats={"moves it twice": cheat((REQUEST,), _both)})
