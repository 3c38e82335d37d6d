"""The one format of a page snapshot, whatever engine ran the page: what a person would see of it, as JSON values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ACTIONS", "SNAPSHOT_SCHEMA", "STATES", "Element", "PageSnapshot"]

ACTIONS = ("click", "fill", "select_option", "check", "upload_file", "drag_and_drop")
"""What an element may be there for, by the name of the action. ``click`` also for what activates by a click: links, buttons,
summaries; ``check`` for checkboxes and radio buttons; ``select_option`` for selects; ``fill`` for whatever takes text;
``drag_and_drop`` where a domain knows that something is to be dragged."""

STATES = (
    "busy",
    "checked",
    "collapsed",
    "current",
    "disabled",
    "expanded",
    "focused",
    "invalid",
    "multiselectable",
    "pressed",
    "readonly",
    "required",
    "selected",
)
"""States an element can show, in the order in which they are told."""


@dataclass(frozen=True, kw_only=True)
class Element:
    """One element that can be acted upon, or that names a part of the page.

    Attributes:
        bid: Its id, a string of digits. One thing keeps its id for the whole episode, also when the page is loaded again; an id is
            never given to another thing.
        role: Its ARIA role, such as ``link``, ``button``, ``textbox``, ``combobox``.
        name: Its accessible name.
        context: What it belongs to, if its name leaves that open: the text of its table row or list item, or the name of its form,
            fieldset or heading; at most 120 characters.
        value: The text in it, or of the options selected in it, joined by ``, ``; empty where it has none.
        states: Which of `STATES` hold.
        options: The labels of a select's options that can be chosen (or a datalist's values), in order.
        actions: Which of `ACTIONS` make sense on it; none while it is disabled.
        url: Where a link leads: the path within the site, or the whole URL elsewhere; empty otherwise.
        box: Where it is in the window, as left, top, width and height in pixels; empty where that was not asked for.
    """

    bid: str
    role: str
    name: str
    context: str = ""
    value: str = ""
    states: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    url: str = ""
    box: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PageSnapshot:
    """What can be seen of a page now.

    Attributes:
        url: Its URL, with the fragment.
        title: Its title.
        status: The HTTP status it came with; 0 for the blank page.
        tabs: The open tabs, ``{"title", "url", "active"}``.
        outline: The page for a reader, in lines: headings as ``# …``, definitions as ``term: value``, table rows as
            ``| cell | cell |``, list items as ``- …``, controls and links in place as ``[bid] role "name" …``.
        elements: The elements with an id, in document order.
        focused: The focused element's id, or empty.
        error: Why the last action failed, or empty.
        downloads: The names of what was downloaded in this episode.
        notes: What this engine left out of the page, such as scripts.
    """

    url: str
    title: str
    status: int
    tabs: tuple[Mapping[str, Any], ...]
    outline: str
    elements: tuple[Element, ...]
    focused: str = ""
    error: str = ""
    downloads: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON values of the same names; an element without a value, a state, … leaves that field out."""
        elements = [{name: value for name, value in vars(element).items() if value} for element in self.elements]
        return {**vars(self), "elements": elements}


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


SNAPSHOT_SCHEMA: dict[str, Any] = _object(
    ("url", "title", "status", "tabs", "outline", "elements", "focused", "error", "downloads", "notes"),
    url=_TEXT,
    title=_TEXT,
    status={"type": "integer", "minimum": 0, "maximum": 599},
    tabs={"type": "array", "minItems": 1, "items": _object(("title", "url", "active"), title=_TEXT, url=_TEXT, active={"type": "boolean"})},
    outline=_TEXT,
    elements={
        "type": "array",
        "items": _object(
            ("bid", "role"),
            bid={"type": "string", "pattern": "^[1-9][0-9]*$"},
            role=_TEXT,
            name=_TEXT,
            context={"type": "string", "maxLength": 120},
            value=_TEXT,
            states={"type": "array", "items": {"enum": list(STATES)}},
            options=_TEXTS,
            actions={"type": "array", "items": {"enum": list(ACTIONS)}},
            url=_TEXT,
            box={"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4},
        ),
    },
    focused=_TEXT,
    error=_TEXT,
    downloads=_TEXTS,
    notes=_TEXTS,
)
"""JSON Schema of `PageSnapshot.to_dict`, tuples read as arrays."""
