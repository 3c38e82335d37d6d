"""The World engine: a small business in an in-memory database, its operations, its tasks, and the doors into it."""

from agent_gym.world.careful import careful_call
from agent_gym.world.counterpart import Counterpart, Intent
from agent_gym.world.doors import WorldSession
from agent_gym.world.generating import Rows, mailbox, pick
from agent_gym.world.grading import calling, milestones
from agent_gym.world.kind import Draft, Family, WorldKind
from agent_gym.world.operations import Conflict, DeadlinePassed, NotFound, Operation, OperationFailed, carry_out
from agent_gym.world.requests import Request, Requests
from agent_gym.world.schema import Base, Ids, Schema, Table
from agent_gym.world.scripts import Result, Script, next_call
from agent_gym.world.tasks import WorldTaskSet
from agent_gym.world.undo import UNDO
from agent_gym.world.wording import Phrasebook, Route, one_of
from agent_gym.world.world import World

__all__ = [
    "UNDO",
    "Base",
    "Conflict",
    "Counterpart",
    "DeadlinePassed",
    "Draft",
    "Family",
    "Ids",
    "Intent",
    "NotFound",
    "Operation",
    "OperationFailed",
    "Phrasebook",
    "Request",
    "Requests",
    "Result",
    "Route",
    "Rows",
    "Schema",
    "Script",
    "Table",
    "World",
    "WorldKind",
    "WorldSession",
    "WorldTaskSet",
    "calling",
    "careful_call",
    "carry_out",
    "mailbox",
    "milestones",
    "next_call",
    "one_of",
    "pick",
]
