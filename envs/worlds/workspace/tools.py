"""The tools of the workspace as the agent sees them: descriptions with their preconditions, parameters, results."""

from typing import Any

from agent_gym.envs.worlds.workspace.catalogue import ANSWERS, MAIL_FOLDERS, TEMPLATES
from agent_gym.world.specs import TEXT, TEXTS, WHOLE, choice, entities, record, rows, shaped, tool

__all__ = ["PATTERNS", "TOOLS"]

Schema = dict[str, Any]

_PREFIXES = {
    "person_id": "PE",
    "colleague_id": "PE",
    "contact_id": "CT",
    "thread_id": "TH",
    "attachment_id": "AT",
    "folder_id": "FO",
    "document_id": "DO",
    "version_id": "VE",
    "share_id": "SH",
    "event_id": "EV",
    "occurrence_id": "OC",
    "room_id": "RM",
}
PATTERNS = {
    **{kind: rf"^{prefix}\d{{7}}$" for kind, prefix in _PREFIXES.items()},
    "cursor": r"^(inbox|archive|spam)-\d{1,4}$",
    "number": r"^\+\d{2} \d{3} \d{6}$",
}
"""What ids, places in a list and telephone numbers look like."""
_ENTITIES, _IDS = entities(PATTERNS), shaped(PATTERNS)

_NAME: Schema = {
    "type": "string",
    "pattern": r"^[A-Za-zÀ-ž'’ -]{1,80}$",
    "x-find": r"[A-ZÀ-ÞŠ][A-Za-zÀ-ž'’-]+ [A-ZÀ-ÞŠ][A-Za-zÀ-ž'’-]+",
    "description": "First and last name.",
}
_EMAIL: Schema = {
    "type": "string",
    "pattern": r"^[a-z0-9._+-]{1,60}@[a-z0-9.-]{1,60}$",
    "x-find": r"[a-z0-9._+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+",
}
_QUOTED: Schema = {"type": "string", "pattern": r"^[0-9A-Za-zÀ-ž'’ :,.-]{1,80}$", "x-find": r"(?<=“)[^”]+(?=”)"}
_NEW_TITLE: Schema = {**_QUOTED, "x-find": r"(?<=«)[^»]+(?=»)"}
_DAY: Schema = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "x-find": r"\d{4}-\d{2}-\d{2}"}
_STARTS: Schema = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$",
    "x-find": r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}",
}
_ACCESS = choice(("reader", "editor"))
_LINK = choice(("off", "on"))
_NONE_OR_CURSOR: Schema = {"type": ["string", "null"]}

_ACCOUNT: Schema = {
    "person_id": _IDS["person_id"],
    "person": TEXT,
    "email": TEXT,
    "team": TEXT,
    "city": TEXT,
    "time_zone": TEXT,
    "works": TEXT,
    "status": TEXT,
    "folders": rows(folder_id=_IDS["folder_id"], folder=TEXT),
}
_THREADS = record(
    person_id=_IDS["person_id"],
    threads=rows(thread_id=_IDS["thread_id"], subject=TEXT, sender=TEXT, day=TEXT, folder=TEXT),
    cursor=_NONE_OR_CURSOR,
)
_ATTENDEES = rows(attendee=TEXT, city=TEXT, answer=TEXT)
_DOCUMENTS = rows(document_id=_IDS["document_id"], title=TEXT, role=TEXT, folder=TEXT)

