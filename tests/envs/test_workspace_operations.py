"""The workspace's operations: preconditions, atomicity, clocks, and what holds whatever is called."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ToolResult
from agent_gym.core.seeding import derive
from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.envs.worlds.workspace import WORKSPACE
from agent_gym.envs.worlds.workspace.catalogue import TOPICS
from agent_gym.envs.worlds.workspace.clock import to_utc, wall
from agent_gym.envs.worlds.workspace.operations.calendar import bookings
from agent_gym.world import World, carry_out

BASE = WORKSPACE.build(11)
INPUTS = {name: jsonschema_rs.validator_for(dict(operation.spec.parameters)) for name, operation in WORKSPACE.operations.items()}
OUTPUTS = {name: jsonschema_rs.validator_for(dict(operation.spec.output_schema or {})) for name, operation in WORKSPACE.operations.items()}


@pytest.fixture
def world() -> Any:
    opened = World(WORKSPACE.schema, BASE)
    yield opened
    opened.close()


def call(world: World, tool: str, **arguments: Any) -> ToolResult:
    INPUTS[tool].validate(arguments)
    result = carry_out(world, WORKSPACE.operations[tool], arguments, math.inf)
    if not result.failed:
        OUTPUTS[tool].validate(result.structured)
        assert json.loads(result.content) == result.structured
    return result


def one(world: World, sql: str, *parameters: Any) -> dict[str, Any]:
    return world.query(f"{sql} LIMIT 1", parameters)[0]


def count(world: World, sql: str) -> int:
    found: int = world.query(f"SELECT count(*) AS n FROM {sql}")[0]["n"]
    return found


def free_hours(world: World, me: str, other: str, day: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = call(world, "find_free_time", person_id=me, colleague_id=other, day=day).structured["free"]
    return found


def people(world: World, *cities: str) -> list[str]:
    """Somebody in each of these cities."""
    return [one(world, "SELECT person_id FROM people WHERE city = ? ORDER BY person_id", city)["person_id"] for city in cities]


BOOKED = (
    "SELECT {who} AS who, occurrence_id, occurrences.starts_at AS start, occurrences.starts_at + 60 * minutes AS stop"
    " FROM events JOIN occurrences USING (event_id) {join} WHERE occurrences.state = 'on' AND {condition} ORDER BY who, start"
)
PEOPLE = BOOKED.format(who="attendees.person_id", join="JOIN attendees USING (event_id)", condition="answer = 'accepted'")
ROOMS = BOOKED.format(who="room_id", join="", condition="room_id IS NOT NULL")


def check_invariants(world: World) -> None:
    """Nobody is in two places, nor is a room; every document has an owner's folder and an unbroken history; nothing hangs in the air."""
    for sql in (PEOPLE, ROOMS):
        dates = world.query(sql)
        for earlier, later in itertools.pairwise(dates):
            assert earlier["who"] != later["who"] or earlier["stop"] <= later["start"], (earlier, later)
    assert count(world, "documents JOIN folders USING (folder_id) WHERE documents.person_id != folders.person_id") == 0
    histories = world.query(
        "SELECT version, count(*) AS n, max(number) AS newest FROM documents JOIN versions USING (document_id) GROUP BY document_id"
    )
    assert len(histories) == count(world, "documents")
    assert all(one["version"] == one["n"] == one["newest"] for one in histories)
    assert count(world, "shares JOIN documents USING (document_id) WHERE colleague_id = person_id") == 0
    assert count(world, "events WHERE (SELECT count(*) FROM occurrences WHERE occurrences.event_id = events.event_id) = 0") == 0
    organisers = "attendees JOIN events USING (event_id) WHERE attendees.person_id = events.person_id"
    assert count(world, organisers) == count(world, "events")
    titles = "SELECT title FROM documents GROUP BY person_id, title HAVING count(*) > 1"
    assert world.query(titles) == []
    assert world.digest() == world.recomputed_digest()


