"""What tasks are about: people, mails, documents and meetings that a goal can name without doubt."""

from typing import Any

import numpy as np

from agent_gym.envs.worlds.workspace.clock import DAY, START, wall
from agent_gym.world import World

__all__ = ["a_colleague", "a_contact", "a_day", "a_document", "a_given_document", "a_meeting", "a_person", "a_thread", "seen"]

Row = dict[str, Any]

_NAMESAKES = "(SELECT count(*) FROM people AS other WHERE other.person = people.person)"


def _one(world: World, rng: np.random.Generator, sql: str, *parameters: Any) -> Row:
    """One of the rows, each as likely as the others; the statement sorts them."""
    rows = world.query(sql, parameters)
    return rows[int(rng.integers(len(rows)))]


def a_person(world: World, rng: np.random.Generator) -> Row:
    """Anybody in the office; more often somebody who shares a name."""
    if rng.integers(3) == 0:
        return _one(world, rng, f"SELECT * FROM people WHERE {_NAMESAKES} > 1 ORDER BY person_id")
    return _one(world, rng, "SELECT * FROM people ORDER BY person_id")


def a_colleague(world: World, rng: np.random.Generator, *but: str) -> Row:
    """Anybody but these; more often somebody who shares a name."""
    marks = ", ".join("?" * len(but))
    if rng.integers(3) == 0:
        sql = f"SELECT * FROM people WHERE {_NAMESAKES} > 1 AND person_id NOT IN ({marks}) ORDER BY person_id"
        return _one(world, rng, sql, *but)
    return _one(world, rng, f"SELECT * FROM people WHERE person_id NOT IN ({marks}) ORDER BY person_id", *but)


def a_contact(world: World, rng: np.random.Generator, *, shared: bool = False) -> Row:
    """Anybody in the address book; more often, or always, somebody who shares a name."""
    if shared or rng.integers(2) == 0:
        names = "SELECT contact FROM contacts GROUP BY contact HAVING count(*) > 1"
        return _one(world, rng, f"SELECT * FROM contacts WHERE contact IN ({names}) ORDER BY contact_id")
    return _one(world, rng, "SELECT * FROM contacts ORDER BY contact_id")


def a_thread(world: World, rng: np.random.Generator, folder: str = "inbox") -> Row:
    """A mail in somebody's folder."""
    person = a_person(world, rng)["person_id"]
    sql = "SELECT * FROM threads WHERE person_id = ? AND folder = ? ORDER BY thread_id"
    return _one(world, rng, sql, person, folder)


def a_document(world: World, rng: np.random.Generator) -> Row:
    """A document that its owner sees no other of the same title of."""
    while True:
        document = _one(world, rng, "SELECT * FROM documents ORDER BY document_id")
        if len(seen(world, document["person_id"], document["title"])) == 1:
            return document


def a_given_document(world: World, rng: np.random.Generator) -> Row:
    """A document that a colleague was given, with ``who`` that is, who sees no other of the same title."""
    while True:
        sql = "SELECT documents.*, colleague_id AS who FROM documents JOIN shares USING (document_id) WHERE colleague_id IS NOT NULL"
        document = _one(world, rng, f"{sql} ORDER BY share_id")
        if len(seen(world, document["who"], document["title"])) == 1:
            return document


def seen(world: World, person_id: str, title: str) -> list[Row]:
    """The documents of a title that somebody owns or was given."""
    given = "SELECT document_id FROM shares WHERE colleague_id = ?2 AND access != 'none'"
    sql = f"SELECT * FROM documents WHERE title = ?1 AND (person_id = ?2 OR document_id IN ({given}))"
    return world.query(sql, (title, person_id))


def a_meeting(world: World, rng: np.random.Generator, *, series: bool = False, guest: bool = False) -> Row:
    """A date of a meeting, with ``day``: no other meeting of that title is in the calendar of ``who`` (its organiser or a guest) then.

    Args:
        world: The world.
        rng: What it is drawn from.
        series: Take the first date of a series.
        guest: Take one at which somebody is a guest.
    """
    kind = " AND repeats != 'never' AND occurrences.starts_at = events.starts_at" if series else ""
    while True:
        date = _one(
            world,
            rng,
            "SELECT occurrence_id, events.*, occurrences.starts_at AS at, attendees.person_id AS who, people.time_zone AS zone"
            " FROM occurrences JOIN events USING (event_id) JOIN attendees USING (event_id)"
            " JOIN people ON people.person_id = attendees.person_id"
            f" WHERE (attendees.person_id {'!=' if guest else '='} events.person_id){kind} AND answer != 'declined'"
            " ORDER BY occurrence_id, who",
        )
        day = wall(date["at"], date["zone"])[:10]
        same = world.query(
            "SELECT occurrences.starts_at AS at FROM attendees JOIN events USING (event_id) JOIN occurrences USING (event_id)"
            " WHERE attendees.person_id = ? AND title = ?",
            (date["who"], date["title"]),
        )
        if sum(wall(one["at"], date["zone"])[:10] == day for one in same) == 1:
            return {**date, "day": day}


def a_day(rng: np.random.Generator, zone: str) -> str:
    """A working day of the coming five weeks: the leap day and those on which the clocks were just changed come up more often."""
    special = ("2028-02-29", "2028-03-13", "2028-03-27", "2028-03-31")
    if rng.integers(3) == 0:
        return special[int(rng.integers(len(special)))]
    at = START + int(rng.integers(1, 35)) * DAY
    while (at // DAY + 3) % 7 > 4:
        at += DAY
    return wall(at, zone)[:10]
