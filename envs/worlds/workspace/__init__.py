"""Workspace: an office with mail, calendars, contacts and documents, and the rules its assistants must keep to."""

from agent_gym.envs.worlds.workspace.clock import START
from agent_gym.envs.worlds.workspace.counterpart import COLLEAGUE
from agent_gym.envs.worlds.workspace.drafting import Errand
from agent_gym.envs.worlds.workspace.families import (
    answer,
    book,
    clean_up,
    double_booking,
    forward,
    look_up,
    meeting_facts,
    new_number,
    not_mine,
    old_mail,
    probe,
    project,
    refuse,
    rename,
    reschedule,
    restore,
    save_attachment,
    share,
    which_one,
)
from agent_gym.envs.worlds.workspace.generate import rows
from agent_gym.envs.worlds.workspace.operations import OPERATIONS
from agent_gym.envs.worlds.workspace.rules import RULES
from agent_gym.world import Requests, World, WorldKind

__all__ = ["REQUESTS", "WORKSPACE"]

REQUESTS = Requests[Errand](
    (
        *refuse.REQUESTS,
        book.EITHER,
        look_up.REQUEST,
        meeting_facts.REQUEST,
        new_number.REQUEST,
        not_mine.MINE,
        not_mine.THEIRS,
        old_mail.REQUEST,
        probe.REQUEST,
        project.REQUEST,
        restore.REQUEST,
        save_attachment.REQUEST,
        which_one.REQUEST,
        which_one.SOMEWHERE,
        answer.REQUEST,
    )
)
"""What people ask for."""
_FAMILIES = (
    look_up.FAMILY,
    meeting_facts.FAMILY,
    new_number.FAMILY,
    save_attachment.FAMILY,
    rename.FAMILY,
    share.FAMILY,
    book.FAMILY,
    refuse.FAMILY,
    which_one.FAMILY,
    not_mine.FAMILY,
    clean_up.FAMILY,
    reschedule.FAMILY,
    double_booking.FAMILY,
    probe.FAMILY,
    project.FAMILY,
    old_mail.FAMILY,
    forward.FAMILY,
    restore.FAMILY,
    answer.FAMILY,
)

_SEE = (
    "SELECT person_id FROM documents WHERE document_id = {0} UNION"
    " SELECT colleague_id FROM shares WHERE document_id = {0} AND colleague_id IS NOT NULL AND access != 'none'"
)
_OWNERS = {
    "people": "SELECT person_id FROM people WHERE person_id = ?",
    "folders": "SELECT person_id FROM folders WHERE folder_id = ?",
    "threads": "SELECT person_id FROM threads WHERE thread_id = ?",
    "attachments": "SELECT person_id FROM attachments JOIN threads USING (thread_id) WHERE attachment_id = ?",
    "documents": _SEE.format("?1"),
    "versions": _SEE.format("(SELECT document_id FROM versions WHERE version_id = ?1)"),
    "shares": "SELECT person_id FROM documents JOIN shares USING (document_id) WHERE share_id = ?1 UNION"
    " SELECT colleague_id FROM shares WHERE share_id = ?1 AND colleague_id IS NOT NULL AND access != 'none'",
    "events": "SELECT person_id FROM attendees WHERE event_id = ?",
    "occurrences": "SELECT person_id FROM attendees JOIN occurrences USING (event_id) WHERE occurrence_id = ?",
}
"""Whose a row is: a document is also theirs whom it is shared with, a meeting all theirs who are invited. What each may do with it is a
matter of rules."""


def _owner(world: World, table: str, key: str) -> frozenset[str] | None:
    found = world.query(_OWNERS[table], (key,)) if table in _OWNERS else []
    return frozenset(row["person_id"] for row in found) or None


WORKSPACE = WorldKind.beside(
    __file__,
    start=START,
    rows=rows,
    operations=OPERATIONS,
    reasons=tuple(RULES),
    families={family.name: family for family in _FAMILIES},
    oracle=REQUESTS.oracle,
    site="agent_gym.envs.worlds.workspace.site",
    verified_by={
        "reply_mail": "get_thread",
        "forward_mail": "get_thread",
        "move_mail": "get_thread",
        "delete_mail": "list_mail",
        "save_attachment": "list_folder",
        "share_document": "list_shares",
        "share_outside": "list_shares",
        "unshare": "list_shares",
        "set_link": "get_document",
        "rename_document": "get_document",
        "move_document": "get_document",
        "restore_version": "get_document",
        "update_contact": "get_contact",
        "create_event": "list_events",
        "move_occurrence": "get_event",
        "move_series": "get_event",
        "cancel_occurrence": "get_event",
        "cancel_series": "get_event",
        "answer_invitation": "get_event",
        "book_room": "get_event",
    },
    counterpart=COLLEAGUE,
    owner=_owner,
)
"""The workspace world."""
