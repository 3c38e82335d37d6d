"""One loaded document: the parsed page, what the user has made of it, and the ids its elements have got."""

import html
import re
from functools import cached_property
from urllib.parse import urljoin

from lxml import etree
from werkzeug.http import HTTP_STATUS_CODES

from agent_gym.browser.inprocess.forms import by_id, hidden_fields, owner_of, settle_radios
from agent_gym.browser.inprocess.site import MAX_BYTES, Response
from agent_gym.browser.inputs import kind_of
from agent_gym.browser.live import Live, Node, text_of
from agent_gym.browser.snapshot import Element

__all__ = ["Document", "Ids"]

_MAX_NODES = 10_000
_DEEPEST = 250  # levels; libxml2 reads 256 of them
_TOO_DEEP = etree.XPath(f"boolean(//*[count(ancestor::*) > {_DEEPEST}])")
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml)")
_PARSER = etree.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
_HANDLERS = etree.XPath("boolean(//@*[starts-with(name(), 'on')])")
_AUTOFOCUS = etree.XPath("(//*[@autofocus])[1]")
_CONTROLS = frozenset({"button", "input", "select", "textarea"})
_BY_VALUE = frozenset({"radio", "checkbox", "submit", "image", "reset", "button"})
"""Controls whose ``value`` says what they are, not what is in them."""

_Key = tuple[object, ...]


class Ids:
    """The ids given out in one episode: one a thing, for good."""

    def __init__(self) -> None:
        self._known: dict[_Key, str] = {}
        self._given: set[str] = set()

    def __contains__(self, bid: str) -> bool:
        return bid in self._given

    def of(self, key: _Key) -> str:
        """The id of the thing that a key stands for; a new one at first sight."""
        bid = self._known.get(key)
        if bid is None:
            bid = self._known[key] = str(len(self._known) + 1)
            self._given.add(bid)
        return bid


class Document:
    """One document, from its load until it is left.

    Attributes:
        root: The parsed page.
        live: What the user has made of it.
        status: The HTTP status it came with; 0 for a blank page.
        title: Its title.
        base: What its links are relative to.
        target: The tab its links and forms are for where they don't say it.
        notes: What this engine left out of it.
        posted: Whether it answers a POST, and so cannot be asked for again.
        nodes: Its elements by id.
        shown: Outline and elements as last described; None once something has changed.
    """

    def __init__(self, url: str, markup: bytes = b"", status: int = 0, posted: bool = False) -> None:
        root = etree.fromstring(markup, _PARSER) if markup.strip() else None
        if root is None:  # nothing in it but blanks and comments
            root = etree.fromstring(b"<html><body></body></html>", _PARSER)
        self.root: Node = root
        self.live = Live()
        self.status = status
        self.posted = posted
        self.base = url
        self.target = ""
        self.notes: tuple[str, ...] = ()
        self.nodes: dict[str, Node] = {}
        self.shown: tuple[str, tuple[Element, ...]] | None = None
        self.located: dict[str, str] = {}
        self._bids: dict[Node, str] = {}
        self._equals: dict[_Key, int] = {}
        self._forms: dict[Node, _Key] = {}
        title = next((title for title in root.iter("title") if next(title.iterancestors("svg"), None) is None), None)
        self.title = " ".join(text_of(title).split()) if title is not None else ""
        self._read_base(url)
        self._read_notes(markup)
        settle_radios(root.iter("input"), self.live)
        if b"autofocus" in markup:
            first = _AUTOFOCUS(root)
            self.live.focus = first[0] if isinstance(first, list) and first and isinstance(first[0], etree._Element) else None

    @classmethod
    def of(cls, response: Response) -> "Document | None":
        """A response as a document: a page as it is, a text as a text; None for what can only be saved."""
        markup = response.body
        if response.too_large or _opened(markup) > _MAX_NODES:
            markup = _message(f"This page is too large to show: more than {MAX_BYTES:,} bytes or {_MAX_NODES:,} elements")
        elif not markup.strip() and response.status >= 300:
            markup = _message(f"{response.status} {HTTP_STATUS_CODES.get(response.status, 'Unknown Status')}")
        elif response.kind not in _PAGES:
            if not _TEXTS.fullmatch(response.kind):
                return None
            markup = f"<pre>\n{html.escape(_text(markup))}</pre>".encode()
        else:
            markup = _text(markup).encode()
        return cls(response.url, markup, response.status, response.method == "POST")

    @property
    def body(self) -> Node:
        """The part that is shown."""
        body = self.root.find("body")
        return self.root if body is None else body

    def changed(self) -> None:
        """Says that the document is to be described anew."""
        self.shown = None

    def name(self, ids: Ids, node: Node, role: str, name: str) -> str:
        """The id of an element: the one it has, else that of the same thing on an earlier page, else a new one."""
        bid = self._bids.get(node)
        if bid is None:
            key = self._key(node, role, name)
            ordinal = self._equals[key] = self._equals.get(key, -1) + 1
            bid = self._bids[node] = ids.of((key, ordinal))
            self.nodes[bid] = node
        return bid

    def bid(self, node: Node | None) -> str:
        """The id that an element has got, or empty."""
        return "" if node is None else self._bids.get(node, "")

    def _key(self, node: Node, role: str, name: str) -> _Key:
        """What makes an element the same thing as one on another page. Of a form also what it says without showing it: that tells
        the buttons of a list's rows apart.
        """
        tag, attributes = node.tag, dict(node.items())
        if tag not in _CONTROLS:
            return tag, role, name, attributes.get("id"), attributes.get("href")
        kind = kind_of(node)
        value = attributes.get("value") if kind in _BY_VALUE else None
        form = owner_of(node, self._named if "form" in attributes else None)
        return tag, role, name, attributes.get("id"), kind, attributes.get("name"), value, attributes.get("formaction"), self._form(form)

    @cached_property
    def _named(self) -> dict[str, Node]:
        return by_id(self.root)

    def _form(self, form: Node | None) -> _Key:
        if form is None:
            return ()
        known = self._forms.get(form)
        if known is None:
            known = self._forms[form] = (form.get("action"), form.get("id"), hidden_fields(form))
        return known

    def _read_base(self, url: str) -> None:
        for base in self.root.iter("base"):
            href = base.get("href")
            if href is not None and self.base == url:
                try:
                    joined = urljoin(url, href.strip())
                except ValueError:
                    continue
                self.base = joined if joined.startswith(("http:", "https:")) else url
            self.target = self.target or base.get("target") or ""

    def _read_notes(self, markup: bytes) -> None:
        notes = []
        left_out = {node.tag for node in self.root.iter("script", "iframe", "frame", "object", "embed")}
        if "script" in left_out:
            notes.append("scripts are not run by this engine")
        if (b" on" in markup or b" ON" in markup) and _HANDLERS(self.root):
            notes.append("event handlers such as onclick are not run by this engine")
        if left_out - {"script"}:
            notes.append("embedded frames and objects are not shown by this engine")
        if _opened(markup) >= _DEEPEST and _TOO_DEEP(self.root):
            notes.append("the page is nested too deeply to show all of it")
        self.notes = tuple(notes)


def _message(text: str) -> bytes:
    return f"<title>{text}</title><h1>{text}</h1>".encode()


def _opened(markup: bytes) -> int:
    """How many elements a markup has at most."""
    return markup.count(b"<") - markup.count(b"</")


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\0", "�")