def test_a_base_has_distractors_and_keeps_to_what_holds(world: World) -> None:
    assert 500 <= sum(count(world, table) for table in WORKSPACE.schema.tables) <= 650
    check_invariants(world)
    assert len(world.query("SELECT person FROM people GROUP BY person HAVING count(*) = 2 AND count(DISTINCT team) = 2")) == 2
    assert (
        len(world.query("SELECT contact FROM contacts GROUP BY contact HAVING count(DISTINCT company) = 3 AND count(DISTINCT city) = 3"))
        == 3
    )
    assert world.query("SELECT contact FROM contacts JOIN people ON contact = person")
    names = " ".join(row["person"] for row in world.query("SELECT person FROM people UNION SELECT contact FROM contacts"))
    assert not names.isascii()
    assert "'" in names
    subjects = [row["subject"] for row in world.query("SELECT subject FROM threads")]
    assert any(subject in TOPICS for subject in subjects)
    assert any(subject not in TOPICS for subject in subjects)
    assert max(row["n"] for row in world.query("SELECT count(*) AS n FROM threads WHERE folder = 'inbox' GROUP BY person_id")) > 10
    assert len(world.query("SELECT DISTINCT time_zone FROM people")) == 4


def test_people_and_contacts_are_found_by_name_and_address(world: World) -> None:
    twin = one(world, "SELECT * FROM people WHERE person IN (SELECT person FROM people GROUP BY person HAVING count(*) = 2)")
    account = call(world, "find_person", email=twin["email"]).structured
    assert account == call(world, "get_person", person_id=twin["person_id"]).structured
    assert [one["folder"] for one in account["folders"]] == ["Contracts", "Plans", "Reports"]
    assert len(call(world, "find_people", name=twin["person"]).structured["people"]) == 2
    others = call(world, "find_colleagues", person_id=twin["person_id"], name=twin["person"]).structured["colleagues"]
    assert [one["colleague_id"] for one in others] != [twin["person_id"]]
    assert len(others) == 1
    assert call(world, "find_people", name="Nobody Here").status == "empty"
    assert call(world, "find_person", email="nobody@here.example").status == "not_found"
    shared = one(world, "SELECT * FROM contacts GROUP BY contact HAVING count(*) = 3")
    found = call(world, "find_contacts", person_id=twin["person_id"], name=shared["contact"]).structured["contacts"]
    assert len({one["company"] for one in found}) == 3
    assert call(world, "get_contact", contact_id=shared["contact_id"]).structured == shared
    assert world.changes() == []


@pytest.mark.parametrize(
    "tool", [name for name, spec in ((one.name, one) for one in WORKSPACE.tools) if "x-entity" in str(spec.parameters)]
)
def test_what_does_not_exist_is_not_found(world: World, tool: str) -> None:
    known = {"folder": "inbox", "template": "thanks", "access": "reader", "link": "on", "answer": "accepted", "number": "+44 123 456789"}
    known |= {"cursor": "inbox-5", "name": "Nobody Here", "day": "2028-03-01", "starts": "2028-03-01 10:00", "subject": "x", "title": "x"}
    arguments = {
        name: known.get(name) or f"{schema['pattern'][1:3]}9999999"
        for name, schema in WORKSPACE.operations[tool].spec.parameters["properties"].items()
    }
    result = call(world, tool, **arguments)
    assert result.status == "not_found"
    assert "9999999" in result.content


def test_a_long_folder_comes_in_pages_without_gaps(world: World) -> None:
    busy = one(world, "SELECT person_id FROM threads WHERE folder = 'inbox' GROUP BY person_id HAVING count(*) > 10")
    page = call(world, "list_mail", **busy, folder="inbox").structured
    seen = list(page["threads"])
    while page["cursor"]:
        assert len(page["threads"]) == 5
        page = call(world, "more_mail", **busy, cursor=page["cursor"]).structured
        seen += page["threads"]
    whole = world.query(
        "SELECT thread_id FROM threads WHERE person_id = ? AND folder = 'inbox' ORDER BY newest_at DESC", list(busy.values())
    )
    assert [one["thread_id"] for one in seen] == [one["thread_id"] for one in whole]
    assert call(world, "more_mail", **busy, cursor="inbox-500").status == "empty"
    assert call(world, "list_mail", **busy, folder="spam").status == "empty"


