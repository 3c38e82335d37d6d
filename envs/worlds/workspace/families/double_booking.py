"""Double booking: half an hour is to be booked, and while the agent looks for it, the colleague may accept something else for then."""

import numpy as np

from agent_gym.envs.worlds.workspace.clock import to_utc
from agent_gym.envs.worlds.workspace.drafting import Row, compose, not_calling
from agent_gym.envs.worlds.workspace.families.book import EITHER, booked
from agent_gym.world import Draft, Family, World, pick

__all__ = ["FAMILY"]


def _invite(world: World, rng: np.random.Generator, me: Row, other: Row, at: int) -> str:
    """Has a third person invite the colleague for that time; gives the meeting's id."""
    sql = "SELECT * FROM people WHERE person_id NOT IN (?, ?) ORDER BY person_id"
    third = pick(rng, world.query(sql, (me["person_id"], other["person_id"])))
    event_id = world.new_id("EV")
    world.insert(
        "events",
        event_id=event_id,
        person_id=third["person_id"],
        title="urgent matter",
        time_zone=third["time_zone"],
        starts_at=at,
        minutes=30,
        repeats="never",
        state="on",
    )
    world.insert("occurrences", occurrence_id=world.new_id("OC"), event_id=event_id, starts_at=at, state="on")
    for person, answer in ((third, "invited"), (other, "invited")):
        world.insert("attendees", attendee_id=world.new_id("AD"), event_id=event_id, person_id=person["person_id"], answer=answer)
    return event_id


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, EITHER.routes)
    case = EITHER.case(world, rng, route, "")
    other = world.get("people", case.about["colleague_id"])
    event_id = _invite(world, rng, case.me, other, to_utc(case.slots["starts"], case.me["time_zone"]))
    events: list[Row] = []
    if rng.integers(3):
        answer = {"event_id": event_id, "person_id": other["person_id"], "answer": "accepted"}
        events = [{"after": case.looks[-1], "operation": "answer_invitation", "arguments": answer}]
        done = booked(case.me, other, case.slots["otherwise"], case.slots["title"])
        where = {"event_id": event_id, "person_id": other["person_id"]}
        case.rows, case.allowed = done["rows"], [*done["allowed"], {"table": "attendees", "where": where, "columns": ["answer"]}]
        case.steps += 1
    return compose(world, rng, split, EITHER, route, case, events=events, distractors=2)


FAMILY = Family(
    name="double_booking",
    draft=_draft,
    capabilities=("conflict", "recover_from_error", "form"),
    cheats={"looks for no time": not_calling((EITHER,), {"find_free_time": {"free": []}})},
)
