"""What assistive technology is told of an element: its role, name, states, value, and whether it is there at all.

Covered of ARIA 1.2 and HTML-AAM 1.0: explicit roles (the first valid token; ``none`` and ``presentation`` not on what can be focused;
``region`` and ``form`` only with a name) and the implicit role of every HTML element that has one. Where HTML-AAM gives no role or
leaves it to the platform: password, date and time fields and whatever is ``contenteditable`` are ``textbox``, file and colour fields
and a ``summary`` are ``button``. ``li`` and ``td`` do not look at what they stand in, ``th`` without a scope only at its row.
Covered of accname 1.2: all steps, with HTML-AAM's own sources of names. Left out is what needs a renderer (CSS content, display and
visibility from style sheets; inline styles count), ``aria-owns``, ``aria-describedby``, and names that a role prohibits.
"""

import re
from collections.abc import Mapping
from typing import Any

from agent_gym.browser.live import LEAF, Live, Node, labels_of, shows_list

__all__ = [
    "BLOCKS",
    "BY_CONTENT",
    "CONTROLS",
    "OPAQUE",
    "RANGES",
    "SPECIAL",
    "TOLD",
    "UNSEEN",
    "Attributes",
    "actions_of",
    "acts",
    "attributes_of",
    "editable",
    "hidden",
    "role_of",
    "states_of",
    "unseen",
    "value_shown",
]

Attributes = Mapping[str, str]
"""An element's attributes. Functions here ask for them and the tag, since reading those from the tree is what costs most."""

_NONE: dict[str, str] = {}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- Roles ---

_ROLES = _words(
    "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox complementary "
    "contentinfo definition deletion dialog directory document emphasis feed figure form generic grid gridcell group heading img insertion "
    "link list listbox listitem log main marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note "
    "option paragraph presentation progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider "
    "spinbutton status strong subscript superscript switch tab table tablist tabpanel term textbox time timer toolbar tooltip tree "
    "treegrid treeitem"
)
_WIDGETS = _words(
    "button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio searchbox slider spinbutton switch tab "
    "textbox treeitem"
)
BY_CONTENT = _words(
    "button cell checkbox columnheader gridcell heading link menuitem menuitemcheckbox menuitemradio option radio row rowheader switch tab "
    "tooltip treeitem"
)
TOLD = _WIDGETS & BY_CONTENT
"""Roles of what can be acted upon whose name tells what is inside."""
RANGES = frozenset({"meter", "progressbar", "scrollbar", "slider", "spinbutton"})
OPAQUE = _words(
    "button checkbox img math menuitemcheckbox menuitemradio meter option progressbar radio scrollbar separator slider switch tab"
)
"""Roles whose children are presentational: nothing inside them is told apart from them."""

_BY_TAG = {
    "address": "group", "article": "article", "aside": "complementary", "blockquote": "blockquote", "button": "button",
    "caption": "caption", "code": "code", "datalist": "listbox", "dd": "definition", "del": "deletion", "details": "group",
    "dfn": "term", "dialog": "dialog", "dt": "term", "em": "emphasis", "fieldset": "group", "figure": "figure", "h1": "heading",
    "h2": "heading", "h3": "heading", "h4": "heading", "h5": "heading", "h6": "heading", "hgroup": "group", "hr": "separator",
    "html": "document", "ins": "insertion", "li": "listitem", "main": "main", "mark": "mark", "math": "math", "menu": "list",
    "meter": "meter", "nav": "navigation", "ol": "list", "optgroup": "group", "option": "option", "output": "status", "p": "paragraph",
    "progress": "progressbar", "s": "deletion", "search": "search", "strong": "strong", "sub": "subscript", "sup": "superscript",
    "svg": "img", "table": "table", "tbody": "rowgroup", "td": "cell", "textarea": "textbox", "tfoot": "rowgroup", "thead": "rowgroup",
    "time": "time", "tr": "row", "ul": "list",
}  # fmt: skip
_BY_TYPE = {
    "button": "button", "checkbox": "checkbox", "color": "button", "file": "button", "hidden": "generic", "image": "button",
    "number": "spinbutton", "radio": "radio", "range": "slider", "reset": "button", "search": "searchbox", "submit": "button",
}  # fmt: skip
_SUGGESTING = frozenset({"", "text", "search", "tel", "url", "email"})
_NAMED_ONLY = {"region": "region", "form": "form", "section": "region"}
_PAGE_PARTS = {"header": "banner", "footer": "contentinfo"}
_SECTIONS = frozenset({"article", "aside", "main", "nav", "section"})
BLOCKS = _words(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hgroup hr legend li main menu nav ol optgroup option p pre search section summary table tbody tfoot thead tr ul"
)
"""Tags of elements that stand on lines of their own."""
CONTROLS = frozenset({"a", "area", "button", "input", "select", "summary", "textarea"})
"""Tags of elements that can be acted upon by nature (most of them only with some attribute or in some place)."""