def test_search_goes_by_the_beginnings_of_words(world: World) -> None:
    thread = one(world, "SELECT * FROM threads WHERE subject LIKE '% % %'")
    first, second, _ = thread["subject"].split()

    def found(subject: str) -> set[str]:
        listed = call(world, "search_mail", person_id=thread["person_id"], subject=subject).structured["threads"]
        return {one["thread_id"] for one in listed}

    assert thread["thread_id"] in found(thread["subject"].upper())
    assert thread["thread_id"] in found(f"{second[:3]} {first[:2]}")
    assert found(f"{first[1:]}qq") == set()
    document = one(world, "SELECT * FROM documents JOIN shares USING (document_id) WHERE colleague_id IS NOT NULL")
    for person, role in ((document["person_id"], "owner"), (document["colleague_id"], document["access"])):
        listed = call(world, "search_documents", person_id=person, title=document["title"]).structured["documents"]
        assert role in {one["role"] for one in listed if one["document_id"] == document["document_id"]}


def test_mail_is_answered_forwarded_moved_and_deleted(world: World) -> None:
    thread = one(world, "SELECT * FROM threads WHERE thread_id IN (SELECT thread_id FROM attachments) AND folder = 'inbox'")
    key = {"thread_id": thread["thread_id"]}
    before = call(world, "get_thread", **key).structured["messages"]
    contact = one(world, "SELECT * FROM contacts")
    assert call(world, "reply_mail", **key, template="thanks").status == "ok"
    assert call(world, "forward_mail", **key, contact_id=contact["contact_id"]).structured["forwarded_to"] == contact["email"]
    after = call(world, "get_thread", **key).structured["messages"]
    assert after[2:] == before
    assert after[0]["address"] == contact["email"]
    assert call(world, "move_mail", **key, folder="inbox").status == "conflict"
    assert call(world, "move_mail", **key, folder="archive").status == "ok"
    attachment = call(world, "list_attachments", **key).structured["attachments"][0]["attachment_id"]
    assert call(world, "delete_mail", **key).status == "ok"
    for tool, more in (("get_thread", {}), ("delete_mail", {}), ("list_attachments", {}), ("reply_mail", {"template": "agree"})):
        assert call(world, tool, **key, **more).status == "not_found"
    folder = one(world, "SELECT folder_id FROM folders WHERE person_id = ?", thread["person_id"])
    assert call(world, "save_attachment", attachment_id=attachment, **folder).status == "not_found"
    found = call(world, "search_mail", person_id=thread["person_id"], subject=thread["subject"]).structured["threads"]
    assert thread["thread_id"] not in {one["thread_id"] for one in found}


def test_an_attachment_becomes_a_document_once(world: World) -> None:
    attachment = one(world, "SELECT * FROM attachments JOIN threads USING (thread_id)")
    mine = one(world, "SELECT folder_id FROM folders WHERE person_id = ?", attachment["person_id"])
    foreign = one(world, "SELECT folder_id FROM folders WHERE person_id != ?", attachment["person_id"])
    key = {"attachment_id": attachment["attachment_id"]}
    assert call(world, "save_attachment", **key, **foreign).status == "conflict"
    saved = call(world, "save_attachment", **key, **mine).structured
    assert call(world, "get_document", document_id=saved["document_id"]).structured["text"] == attachment["text"]
    assert saved["document_id"] in {one["document_id"] for one in call(world, "list_folder", **mine).structured["documents"]}
    assert call(world, "save_attachment", **key, **mine).status == "conflict"
    check_invariants(world)