_READS = (
    tool("find_person", "Reads a colleague's account by e-mail address.", record(email=_EMAIL), record(**_ACCOUNT)),
    tool(
        "find_people",
        "Lists the accounts of everybody in the office with a first and last name; several people may share one.",
        record(name=_NAME),
        record(people=rows(person_id=_IDS["person_id"], person=TEXT, email=TEXT)),
    ),
    tool(
        "get_person",
        "Reads an account: team, city, time zone, working hours, status, and the folders for documents.",
        record(person_id=_ENTITIES["person_id"]),
        record(**_ACCOUNT),
    ),
    tool(
        "find_colleagues",
        "Lists the people of a name whom somebody can share a document with or invite.",
        record(person_id=_ENTITIES["person_id"], name=_NAME),
        record(
            person_id=_IDS["person_id"],
            colleagues=rows(colleague_id=_IDS["colleague_id"], colleague=TEXT, team=TEXT, city=TEXT, works=TEXT, status=TEXT, notes=TEXTS),
        ),
    ),
    tool(
        "find_contacts",
        "Lists the people outside the office with a first and last name in the address book; several may share one.",
        record(person_id=_ENTITIES["person_id"], name=_NAME),
        record(person_id=_IDS["person_id"], contacts=rows(contact_id=_IDS["contact_id"], contact=TEXT, company=TEXT)),
    ),
    tool(
        "get_contact",
        "Reads an entry of the address book.",
        record(contact_id=_ENTITIES["contact_id"]),
        record(contact_id=_IDS["contact_id"], contact=TEXT, company=TEXT, email=TEXT, phone=TEXT, city=TEXT),
    ),
    tool(
        "list_mail",
        "Lists a folder of somebody's mail, the newest five threads; with more, there is a cursor.",
        record(person_id=_ENTITIES["person_id"], folder=choice(MAIL_FOLDERS)),
        _THREADS,
    ),
    tool(
        "more_mail",
        "Lists the next five threads of a folder, from a cursor on.",
        record(person_id=_ENTITIES["person_id"], cursor=_ENTITIES["cursor"]),
        _THREADS,
    ),
    tool(
        "search_mail",
        "Lists the newest eight of somebody's threads whose subjects have words that begin so.",
        record(person_id=_ENTITIES["person_id"], subject=_QUOTED),
        _THREADS,
    ),
    tool(
        "get_thread",
        "Reads a thread of mail: its label and what was written, the newest first.",
        record(thread_id=_ENTITIES["thread_id"]),
        record(
            thread_id=_IDS["thread_id"],
            person_id=_IDS["person_id"],
            subject=TEXT,
            folder=TEXT,
            label=TEXT,
            notes=TEXTS,
            messages=rows(sender=TEXT, address=TEXT, sent=TEXT, text=TEXT, number={"type": ["string", "null"]}),
            attachments=WHOLE,
            count=WHOLE,
        ),
    ),
    tool(
        "list_attachments",
        "Lists what is attached to a thread of mail.",
        record(thread_id=_ENTITIES["thread_id"]),
        record(thread_id=_IDS["thread_id"], person_id=_IDS["person_id"], attachments=rows(attachment_id=_IDS["attachment_id"], file=TEXT)),
    ),
    tool(
        "search_documents",
        "Lists up to eight documents that somebody owns or was given, whose titles have words that begin so.",
        record(person_id=_ENTITIES["person_id"], title=_QUOTED),
        record(person_id=_IDS["person_id"], documents=_DOCUMENTS),
    ),
    tool(
        "list_folder",
        "Lists the documents in a folder.",
        record(folder_id=_ENTITIES["folder_id"]),
        record(person_id=_IDS["person_id"], documents=_DOCUMENTS),
    ),
    tool(
        "get_document",
        "Reads a document: who owns it, its folder, class and state, and its newest text.",
        record(document_id=_ENTITIES["document_id"]),
        record(
            document_id=_IDS["document_id"],
            title=TEXT,
            owner=TEXT,
            owner_email=TEXT,
            folder=TEXT,
            **{"class": TEXT},
            state=TEXT,
            link=TEXT,
            notes=TEXTS,
            version=WHOLE,
            text=TEXT,
        ),
    ),
    tool(
        "list_shares",
        "Lists whom a document is shared with.",
        record(document_id=_ENTITIES["document_id"]),
        record(
            document_id=_IDS["document_id"], link=TEXT, shares=rows(share_id=_IDS["share_id"], shared_with=TEXT, whose=TEXT, access=TEXT)
        ),
    ),
    tool(
        "list_versions",
        "Lists a document's versions, the newest last.",
        record(document_id=_ENTITIES["document_id"]),
        record(
            document_id=_IDS["document_id"], versions=rows(version_id=_IDS["version_id"], version=WHOLE, author=TEXT, saved=TEXT, text=TEXT)
        ),
    ),
    tool(
        "list_events",
        "Lists what is in somebody's calendar on a day, by the clocks where that person is.",
        record(person_id=_ENTITIES["person_id"], day=_DAY),
        record(
            person_id=_IDS["person_id"],
            events=rows(occurrence_id=_IDS["occurrence_id"], event_id=_IDS["event_id"], title=TEXT, at=TEXT, repeats=TEXT, role=TEXT),
        ),
    ),
    tool(
        "get_event",
        "Reads a meeting: who organises it, who comes, where, when next, and how it repeats. Times are those of its organiser's clocks.",
        record(event_id=_ENTITIES["event_id"]),
        record(
            event_id=_IDS["event_id"],
            title=TEXT,
            organiser=TEXT,
            organiser_email=TEXT,
            time_zone=TEXT,
            repeats=TEXT,
            room=TEXT,
            dates=TEXTS,
            attendees=_ATTENDEES,
        ),
    ),
    tool(
        "find_free_time",
        "Lists the full hours of a day at which somebody is at work and has half an hour free together with a colleague.",
        record(person_id=_ENTITIES["person_id"], colleague_id=_ENTITIES["colleague_id"], day=_DAY),
        record(
            person_id=_IDS["person_id"],
            colleague_id=_IDS["colleague_id"],
            free=rows(starts=TEXT, theirs=TEXT, hours=TEXT),
        ),
    ),
    tool(
        "find_rooms",
        "Lists the rooms that are free whenever a meeting takes place and seat everybody, the smallest first.",
        record(event_id=_ENTITIES["event_id"]),
        record(event_id=_IDS["event_id"], rooms=rows(room_id=_IDS["room_id"], room=TEXT, seats=WHOLE)),
    ),
)

