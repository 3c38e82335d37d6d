"""Mail: threads in folders, what is attached to them, answers and forwards."""

from collections.abc import Callable

from agent_gym.envs.worlds.workspace.catalogue import TEMPLATES
from agent_gym.envs.worlds.workspace.clock import wall
from agent_gym.envs.worlds.workspace.operations.steps import DELETED, Record, done, kept_thread, prefixed
from agent_gym.world import Conflict, World

__all__ = ["MAIL"]

_PAGE = 5
_FOUND = 8
_NOTES = {
    "legal hold": "Legal hold: our lawyers need this mail, it is never deleted.",
    "internal only": "Internal only: this mail is not to be forwarded outside.",
}
"""What a thread says of itself where a rule may matter."""
_SELECT = (
    "SELECT thread_id, subject, (SELECT sender FROM messages WHERE messages.thread_id = threads.thread_id ORDER BY sent_at, message_id"
    " LIMIT 1) AS sender, newest_at, folder FROM threads WHERE person_id = ? AND folder != 'deleted'"
)


def list_mail(world: World, person_id: str, folder: str) -> Record:
    return _page(world, person_id, folder, 0)


def more_mail(world: World, person_id: str, cursor: str) -> Record:
    folder, _, start = cursor.partition("-")
    return _page(world, person_id, folder, int(start))


def search_mail(world: World, person_id: str, subject: str) -> Record:
    words = subject.lower().split()
    sql = f"{_SELECT}{prefixed('subject', words)} ORDER BY newest_at DESC, thread_id LIMIT {_FOUND}"
    return _threads(world, person_id, world.query(sql, (person_id, *words)), None)


def get_thread(world: World, thread_id: str) -> Record:
    thread = kept_thread(world, thread_id)
    zone = world.get("people", thread["person_id"])["time_zone"]
    messages = world.query("SELECT * FROM messages WHERE thread_id = ? ORDER BY sent_at DESC, message_id", (thread_id,))
    count = world.query("SELECT count(*) AS n FROM attachments WHERE thread_id = ?", (thread_id,))[0]["n"]
    return {
        "thread_id": thread_id,
        "person_id": thread["person_id"],
        "subject": thread["subject"],
        "folder": thread["folder"],
        "label": thread["label"],
        "notes": [_NOTES[thread["label"]]] if thread["label"] in _NOTES else [],
        "messages": [
            {
                "sender": one["sender"],
                "address": one["address"],
                "sent": wall(one["sent_at"], zone),
                "text": one["text"],
                "number": one["number"],
            }
            for one in messages
        ],
        "attachments": count,
        "count": len(messages),
    }


def list_attachments(world: World, thread_id: str) -> Record:
    person_id = kept_thread(world, thread_id)["person_id"]
    attached = world.query("SELECT attachment_id, file FROM attachments WHERE thread_id = ? ORDER BY file", (thread_id,))
    return {"thread_id": thread_id, "person_id": person_id, "attachments": attached}


def reply_mail(world: World, thread_id: str, template: str) -> Record:
    thread = kept_thread(world, thread_id)
    me = world.get("people", thread["person_id"])
    _write(world, thread_id, template, me, me["email"], TEMPLATES[template])
    done(world, "reply_mail", thread_id)
    return {"thread_id": thread_id, "template": template}


def forward_mail(world: World, thread_id: str, contact_id: str) -> Record:
    thread = kept_thread(world, thread_id)
    contact = world.get("contacts", contact_id)
    _write(world, thread_id, "forward", world.get("people", thread["person_id"]), contact["email"], f"Forwarded to {contact['contact']}.")
    done(world, "forward_mail", thread_id)
    return {"thread_id": thread_id, "forwarded_to": contact["email"]}


def move_mail(world: World, thread_id: str, folder: str) -> Record:
    if kept_thread(world, thread_id)["folder"] == folder:
        raise Conflict(f"thread {thread_id} is in {folder} already")
    world.update("threads", thread_id, folder=folder)
    done(world, "move_mail", thread_id)
    return {"thread_id": thread_id, "folder": folder}


def delete_mail(world: World, thread_id: str) -> Record:
    kept_thread(world, thread_id)
    world.update("threads", thread_id, folder=DELETED)
    done(world, "delete_mail", thread_id)
    return {"thread_id": thread_id, "folder": DELETED}


def _page(world: World, person_id: str, folder: str, start: int) -> Record:
    sql = f"{_SELECT} AND folder = ? ORDER BY newest_at DESC, thread_id LIMIT {_PAGE + 1} OFFSET ?"
    found = world.query(sql, (person_id, folder, start))
    return _threads(world, person_id, found[:_PAGE], f"{folder}-{start + _PAGE}" if len(found) > _PAGE else None)


def _threads(world: World, person_id: str, found: list[Record], cursor: str | None) -> Record:
    zone = world.get("people", person_id)["time_zone"]
    threads = [
        {**{key: one[key] for key in ("thread_id", "subject", "sender")}, "day": wall(one["newest_at"], zone)[:10], "folder": one["folder"]}
        for one in found
    ]
    return {"person_id": person_id, "threads": threads, "cursor": cursor}


def _write(world: World, thread_id: str, kind: str, sender: Record, address: str, text: str) -> None:
    world.insert(
        "messages",
        message_id=world.new_id("MS"),
        thread_id=thread_id,
        kind=kind,
        sender=sender["person"],
        address=address,
        sent_at=world.clock,
        text=text,
    )


MAIL: dict[str, Callable[..., Record]] = {
    function.__name__: function
    for function in (list_mail, more_mail, search_mail, get_thread, list_attachments, reply_mail, forward_mail, move_mail, delete_mail)
}
"""The operations by name."""
