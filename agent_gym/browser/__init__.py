"""Pages and what can be done in them: the `Page` contract, one snapshot format, and the engines behind it."""

from agent_gym.browser.elements import clear_caches
from agent_gym.browser.inprocess import InProcessPage
from agent_gym.browser.page import Blocked, NoSuchElement, NotAllowed, Page, PageError
from agent_gym.browser.snapshot import ACTIONS, SNAPSHOT_SCHEMA, STATES, Element, PageSnapshot

__all__ = [
    "ACTIONS",
    "SNAPSHOT_SCHEMA",
    "STATES",
    "Blocked",
    "Element",
    "InProcessPage",
    "NoSuchElement",
    "NotAllowed",
    "Page",
    "PageError",
    "PageSnapshot",
    "clear_caches",
]