def test_sharing_is_given_changed_and_taken_back(world: World) -> None:
    document = one(world, "SELECT * FROM documents WHERE document_id NOT IN (SELECT document_id FROM shares)")
    key = {"document_id": document["document_id"]}
    other, contact = one(world, "SELECT * FROM people WHERE person_id != ?", document["person_id"]), one(world, "SELECT * FROM contacts")
    colleague = {"colleague_id": other["person_id"]}
    assert call(world, "list_shares", **key).status == "empty"
    assert call(world, "share_document", **key, colleague_id=document["person_id"], access="reader").status == "conflict"
    share = call(world, "share_document", **key, **colleague, access="reader").structured
    assert call(world, "share_document", **key, **colleague, access="reader").status == "conflict"
    assert call(world, "share_document", **key, **colleague, access="editor").structured == {**share, "access": "editor"}
    assert call(world, "share_outside", **key, contact_id=contact["contact_id"]).status == "ok"
    assert call(world, "share_outside", **key, contact_id=contact["contact_id"]).status == "conflict"
    listed = call(world, "list_shares", **key).structured["shares"]
    assert {(one["shared_with"], one["access"]) for one in listed} == {(other["person"], "editor"), (contact["contact"], "reader")}
    assert call(world, "unshare", share_id=share["share_id"]).status == "ok"
    assert call(world, "unshare", share_id=share["share_id"]).status == "conflict"
    assert len(call(world, "list_shares", **key).structured["shares"]) == 1
    seen = call(world, "search_documents", person_id=other["person_id"], title=document["title"]).structured["documents"]
    assert document["document_id"] not in {one["document_id"] for one in seen}
    assert call(world, "share_document", **key, **colleague, access="reader").structured["share_id"] == share["share_id"]
    assert call(world, "set_link", **key, link="off").status == "conflict"
    assert call(world, "set_link", **key, link="on").status == "ok"
    assert call(world, "get_document", **key).structured["link"] == "on"


def test_documents_are_renamed_moved_and_put_back(world: World) -> None:
    document = one(world, "SELECT * FROM documents WHERE version = 2")
    key = {"document_id": document["document_id"]}
    other = one(world, "SELECT * FROM documents WHERE person_id = ? AND document_id != ?", document["person_id"], document["document_id"])
    assert call(world, "rename_document", **key, title=other["title"]).status == "conflict"
    assert call(world, "rename_document", **key, title="a brand new title").status == "ok"
    folders = world.query("SELECT * FROM folders ORDER BY person_id != ?, folder_id = ?", (document["person_id"], document["folder_id"]))
    for folder, status in ((folders[-1], "conflict"), (folders[2], "conflict"), (folders[0], "ok")):
        assert call(world, "move_document", **key, folder_id=folder["folder_id"]).status == status
    versions = call(world, "list_versions", **key).structured["versions"]
    foreign = one(world, "SELECT version_id FROM versions WHERE document_id != ?", document["document_id"])
    assert call(world, "restore_version", **key, **foreign).status == "conflict"
    assert call(world, "restore_version", **key, version_id=versions[1]["version_id"]).status == "conflict"
    assert call(world, "restore_version", **key, version_id=versions[0]["version_id"]).structured["version"] == 3
    assert call(world, "get_document", **key).structured["text"] == versions[0]["text"]
    check_invariants(world)


def test_a_series_keeps_its_hour_when_the_clocks_change(world: World) -> None:
    sql = "SELECT event_id, person_id, events.time_zone AS zone FROM events JOIN people USING (person_id) WHERE repeats = 'every two weeks'"
    for series in world.query(f"{sql} AND events.time_zone != 'Asia/Kolkata'"):
        dates = call(world, "get_event", event_id=series["event_id"]).structured["dates"]
        assert len(dates) == 5
        assert len({date[11:] for date in dates}) == 1
        gaps = {later["at"] - earlier["at"] for earlier, later in pairs(world, series["event_id"])}
        assert gaps == {14 * 86_400, 14 * 86_400 - 3_600}
        on = [call(world, "list_events", person_id=series["person_id"], day=date[:10]).structured["events"] for date in dates]
        assert all(date in {one["at"] for one in events} for date, events in zip(dates, on, strict=True))


