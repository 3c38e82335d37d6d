"""A page in the browser as it is read, and waiting for what is done in it; what can be done is in `engine`."""

import queue
import time
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.browser.chromium.episode import Episode
from agent_gym.browser.chromium.host import START_S, Host, Place
from agent_gym.browser.chromium.mirror import Mirror
from agent_gym.browser.chromium.picture import picture
from agent_gym.browser.chromium.serving import Answer, Server
from agent_gym.browser.chromium.tab import Left
from agent_gym.browser.inprocess.naming import Ids
from agent_gym.browser.inprocess.site import BLANK, Interrupted, Site, quoted
from agent_gym.browser.lines import escaped, short
from agent_gym.browser.lines import quoted as in_quotes
from agent_gym.browser.live import Node
from agent_gym.browser.outline import describe, hidden
from agent_gym.browser.page import Blocked, NoSuchElement, Page, PageError
from agent_gym.browser.snapshot import Element, PageSnapshot
from agent_gym.browser.window import window
from agent_gym.errors import InfrastructureError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from _typeshed.wsgi import WSGIApplication

__all__ = ["BrowserPage"]

_MAX_URL, _MAX_TITLE, _MAX_TAB = 1_000, 500, 100
"""Characters of what a snapshot tells beside the page."""


class BrowserPage(Page):
    """One browser context over a WSGI app.

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

    def __init__(
        self,
        app: "WSGIApplication",
        origin: str = "https://retail.example",
        *,
        files: Mapping[str, bytes] | None = None,
        start: str = "/",
        seed: int = 0,
        deadline_s: float = 30.0,
        every: bool = False,
    ) -> None:
        self._site = Site(app, origin)
        self._server = Server(app, self._site)
        self._files = dict(files or {})
        if odd := [name for name in self._files if not name.isprintable()]:
            raise ValueError(f"names of files must be printable, got {odd[0]!r}")
        self._seed = seed
        self._deadline_s = deadline_s
        self._every = every
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
        self._place: Place | None = None
        self._place = self._wait(self._host.place(), START_S)
        try:
            self._episode = self._wait(self._open(self._place))
            url = self._site.resolve(BLANK, start)
            self._finish(self._wait(self._episode.act(self._episode.goto(url))))
        except BaseException:
            self.close()
            raise

    @property
    def downloads(self) -> dict[str, bytes]:
        """What was downloaded, by the name it was saved under."""
        return self._server.downloads

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
                notes=tuple(filter(None, (*document.notes, *self._server.notes, shown.note))),
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

    def ask(self, expression: str) -> Any:
        """What an expression of ours gives among the page's own scripts, as JSON values; None where there is no page, or a dialog stops it.

        What they say is theirs, and what an expression does is not undone: never one that an agent wrote.

        Raises:
            InfrastructureError: It failed.
        """
        if self._read["dialog"] is not None:
            return None
        try:
            return self._wait(self._episode.tab.ask(expression))
        except Left:
            return None

    def probes(self) -> dict[str, Any]:
        """What this episode could leave behind for the next, by channel, as JSON values."""
        told: dict[str, Any] = self._wait(self._episode.probes())
        return {**told, "downloads": list(self.downloads)}

    def interrupt(self) -> None:
        """Stops waiting for the action that is under way; what is shown can still be read. May be called from any thread, at any time."""
        self._interrupted = True
        self._jobs.put(None)

    def close(self) -> None:
        """Frees everything. Closing twice is fine."""
        self._leave()

    # --- Inside ---

    @property
    def _mirror(self) -> Mirror:
        if self._place is None:
            raise InfrastructureError("the page is closed")
        return self._mirror_of(self._read["main"])

    def _mirror_of(self, main: str) -> Mirror:
        return self._mirrors.setdefault(main, Mirror())

    def _leave(self, at_once: bool = False) -> None:
        place, self._place = self._place, None
        if place is not None:
            self._host.submit(self._host.leave(place, at_once))
        self._snapshot = None

    def begin(self) -> None:
        """Begins an action."""
        self._interrupted = False
        self._error = ""
        self._snapshot = None
        self._server.notes.clear()
        self._server.refused, self._server.save_as, self._server.traversing = None, None, False

    def fail(self, error: PageError) -> None:
        """Ends an action that could not be done: the next snapshot tells why."""
        self._error = str(error)

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

    def _act(self, action: "Coroutine[Any, Any, None]", through_dialog: bool = False) -> None:
        """Has the browser do something, and takes over what is shown then.

        Raises:
            PageError: It could not be done, or led to what is refused.
        """
        self._finish(self._wait(self._episode.act(action, through_dialog), stoppable=True))
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
        while self._episode.saved:
            try:
                self._server.save(*self._episode.saved.pop(0))
            except PageError as error:
                self._server.refused = error
        if read["page"] is not None:
            self._mirror.update(read["page"], self._server.status.get(read["main"], 0))

    async def _open(self, place: Place) -> Episode:
        return Episode(self._host, place, self._jobs.put, self._every)

    def _wait(self, work: "Coroutine[Any, Any, Any]", within_s: float | None = None, stoppable: bool = False) -> Any:
        """Waits for work on the browser's thread, and answers the browser's requests meanwhile.

        Args:
            work: What to wait for.
            within_s: In how many seconds it must come to an end; by default those of an action.
            stoppable: Whether it is an action: reading is not interrupted.

        Raises:
            Interrupted: It was interrupted.
            PageError: It could not be done.
            InfrastructureError: It did not end in time, or the browser or the site failed.
        """
        future: Future[Any] = self._host.submit(work)
        future.add_done_callback(lambda _: self._jobs.put(None))
        within_s = within_s or self._deadline_s
        deadline = time.monotonic() + within_s
        try:
            while not future.done():
                left = deadline - time.monotonic()
                try:
                    event = self._jobs.get(timeout=max(0.0, left))
                except queue.Empty:
                    left = 0.0
                if left <= 0:
                    self._leave(at_once=True)
                    raise InfrastructureError(f"the browser did not come to an end in {within_s:g} s")
                if stoppable and self._interrupted:
                    waiting = [event]
                    while not self._jobs.empty():
                        waiting.append(self._jobs.get())
                    for each in filter(None, waiting):  # what is not answered would hold up the next action
                        self._respond(each, None)
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
            self._server.clock = f"{self._seed} {self._episode.passed}"
            if event["saves"]:
                self._server.save_as = self._name(event["request"]["url"])
            answer = self._server.answer(event)
        finally:
            self._respond(event, answer)

    def _name(self, url: str) -> str:
        """The name under which a link wants to save what it leads to; empty if it does not say."""
        for document in (mirror.document for mirror in self._mirrors.values()):
            for link in document.root.iter("a", "area"):
                if "download" in link.attrib and self._site.origin + self._site.locate(document.base, link.get("href", "")) == url:
                    return link.get("download", "")
        return ""

    def _respond(self, event: Mapping[str, Any], answer: Answer | None) -> None:
        self._host.submit(self._episode.respond(event, answer, event["frameId"] not in self._server.status))