_WRITES = (
    tool(
        "reply_mail",
        "Answers a thread of mail with a template.",
        record(thread_id=_ENTITIES["thread_id"], template=choice(TEMPLATES)),
        record(thread_id=_IDS["thread_id"], template=TEXT),
        writes=True,
    ),
    tool(
        "forward_mail",
        "Forwards a thread of mail to somebody outside the office.",
        record(thread_id=_ENTITIES["thread_id"], contact_id=_ENTITIES["contact_id"]),
        record(thread_id=_IDS["thread_id"], forwarded_to=TEXT),
        writes=True,
    ),
    tool(
        "move_mail",
        "Moves a thread to another folder of mail.",
        record(thread_id=_ENTITIES["thread_id"], folder=choice(MAIL_FOLDERS)),
        record(thread_id=_IDS["thread_id"], folder=TEXT),
        writes=True,
    ),
    tool(
        "delete_mail",
        "Deletes a thread with all that was written in it and attached to it.",
        record(thread_id=_ENTITIES["thread_id"]),
        record(thread_id=_IDS["thread_id"], folder=TEXT),
        writes=True,
        destroys=True,
    ),
    tool(
        "save_attachment",
        "Saves an attachment as a document in a folder of the person whose mail it is. Needs a title that is not taken there.",
        record(attachment_id=_ENTITIES["attachment_id"], folder_id=_ENTITIES["folder_id"]),
        record(document_id=_IDS["document_id"], title=TEXT),
        writes=True,
    ),
    tool(
        "share_document",
        "Shares a document with a colleague, or changes what a colleague may do with it.",
        record(document_id=_ENTITIES["document_id"], colleague_id=_ENTITIES["colleague_id"], access=_ACCESS),
        record(share_id=_IDS["share_id"], access=TEXT),
        writes=True,
    ),
    tool(
        "share_outside",
        "Lets somebody outside the office view a document. Needs one who may not yet.",
        record(document_id=_ENTITIES["document_id"], contact_id=_ENTITIES["contact_id"]),
        record(share_id=_IDS["share_id"], access=TEXT),
        writes=True,
    ),
    tool(
        "unshare",
        "Takes back what a document is shared as.",
        record(share_id=_ENTITIES["share_id"]),
        record(share_id=_IDS["share_id"], access=TEXT),
        writes=True,
    ),
    tool(
        "set_link",
        "Switches on or off the link by which anybody at all can view a document.",
        record(document_id=_ENTITIES["document_id"], link=_LINK),
        record(document_id=_IDS["document_id"], link=TEXT),
        writes=True,
    ),
    tool(
        "rename_document",
        "Gives a document another title, one that its owner has not used yet.",
        record(document_id=_ENTITIES["document_id"], title=_NEW_TITLE),
        record(document_id=_IDS["document_id"], title=TEXT),
        writes=True,
    ),
    tool(
        "move_document",
        "Moves a document to another folder of its owner.",
        record(document_id=_ENTITIES["document_id"], folder_id=_ENTITIES["folder_id"]),
        record(document_id=_IDS["document_id"], folder=TEXT),
        writes=True,
    ),
    tool(
        "restore_version",
        "Makes an earlier version of a document the newest again; none is lost.",
        record(document_id=_ENTITIES["document_id"], version_id=_ENTITIES["version_id"]),
        record(document_id=_IDS["document_id"], version=WHOLE),
        writes=True,
    ),
    tool(
        "update_contact",
        "Changes the telephone number in an entry of the address book.",
        record(contact_id=_ENTITIES["contact_id"], number=_ENTITIES["number"]),
        record(contact_id=_IDS["contact_id"], phone=TEXT),
        writes=True,
    ),
    tool(
        "create_event",
        "Books half an hour with a colleague, who is invited. Both must be free then. The time is that of the booking person's clocks.",
        record(person_id=_ENTITIES["person_id"], colleague_id=_ENTITIES["colleague_id"], starts=_STARTS, title=_NEW_TITLE),
        record(event_id=_IDS["event_id"], title=TEXT, at=TEXT),
        writes=True,
    ),
    tool(
        "move_occurrence",
        "Moves one date of a meeting to a time by its organiser's clocks. All who have accepted and the room must be free then.",
        record(occurrence_id=_ENTITIES["occurrence_id"], starts=_STARTS),
        record(occurrence_id=_IDS["occurrence_id"], at=TEXT),
        writes=True,
    ),
    tool(
        "move_series",
        "Moves a meeting with all its dates to come: the next one to a time by its organiser's clocks, the others as far. The organiser "
        "and the room must be free; who is not free then is set to declined.",
        record(event_id=_ENTITIES["event_id"], starts=_STARTS),
        record(event_id=_IDS["event_id"], dates=TEXTS, attendees=_ATTENDEES),
        writes=True,
    ),
    tool(
        "cancel_occurrence",
        "Cancels one date of a meeting.",
        record(occurrence_id=_ENTITIES["occurrence_id"]),
        record(occurrence_id=_IDS["occurrence_id"], state=TEXT),
        writes=True,
        destroys=True,
    ),
    tool(
        "cancel_series",
        "Cancels a meeting with all its dates to come.",
        record(event_id=_ENTITIES["event_id"]),
        record(event_id=_IDS["event_id"], cancelled=WHOLE),
        writes=True,
        destroys=True,
    ),
    tool(
        "answer_invitation",
        "Accepts or declines a meeting for somebody invited. To accept, that person must be free whenever it takes place.",
        record(event_id=_ENTITIES["event_id"], person_id=_ENTITIES["person_id"], answer=choice(ANSWERS)),
        record(event_id=_IDS["event_id"], answer=TEXT),
        writes=True,
    ),
    tool(
        "book_room",
        "Books a room for a meeting, in the place of the one it has. The room must be free whenever it takes place and seat everybody.",
        record(event_id=_ENTITIES["event_id"], room_id=_ENTITIES["room_id"]),
        record(event_id=_IDS["event_id"], room=TEXT),
        writes=True,
    ),
)

TOOLS = (*_READS, *_WRITES)