def pairs(world: World, event_id: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    dates = world.query("SELECT starts_at AS at FROM occurrences WHERE event_id = ? ORDER BY starts_at", (event_id,))
    return list(itertools.pairwise(dates))


def test_days_and_hours_that_no_clock_shows_are_refused(world: World) -> None:
    boston, london, pune = people(world, "Boston", "London", "Pune")
    booking = {"person_id": boston, "colleague_id": london, "title": "early"}
    assert call(world, "create_event", **booking, starts="2028-03-12 02:30").status == "conflict"  # the clocks skip it
    assert call(world, "create_event", **{**booking, "person_id": pune}, starts="2028-03-12 02:30").status == "ok"
    assert call(world, "create_event", **booking, starts="2028-02-30 10:00").status == "conflict"
    assert call(world, "create_event", **booking, starts="2028-02-21 01:00").status == "conflict"  # over
    for day, status in (("2028-02-29", "ok"), ("2027-02-29", "conflict"), ("2028-03-12", "empty")):
        assert call(world, "find_free_time", person_id=boston, colleague_id=london, day=day).status == status
    assert call(world, "list_events", person_id=boston, day="2028-13-01").status == "conflict"


@pytest.mark.parametrize("day", ["9999-12-31", "9999-12-30", "2101-01-01", "1999-12-31", "0001-01-01", "0000-00-00"])
def test_calendars_end(world: World, day: str) -> None:
    london, berlin = people(world, "London", "Berlin")
    weekly = one(world, "SELECT event_id, occurrence_id FROM events JOIN occurrences USING (event_id) WHERE repeats = 'weekly'")
    pair = {"person_id": london, "colleague_id": berlin}
    for result in (
        call(world, "list_events", person_id=london, day=day),
        call(world, "find_free_time", **pair, day=day),
        call(world, "create_event", **pair, starts=f"{day} 23:59", title="late"),
        call(world, "move_occurrence", occurrence_id=weekly["occurrence_id"], starts=f"{day} 23:59"),
        call(world, "move_series", event_id=weekly["event_id"], starts=f"{day} 10:00"),
    ):
        assert (result.status, result.content) == ("conflict", f"there is no day {day}")
    assert world.changes() == []


def test_the_last_day_is_one_and_a_series_does_not_go_beyond_it(world: World) -> None:
    london, berlin = people(world, "London", "Berlin")
    weekly = one(world, "SELECT event_id FROM events WHERE repeats = 'weekly'")
    booking = {"person_id": london, "colleague_id": berlin, "starts": "2100-12-31 10:00", "title": "late"}
    assert call(world, "create_event", **booking).status == "ok"
    assert len(call(world, "list_events", person_id=london, day="2100-12-31").structured["events"]) == 1
    assert call(world, "move_series", **weekly, starts="2100-12-31 11:00").status == "conflict"
    check_invariants(world)


def test_hours_are_free_by_the_clocks_of_both(world: World) -> None:
    london, pune = people(world, "London", "Pune")
    for hour in free_hours(world, london, pune, "2028-03-29"):
        begins, theirs = (int(text[11:13]) * 60 + int(text[14:16]) for text in (hour["starts"], hour["theirs"]))
        assert theirs - begins == 4 * 60 + 30  # British summer time has begun
        works = call(world, "get_person", person_id=pune).structured["works"]
        inside = works[:5] <= hour["theirs"][11:] < works[6:]
        assert hour["hours"].startswith("within" if inside else "outside")
    assert call(world, "create_event", person_id=london, colleague_id=london, starts="2028-03-29 10:00", title="x").status == "conflict"


def test_who_accepts_is_taken(world: World) -> None:
    me, other = people(world, "London", "Berlin")
    starts = free_hours(world, me, other, "2028-02-29")[0]["starts"]
    booking = {"person_id": me, "colleague_id": other, "starts": starts, "title": "one to one"}
    event_id = call(world, "create_event", **booking).structured["event_id"]
    assert call(world, "create_event", **booking).status == "conflict"
    mine = call(world, "list_events", person_id=me, day="2028-02-29").structured["events"]
    assert [one["role"] for one in mine if one["event_id"] == event_id] == ["organiser"]
    assert call(world, "answer_invitation", event_id=event_id, person_id=me, answer="declined").status == "conflict"
    second = call(world, "create_event", **{**booking, "person_id": people(world, "Pune")[0], "starts": local(starts)}).structured
    assert call(world, "answer_invitation", event_id=event_id, person_id=other, answer="accepted").status == "ok"
    assert call(world, "answer_invitation", event_id=event_id, person_id=other, answer="accepted").status == "conflict"
    assert call(world, "answer_invitation", event_id=second["event_id"], person_id=other, answer="accepted").status == "conflict"
    assert call(world, "answer_invitation", event_id=second["event_id"], person_id=other, answer="declined").status == "ok"
    check_invariants(world)


def test_a_meeting_that_has_begun_takes_people_and_rooms_until_it_is_over(world: World) -> None:
    ids = [row["person_id"] for row in world.query("SELECT person_id FROM people ORDER BY person_id")]
    rooms = [row["room_id"] for row in world.query("SELECT room_id FROM rooms WHERE seats > 1 ORDER BY seats LIMIT 2")]
    zones = {row["person_id"]: row["time_zone"] for row in world.query("SELECT person_id, time_zone FROM people")}
    now = world.clock
    idle = [one for one in ids if not any(taken.start < now + 3_600 for taken in bookings(world, [one]))]
    first, second, guest = idle[:3]
    begun = []
    for who, at in ((first, now), (second, now + 900)):
        booking = {"person_id": who, "colleague_id": guest, "starts": wall(at, zones[who]), "title": "soon"}
        begun.append({"event_id": call(world, "create_event", **booking).structured["event_id"]})
    with world.transaction():
        world.advance(1_000)
    accepting = {"person_id": guest, "answer": "accepted"}
    assert call(world, "answer_invitation", **begun[0], **accepting).status == "ok"
    assert call(world, "answer_invitation", **begun[1], **accepting).status == "conflict"
    assert call(world, "book_room", **begun[0], room_id=rooms[0]).status == "ok"
    assert rooms[0] not in {room["room_id"] for room in call(world, "find_rooms", **begun[1]).structured["rooms"]}
    assert call(world, "book_room", **begun[1], room_id=rooms[0]).status == "conflict"
    assert call(world, "book_room", **begun[1], room_id=rooms[1]).status == "ok"
    check_invariants(world)
    with world.transaction():
        world.advance(1_800 - (world.clock - now))
    assert call(world, "get_event", **begun[0]).structured["dates"] == []
    assert len(call(world, "get_event", **begun[1]).structured["dates"]) == 1


def local(starts: str) -> str:
    """A London time of February as it is in Pune, five and a half hours later."""
    minutes = int(starts[11:13]) * 60 + int(starts[14:]) + 330
    return f"{starts[:10]} {minutes // 60:02d}:{minutes % 60:02d}"


def test_dates_and_series_are_moved_and_cancelled(world: World) -> None:
    series = one(world, "SELECT * FROM events WHERE repeats = 'weekly' AND time_zone = 'Europe/Berlin'")
    key = {"event_id": series["event_id"]}
    dates = call(world, "get_event", **key).structured["dates"]
    first = one(world, "SELECT occurrence_id FROM occurrences WHERE event_id = ? ORDER BY starts_at", series["event_id"])
    assert call(world, "move_occurrence", **first, starts=dates[1]).status == "conflict"  # the series itself is on then
    assert call(world, "move_occurrence", **first, starts=dates[0]).status == "conflict"
    assert call(world, "move_series", **key, starts=dates[0]).status == "conflict"
    assert call(world, "move_occurrence", **first, starts=f"{dates[0][:10]} 21:00").status == "ok"
    assert call(world, "cancel_occurrence", **first).status == "ok"
    assert call(world, "cancel_occurrence", **first).status == "conflict"
    assert call(world, "get_event", **key).structured["dates"] == dates[1:]
    moved = call(world, "move_series", **key, starts=f"{dates[1][:10]} 21:00").structured["dates"]
    assert moved == [f"{date[:10]} 21:00" for date in dates[1:]]
    assert call(world, "cancel_series", **key).structured["cancelled"] == 4
    assert call(world, "cancel_series", **key).status == "conflict"
    assert call(world, "move_series", **key, starts=f"{dates[1][:10]} 20:00").status == "conflict"
    check_invariants(world)


def late_meeting(world: World, event: dict[str, Any], colleague_id: str) -> tuple[str, str]:
    """Has somebody who is not in a meeting invite a colleague for nine in the evening of its next day.

    Returns:
        The new meeting's id, and when it is by the clocks of the other one's organiser.
    """
    absent = "SELECT * FROM people WHERE person_id NOT IN (SELECT person_id FROM attendees WHERE event_id = ?) AND person_id != ?"
    helper = one(world, absent, event["event_id"], colleague_id)
    day = call(world, "get_event", event_id=event["event_id"]).structured["dates"][0][:10]
    starts = wall(to_utc(f"{day} 21:00", event["time_zone"]), helper["time_zone"])
    booking = {"person_id": helper["person_id"], "colleague_id": colleague_id, "starts": starts, "title": "late"}
    return call(world, "create_event", **booking).structured["event_id"], f"{day} 21:00"


def test_who_cannot_come_when_a_series_moves_declines_and_undo_brings_them_back(world: World) -> None:
    guests = "attendees AS guest JOIN events USING (event_id) WHERE answer = 'accepted' AND guest.person_id != events.person_id"
    series = one(world, f"SELECT events.*, guest.person_id AS guest FROM {guests} AND repeats != 'never'")
    booked, starts = late_meeting(world, series, series["guest"])
    assert call(world, "answer_invitation", event_id=booked, person_id=series["guest"], answer="accepted").status == "ok"
    before = world.digest()
    said = call(world, "move_series", event_id=series["event_id"], starts=starts).structured
    assert "declined" in {one["answer"] for one in said["attendees"]}
    assert said["attendees"] == call(world, "get_event", event_id=series["event_id"]).structured["attendees"]
    check_invariants(world)
    assert call(world, "undo").status == "ok"
    assert world.digest() == before


def test_rooms_seat_everybody_and_are_booked_once(world: World) -> None:
    event = one(world, "SELECT * FROM events WHERE repeats = 'weekly'")
    key = {"event_id": event["event_id"]}
    found = call(world, "find_rooms", **key).structured["rooms"]
    assert [room["seats"] for room in found] == sorted(room["seats"] for room in found)
    room = {"room_id": found[0]["room_id"]}
    assert call(world, "book_room", **key, **room).status == "ok"
    assert call(world, "book_room", **key, **room).status == "conflict"
    assert room["room_id"] not in {one["room_id"] for one in call(world, "find_rooms", **key).structured["rooms"]}
    rival, starts = late_meeting(world, event, one(world, "SELECT person_id FROM people ORDER BY person_id DESC")["person_id"])
    assert call(world, "book_room", event_id=rival, **room).status == "ok"
    assert call(world, "move_series", **key, starts=starts).status == "conflict"  # the room is taken then
    with world.transaction():
        world.update("occurrences", occurrence(world, rival), starts_at=occurrence_start(world, event["event_id"]))
        world.update("events", rival, room_id=None)
        world.update("rooms", found[1]["room_id"], seats=1)
    assert call(world, "book_room", event_id=rival, **room).status == "conflict"
    assert room["room_id"] not in {one["room_id"] for one in call(world, "find_rooms", event_id=rival).structured["rooms"]}
    assert call(world, "book_room", **key, room_id=found[1]["room_id"]).status == "conflict"


def occurrence_start(world: World, event_id: str) -> int:
    found: int = one(world, "SELECT starts_at FROM occurrences WHERE event_id = ? ORDER BY starts_at", event_id)["starts_at"]
    return found


def occurrence(world: World, event_id: str) -> str:
    found: str = one(world, "SELECT occurrence_id FROM occurrences WHERE event_id = ?", event_id)["occurrence_id"]
    return found


def _keys(table: str) -> list[str]:
    opened = World(WORKSPACE.schema, BASE)
    keys = sorted(str(row[WORKSPACE.schema.tables[table].key]) for row in opened.query(f"SELECT * FROM {table}"))
    opened.close()
    return keys


KEYS = {WORKSPACE.schema.tables[table].key: _keys(table) for table in WORKSPACE.schema.tables if not table.startswith("log_")}
KEYS["colleague_id"] = KEYS["person_id"]
FREE = {
    "name": ("Nobody Here",),
    "email": ("nobody@here.example",),
    "subject": TOPICS,
    "title": TOPICS,
    "cursor": ("inbox-5", "archive-0"),
    "number": ("+44 123 456789",),
    "day": ("2028-02-29", "2028-03-12", "2028-02-31"),
    "starts": [f"2028-0{month}-{day:02d} {hour:02d}:30" for month in (2, 3) for day in (22, 26, 29, 31) for hour in (2, 9, 14)],
}
WRITES = [spec.name for spec in WORKSPACE.tools if not spec.read_only]
OPERATIONS = [
    *WORKSPACE.operations,
    *WRITES,
    *(name for name in WRITES if "event_id" in WORKSPACE.operations[name].spec.parameters_json.decode()),
]


def arguments_of(tool: str, seed: int, among: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """Arguments that fit the schema, among these if given; most name something that exists."""
    rng = derive("arguments", seed)
    arguments = {}
    for name, schema in WORKSPACE.operations[tool].spec.parameters.get("properties", {}).items():
        choices = (among or {}).get(name) or schema.get("enum") or FREE.get(name) or [*KEYS[name], KEYS[name][0][:2] + "9999999"]
        arguments[name] = choices[int(rng.integers(len(choices)))]
    return arguments


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9_999)), min_size=30, max_size=30), st.integers(0, 29))
def test_whatever_is_called_what_must_hold_holds(plan: list[tuple[str, int]], stop: int) -> None:
    world, fork, at_fork = World(WORKSPACE.schema, BASE), None, {}
    for number, (tool, seed) in enumerate(plan):
        if number == stop:
            fork, at_fork = world.fork(), world.snapshot()
        before, digest = (world.digest(), world.changes(), world.clock, world.serial), world.digest()
        result = call(world, tool, **arguments_of(tool, seed))
        if result.failed or WORKSPACE.operations[tool].spec.read_only:
            assert (world.digest(), world.changes(), world.clock, world.serial) == before
        elif tool != "undo":
            again = world.fork()
            assert call(again, "undo").status == "ok"
            assert again.digest() == digest
            again.close()
    check_invariants(world)
    end = world.digest()
    assert fork is not None
    assert fork.snapshot() == at_fork  # what its parent did is not its matter
    world.restore(at_fork)
    for one_world in (world, fork):
        assert one_world.digest() == at_fork["digest"] == one_world.recomputed_digest()
        for tool, seed in plan[stop:]:
            call(one_world, tool, **arguments_of(tool, seed))
        assert one_world.digest() == end
        one_world.close()


