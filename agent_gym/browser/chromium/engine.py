"""The Chromium engine: the same pages in a real browser, behind the same contract as the in-process engine.

What an action may do is asked of the in-process engine's rules first, on a copy of the page: what those refuse is refused here in the
same words. What it does then is done by the browser, with real input. Requests are answered in the thread that waits for the action.
"""

import queue
import time
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial, wraps
from mimetypes import MimeTypes
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np
from numpy.typing import NDArray

from agent_gym.browser.chromium.episode import Episode
from agent_gym.browser.chromium.host import Host, Place
from agent_gym.browser.chromium.mirror import Mirror
from agent_gym.browser.chromium.picture import picture
from agent_gym.browser.chromium.serving import Server
from agent_gym.browser.inprocess import acting
from agent_gym.browser.inprocess.forms import SUBMITTERS, kind_of_button
from agent_gym.browser.inprocess.naming import Ids
from agent_gym.browser.inprocess.site import BLANK, Interrupted, Site, quoted
from agent_gym.browser.inprocess.tabs import MAX_TABS
from agent_gym.browser.inputs import SCALES, kind_of
from agent_gym.browser.lines import escaped, short
from agent_gym.browser.lines import quoted as in_quotes
from agent_gym.browser.live import Node, is_disabled, options_of
from agent_gym.browser.outline import describe, hidden
from agent_gym.browser.page import Blocked, NoSuchElement, Page, PageError
from agent_gym.browser.snapshot import Element, PageSnapshot
from agent_gym.browser.window import LINE_PX, window
from agent_gym.errors import InfrastructureError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from _typeshed.wsgi import WSGIApplication

__all__ = ["ChromiumPage"]

_MAX_URL, _MAX_TITLE, _MAX_TAB = 1_000, 500, 100
"""Characters of what a snapshot tells beside the page."""
_TYPES = MimeTypes()  # the table in the standard library, not the machine's

_P = ParamSpec("_P")


