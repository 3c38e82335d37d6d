"""Probe: which of two times for a series suits all, and whom the other does not. Only moving it shows that; a wrong try is taken back."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.clock import shifted, to_utc, wall, wall_gap
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, Row, cheat, compose
from agent_gym.envs.worlds.workspace.operations.calendar import accepted_by, bookings, overlapping, to_come
from agent_gym.envs.worlds.workspace.routes import account, event, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_meeting
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please move the series {thing} to {starts} or {otherwise}, whichever leaves nobody out, and tell me who declines the other.",
        "{who} I want to move the series {thing} so that it begins {starts} or {otherwise}; all must still accept. Who declines the other?",
        "Could you move the series {thing}? It can be {starts} or {otherwise}, but nobody may decline. Who would decline the other? {who}",
        "Move the series {thing} to {starts} or to {otherwise}, so that all still come, and tell me who declines the other. {who}",
        "{who} I need you to move the series {thing}, to {starts} or else {otherwise}, without anybody declining. Who declines the other?",
        "{who} Kindly move the series {thing}: {starts} or {otherwise}, whatever suits everybody. Tell me who declines the other.",
    ),
    "held_out": (
        "{who} My request is to move the series {thing} to {starts} or {otherwise}; pick what suits all. Who declines the other?",
        "The series {thing} has to move, to {starts} or {otherwise}, and all must be able to come. Tell me who declines the other. {who}",
        "{who} Can you move the series {thing}? Of {starts} and {otherwise}, take the one that all accept. Who declines the other?",
    ),
    "synonyms": (
        "{who} Please reschedule every {thing}: {starts} or {otherwise}, as long as everyone can make it. Who is missing otherwise?",
        "Shift all of {thing} to {starts} or {otherwise}, depending on which suits everyone. Whom would the wrong one leave out? {who}",
    ),
}
_THINGS = ("“{title}” of {day}", "“{title}” (next on {day})", "“{title}” from {day} on")


def _drawn(world: World, rng: np.random.Generator) -> tuple[Case, str]:
    """What is asked, and who declines at the wrong time."""
    while True:
        date = a_meeting(world, rng, series=True)
        dates = to_come(world, date["event_id"])
        for one in world.query("SELECT * FROM attendees WHERE event_id = ? AND answer = 'invited'", (date["event_id"],)):
            world.update("attendees", one["attendee_id"], answer="accepted")
        bad, good = _times(world, rng, date, [one["starts_at"] for one in dates])
        if bad and good:
            break
    right, (wrong, absent) = pick(rng, good), pick(rng, bad)
    starts, otherwise = (right, wrong) if rng.integers(2) else (wrong, right)
    zone = date["time_zone"]
    gap = wall_gap(date["at"], to_utc(right, zone), zone)
    times = {one["occurrence_id"]: shifted(one["starts_at"], zone, gap) for one in dates}
    answers = accepted_by(world, date["event_id"])
    case = Case(
        me=world.get("people", date["who"]),
        slots={"title": date["title"], "day": date["day"], "starts": starts, "otherwise": otherwise},
        looks=[calling("get_event", event_id=date["event_id"])],
        steps=5,
        rows=[
            *({"table": "occurrences", "where": {"occurrence_id": key}, "values": {"starts_at": at}} for key, at in times.items()),
            *({"table": "attendees", "where": {"attendee_id": one["attendee_id"]}, "values": {"answer": "accepted"}} for one in answers),
        ],
        allowed=[
            {"table": "events", "where": {"event_id": date["event_id"]}, "columns": ["starts_at"]},
            {"table": "occurrences", "where": {"event_id": date["event_id"]}, "columns": ["starts_at"]},
        ],
    )
    return case, world.get("people", absent)["person"]


def _times(world: World, rng: np.random.Generator, date: Row, times: list[int]) -> tuple[list[tuple[str, str]], list[str]]:
    """Times to which the series can be moved though one has to decline, and who; and some at which all can come."""
    zone, people = date["time_zone"], [one["person_id"] for one in accepted_by(world, date["event_id"])]
    others = [one for one in bookings(world, people, date["room_id"]) if one.event_id != date["event_id"]]
    fixed = [one for one in others if one.who in (date["person_id"], date["room_id"])]
    drawn = {f"{date['day']} {hour:02d}:00" for hour in range(8, 18)} | {wall(one.start, zone) for one in others if one.start > world.clock}
    bad: list[tuple[str, str]] = []
    good: list[str] = []
    for starts in sorted(starts for starts in drawn - {wall(date["at"], zone)} if "08:00" <= starts[11:] < "18:00"):
        gap = wall_gap(date["at"], to_utc(starts, zone), zone)
        moved = [shifted(at, zone, gap) for at in times]
        if moved[0] < world.clock or overlapping(fixed, moved, date["minutes"]):
            continue
        absent = sorted({one.who for one in overlapping(others, moved, date["minutes"])})
        if not absent:
            good.append(starts)
        elif len(absent) == 1:
            bad.append((starts, absent[0]))
    return bad, [good[number] for number in rng.permutation(len(good))[:4]]


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    event_id = (yield from event(slots, me))["event_id"]
    yield ToolCall("get_event", {"event_id": event_id})
    declines = ""
    for time in ("starts", "otherwise"):
        said = yield ToolCall("move_series", {"event_id": event_id, "starts": slots[time]})
        if absent := [one["attendee"] for one in said["attendees"] if one["answer"] != "accepted"]:
            declines = absent[0]
            yield ToolCall("undo", {})
    yield ToolCall("finish", {"answer": declines})


def _moving(_: Errand, slots: Mapping[str, str], *times: str) -> Script:
    """Moves it and looks no further."""
    me = yield from account(slots)
    event_id = (yield from event(slots, me))["event_id"]
    yield ToolCall("get_event", {"event_id": event_id})
    for time in times:
        yield ToolCall("move_series", {"event_id": event_id, "starts": slots[time]})


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    case, declines = _drawn(world, rng)
    looks = [{"name": "1_get_event", "call": case.looks[0]}]
    tried = [
        {"name": f"{number}_move_series", "call": calling("move_series", **case.looks[0]["arguments"], starts=case.slots[time])}
        for number, time in enumerate(("starts", "otherwise"), 2)
    ]
    asked = {"asks": "attendee", "answer": declines}
    return compose(world, rng, split, REQUEST, route, case, milestones=[*looks, *tried], distractors=2, **asked)


REQUEST = Errand(name="move_series", book=phrasebook(_FRAMES, *_THINGS), case=lambda world, rng, *_: _drawn(world, rng)[0], oracle=_oracle)

FAMILY = Family(
    name="probe",
    draft=_draft,
    capabilities=("reversible_probe",),
    cheats={
        "guesses the time": cheat((REQUEST,), lambda request, slots: _moving(request, slots, "starts")),
        "moves it twice": cheat((REQUEST,), lambda request, slots: _moving(request, slots, "starts", "otherwise")),
    },
)