NOW = ("create_event", "create_event", "answer_invitation", "answer_invitation", "book_room", "move_occurrence", "move_series")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NOW), st.integers(0, 9_999)), min_size=20, max_size=20))
def test_meetings_that_are_about_to_begin_or_have_begun_double_nothing(plan: list[tuple[str, int]]) -> None:
    world = World(WORKSPACE.schema, BASE)
    keys = ("person_id FROM people WHERE city = 'London' LIMIT 3", "room_id FROM rooms ORDER BY seats LIMIT 2")
    person_ids, room_ids = ([next(iter(row.values())) for row in world.query(f"SELECT {key}")] for key in keys)
    starts = [wall(world.clock + 60 * minutes, "Europe/London") for minutes in (2, 4, 7, 11)]
    among = {"person_id": person_ids, "colleague_id": person_ids, "room_id": room_ids, "starts": starts, "answer": ["accepted"]}
    for tool, seed in plan:
        new = world.query("SELECT event_id, occurrence_id FROM events JOIN occurrences USING (event_id) WHERE title IN ('a', 'b')")
        mine = {key: [row[key] for row in new] for key in ("event_id", "occurrence_id")}
        call(world, tool, **arguments_of(tool, seed, {**among, **mine, "title": ["a", "b"]}))
    check_invariants(world)
    world.close()


def test_every_tool_says_what_it_takes_gives_and_does() -> None:
    for spec in WORKSPACE.tools:
        jsonschema_rs.meta.validate(dict(spec.parameters))
        jsonschema_rs.meta.validate(dict(spec.output_schema or {}))
        assert spec.parameters["additionalProperties"] is False
        assert set(spec.parameters.get("required", ())) == set(spec.parameters.get("properties", {}))  # nothing that candidates leave out
        for name, schema in spec.parameters.get("properties", {}).items():
            assert "enum" in schema or schema.get("x-entity") == name or {"x-find", "examples"} & set(schema)
    assert len(WORKSPACE.tools) >= 16
    shared = {spec.name for spec in WORKSPACE.tools} & {spec.name for spec in RETAIL.tools}
    assert shared <= {"ask", "undo"}
