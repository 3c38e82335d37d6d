"""What assistive technology is told of an element: its role, name, states, value, and whether it is there at all.

Covered of ARIA 1.2 and HTML-AAM 1.0: explicit roles (the first valid token; ``none`` and ``presentation`` not on what can be focused;
``region`` and ``form`` only with a name) and the implicit role of every HTML element that has one. Where HTML-AAM gives no role or
leaves it to the platform: password, date and time fields and whatever is ``contenteditable`` are ``textbox``, file and colour fields
and a ``summary`` are ``button``. ``li`` and ``td`` do not look at what they stand in, ``th`` without a scope only at its row.
Covered of accname 1.2: all steps, with HTML-AAM's own sources of names. Left out is what needs a renderer (CSS content, display and
visibility from style sheets; inline styles count), ``aria-owns``, ``aria-describedby``, and names that a role prohibits.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import cast

from agent_gym.browser.live import Live, Node, label_of, shows_list

__all__ = [
    "BLOCKS",
    "CONTROLS",
    "MARKS",
    "OPAQUE",
    "TOLD",
    "Names",
    "actions_of",
    "acts",
    "hidden",
    "role_of",
    "states_of",
    "unseen",
    "value_shown",
]

Attributes = Mapping[str, str]

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
_NAMED_BY_CONTENT = _words(
    "button cell checkbox columnheader gridcell heading link menuitem menuitemcheckbox menuitemradio option radio row rowheader switch tab "
    "tooltip treeitem"
)
TOLD = _WIDGETS & _NAMED_BY_CONTENT
"""Roles of what can be acted upon whose name tells what is inside."""
_RANGES = frozenset({"meter", "progressbar", "scrollbar", "slider", "spinbutton"})
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
CONTROLS = frozenset({"a", "area", "button", "input", "select", "summary", "textarea"})
"""Tags of elements that can be acted upon by nature (most of them only with some attribute or in some place)."""
MARKS = frozenset({"contenteditable", "role", "tabindex"})
"""Attributes that make any element one that can be acted upon, or change its role."""


def attributes_of(node: Node) -> dict[str, str]:
    """The attributes of an element. Reading them from the tree costs more than all else here, so it is done once an element."""
    items = node.items()
    return dict(cast("list[tuple[str, str]]", items)) if items else _NONE


def role_of(node: Node, tag: str, attributes: Attributes) -> str:
    """The role of an element; ``generic`` where it has none.

    Args:
        node: The element.
        tag: Its tag.
        attributes: Its attributes (both are asked for since reading them from the tree is what costs most).
    """
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
    if attributes and _editable(attributes):
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
    """Whether an element can be acted upon: by nature, by its role, or since the tab order leads to it."""
    return role in _WIDGETS or _focusable(tag, attributes)


def _focusable(tag: str, attributes: Attributes) -> bool:
    if tag in ("a", "area"):
        return "href" in attributes
    tabindex = attributes.get("tabindex", "").strip()
    return tag in ("button", "input", "select", "textarea") or tabindex.isdecimal() or _editable(attributes)


def _editable(attributes: Attributes) -> bool:
    return attributes.get("contenteditable", "false").lower() in ("", "true", "plaintext-only")


def _has_name(attributes: Attributes) -> bool:
    return any(attributes.get(source, "").strip() for source in ("aria-labelledby", "aria-label", "title"))


def _is_summary(node: Node) -> bool:
    """Whether a ``summary`` is the one that its ``details`` shows."""
    above = node.getparent()
    return above is not None and above.tag == "details" and above.find("summary") is node


# --- What is there ---

_UNSEEN = _words(
    "audio base canvas col colgroup datalist embed head iframe link meta noembed noframes object param rp script source style template "
    "title track video"
)
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))", re.IGNORECASE)


def unseen(tag: str, attributes: Attributes) -> bool:
    """Whether an element cannot be seen, whatever it stands in."""
    if tag in _UNSEEN:
        return True
    if not attributes:
        return tag == "dialog"
    return (
        "hidden" in attributes
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


# --- Names ---

_LABELABLE = ("button", "input", "meter", "output", "progress", "select", "textarea")
_BUTTON_NAMES = {"submit": "Submit", "reset": "Reset"}
_CAPTIONS = {"fieldset": "legend", "table": "caption", "figure": "figcaption", "svg": "{http://www.w3.org/2000/svg}title"}
_WORDLESS = frozenset({"area", "img", "input", "svg"})
_BREAKS = frozenset({"br", "button", "input", "select", "td", "textarea", "th"})
BLOCKS = _words(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hgroup hr legend li main menu nav ol optgroup option p pre search section summary table tbody tfoot thead tr ul"
)
"""Tags of elements that stand on lines of their own."""
_APART = BLOCKS | _BREAKS


class Names:
    """The accessible names of one document.

    Args:
        body: The part of it that has the labels.
        live: The state of its controls.

    Attributes:
        labels: The labels of each control that has any, in document order.
        labelled: The control of each label that has one.
    """

    def __init__(self, body: Node, live: Live) -> None:
        self._body = body
        self._live = live
        self.labels: dict[Node, list[Node]] = {}
        self.labelled: dict[Node, Node] = {}
        labels = list(body.iter("label"))
        controls: dict[str, Node] = {}
        for control in _labelable(body) if labels else ():
            if identity := control.get("id"):
                controls.setdefault(identity, control)
        for label in labels:
            target = label.get("for")
            labelled = controls.get(target) if target is not None else next(_labelable(label), None)
            if labelled is not None:
                self.labels.setdefault(labelled, []).append(label)
                self.labelled[label] = labelled

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """The first element of each id, in the whole document."""
        found: dict[str, Node] = {}
        for node in self._body.getroottree().iter():
            if identity := node.get("id"):
                found.setdefault(identity, node)
        return found

    def of(self, node: Node, tag: str, role: str, attributes: Attributes) -> str:
        """The name of an element, blanks collapsed; empty where it has none."""
        if "aria-labelledby" in attributes and (name := self._referenced(node, tag, role, attributes)):
            return name
        return self._own(node, tag, role, attributes)

    def text(self, node: Node, but: Node | None = None) -> str:
        """What an element's content says, blanks collapsed: as a name from content.

        Args:
            node: The element.
            but: A control inside that says nothing, since it is the one to be named.
        """
        if not len(node):
            return " ".join((node.text or "").split())
        return self._gathered(node, but, reveal=False, follow=True)

    def _own(self, node: Node, tag: str, role: str, attributes: Attributes, reveal: bool = False, follow: bool = True) -> str:
        """The name that an element has of itself: all steps but ``aria-labelledby``."""
        if "aria-label" in attributes and (name := " ".join(attributes["aria-label"].split())):
            return name
        if node in self.labels and (name := " ".join(self._gathered(label, node, reveal, follow) for label in self.labels[node]).strip()):
            return name
        if tag != "a" and (name := self._native(node, tag, attributes)):
            return name
        if role in _NAMED_BY_CONTENT and tag != "input":
            name = self._gathered(node, None, reveal, follow) if len(node) else " ".join((node.text or "").split())
            if name:
                return name
        for source in ("title", "placeholder"):
            if source in attributes and (name := " ".join(attributes[source].split())):
                return name
        return "Submit Query" if tag == "input" and attributes.get("type", "").lower() == "image" else ""

    def _native(self, node: Node, tag: str, attributes: Attributes) -> str:
        """The name by HTML's own means, other than labels and content."""
        if tag == "input":
            kind = attributes.get("type", "").lower()
            if kind == "image":
                return " ".join(attributes.get("alt", "").split())
            if kind in ("submit", "reset", "button"):
                return " ".join(attributes.get("value", _BUTTON_NAMES.get(kind, "")).split())
        elif tag in ("img", "area"):
            return " ".join(attributes.get("alt", "").split())
        elif tag in ("optgroup", "option"):
            return " ".join(attributes.get("label", "").split())
        elif tag in _CAPTIONS:
            caption = next((child for child in node if child.tag in (_CAPTIONS[tag], "title")), None)
            return "" if caption is None else self.text(caption)
        return ""

    def _referenced(self, node: Node, tag: str, role: str, attributes: Attributes) -> str:
        """The name by ``aria-labelledby``, which is followed once: what it refers to is named without it."""
        names: list[str] = []
        for identity in attributes["aria-labelledby"].split():
            target = self.by_id.get(identity)
            if target is node:
                names.append(self._own(node, tag, role, attributes, follow=False))
            elif target is not None:
                said: list[str] = []
                self._say(target, said, None, reveal=hidden(target, self._live), follow=False)
                names.append(" ".join("".join(said).split()))
        return " ".join(filter(None, names))

    def _gathered(self, node: Node, but: Node | None, reveal: bool, follow: bool) -> str:
        said: list[str] = []
        self._gather(node, said, but, reveal, follow)
        return " ".join("".join(said).split())

    def _gather(self, node: Node, said: list[str], but: Node | None, reveal: bool, follow: bool) -> None:
        """Adds what the content of an element says."""
        if text := node.text:
            said.append(text)
        shut = not reveal and node.tag == "details" and not self._live.open(node)
        for child in node:
            if child is not but and (not shut or child is node.find("summary")):
                self._say(child, said, but, reveal, follow)
            if text := child.tail:
                said.append(text)

    def _say(self, node: Node, said: list[str], but: Node | None, reveal: bool, follow: bool) -> None:
        """Adds what an element says in a name that it is part of.

        Args:
            node: The element.
            said: Where to add it.
            but: The control that is being named.
            reveal: Whether hidden elements speak: where ``aria-labelledby`` refers to something hidden.
            follow: Whether ``aria-labelledby`` is followed.
        """
        tag = node.tag
        attributes = attributes_of(node)
        if (tag in _UNSEEN) if reveal else unseen(tag, attributes):
            return
        if not attributes and tag not in _APART:
            self._gather(node, said, but, reveal, follow)
            return
        role = role_of(node, tag, attributes)
        if "aria-labelledby" in attributes and follow and (name := self._referenced(node, tag, role, attributes)):
            said.append(name)
            return
        apart = tag in _APART
        if apart:
            said.append(" ")
        if role in ("textbox", "searchbox", "combobox", "listbox") or role in _RANGES:
            said.append(self._embedded(node, tag, role, attributes))
        elif name := attributes.get("aria-label", "").strip() or (self._native(node, tag, attributes) if tag in _WORDLESS else ""):
            said.append(name)
        else:
            length = len(said)
            if tag != "input":
                self._gather(node, said, but, reveal, follow)
            if "title" in attributes and not "".join(said[length:]).strip():
                said.append(attributes["title"])
        if apart:
            said.append(" ")

    def _embedded(self, node: Node, tag: str, role: str, attributes: Attributes) -> str:
        """What a control says in the name of another: its value."""
        if role in _RANGES:
            for source in ("aria-valuetext", "aria-valuenow", "value"):
                if source in attributes and not (source == "value" and tag == "input"):
                    return attributes[source]
        if tag in ("input", "select", "textarea"):
            return value_shown(node, tag, attributes, self._live)
        chosen = [child for child in node.iter() if child.get("role") == "option" and child.get("aria-selected") == "true"]
        if role in ("combobox", "listbox") and chosen:
            return ", ".join(map(self.text, chosen))
        return "" if role == "listbox" else self.text(node)