def _action(method: "Callable[Concatenate[ChromiumPage, _P], None]") -> "Callable[Concatenate[ChromiumPage, _P], None]":
    """An action of the page: what it raises is also what the next snapshot tells."""

    @wraps(method)
    def act(page: "ChromiumPage", /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        page._begin()
        try:
            method(page, *args, **kwargs)
        except PageError as error:
            page._error = str(error)
            raise

    return act


class ChromiumPage(Page):
    """One browser context over a WSGI app: scripts run, style sheets hide, and everything is as a person would see it.

    No request leaves the process. Chance in pages is seeded, their clock stands still but for half a second with every action, nothing
    is animated, and language, time zone and size of the window are fixed: the same app, seed and actions give the same snapshots.

    Args:
        app: The site.
        origin: Where the site stands for the agent; nothing else can be reached.
        files: What can be uploaded, by name.
        start: The page to open.
        seed: Of ``Math.random`` in pages.
        deadline_s: Seconds after which an action that has not come to an end is given up, and its context killed.

    Raises:
        MissingExtra: Playwright is not installed.
        InfrastructureError: The browser or the site failed. So may every action.
        ValueError: A file's name is not printable.
    """

    def __init__(
        self,
        app: "WSGIApplication",
        origin: str = "https://retail.example",
        *,
        files: Mapping[str, bytes] | None = None,
        start: str = "/",
        seed: int = 0,
        deadline_s: float = 30.0,
    ) -> None:
        self._site = Site(app, origin)
        self._server = Server(app, self._site)
        self._files = dict(files or {})
        if odd := [name for name in self._files if not name.isprintable()]:
            raise ValueError(f"names of files must be printable, got {odd[0]!r}")
        self._deadline_s = deadline_s
        self._ids = Ids(self._site)
        self._mirrors: dict[str, Mirror] = {}
        self._read: dict[str, Any] = {}
        self._described: tuple[str, tuple[Element, ...]] | None = None
        self._snapshot: PageSnapshot | None = None
        self._picture: NDArray[np.uint8] | None = None
        self._boxes: dict[str, dict[str, Any]] = {}
        self._error = ""
        self._jobs: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._interrupted = False
        self._host = Host.shared()
        self._place: Place | None = self._wait(self._host.place())
        try:
            self._episode = self._wait(self._open(self._place))
            url = self._site.resolve(BLANK, start)
            self._finish(self._wait(self._episode.begin(seed, url)))
        except BaseException:
            self.close()
            raise

    @property
    def downloads(self) -> dict[str, bytes]:
        """What was downloaded, by the name it was saved under."""
        return self._server.downloads

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
        self._act(self._episode.click(self._number(self._find(bid)), 0))

    @_action
    def focus(self, bid: str) -> None:
        """Gives an element the focus."""
        node = acting.control_for(self._find(bid))
        acting.focus(self._mirror.document, node)
        self._act(self._episode.ask("focus", self._number(node), False))

    @_action
    def fill(self, bid: str, value: str) -> None:
        """Puts a text in place of what a field holds."""
        node = acting.control_for(self._find(bid))
        acting.fill(self._mirror.document, node, value)
        value = self._mirror.document.live.value(node)
        number = self._number(node)
        if kind_of(node) in SCALES or kind_of(node) == "color":
            self._act(self._episode.ask("assign", number, value))
        else:
            self._act(self._episode.type(number, value))

    @_action
    def select(self, bid: str, options: Sequence[str]) -> None:
        """Selects exactly these options of a select, named by label or else by value."""
        node = acting.control_for(self._find(bid))
        acting.select(self._mirror.document, node, options)
        chosen = self._mirror.document.live.selections[node]
        at = [index for index, option in enumerate(options_of(node)) if option in chosen]
        self._act(self._episode.ask("select", self._number(node), at))

    @_action
    def check(self, bid: str, checked: bool) -> None:
        """Brings a checkbox or radio button into a state."""
        node = acting.control_for(self._find(bid))
        live = self._mirror.document.live
        before = kind_of(node) in ("checkbox", "radio") and live.checked(node)
        acting.check(self._mirror.document, node, checked)
        number = self._number(node)
        self._act(self._episode.ask("focus", number, False) if before == checked else self._episode.click(number, lenient=True))

    @_action
    def press(self, bid: str, key: str) -> None:
        """Presses a key or a combination with the element focused."""
        node = acting.control_for(self._find(bid))
        key = {"Space": " ", "Spacebar": " "}.get(key, key)
        if acting.is_text(node) and len(key) == 1:
            acting.fill(self._mirror.document, node, self._mirror.document.live.value(node) + key)
        elif acting.focusable(node) or is_disabled(node):
            acting.focus(self._mirror.document, node)
        self._act(self._episode.press(self._number(node), key))

    @_action
    def upload(self, bid: str, files: Sequence[str]) -> None:
        """Chooses files for a file field, by the names of the files that the episode offers."""
        node = acting.control_for(self._find(bid))
        acting.upload(self._mirror.document, node, files, self._files)
        told = [(name, _TYPES.guess_type(name)[0] or "application/octet-stream", b64encode(self._files[name]).decode()) for name in files]
        self._act(self._episode.ask("upload", self._number(node), told))

    @_action
    def scroll(self, dx: float, dy: float) -> None:
        """Turns the wheel. The snapshot of a page that is too long to show at once shows the part from there on."""
        mirror = self._mirror
        lines = self._describe()[0].count("\n")
        mirror.scrolled = max(0.0, min(mirror.scrolled + dy, lines * LINE_PX))
        self._act(self._episode.wheel(dx, dy))

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

    # --- Reading ---

    def snapshot(self) -> PageSnapshot:
        """What can be seen now. Asking twice gives the same object."""
        if self._snapshot is None:
            mirror, document = self._mirror, self._mirror.document
            shown = window(*self._describe(), mirror.scrolled)
            self._snapshot = PageSnapshot(
                url=short(mirror.url, _MAX_URL),
                title=short(document.title, _MAX_TITLE),
                status=document.status,
                tabs=tuple(
                    {
                        "title": short(self._mirror_of(main).document.title, _MAX_TAB),
                        "url": short(url, _MAX_TAB),
                        "active": main == self._read["main"],
                    }
                    for main, url in self._read["tabs"].items()
                ),
                outline=shown.outline,
                elements=shown.elements,
                focused=document.bids.get(document.live.focus, "") if document.live.focus is not None else "",
                error=short(self._error, _MAX_TITLE),
                downloads=tuple(self.downloads),
                notes=(*document.notes, shown.note) if shown.note else document.notes,
            )
        return self._snapshot

    def boxes(self) -> dict[str, dict[str, Any]]:
        """Where the elements are in the window, by their ids: ``box`` (left, top, width, height in pixels) and ``covered``."""
        self._look()
        return self._boxes

    def picture(self) -> NDArray[np.uint8]:
        """What the window shows, with the number of every element that can be acted upon: ``uint8[H, W, 3]``; black behind a dialog.

        Raises:
            MissingExtra: Pillow is not installed.
        """
        if self._picture is None:
            taken = self._look()
            width, height = self._host.viewport
            marks = {bid: told["box"] for bid, told in self._boxes.items() if not told["covered"]}
            self._picture = picture(taken, marks) if taken else np.zeros((height, width, 3), np.uint8)
        return self._picture

    def _look(self) -> bytes:
        self._describe()
        taken, boxes = self._wait(self._episode.picture())
        bids = {str(self._mirror.numbers[node]): bid for node, bid in self._mirror.document.bids.items()}
        self._boxes = {bids[number]: told for number, told in boxes.items() if number in bids}
        return bytes(taken)

    def probes(self) -> dict[str, Any]:
        """What a leak check looks at: all that a browser keeps, by channel, as JSON values."""
        told: dict[str, Any] = self._wait(self._episode.probes())
        return {**told, "downloads": list(self.downloads)}

    def interrupt(self) -> None:
        """Stops waiting for an action. May be called from any thread, at any time."""
        self._interrupted = True
        self._jobs.put(None)

    def close(self) -> None:
        """Frees everything. Closing twice is fine."""
        place, self._place = self._place, None
        if place is not None:
            self._host.submit(self._host.leave(place))
        self._snapshot = None

    # --- Inside ---

    @property
    def _mirror(self) -> Mirror:
        if self._place is None:
            raise InfrastructureError("the page is closed")
        return self._mirror_of(self._read["main"])

    def _mirror_of(self, main: str) -> Mirror:
        return self._mirrors.setdefault(main, Mirror())

    def _begin(self) -> None:
        self._interrupted = False
        self._error = ""
        self._snapshot = None
        self._server.refused, self._server.save_as, self._server.traversing = None, None, False

    def _describe(self) -> tuple[str, tuple[Element, ...]]:
        """Outline and elements of what is shown; its elements have ids from then on."""
        if self._described is None:
            if (dialog := self._read["dialog"]) is not None:
                value = f" = {in_quotes(dialog['value'])}" if dialog["value"] else ""
                line = f"! {dialog['type']} dialog: {in_quotes(dialog['message'])}{value} (accept_dialog or dismiss_dialog)"
                self._described = escaped(line), ()
            else:
                document = self._mirror.document
                give_id, locate = partial(self._ids.of, document), partial(self._site.locate, document.base)
                self._described = describe(document.body, document.live, give_id, locate)
        return self._described

    def _find(self, bid: str) -> Node:
        """The element of an id, if it can be seen."""
        document = self._mirror.document
        self._describe()
        node = document.nodes.get(bid)
        if node is None:
            if bid in self._ids:
                raise NoSuchElement(f"stale: element {bid} was on an earlier page")
            raise NoSuchElement(f"no element {quoted(bid)} on this page")
        if hidden(node, document.live):
            raise Blocked(f"element {bid} is hidden")
        return node

    def _number(self, node: Node) -> int:
        return self._mirror.numbers[node]

    def _click(self, bid: str, count: int) -> None:
        document, node = self._mirror.document, self._find(bid)
        target = acting.activated(node)
        if target is not None:
            acting.refuse_disabled(target)
            href = target.get("href") if target.tag in ("a", "area") else None
            if href is not None and not href.strip().lower().startswith("javascript:"):
                acting.refuse_programs(href.strip())
                url = self._site.resolve(document.base, href)
                if "download" in target.attrib:  # asked for as a page: when the browser would ask for it is anybody's guess
                    self._server.save_as = target.get("download")
                    self._act(self._episode.goto(url))
                    return
            if href is not None or kind_of_button(target) in SUBMITTERS:
                count = 1
        lenient = kind_of(node) in ("checkbox", "radio")
        self._act(self._episode.click(self._number(node), count, lenient))

    def _act(self, action: "Coroutine[Any, Any, None]", through_dialog: bool = False) -> None:
        """Has the browser do something, and takes over what is shown then.

        Raises:
            PageError: It could not be done, or led to what is refused.
        """
        self._finish(self._wait(self._episode.act(action, through_dialog)))
        if self._server.refused is not None:
            raise self._server.refused
        document = self._mirror.document
        if document.live.invalid is not None:
            node, message = document.live.invalid
            self._describe()
            where = document.bids.get(node) or quoted(node.get("name") or node.tag)
            raise Blocked(f'blocked by validation message "{message}" at element {where}')

    def _finish(self, read: dict[str, Any]) -> None:
        self._read, self._described, self._snapshot, self._picture = read, None, None, None
        if read["page"] is not None:
            self._mirror.update(read["page"], self._server.status.get(read["main"], 0))

    async def _open(self, place: Place) -> Episode:
        return Episode(self._host, place, self._jobs.put)

    def _wait(self, work: "Coroutine[Any, Any, Any]") -> Any:
        """Waits for work on the browser's thread, and answers the browser's requests meanwhile.

        Raises:
            Interrupted: It was interrupted.
            PageError: It could not be done.
            InfrastructureError: It did not end in time, or the browser or the site failed.
        """
        future: Future[Any] = self._host.submit(work)
        future.add_done_callback(lambda _: self._jobs.put(None))
        deadline = time.monotonic() + self._deadline_s
        try:
            while not future.done():
                try:
                    event = self._jobs.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    self.close()
                    raise InfrastructureError(f"the browser did not come to an end in {self._deadline_s:g} s") from None
                if self._interrupted:
                    raise Interrupted("interrupted before the page had come")
                if event is not None:
                    self._serve(event)
            return future.result()
        except (PageError, InfrastructureError, ImportError):
            raise
        except Exception as error:
            if type(error).__module__.startswith("playwright."):
                self.close()
                raise InfrastructureError(f"the browser failed: {error}") from error
            raise
        finally:
            future.cancel()

    def _serve(self, event: Mapping[str, Any]) -> None:
        """Answers a request of the browser's."""
        answer = None
        try:
            answer = self._server.answer(event)
        finally:
            self._host.submit(self._episode.respond(event, answer))
