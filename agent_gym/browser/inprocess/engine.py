"""The in-process engine: a browser without scripts, sockets or a renderer, over a WSGI app."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from agent_gym.browser.downloads import Downloads
from agent_gym.browser.inprocess import acting
from agent_gym.browser.inprocess.acting import Navigation
from agent_gym.browser.inprocess.document import Document
from agent_gym.browser.inprocess.keys import press
from agent_gym.browser.inprocess.naming import Ids
from agent_gym.browser.inprocess.site import BLANK, Request, Site, quoted
from agent_gym.browser.inprocess.tabs import MAX_TABS, Tab
from agent_gym.browser.lines import short
from agent_gym.browser.live import Node
from agent_gym.browser.outline import describe, hidden
from agent_gym.browser.page import Blocked, NoSuchElement, Page, PageError
from agent_gym.browser.snapshot import Element, PageSnapshot
from agent_gym.browser.window import LINE_PX, window
from agent_gym.errors import InfrastructureError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

__all__ = ["InProcessPage"]

_MAX_URL, _MAX_TITLE, _MAX_TAB = 1_000, 500, 100
"""Characters of what a snapshot tells beside the page."""
_NOTHING_TO_SHOW = (204, 205)
_HERE = frozenset({"", "_self", "_parent", "_top"})

_P = ParamSpec("_P")


def _action(method: "Callable[Concatenate[InProcessPage, _P], None]") -> "Callable[Concatenate[InProcessPage, _P], None]":
    """An action of the page: what it raises is also what the next snapshot tells."""

    @wraps(method)
    def act(page: "InProcessPage", /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        page._begin()
        try:
            method(page, *args, **kwargs)
        except PageError as error:
            page._error = str(error)
            raise

    return act


class InProcessPage(Page):
    """One browser over a WSGI app. It has no clock and no chance in it: the same app and actions give the same snapshots.

    Scripts, style sheets and frames are left out, and a snapshot's ``notes`` say so. A page that is gone back to is asked for again; the
    answer to a POST is shown as it was left. Ids are given in order of first sight; the same thing has the same id wherever it is
    seen again: same role, name and destination, of a control also the same form.

    Args:
        app: The site.
        origin: Where the site stands for the agent; nothing else can be reached.
        files: What can be uploaded, by name.
        start: The page to open.

    Attributes:
        downloads: What was downloaded, by the name it was saved under.

    Raises:
        InfrastructureError: The site failed. So may every action.
        ValueError: A file's name is not printable.
    """

    def __init__(
        self,
        app: "WSGIApplication",
        origin: str = "https://retail.example",
        *,
        files: Mapping[str, bytes] | None = None,
        start: str = "/",
    ) -> None:
        self.downloads = Downloads()
        self._site = Site(app, origin)
        self._files = dict(files or {})
        if odd := [name for name in self._files if not name.isprintable()]:
            raise ValueError(f"names of files must be printable, got {odd[0]!r}")
        self._ids = Ids(self._site)
        self._tabs = [Tab()]
        self._active = 0
        self._error = ""
        self._snapshot: PageSnapshot | None = None
        self.goto(start)

    # --- Navigation ---

    @_action
    def goto(self, url: str) -> None:
        """Loads a URL in the active tab: absolute, or relative to the page that is there (in a blank tab: to the site)."""
        if url.strip() == BLANK:
            self._tab.visit(BLANK, Document(BLANK))
        else:
            self._load(Request(self._site.resolve(self._tab.document.base, url)), self._tab)

    @_action
    def go_back(self) -> None:
        """One step back in the tab's history."""
        self._step(-1)

    @_action
    def go_forward(self) -> None:
        """One step forward in the tab's history."""
        self._step(1)

    # --- Acting on elements ---

    @_action
    def click(self, bid: str) -> None:
        """Clicks an element: what it, or the nearest thing around it, is there for happens."""
        document, node = self._find(bid)
        document.changed()
        self._follow(acting.activate(document, node, self._files))

    @_action
    def dblclick(self, bid: str) -> None:
        """Clicks an element twice; the second click on a link or a submit button has no effect."""
        document, node = self._find(bid)
        document.changed()
        if acting.toggles(node):
            acting.activate(document, node, self._files)
        self._follow(acting.activate(document, node, self._files))

    @_action
    def hover(self, bid: str) -> None:
        """Moves the pointer over an element, which without style sheets and scripts has no effect."""
        self._find(bid)

    @_action
    def focus(self, bid: str) -> None:
        """Gives an element the focus."""
        document, node = self._find(bid)
        acting.focus(document, acting.control_for(node))
        document.changed()

    @_action
    def fill(self, bid: str, value: str) -> None:
        """Puts a text in place of what a field holds."""
        document, node = self._find(bid)
        acting.fill(document, acting.control_for(node), value)
        document.changed()

    @_action
    def select(self, bid: str, options: Sequence[str]) -> None:
        """Selects exactly these options of a select, named by label or else by value."""
        document, node = self._find(bid)
        acting.select(document, acting.control_for(node), options)
        document.changed()

    @_action
    def check(self, bid: str, checked: bool) -> None:
        """Brings a checkbox or radio button into a state."""
        document, node = self._find(bid)
        acting.check(document, acting.control_for(node), checked)
        document.changed()

    @_action
    def press(self, bid: str, key: str) -> None:
        """Presses a key or a combination with the element focused."""
        document, node = self._find(bid)
        document.changed()
        self._follow(press(document, acting.control_for(node), key, self._files))

    @_action
    def upload(self, bid: str, files: Sequence[str]) -> None:
        """Chooses files for a file field, by the names of the files that the episode offers."""
        document, node = self._find(bid)
        acting.upload(document, acting.control_for(node), files, self._files)
        document.changed()

    @_action
    def scroll(self, dx: float, dy: float) -> None:  # noqa: ARG002 - no line is cut at its side
        """Scrolls. The snapshot of a page that is too long to show at once shows the part from there on."""
        document = self._tab.document
        lines = self._described(document)[0].count("\n")
        document.scrolled = max(0.0, min(document.scrolled + dy, lines * LINE_PX))

    # --- Tabs ---

    @_action
    def new_tab(self) -> None:
        """Opens a blank tab and goes to it."""
        self._show(self._tab_for("_blank"))

    @_action
    def focus_tab(self, index: int) -> None:
        """Goes to a tab, counted from 0."""
        if not 0 <= index < len(self._tabs):
            raise NoSuchElement(f"no tab {index}; there are {len(self._tabs)}, counted from 0")
        self._active = int(index)  # JSON Schema takes 0.0 for an integer

    @_action
    def close_tab(self) -> None:
        """Closes the active tab and goes to the one before it; the last tab that closes leaves a blank one."""
        del self._tabs[self._active]
        self._tabs = self._tabs or [Tab()]
        self._active = max(0, self._active - 1)

    # --- Reading ---

    def snapshot(self) -> PageSnapshot:
        """What can be seen now. Asking twice gives the same object."""
        if self._snapshot is None:
            document = self._tab.document
            shown = window(*self._described(document), document.scrolled)
            self._snapshot = PageSnapshot(
                url=short(self._tab.url, _MAX_URL),
                title=short(document.title, _MAX_TITLE),
                status=document.status,
                tabs=tuple(
                    {
                        "title": short(tab.document.title, _MAX_TAB),
                        "url": short(tab.url, _MAX_TAB),
                        "active": at == self._active,
                    }
                    for at, tab in enumerate(self._tabs)
                ),
                outline=shown.outline,
                elements=shown.elements,
                focused=document.bids.get(document.live.focus, "") if document.live.focus is not None else "",
                error=short(self._error, _MAX_TITLE),
                downloads=tuple(self.downloads),
                notes=(*document.notes, shown.note) if shown.note else document.notes,
            )
        return self._snapshot

    def probes(self) -> dict[str, Any]:
        """What this episode could leave behind for the next, by channel, as JSON values."""
        tab = self._tab
        return {
            "cookies": self._site.cookies(),
            "downloads": list(self.downloads),
            "focus": None if tab.document.live.focus is None else str(tab.document.live.focus.tag),
            "history": [url for url, _ in tab.entries],
            "tabs": [each.url for each in self._tabs],
            "window_name": tab.name,
        }

    def interrupt(self) -> None:
        """Stops an action before its next request. May be called from any thread, at any time."""
        self._site.interrupted = True

    def close(self) -> None:
        """Frees everything. Closing twice is fine."""
        self._tabs, self._snapshot = [], None
        self.downloads.clear()

    # --- Inside ---

    @property
    def _tab(self) -> Tab:
        if not self._tabs:
            raise InfrastructureError("the page is closed")
        return self._tabs[self._active]

    def _begin(self) -> None:
        self._site.interrupted = False
        self._error = ""
        self._snapshot = None

    def _described(self, document: Document) -> tuple[str, tuple[Element, ...]]:
        """Outline and elements of a document; its elements have ids from then on."""
        if document.shown is None:
            give_id, locate = partial(self._ids.of, document), partial(self._site.locate, document.base)
            document.shown = describe(document.body, document.live, give_id, locate)
        return document.shown

    def _find(self, bid: str) -> tuple[Document, Node]:
        """The element of an id, if it can be seen."""
        document = self._tab.document
        if bid not in document.nodes:
            self._described(document)
        node = document.nodes.get(bid)
        if node is None:
            if bid in self._ids:
                raise NoSuchElement(f"stale: element {bid} was on an earlier page")
            raise NoSuchElement(f"no element {quoted(bid)} on this page")
        if hidden(node, document.live):
            raise Blocked(f"element {bid} is hidden")
        return document, node

    def _follow(self, leads: Navigation | None) -> None:
        """Goes where an action leads."""
        if leads is None:
            return
        document, url = self._tab.document, self._tab.url
        target = self._site.resolve(url, "") if leads.href is None else self._site.resolve(document.base, leads.href)
        if leads.query is not None:
            before, hash_mark, fragment = target.partition("#")
            target = self._site.resolve(url, f"{before.partition('?')[0]}?{leads.query}{hash_mark}{fragment}")
        referrer = url.partition("#")[0] if leads.referrer and url != BLANK else ""
        self._load(Request(target, leads.method, leads.content_type, leads.body, referrer), self._tab_for(leads.target), leads.save)

    def _load(self, request: Request, tab: Tab, save: str | None = None) -> None:
        """Loads into a tab, which opens if it is a new one and there is something to show."""
        if request.method == "GET" and save is None and tab.is_within(request.url):
            tab.move_within(request.url)
            self._show(tab)
        elif loaded := self._fetch(request, save):
            tab.visit(*loaded, again=request.method == "GET" and request.url == tab.url)
            self._show(tab)

    def _step(self, by: int) -> None:
        """Goes back or forward in the history."""
        tab = self._tab
        if not 0 <= tab.at + by < len(tab.entries):
            raise Blocked(f"there is no page to go {'back' if by < 0 else 'forward'} to")
        url, visit = tab.entries[tab.at + by]
        if visit.document is not None:
            tab.step(by)
        elif loaded := self._fetch(Request(url)):
            tab.step(by, *loaded)

    def _fetch(self, request: Request, save: str | None = None) -> tuple[str, Document] | None:
        """Asks the site; None if the page stays: there is nothing to show, or it was downloaded."""
        response = self._site.fetch(request)
        if response.status in _NOTHING_TO_SHOW:
            return None
        document = Document.of(response) if save is None and response.attachment is None else None
        if document is None:
            self.downloads.add(response, save or response.attachment or "")
            return None
        return response.url, document

    def _tab_for(self, target: str) -> Tab:
        """The tab that a ``target`` names, maybe a new one, which opens when it is shown."""
        if target.lower() in _HERE:
            return self._tab
        named = next((tab for tab in self._tabs if tab.name == target), None)
        if named is not None:
            return named
        if len(self._tabs) >= MAX_TABS:
            raise Blocked(f"{MAX_TABS} tabs are open; close one first")
        return Tab("" if target.lower() == "_blank" else target)

    def _show(self, tab: Tab) -> None:
        if tab not in self._tabs:
            self._tabs.append(tab)
        self._active = self._tabs.index(tab)
