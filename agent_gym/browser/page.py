"""The contract of a page: what an agent can do in a browser, whatever engine runs it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agent_gym.browser.snapshot import PageSnapshot
from agent_gym.errors import AgentGymError, ConfigurationError

__all__ = ["Blocked", "NoSuchElement", "NotAllowed", "Page", "PageError"]


class PageError(AgentGymError):
    """An action could not be done and nothing was changed by it. The message says why; it is for the agent."""

    status: ClassVar[str] = "error"
    """The status that a tool result takes from it."""


class NoSuchElement(PageError):
    """No element (tab, option, file) of that name is there: never was, or was on an earlier page (``stale``)."""

    status = "not_found"


class Blocked(PageError):
    """It is there but cannot be acted on so: hidden, disabled, readonly, not fillable, blocked by a validation message."""

    status = "conflict"


class NotAllowed(PageError):
    """It leads out of the site, or is a scheme that is no place to go to."""

    status = "forbidden"


class Page(ABC):
    """One browser with its tabs, for one episode: cookies, history and everything else of its own.

    Actions name an element by the ``bid`` that the newest snapshot shows. Every method but `snapshot`, `interrupt` and `close`
    may raise `PageError` (one of its kinds), after which everything is as it was, and `agent_gym.errors.InfrastructureError` when
    the engine itself failed. Calls come one at a time; `interrupt` may come from any thread.

    Every engine tells the same of the same pages: role, name, value, states and order of elements, and the same ids. Only a browser has
    what comes of scripts, style sheets, frames and shadow roots; dialogs; elements that others cover; pictures; pointer and keyboard by
    themselves; a clipboard; and what `probes` tells of these.
    """

    @abstractmethod
    def goto(self, url: str) -> None:
        """Loads a URL in the active tab: absolute, or relative to the page that is there.

        Raises:
            Blocked: It is no URL, or too long for one.
            NotAllowed: It is outside the site's origin, or not http(s).
        """

    @abstractmethod
    def go_back(self) -> None:
        """One step back in the tab's history."""

    @abstractmethod
    def go_forward(self) -> None:
        """One step forward in the tab's history."""

    @abstractmethod
    def click(self, bid: str) -> None:
        """Clicks an element: follows a link, activates a button, toggles a checkbox, picks a radio button, opens details."""

    @abstractmethod
    def dblclick(self, bid: str) -> None:
        """Clicks an element twice; a checkbox ends as it was, a link is followed once."""

    @abstractmethod
    def hover(self, bid: str) -> None:
        """Moves the pointer over an element."""

    @abstractmethod
    def focus(self, bid: str) -> None:
        """Gives an element the focus."""

    @abstractmethod
    def fill(self, bid: str, value: str) -> None:
        """Puts a text in place of what a field holds.

        Raises:
            Blocked: Not fillable, readonly, disabled, longer than ``maxlength``, or no value of its type (a date field takes a date).
        """

    @abstractmethod
    def select(self, bid: str, options: Sequence[str]) -> None:
        """Selects exactly these options of a select, named by label or else by value."""

    @abstractmethod
    def check(self, bid: str, checked: bool) -> None:
        """Brings a checkbox or radio button into a state. A radio button cannot be unchecked by itself."""

    @abstractmethod
    def press(self, bid: str, key: str) -> None:
        """Presses a key or a combination (``Enter``, ``Space``, ``Tab``, ``Backspace``, ``a``, ``Control+A``) with the element focused."""

    @abstractmethod
    def upload(self, bid: str, files: Sequence[str]) -> None:
        """Chooses files for a file field, by the names of the files that the episode offers. No path is ever opened."""

    @abstractmethod
    def scroll(self, dx: float, dy: float) -> None:
        """Scrolls by pixels. Of a page that is too long to show at once, that brings another part into view."""

    @abstractmethod
    def new_tab(self) -> None:
        """Opens a blank tab and goes to it."""

    @abstractmethod
    def focus_tab(self, index: int) -> None:
        """Goes to a tab, counted from 0."""

    @abstractmethod
    def close_tab(self) -> None:
        """Closes the active tab and goes to the one before it; the last tab that closes leaves a blank one."""

    @abstractmethod
    def snapshot(self) -> PageSnapshot:
        """What can be seen now. Asking twice gives the same."""

    def picture(self) -> NDArray[np.uint8]:
        """What the window shows, with the elements' numbers in it: ``uint8[H, W, 3]``.

        Raises:
            ConfigurationError: This engine draws nothing.
        """
        raise ConfigurationError("this engine shows no pictures; use engine='chromium'")

    @abstractmethod
    def probes(self) -> dict[str, Any]:
        """What this episode could leave behind for the next, by channel, as JSON values; asking changes nothing.

        It is equal on every new page over the same site, so what differs names a leak. Every engine tells ``cookies``, ``downloads``
        (the names of what was saved), ``focus`` (the tag of the element that has it), ``history`` (of the tab) and ``tabs`` (as
        URLs) and ``window_name``. A browser also tells ``caches``, ``clipboard``, ``dialog`` (its kind), ``indexed_db``,
        ``local_storage``, ``permissions``, ``pressed`` (keys and buttons held down), ``scroll``, ``service_workers``,
        ``session_storage`` and ``temp_files`` (left on disk); behind an open dialog only what the page need not be asked for.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Stops whatever an action is waiting for. May be called from any thread, at any time."""

    @abstractmethod
    def close(self) -> None:
        """Frees everything. Closing twice is fine."""
