"""Calendars: meetings, single and in series, their rooms, and who has time. Nobody who has accepted, and no room, is in two places."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from agent_gym.envs.worlds.workspace.clock import day_bounds, shifted, to_utc, wall, wall_gap
from agent_gym.envs.worlds.workspace.operations.people import hours
from agent_gym.envs.worlds.workspace.operations.steps import Record, done
from agent_gym.world import Conflict, World

__all__ = ["CALENDAR", "accepted_by", "bookings", "overlapping", "to_come"]

_LENGTH = 30
"""Minutes of a meeting that is booked here."""
_HOUR = 3_600


class _Booking(NamedTuple):
    """A date that somebody or a room is taken for."""

    who: str
    event_id: str
    occurrence_id: str
    start: int
    end: int


# --- Reading ---


def list_events(world: World, person_id: str, day: str) -> Record:
    zone = world.get("people", person_id)["time_zone"]
    first, last = _bounds(day, zone)
    found = world.query(
        "SELECT occurrence_id, event_id, title, occurrences.starts_at, repeats,"
        " CASE events.person_id WHEN attendees.person_id THEN 'organiser' ELSE answer END AS role"
        " FROM attendees JOIN events USING (event_id) JOIN occurrences USING (event_id) WHERE attendees.person_id = ?"
        " AND answer != 'declined' AND occurrences.state = 'on' AND occurrences.starts_at >= ? AND occurrences.starts_at < ?"
        " ORDER BY occurrences.starts_at, occurrence_id",
        (person_id, first, last),
    )
    keys = ("occurrence_id", "event_id", "title")
    events = [
        {**{key: one[key] for key in keys}, "at": wall(one["starts_at"], zone), "repeats": one["repeats"], "role": one["role"]}
        for one in found
    ]
    return {"person_id": person_id, "events": events}


def get_event(world: World, event_id: str) -> Record:
    event = world.get("events", event_id)
    organiser = world.get("people", event["person_id"])
    return {
        "event_id": event_id,
        "title": event["title"],
        "organiser": organiser["person"],
        "organiser_email": organiser["email"],
        "time_zone": event["time_zone"],
        "repeats": event["repeats"],
        "room": "none" if event["room_id"] is None else world.get("rooms", event["room_id"])["room"],
        "dates": [wall(one["starts_at"], event["time_zone"]) for one in to_come(world, event_id)],
        "attendees": _attendees(world, event_id),
    }


def find_free_time(world: World, person_id: str, colleague_id: str, day: str) -> Record:
    me, other = world.get("people", person_id), world.get("people", colleague_id)
    _bounds(day, me["time_zone"])
    taken = bookings(world, [person_id, colleague_id])
    free = []
    for hour in range(me["opens"], me["closes"]):
        start = to_utc(f"{day} {hour:02d}:00", me["time_zone"])
        if start < world.clock or not _at_work(me, start) or overlapping(taken, [start], _LENGTH):
            continue
        theirs = wall(start, other["time_zone"])
        shown = "within working hours" if _at_work(other, start) else f"outside working hours, they are {hours(other)}"
        free.append({"starts": wall(start, me["time_zone"]), "theirs": theirs, "hours": shown})
    return {"person_id": person_id, "colleague_id": colleague_id, "free": free}


def find_rooms(world: World, event_id: str) -> Record:
    event = world.get("events", event_id)
    times = [one["starts_at"] for one in to_come(world, event_id)]
    taken = {one.who for one in overlapping(_rooms_taken(world), times, event["minutes"]) if one.event_id != event_id}
    rooms = world.query(
        "SELECT * FROM rooms WHERE seats >= ? AND room_id IS NOT ? ORDER BY seats", (_seats(world, event_id), event["room_id"])
    )
    return {"event_id": event_id, "rooms": [room for room in rooms if room["room_id"] not in taken]}


# --- Changing ---


def create_event(world: World, person_id: str, colleague_id: str, starts: str, title: str) -> Record:
    me = world.get("people", person_id)
    world.get("people", colleague_id)
    if person_id == colleague_id:
        raise Conflict("a meeting needs two people")
    at = _future(world, starts, me["time_zone"])
    _check_free(bookings(world, [person_id, colleague_id]), [at], _LENGTH)
    event_id = world.new_id("EV")
    world.insert(
        "events",
        event_id=event_id,
        person_id=person_id,
        guest_id=colleague_id,
        title=title,
        time_zone=me["time_zone"],
        starts_at=at,
        minutes=_LENGTH,
        repeats="never",
        state="on",
    )
    world.insert("occurrences", occurrence_id=world.new_id("OC"), event_id=event_id, starts_at=at, state="on")
    for who, answer in ((person_id, "accepted"), (colleague_id, "invited")):
        world.insert("attendees", attendee_id=world.new_id("AD"), event_id=event_id, person_id=who, answer=answer)
    done(world, "create_event", event_id)
    return {"event_id": event_id, "title": title, "at": starts}


def move_occurrence(world: World, occurrence_id: str, starts: str) -> Record:
    date, event = _date(world, occurrence_id)
    at = _future(world, starts, event["time_zone"])
    if at == date["starts_at"]:
        raise Conflict(f"date {occurrence_id} is at {starts} already")
    people = [one["person_id"] for one in accepted_by(world, event["event_id"])]
    taken = [one for one in bookings(world, people, event["room_id"]) if one.occurrence_id != occurrence_id]
    _check_free(taken, [at], event["minutes"])
    world.update("occurrences", occurrence_id, starts_at=at)
    done(world, "move_occurrence", occurrence_id)
    return {"occurrence_id": occurrence_id, "at": starts}


def move_series(world: World, event_id: str, starts: str) -> Record:
    event = world.get("events", event_id)
    zone, dates = event["time_zone"], _upcoming(world, event_id)
    gap = wall_gap(dates[0]["starts_at"], _future(world, starts, zone), zone)
    if not gap:
        raise Conflict(f"meeting {event_id} is at {starts} already")
    try:
        first, *times = (shifted(at, zone, gap) for at in (event["starts_at"], *(date["starts_at"] for date in dates)))
    except ValueError as error:
        raise Conflict(f"there is no day that far away to which meeting {event_id} could move") from error
    accepted = accepted_by(world, event_id)
    taken = bookings(world, [one["person_id"] for one in accepted], event["room_id"])
    taken = [one for one in taken if one.event_id != event_id]
    _check_free([one for one in taken if one.who in (event["person_id"], event["room_id"])], times, event["minutes"])
    absent = {one.who for one in overlapping(taken, times, event["minutes"])}
    for one in accepted:
        if one["person_id"] in absent:
            world.update("attendees", one["attendee_id"], answer="declined")
    for date, at in zip(dates, times, strict=True):
        world.update("occurrences", date["occurrence_id"], starts_at=at)
    world.update("events", event_id, starts_at=first)
    done(world, "move_series", event_id)
    return {"event_id": event_id, "dates": [wall(at, zone) for at in times], "attendees": _attendees(world, event_id)}


def cancel_occurrence(world: World, occurrence_id: str) -> Record:
    _date(world, occurrence_id)
    world.update("occurrences", occurrence_id, state="cancelled")
    done(world, "cancel_occurrence", occurrence_id)
    return {"occurrence_id": occurrence_id, "state": "cancelled"}


def cancel_series(world: World, event_id: str) -> Record:
    world.get("events", event_id)
    dates = _upcoming(world, event_id)
    for date in dates:
        world.update("occurrences", date["occurrence_id"], state="cancelled")
    world.update("events", event_id, state="cancelled")
    done(world, "cancel_series", event_id)
    return {"event_id": event_id, "cancelled": len(dates)}


def answer_invitation(world: World, event_id: str, person_id: str, answer: str) -> Record:
    event = world.get("events", event_id)
    world.get("people", person_id)
    invited = world.query("SELECT * FROM attendees WHERE event_id = ? AND person_id = ?", (event_id, person_id))
    if not invited or event["person_id"] == person_id:
        raise Conflict(f"{person_id} is not invited to meeting {event_id}")
    if invited[0]["answer"] == answer:
        raise Conflict(f"{person_id} has {answer} meeting {event_id} already")
    if answer == "accepted":
        times = [one["starts_at"] for one in to_come(world, event_id)]
        _check_free(bookings(world, [person_id]), times, event["minutes"])
    world.update("attendees", invited[0]["attendee_id"], answer=answer)
    done(world, "answer_invitation", event_id)
    return {"event_id": event_id, "answer": answer}


def book_room(world: World, event_id: str, room_id: str) -> Record:
    event = world.get("events", event_id)
    room = world.get("rooms", room_id)
    if event["room_id"] == room_id:
        raise Conflict(f"meeting {event_id} is in room {room_id} already")
    if room["seats"] < _seats(world, event_id):
        raise Conflict(f"room {room_id} has {room['seats']} seats, {_seats(world, event_id)} are needed")
    times = [one["starts_at"] for one in to_come(world, event_id)]
    _check_free([one for one in _rooms_taken(world) if one.who == room_id], times, event["minutes"])
    world.update("events", event_id, room_id=room_id)
    done(world, "book_room", event_id)
    return {"event_id": event_id, "room": room["room"]}


# --- Shared steps ---


def _bounds(day: str, zone: str) -> tuple[int, int]:
    try:
        return day_bounds(day, zone)
    except ValueError as error:
        raise Conflict(f"there is no day {day}") from error


def _future(world: World, starts: str, zone: str) -> int:
    _bounds(starts[:10], zone)
    try:
        at = to_utc(starts, zone)
    except ValueError as error:
        raise Conflict(f"the clocks of {zone} never show {starts}") from error
    if at < world.clock:
        raise Conflict(f"{starts} is over")
    return at


def _at_work(person: Record, at: int) -> bool:
    day, _, hour = wall(at, person["time_zone"]).partition(" ")
    return person["opens"] <= int(hour[:2]) < person["closes"] and _weekday(day) < 5


def _weekday(day: str) -> int:
    return (to_utc(f"{day} 12:00", "UTC") // 86_400 + 3) % 7


def to_come(world: World, event_id: str) -> list[Record]:
    """The dates of a meeting that are on and not over, in order."""
    sql = (
        "SELECT occurrences.* FROM occurrences JOIN events USING (event_id) WHERE event_id = ? AND occurrences.state = 'on'"
        " AND occurrences.starts_at + 60 * minutes > ? ORDER BY occurrences.starts_at"
    )
    return world.query(sql, (event_id, world.clock))


def _upcoming(world: World, event_id: str) -> list[Record]:
    dates = to_come(world, event_id)
    if not dates:
        raise Conflict(f"meeting {event_id} has no dates to come")
    return dates


def _date(world: World, occurrence_id: str) -> tuple[Record, Record]:
    """A date that can be changed, and its meeting."""
    date = world.get("occurrences", occurrence_id)
    event = world.get("events", date["event_id"])
    if date["state"] != "on" or date["starts_at"] + 60 * event["minutes"] <= world.clock:
        raise Conflict(f"date {occurrence_id} is over or cancelled")
    return date, event


def accepted_by(world: World, event_id: str) -> list[Record]:
    """Who has accepted a meeting, as rows of ``attendees``."""
    return world.query("SELECT * FROM attendees WHERE event_id = ? AND answer = 'accepted' ORDER BY attendee_id", (event_id,))


def _attendees(world: World, event_id: str) -> list[Record]:
    sql = "SELECT person AS attendee, city, answer FROM attendees JOIN people USING (person_id) WHERE event_id = ? ORDER BY attendee_id"
    return world.query(sql, (event_id,))


def _seats(world: World, event_id: str) -> int:
    count: int = world.query("SELECT count(*) AS n FROM attendees WHERE event_id = ? AND answer != 'declined'", (event_id,))[0]["n"]
    return count


def bookings(world: World, people: Sequence[str], room_id: str | None = None) -> list[_Booking]:
    """The dates of meetings that these people have accepted, and of those in a room."""
    rows = world.query(
        "SELECT attendees.person_id AS who, event_id, occurrence_id, occurrences.starts_at, minutes FROM attendees"
        " JOIN events USING (event_id) JOIN occurrences USING (event_id)"
        f" WHERE attendees.person_id IN ({', '.join('?' * len(people))}) AND answer = 'accepted' AND occurrences.state = 'on'",
        people,
    )
    in_room = [] if room_id is None else [one for one in _rooms_taken(world) if one.who == room_id]
    return [*_as_bookings(rows), *in_room]


def _rooms_taken(world: World) -> list[_Booking]:
    """The dates of meetings in rooms."""
    return _as_bookings(
        world.query(
            "SELECT room_id AS who, event_id, occurrence_id, occurrences.starts_at, minutes FROM events JOIN occurrences USING (event_id)"
            " WHERE room_id IS NOT NULL AND occurrences.state = 'on'"
        )
    )


def _as_bookings(rows: Iterable[Record]) -> list[_Booking]:
    return [
        _Booking(row["who"], row["event_id"], row["occurrence_id"], row["starts_at"], row["starts_at"] + 60 * row["minutes"])
        for row in rows
    ]


def overlapping(bookings: Iterable[_Booking], times: Sequence[int], minutes: int) -> list[_Booking]:
    """The bookings that meetings of that length at any of these times would run into."""
    return [one for one in bookings if any(one.start < at + 60 * minutes and at < one.end for at in times)]


def _check_free(bookings: Iterable[_Booking], times: Sequence[int], minutes: int) -> None:
    if overlapping(bookings, times, minutes):  # whom or what for is nobody else's business
        raise Conflict("somebody who must be there, or the room, is taken then")


CALENDAR: dict[str, Callable[..., Record]] = {
    function.__name__: function
    for function in (
        list_events,
        get_event,
        find_free_time,
        find_rooms,
        create_event,
        move_occurrence,
        move_series,
        cancel_occurrence,
        cancel_series,
        answer_invitation,
        book_room,
    )
}
"""The operations by name."""
