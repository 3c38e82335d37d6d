"""The Chromium engine: the same pages in a real browser, behind the same contract as the in-process engine.

What an action may do is asked of the in-process engine's rules first, on a copy of the page: what those refuse is refused here in the
same words. What it does then is done by the browser, with real input. Requests are answered in the thread that waits for the action.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import wraps
from mimetypes import MimeTypes
from typing import Concatenate, ParamSpec

from agent_gym.browser.chromium.hands import Button
from agent_gym.browser.chromium.running import BrowserPage
from agent_gym.browser.inprocess import acting
from agent_gym.browser.inprocess.forms import SUBMITTERS, kind_of_button
from agent_gym.browser.inprocess.site import BLANK
from agent_gym.browser.inprocess.tabs import MAX_TABS
from agent_gym.browser.inputs import SCALES, kind_of
from agent_gym.browser.live import is_disabled, options_of
from agent_gym.browser.page import Blocked, PageError
from agent_gym.browser.window import LINE_PX

__all__ = ["ChromiumPage"]

_TYPES = MimeTypes()  # the table in the standard library, not the machine's

_P = ParamSpec("_P")


def _action(method: "Callable[Concatenate[ChromiumPage, _P], None]") -> "Callable[Concatenate[ChromiumPage, _P], None]":
    """An action of the page: what it raises is also what the next snapshot tells."""

    @wraps(method)
    def act(page: "ChromiumPage", /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        page.begin()
        try:
            method(page, *args, **kwargs)
        except PageError as error:
            page.fail(error)
            raise

    return act


class ChromiumPage(BrowserPage):
    """One browser context over a WSGI app: scripts run, style sheets hide, and everything is as a person would see it.

    No request leaves the process. Chance in pages is seeded, their clock stands still but for half a second with every action, nothing
    is animated, and language, time zone and size of the window are fixed: the same app, seed and actions give the same snapshots.
    Only workers have the machine's clock and chance, and so have the keys that ``crypto.subtle`` makes.

    Args:
        app: The site.
        origin: Where the site stands for the agent; nothing else can be reached.
        files: What can be uploaded, by name.
        start: The page to open.
        seed: Of ``Math.random`` in pages.
        deadline_s: Seconds after which an action that has not come to an end is given up, and its context killed.
        every: Whether whatever shows something is an element, and each has its box; else only what can be acted upon is, by rule.

    Raises:
        MissingExtra: Playwright is not installed.
        InfrastructureError: The browser or the site failed. So may every action.
        ValueError: A file's name is not printable.
    """

    # --- Navigation ---

    @_action
    def goto(self, url: str) -> None:
        """Loads a URL in the active tab: absolute, or relative to the page that is there (in a blank tab: to the site)."""
        target = BLANK if url.strip() == BLANK else self._site.resolve(self._mirror.document.base, url)
        self._act(self._episode.goto(target))

    @_action
    def go_back(self) -> None:
        """One step back in the tab's history."""
        self._server.traversing = True
        self._act(self._episode.step(-1))

    @_action
    def go_forward(self) -> None:
        """One step forward in the tab's history."""
        self._server.traversing = True
        self._act(self._episode.step(1))

    # --- Acting on elements ---

    @_action
    def click(self, bid: str) -> None:
        """Clicks an element, where nothing is over it."""
        self._click(bid, 1)

    @_action
    def dblclick(self, bid: str) -> None:
        """Clicks an element twice; a link or a submit button only once."""
        self._click(bid, 2)

    @_action
    def hover(self, bid: str) -> None:
        """Moves the pointer over an element."""
        self._act(self._episode.hands.click(self._number(self._find(bid)), 0))

    @_action
    def focus(self, bid: str) -> None:
        """Gives an element the focus."""
        node = acting.control_for(self._find(bid))
        acting.focus(self._mirror.document, node)
        self._act(self._episode.hands.ask("focus", self._number(node), False))

    @_action
    def fill(self, bid: str, value: str) -> None:
        """Puts a text in place of what a field holds."""
        node = acting.control_for(self._find(bid))
        acting.fill(self._mirror.document, node, value)
        value = self._mirror.document.live.value(node)
        number = self._number(node)
        if kind_of(node) in SCALES or kind_of(node) == "color":
            self._act(self._episode.hands.ask("assign", number, value))
        else:
            self._act(self._episode.hands.type(number, value))

    @_action
    def select(self, bid: str, options: Sequence[str]) -> None:
        """Selects exactly these options of a select, named by label or else by value."""
        node = acting.control_for(self._find(bid))
        acting.select(self._mirror.document, node, options)
        chosen = self._mirror.document.live.selections[node]
        at = [index for index, option in enumerate(options_of(node)) if option in chosen]
        self._act(self._episode.hands.ask("select", self._number(node), at))

    @_action
    def check(self, bid: str, checked: bool) -> None:
        """Brings a checkbox or radio button into a state."""
        node = acting.control_for(self._find(bid))
        live = self._mirror.document.live
        before = kind_of(node) in ("checkbox", "radio") and live.checked(node)
        acting.check(self._mirror.document, node, checked)
        number = self._number(node)
        self._act(self._episode.hands.ask("focus", number, False) if before == checked else self._episode.hands.click(number, lenient=True))

    @_action
    def press(self, bid: str, key: str) -> None:
        """Presses a key or a combination with the element focused."""
        node = acting.control_for(self._find(bid))
        key = {"Space": " ", "Spacebar": " "}.get(key, key)
        if acting.is_text(node) and len(key) == 1:
            acting.fill(self._mirror.document, node, self._mirror.document.live.value(node) + key)
        elif acting.focusable(node) or is_disabled(node):
            acting.focus(self._mirror.document, node)
        self._act(self._episode.hands.press(self._number(node), key))

    @_action
    def upload(self, bid: str, files: Sequence[str]) -> None:
        """Chooses files for a file field, by the names of the files that the episode offers."""
        node = acting.control_for(self._find(bid))
        acting.upload(self._mirror.document, node, files, self._files)
        told = [(name, _TYPES.guess_type(name)[0] or "application/octet-stream", b64encode(self._files[name]).decode()) for name in files]
        self._act(self._episode.hands.ask("upload", self._number(node), told))

    @_action
    def scroll(self, dx: float, dy: float) -> None:
        """Turns the wheel. The snapshot of a page that is too long to show at once shows the part from there on."""
        mirror = self._mirror
        lines = self._describe()[0].count("\n")
        mirror.scrolled = max(0.0, min(mirror.scrolled + dy, lines * LINE_PX))
        self._act(self._episode.hands.wheel(dx, dy))

    # --- Tabs ---

    @_action
    def new_tab(self) -> None:
        """Opens a blank tab and goes to it."""
        if len(self._read["tabs"]) >= MAX_TABS:
            raise Blocked(f"{MAX_TABS} tabs are open; close one first")
        self._act(self._episode.open_tab())

    @_action
    def focus_tab(self, index: int) -> None:
        """Goes to a tab, counted from 0."""
        self._act(self._episode.focus_tab(int(index)))

    @_action
    def close_tab(self) -> None:
        """Closes the active tab and goes to the one before it; the last tab that closes leaves a blank one."""
        self._act(self._episode.close_tab(self._episode.tab))

    # --- What only a browser has ---

    @_action
    def accept_dialog(self, text: str | None = None) -> None:
        """Says yes to the dialog that is open.

        Args:
            text: What to answer where it asks for a text.

        Raises:
            Blocked: None is open.
        """
        self._act(self._episode.answer(True, text), through_dialog=True)

    @_action
    def dismiss_dialog(self) -> None:
        """Says no to the dialog that is open.

        Raises:
            Blocked: None is open.
        """
        self._act(self._episode.answer(False, None), through_dialog=True)

    @_action
    def drag_and_drop(self, bid: str, onto: str) -> None:
        """Drags an element onto another."""
        self._act(self._episode.hands.drag_onto(self._number(self._find(bid)), self._number(self._find(onto))))

    @_action
    def mouse_move(self, x: float, y: float) -> None:
        """Moves the pointer to a point of the window, in pixels."""
        self._act(self._episode.hands.move(x, y))

    @_action
    def mouse_down(self, x: float, y: float, button: Button = "left") -> None:
        """Presses a button at a point, and holds it."""
        self._act(self._episode.hands.hold(x, y, button))

    @_action
    def mouse_up(self, x: float, y: float, button: Button = "left") -> None:
        """Lets a button go at a point."""
        self._act(self._episode.hands.release(x, y, button))

    @_action
    def mouse_click(self, x: float, y: float, button: Button = "left", count: int = 1) -> None:
        """Clicks at a point, so many times."""
        self._act(self._episode.hands.click_at(x, y, button, count))

    @_action
    def mouse_drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Drags what is at a point to another."""
        self._act(self._episode.hands.drag(x, y, to_x, to_y))

    @_action
    def scroll_at(self, x: float, y: float, dx: float, dy: float) -> None:
        """Turns the wheel over a point: a part of the page with scroll bars of its own scrolls there."""
        self._act(self._episode.hands.wheel_at(x, y, dx, dy))

    @_action
    def keyboard(self, key: str, down: bool | None = None) -> None:
        """Presses a key where the focus is, or only holds it (True) or lets it go (False)."""
        self._act(self._episode.hands.key(key, down))

    @_action
    def keyboard_type(self, text: str, keys: bool = True) -> None:
        """Types a text where the focus is, with its keys or (False) without."""
        self._act(self._episode.hands.text(text, keys))

    def _click(self, bid: str, count: int) -> None:
        document, node = self._mirror.document, self._find(bid)
        target = acting.activated(node)
        if target is not None:
            acting.refuse_disabled(target)
            href = target.get("href") if target.tag in ("a", "area") else None
            if href is not None and not href.strip().lower().startswith("javascript:"):
                acting.refuse_programs(href.strip())
                made = "download" in target.attrib and href.strip().lower().startswith("blob:")
                url = "" if made else self._site.resolve(document.base, href)
                if "download" in target.attrib and not made:  # asked for as a page: when the browser would ask for it is anybody's guess
                    self._server.save_as = target.get("download")
                    self._act(self._episode.goto(url))
                    return
            if href is not None or kind_of_button(target) in SUBMITTERS:
                count = 1
        lenient = kind_of(node) in ("checkbox", "radio")
        self._act(self._episode.hands.click(self._number(node), count, lenient))