def _labelable(node: Node) -> Iterator[Node]:
    return (control for control in node.iter(*_LABELABLE) if (control.get("type") or "").lower() != "hidden")


# --- Values, states, actions ---

_STATES = {
    "aria-busy": "busy", "aria-checked": "checked", "aria-current": "current", "aria-disabled": "disabled", "aria-invalid": "invalid",
    "aria-multiselectable": "multiselectable", "aria-pressed": "pressed", "aria-readonly": "readonly", "aria-required": "required",
    "aria-selected": "selected",
}  # fmt: skip
_FIELD_STATES = {"multiple": "multiselectable", "readonly": "readonly", "required": "required"}
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
        return ", ".join(map(label_of, live.selected(node)))
    if tag == "textarea":
        return live.value(node)
    if attributes and _editable(attributes):
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
    if tag == "summary":
        details = node.getparent()
        found.add("expanded" if details is not None and live.open(details) else "collapsed")
    elif tag == "input" and attributes.get("type", "").lower() in ("checkbox", "radio"):
        if live.checked(node):
            found.add("checked")
        attributes = {name: value for name, value in attributes.items() if name not in ("aria-checked", "readonly")}
    for name, value in attributes.items():
        if name in _STATES:
            if value not in ("", "false", "undefined") if name in _TOKENS else value == "true":
                found.add(_STATES[name])
        elif name in _FIELD_STATES:
            if tag in _FIELDS:
                found.add(_FIELD_STATES[name])
        elif name == "aria-expanded" and value in ("true", "false") and tag != "summary":
            found.add("expanded" if value == "true" else "collapsed")
    return tuple(sorted(found))


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
        fills = tag == "textarea" or _editable(attributes)
    if not fills:
        return ("click",)
    return () if "readonly" in states else ("fill",)
