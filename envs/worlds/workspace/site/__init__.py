"""The workspace world's web site, as the office's assistants see it: a second door to the same operations."""

from agent_gym.envs.worlds.workspace.operations import OPERATIONS
from agent_gym.world.site import Page, Section, Site

__all__ = ["SITE"]

_SECTIONS = (
    Section(
        title="Mail",
        about="Threads of mail by folder or subject, and what is attached to them.",
        pages=(
            Page(operation="list_mail", title="Folder"),
            Page(operation="more_mail", title="More mail", finds=False),
            "search_mail",
            Page(
                operation="get_thread",
                title="Thread",
                forms=("reply_mail", "move_mail", "delete_mail"),
                leads=("find_contacts",),
                cards=("messages",),
            ),
            Page(operation="list_attachments", title="Attachments", forms=(), leads=("get_person",), finds=False),
        ),
    ),
    Section(
        title="Calendar",
        about="What is on a day, meetings with their dates and rooms, and when two people are free.",
        pages=(
            Page(operation="list_events", title="Day", forms=()),
            Page(
                operation="get_event",
                title="Meeting",
                forms=("answer_invitation", "move_series", "cancel_series"),
                continues=("move_occurrence", "cancel_occurrence"),
                finds=False,
            ),
            Page(operation="find_rooms", title="Free rooms", forms=("book_room",), finds=False),
            Page(operation="find_free_time", title="Free time", forms=("create_event",), finds=False),
        ),
    ),
    Section(
        title="Contacts",
        about="The address book: people outside the office.",
        pages=(
            Page(operation="find_contacts", continues=("forward_mail", "share_outside")),
            Page(operation="get_contact", title="Contact", forms=("update_contact",), finds=False),
        ),
    ),
    Section(
        title="Documents",
        about="Documents by title or folder, their versions, and whom they are shared with.",
        pages=(
            "search_documents",
            Page(operation="list_folder", title="Documents in folder", finds=False),
            Page(
                operation="get_document",
                title="Document",
                forms=("rename_document", "set_link"),
                leads=("find_colleagues", "find_contacts", "get_person"),
                finds=False,
            ),
            Page(operation="list_shares", title="Shared with", forms=("unshare",), finds=False),
            Page(operation="list_versions", title="Versions", forms=("restore_version",), finds=False),
        ),
    ),
    Section(
        title="People",
        about="Everybody in the office.",
        pages=(
            Page(operation="get_person", title="Person", forms=(), continues=("save_attachment", "move_document"), finds=False),
            "find_person",
            "find_people",
            Page(operation="find_colleagues", continues=("share_document",), leads=("find_free_time",)),
        ),
    ),
)
_LABELS = {
    "list_mail": "Folder",
    "find_person": "Find person by e-mail",
    "person_id": "Person id",
    "colleague_id": "Colleague id",
    "contact_id": "Contact id",
    "get_person": "Person",
    "email": "E-mail",
    "text": "Text",
    "undo": "Undo the last change",
}

SITE = Site(
    name="Workspace",
    origin="https://workspace.example",
    operations=OPERATIONS,
    sections=_SECTIONS,
    labels=_LABELS,
    keeps=("person_id",),
    types=("starts",),
    about="The office's assistants only.",
    accent="#3b4a8f",
)
"""The site."""