def attributes_of(node: Node) -> dict[str, str]:
    """The attributes of an element."""
    items: Any = node.items()  # typed as str or bytes
    return dict(items) if items else _NONE


def role_of(node: Node, tag: str, attributes: Attributes) -> str:
    """The role of an element; ``generic`` where it has none."""
    if "role" in attributes:
        for token in attributes["role"].lower().split():
            if token not in _ROLES or (token in _NAMED_ONLY and not _has_name(attributes)):
                continue
            if token not in ("none", "presentation"):
                return token
            if not _focusable(tag, attributes):
                return "presentation"
            break
    if tag == "input":
        kind = attributes.get("type", "").lower()
        return "combobox" if "list" in attributes and kind in _SUGGESTING else _BY_TYPE.get(kind, "textbox")
    if tag == "a" or tag == "area":
        return "link" if "href" in attributes else "generic"
    if editable(attributes):
        return "textbox"
    if tag == "select":
        return "listbox" if ("multiple" in attributes or "size" in attributes) and shows_list(node) else "combobox"
    if tag == "img":
        return "presentation" if attributes.get("alt") == "" and not _has_name(attributes) else "img"
    if tag in _NAMED_ONLY:
        return _NAMED_ONLY[tag] if _has_name(attributes) else "generic"
    if tag in _PAGE_PARTS:
        return "generic" if any(above.tag in _SECTIONS for above in node.iterancestors()) else _PAGE_PARTS[tag]
    if tag == "th":
        scope = attributes.get("scope", "").lower()
        row = node.getparent()
        heads_row = scope.startswith("row") or (not scope and row is not None and row.find("td") is not None)
        return "rowheader" if heads_row else "columnheader"
    if tag == "summary":
        return "button" if _is_summary(node) else "generic"
    return _BY_TAG.get(tag, "generic")


def acts(tag: str, role: str, attributes: Attributes) -> bool:
    """Whether an element can be acted upon: by nature, by its role, or since the tab order leads to it; or whether it is to be
    told like that.
    """
    return role in _WIDGETS or LEAF in attributes or _focusable(tag, attributes)


def _focusable(tag: str, attributes: Attributes) -> bool:
    if tag in ("a", "area"):
        return "href" in attributes
    tabindex = attributes.get("tabindex", "").strip()
    return tag in ("button", "input", "select", "textarea") or tabindex.isdecimal() or editable(attributes)


def editable(attributes: Attributes) -> bool:
    """Whether text can be typed into an element that is no field."""
    return "contenteditable" in attributes and attributes["contenteditable"].lower() in ("", "true", "plaintext-only")


def _has_name(attributes: Attributes) -> bool:
    return any(attributes.get(source, "").strip() for source in ("aria-labelledby", "aria-label", "title"))


def _is_summary(node: Node) -> bool:
    """Whether a ``summary`` is the one that its ``details`` shows."""
    above = node.getparent()
    return above is not None and above.tag == "details" and above.find("summary") is node


# --- What is there ---

UNSEEN = _words(
    "audio base canvas col colgroup datalist embed head iframe link meta noembed noframes object param rp script source style template "
    "title track video"
)
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))", re.IGNORECASE)


SPECIAL = frozenset({LEAF, "aria-hidden", "contenteditable", "hidden", "inert", "popover", "role", "style", "tabindex"})
"""Attributes that may hide an element, change its role, or make it one that can be acted upon: without them its tag says it all (but
for ``input`` and ``dialog``)."""


