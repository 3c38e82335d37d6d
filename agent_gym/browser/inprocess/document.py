"""One loaded document: the parsed page, what the user has made of it, and the ids that its elements have got."""

import html
import re
from functools import cached_property
from urllib.parse import urljoin

from lxml import etree
from werkzeug.http import HTTP_STATUS_CODES

from agent_gym.browser.inprocess.forms import by_id, settle_radios
from agent_gym.browser.inprocess.site import MAX_BYTES, Response
from agent_gym.browser.live import Live, Node, text_of
from agent_gym.browser.snapshot import Element

__all__ = ["Document", "Identity", "message", "presentable"]

_MAX_NODES = 10_000
_DEEPEST = 120
"""Levels of a page that is shown; a walk over it takes up to three Python frames for each."""
_TOO_DEEP = etree.XPath(f"boolean(/*{_DEEPEST * '/*'})")
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml)")
_PARSER = etree.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
_HANDLER = re.compile(rb" on[a-z]+\s*=")
_HANDLERS = etree.XPath("boolean(//@*[starts-with(name(), 'on')])")
_LEFT_OUT = (b"<script", b"<iframe", b"<frame", b"<object", b"<embed")
_AUTOFOCUS = etree.XPath("(//*[@autofocus])[1]")

Identity = tuple[object, ...]
"""What makes an element the thing it is; see `agent_gym.browser.inprocess.naming`."""


class Document:
    """One document, from its load until it is left.

    Attributes:
        root: The parsed page.
        live: What the user has made of it.
        url: Where it came from.
        status: The HTTP status it came with; 0 for a blank page.
        title: Its title.
        base: What its links are relative to.
        target: The tab its links and forms are for where they don't say it.
        notes: What this engine left out of it.
        posted: Whether it answers a POST, and so cannot be asked for again.
        bids: The ids that its elements have got.
        nodes: Its elements by these ids.
        counts: How many of its elements with an id have the same identity.
        forms: The identities of its forms.
        rows: What is said around each control that nothing else tells apart from another; None until an id is asked for.
        scrolled: Pixels that it is scrolled by.
        shown: Outline and elements as last described; None once something has changed.
    """

    def __init__(self, url: str, markup: bytes = b"", status: int = 0, posted: bool = False) -> None:
        root = etree.fromstring(markup, _PARSER) if markup.strip() else None
        if root is None:  # nothing in it but blanks and comments
            root = etree.fromstring(b"<html><body></body></html>", _PARSER)
        if _opened(markup) > _DEEPEST and _TOO_DEEP(root):
            root = etree.fromstring(message(f"This page is nested too deeply to show: more than {_DEEPEST} levels"), _PARSER)
        self.root: Node = root
        self.live = Live()
        self.status = status
        self.posted = posted
        self.url = self.base = url
        self.target = ""
        self.notes: tuple[str, ...] = ()
        self.bids: dict[Node, str] = {}
        self.nodes: dict[str, Node] = {}
        self.counts: dict[Identity, int] = {}
        self.forms: dict[Node, Identity] = {}
        self.rows: dict[Node, str] | None = None
        self.scrolled = 0.0
        self.shown: tuple[str, tuple[Element, ...]] | None = None
        title = next((title for title in root.iter("title") if next(title.iterancestors("svg"), None) is None), None)
        self.title = " ".join(text_of(title).split()) if title is not None else ""
        self._read_base()
        self._read_notes(markup)
        settle_radios(root.iter("input"), self.live)
        if b"autofocus" in markup:
            first = _AUTOFOCUS(root)
            self.live.focus = first[0] if isinstance(first, list) and first and isinstance(first[0], etree._Element) else None

    @classmethod
    def of(cls, response: Response) -> "Document | None":
        """A response as a document: a page as it is, a text as a text; None for what can only be saved."""
        markup = presentable(response)
        return None if markup is None else cls(response.url, markup, response.status, response.method == "POST")

    @property
    def body(self) -> Node:
        """The part that is shown."""
        body = self.root.find("body")
        return self.root if body is None else body

    def changed(self) -> None:
        """Says that the document is to be described anew."""
        self.shown = None

    @cached_property
    def named(self) -> dict[str, Node]:
        """Its elements by their ``id``."""
        return by_id(self.root)

    def _read_base(self) -> None:
        for base in self.root.iter("base"):
            href = base.get("href")
            if href is not None and self.base == self.url:
                try:
                    joined = urljoin(self.url, href.strip())
                except ValueError:
                    continue
                self.base = joined if joined.startswith(("http:", "https:")) else self.url
            self.target = self.target or base.get("target") or ""

    def _read_notes(self, markup: bytes) -> None:
        notes = []
        markup = markup.lower()
        left_out = {tag for tag in _LEFT_OUT if tag in markup and next(self.root.iter(tag[1:].decode()), None) is not None}
        if b"<script" in left_out:
            notes.append("scripts are not run by this engine")
        if _HANDLER.search(markup) and _HANDLERS(self.root):
            notes.append("event handlers such as onclick are not run by this engine")
        if left_out - {b"<script"}:
            notes.append("embedded frames and objects are not shown by this engine")
        if b"refresh" in markup and any((meta.get("http-equiv") or "").lower() == "refresh" for meta in self.root.iter("meta")):
            notes.append("the page would load another by itself (meta refresh), which this engine does not do")
        if b"popovertarget" in markup and next(self.root.iterfind(".//*[@popovertarget]"), None) is not None:
            notes.append("popovers are not opened by this engine")
        self.notes = tuple(notes)


def presentable(response: Response) -> bytes | None:
    """A response as the markup that is shown of it: a page's own, a text in a page, a message; None for what can only be saved."""
    markup = _text(response.body).encode()
    if not markup.strip() and not response.too_large and response.status >= 300:
        markup = message(f"{response.status} {HTTP_STATUS_CODES.get(response.status, 'Unknown Status')}")
    elif _TEXTS.fullmatch(response.kind) and response.kind not in _PAGES:
        markup = f"<pre>\n{html.escape(markup.decode())}</pre>".encode()
    elif response.kind not in _PAGES:
        return None
    if response.too_large or _opened(markup) > _MAX_NODES:
        markup = message(f"This page is too large to show: more than {MAX_BYTES:,} bytes or {_MAX_NODES:,} elements")
    return markup


def message(text: str) -> bytes:
    """A page that says one thing."""
    return f"<title>{text}</title><h1>{text}</h1>".encode()


def _opened(markup: bytes) -> int:
    """How many elements a markup has at most."""
    return markup.count(b"<") - markup.count(b"</")


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\0", "�")
