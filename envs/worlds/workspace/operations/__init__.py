"""What the workspace can do. Each function is one transaction; its preconditions stand in the tool's description.

The rules of ``policy.md`` are not enforced here: an office's software lets its staff do what its rules forbid.
"""

from agent_gym.envs.worlds.workspace.operations.calendar import CALENDAR
from agent_gym.envs.worlds.workspace.operations.documents import DOCUMENTS
from agent_gym.envs.worlds.workspace.operations.mail import MAIL
from agent_gym.envs.worlds.workspace.operations.people import PEOPLE
from agent_gym.envs.worlds.workspace.tools import TOOLS
from agent_gym.world import UNDO, Operation

__all__ = ["OPERATIONS"]

_FUNCTIONS = PEOPLE | MAIL | DOCUMENTS | CALENDAR
_LISTINGS = {
    "find_people": "people",
    "find_colleagues": "colleagues",
    "find_contacts": "contacts",
    "list_mail": "threads",
    "more_mail": "threads",
    "search_mail": "threads",
    "list_attachments": "attachments",
    "search_documents": "documents",
    "list_folder": "documents",
    "list_shares": "shares",
    "list_events": "events",
    "find_free_time": "free",
    "find_rooms": "rooms",
}


OPERATIONS = {spec.name: Operation(spec, _FUNCTIONS[spec.name], _LISTINGS.get(spec.name, "")) for spec in TOOLS} | {UNDO.spec.name: UNDO}
"""The operations by name, in the order of their tools."""
