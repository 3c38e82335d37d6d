"""People of the office and contacts outside it."""

from collections.abc import Callable

from agent_gym.envs.worlds.workspace.operations.steps import Record, done
from agent_gym.world import Conflict, NotFound, World

__all__ = ["PEOPLE", "hours"]

_ON_LEAVE = "On leave: away for now, no invitations please."


def find_person(world: World, email: str) -> Record:
    found = world.query("SELECT * FROM people WHERE email = ?", (email,))
    if not found:
        raise NotFound(f"nobody in the office has the e-mail address {email}")
    return _account(world, found[0])


def find_people(world: World, name: str) -> Record:
    return {"people": world.query("SELECT person_id, person, email FROM people WHERE person = ? ORDER BY person_id", (name,))}


def get_person(world: World, person_id: str) -> Record:
    return _account(world, world.get("people", person_id))


def find_colleagues(world: World, person_id: str, name: str) -> Record:
    world.get("people", person_id)
    found = world.query("SELECT * FROM people WHERE person = ? AND person_id != ? ORDER BY person_id", (name, person_id))
    return {
        "person_id": person_id,
        "colleagues": [
            {
                "colleague_id": one["person_id"],
                "colleague": one["person"],
                "team": one["team"],
                "city": one["city"],
                "works": hours(one),
                "status": one["status"],
                "notes": [_ON_LEAVE] if one["status"] == "on leave" else [],
            }
            for one in found
        ],
    }


def find_contacts(world: World, person_id: str, name: str) -> Record:
    world.get("people", person_id)
    sql = "SELECT contact_id, contact, company FROM contacts WHERE contact = ? ORDER BY contact_id"
    return {"person_id": person_id, "contacts": world.query(sql, (name,))}


def get_contact(world: World, contact_id: str) -> Record:
    return world.get("contacts", contact_id)


def update_contact(world: World, contact_id: str, number: str) -> Record:
    if world.get("contacts", contact_id)["phone"] == number:
        raise Conflict(f"contact {contact_id} has the number {number} already")
    world.update("contacts", contact_id, phone=number)
    done(world, "update_contact", contact_id)
    return {"contact_id": contact_id, "phone": number}


def hours(person: Record) -> str:
    """Somebody's working hours."""
    return f"{person['opens']:02d}:00-{person['closes']:02d}:00"


def _account(world: World, person: Record) -> Record:
    folders = "SELECT folder_id, folder FROM folders WHERE person_id = ? ORDER BY folder"
    shown = {key: person[key] for key in ("person_id", "person", "email", "team", "city", "time_zone")}
    return {**shown, "works": hours(person), "status": person["status"], "folders": world.query(folders, (person["person_id"],))}


PEOPLE: dict[str, Callable[..., Record]] = {
    function.__name__: function
    for function in (find_person, find_people, get_person, find_colleagues, find_contacts, get_contact, update_contact)
}
"""The operations by name."""