def unseen(tag: str, attributes: Attributes) -> bool:
    """Whether an element cannot be seen, whatever it stands in."""
    return (
        tag in UNSEEN
        or "hidden" in attributes
        or "inert" in attributes
        or "popover" in attributes
        or attributes.get("aria-hidden") == "true"
        or ("style" in attributes and _HIDING.search(attributes["style"]) is not None)
        or (tag == "input" and attributes.get("type", "").lower() == "hidden")
        or (tag == "dialog" and "open" not in attributes)
    )


def hidden(node: Node, live: Live) -> bool:
    """Whether an element cannot be seen: it or one above it is hidden by attribute, inline style or nature, or it is in closed details."""
    below: Node | None = None
    at: Node | None = node
    while at is not None:
        if unseen(at.tag, attributes_of(at)):
            return True
        if at.tag == "details" and below is not None and not live.open(at) and below is not at.find("summary"):
            return True
        below, at = at, at.getparent()
    return False


# --- Values, states, actions ---

_STATES = {
    "aria-busy": "busy", "aria-checked": "checked", "aria-current": "current", "aria-disabled": "disabled", "aria-expanded": "expanded",
    "aria-invalid": "invalid", "aria-multiselectable": "multiselectable", "aria-pressed": "pressed", "aria-readonly": "readonly",
    "aria-required": "required", "aria-selected": "selected", "multiple": "multiselectable", "readonly": "readonly",
    "required": "required",
}  # fmt: skip
_TELLING = frozenset(_STATES)
_FIELDS = frozenset({"input", "select", "textarea"})
_TOKENS = frozenset({"aria-current", "aria-invalid"})
_UNTYPED = frozenset({"button", "checkbox", "image", "radio", "reset", "submit"})


def value_shown(node: Node, tag: str, attributes: Attributes, live: Live) -> str:
    """The text in a field, or the labels of what is selected in it; of a password as many dots; empty for everything else."""
    if tag == "input":
        kind = attributes.get("type", "").lower()
        if kind in _UNTYPED:
            return ""
        value = live.value(node)
        if kind == "password":
            return "•" * len(value)
        return value.replace("\n", ", ") if kind == "file" else value
    if tag == "select":
        labels = labels_of(node)
        return ", ".join([labels[option] for option in live.selected(node)])
    if tag == "textarea":
        return live.value(node)
    if editable(attributes):
        return live.values.get(node) or " ".join("".join(map(str, node.itertext())).split())
    return ""


def states_of(node: Node, tag: str, attributes: Attributes, live: Live, disabled: bool) -> tuple[str, ...]:
    """Which of `STATES` hold, in that order.

    Args:
        node: The element.
        tag: Its tag.
        attributes: Its attributes.
        live: The state of the document's controls.
        disabled: Whether it is disabled by HTML's rules.
    """
    found = {"disabled"} if disabled else set()
    if node is live.focus:
        found.add("focused")
    if live.invalid is not None and live.invalid[0] is node:
        found.add("invalid")
    toggle = tag == "input" and attributes.get("type", "").lower() in ("checkbox", "radio")
    if toggle and live.checked(node):
        found.add("checked")
    if tag == "summary":
        details = node.getparent()
        found.add("expanded" if details is not None and live.open(details) else "collapsed")
    if not _TELLING.isdisjoint(attributes):
        for name in _TELLING.intersection(attributes):
            value = attributes[name]
            if not name.startswith("aria-"):
                holds = tag in _FIELDS and not (toggle and name == "readonly")
            elif name in _TOKENS:
                holds = value not in ("", "false", "undefined")
            else:
                holds = value == "true" and not (toggle and name == "aria-checked")
            if holds:
                found.add(_STATES[name])
            elif name == "aria-expanded" and value == "false":
                found.add("collapsed")
    return tuple(sorted(found)) if found else ()


def actions_of(tag: str, attributes: Attributes, states: tuple[str, ...]) -> tuple[str, ...]:
    """Which of `ACTIONS` make sense on an element that can be acted upon."""
    if "disabled" in states:
        return ()
    if tag == "select":
        return ("select_option",)
    if tag == "input":
        kind = attributes.get("type", "").lower()
        if kind in ("checkbox", "radio"):
            return ("check",)
        if kind == "file":
            return ("upload_file",)
        fills = kind not in _UNTYPED
    else:
        fills = tag == "textarea" or editable(attributes)
    if not fills:
        return ("click",)
    return () if "readonly" in states else ("fill",)
