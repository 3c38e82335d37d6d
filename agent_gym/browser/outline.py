"""A page told in lines that a person, a language model and a program can read, and the list of what can be acted upon in it.

What a page shows is data: wherever its text has ``[digits]``, as only an element may, the bracket gets a backslash; so does the first
character of a line of text that would look like a heading, a row, an item or a message, a quote or backslash in a quoted name, and a
``|`` in a cell. So a row splits at `` | ``, a definition at its first ``: ``, and an element is a ``[`` without a backslash.
"""

from collections.abc import Callable
from typing import Any

from agent_gym.browser.accessibility import (
    BLOCKS,
    CONTROLS,
    OPAQUE,
    SPECIAL,
    TOLD,
    UNSEEN,
    Attributes,
    acts,
    attributes_of,
    editable,
    hidden,
    role_of,
    unseen,
)
from agent_gym.browser.elements import Elements
from agent_gym.browser.lines import cell, escaped, quoted, safe, wrapped
from agent_gym.browser.live import FRAME, LEAF, Live, Node, text_of
from agent_gym.browser.snapshot import Element

__all__ = ["describe", "hidden"]

_ALL_ROWS = 65_534
"""What ``rowspan=0`` stands for: the rest of the table."""
_NAV_LINE = 300
"""Characters up to which a navigation is told on one line."""
_NONE: dict[str, str] = {}
_NAMED_OTHERWISE = frozenset({"aria-label", "aria-labelledby", "hidden"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LEAVES = frozenset({"input", "select", "textarea"})

_Cell = tuple[str, str, int, int]
"""Of a cell: what is shown, what that says apart from controls, and the first of the found in it and after it."""


def describe(
    body: Node, live: Live, give_id: Callable[[Node, str, str], str], locate: Callable[[str], str]
) -> tuple[str, tuple[Element, ...]]:
    """The outline and the elements of a page.

    Args:
        body: The document's body.
        live: The state of its controls.
        give_id: Gives the bid of an element from itself, its role and its name. Called once an element, in document order.
        locate: Gives what `Element.url` shows for an ``href``.
    """
    walk = _Walk(body, live, give_id, locate)
    walk.inside(body)
    walk.flush()
    return "\n".join(wrapped(walk.lines)), walk.elements()


class _Walk(Elements):
    """One pass over a tree. Handlers take an element, its tag and its attributes; reading those once is what makes it fast."""

    def __init__(self, body: Node, live: Live, give_id: Callable[[Node, str, str], str], locate: Callable[[str], str]) -> None:
        super().__init__(body, live, give_id, locate)
        self._mute = False  # text here is told already, in a name
        self._exempt: dict[Node, bool] = {}  # the first legends of disabled fieldsets: whether disabled by one further out
        self._number = 0  # of the next item of an ordered list
        self._rows = False  # whether the table around is one, not a layout
        self._cells: list[_Cell] = []  # of the row around
        self._spans: dict[int, tuple[int, str]] = {}  # of its columns that a cell above reaches into: for how many rows, what it says
        self._row_lines: list[str] | None = None  # where that row is put together: only cells there are its own
        self._terms: list[str] = []  # of the definition at hand
        self._values: list[str] = []
        self._dl_lines: list[str] | None = None  # where that is put together
        self._told_until = 0  # lines there before it

    def _apart(self, node: Node) -> list[str]:
        """The lines of what is inside an element, kept apart."""
        if not len(node):
            line = "" if self._mute else " ".join((node.text or "").split())
            return [safe(line)] if line else []
        outer = self.begin()
        self.inside(node)
        return self.end(outer)

    def inside(self, node: Node) -> None:
        """Tells what is inside an element."""
        run, mute = self.run, self._mute  # whoever changes them changes them back
        if (text := node.text) and not mute and (run or not text.isspace()):
            run.append(text)
        for child in node:
            tag = child.tag
            items: Any = child.items()
            attributes: Attributes = dict(items) if items else _NONE
            if not items or SPECIAL.isdisjoint(attributes):
                handler = _HANDLERS.get(tag)
            elif unseen(tag, attributes):
                handler = _Walk._nothing
            else:
                handler = self._special(child, tag, attributes)
            if handler is None:
                self.inside(child)
            else:
                handler(self, child, tag, attributes)
            if (text := child.tail) and not mute and (run or not text.isspace()):
                run.append(text)

    def _nothing(self, *_: object) -> None:
        """What cannot be seen, or is told already."""

    def _link(self, node: Node, tag: str, attributes: Attributes) -> None:
        if "href" in attributes:
            self.add_control(node, tag, "link", attributes)
            if len(node):
                self._told(node, tag, attributes)
        else:
            self.inside(node)

    def _field(self, node: Node, tag: str, attributes: Attributes) -> None:
        if tag != "input" or not unseen(tag, attributes):
            self.add_control(node, tag, role_of(node, tag, attributes), attributes)

    def _special(self, node: Node, tag: str, attributes: Attributes) -> "_Handler":
        """Tells what may be other than its tag says, if it can be acted upon, and returns what tells the inside of it."""
        role = role_of(node, tag, attributes)
        handler = _BY_TAG.get(tag, _Walk._inline)
        if "role" in attributes and tag != "details":
            handler = _BY_ROLE.get(role, handler)
        if acts(tag, role, attributes):
            if tag in BLOCKS:
                self.flush()
            self.add_control(node, tag, role, attributes)
            if tag in _LEAVES or editable(attributes) or (role in OPAQUE and tag != "summary"):
                return _Walk._break if tag in BLOCKS else _Walk._nothing
            if (role in TOLD and tag != "details") or LEAF in attributes:
                return _Walk._told
        return handler

    def _any(self, node: Node, tag: str, attributes: Attributes) -> None:
        """An ``area`` or ``summary``, which are controls or not."""
        self._special(node, tag, attributes)(self, node, tag, attributes)

    def _told(self, node: Node, tag: str, _: object) -> None:
        """What is inside something whose name tells its text: only what can be acted upon is told."""
        if len(node):
            before, self._mute = self._mute, True
            self.inside(node)
            self._mute = before
        if tag in BLOCKS:
            self.flush()

    def _inline(self, node: Node, *_: object) -> None:
        self.inside(node)

    def _block(self, node: Node, *_: object) -> None:
        if self.run:
            self.flush()
        self.inside(node)
        if self.run:
            self.flush()

    def _break(self, *_: object) -> None:
        self.flush()

    def _pre(self, node: Node, *_: object) -> None:
        """Text whose lines and blanks are kept; what can be acted upon in it comes after."""
        self.flush()
        before = self._mute
        if not before:
            self.lines += [safe(line) for line in text_of(node).expandtabs().rstrip().splitlines() if line]
        self._mute = True
        self.inside(node)
        self._mute = before
        self.flush()

    def _image(self, node: Node, tag: str, attributes: Attributes) -> None:
        name = "" if self._mute or attributes.get("alt") == "" else self._names.of(node, tag, "img", attributes)
        if name:
            self.run.append(f" (image: {name}) ")

    def _gauge(self, _: Node, tag: str, attributes: Attributes) -> None:
        """A progress bar or meter."""
        if not self._mute:
            now = attributes.get("value", attributes.get("aria-valuenow", "unknown"))
            most = attributes.get("max", attributes.get("aria-valuemax", ""))
            self.run.append(f" ({tag if tag == 'meter' else 'progress'}: {now}{most and f' of {most}'}) ")

    def _label(self, node: Node, *_: object) -> None:
        """A label is told as the name of its control, where it is that."""
        control = self._names.labelled.get(node)
        before = self._mute
        if control is not None and control.tag in CONTROLS and _NAMED_OTHERWISE.isdisjoint(control.keys()):
            self._mute = True
        self.inside(node)
        self._mute = before

    # --- Parts of the page ---

    def _heading(self, node: Node, tag: str, attributes: Attributes) -> None:
        self.flush()
        if lines := self._apart(node):
            title = " ".join(lines)
            if self.lines[-1:] == [f"— {title} —"]:  # a form named as its heading
                self.lines.pop()
            level = int(tag[1]) if tag in _HEADINGS else _number(attributes, "aria-level", 2)
            self.lines.append(f"{'#' * min(max(level, 1), 6)} {title}")
            self._section = self._names.text(node)

    def _scope(self, node: Node, _: str, attributes: Attributes) -> None:
        """A part with headings of its own."""
        before = self._section, self._disabled, self._mute
        if FRAME in attributes:
            self._disabled = self._mute = False
        self._block(node)
        self._section, self._disabled, self._mute = before

    def _group(self, node: Node, tag: str, attributes: Attributes) -> None:
        """A form, fieldset, dialog or group: told by its name, if that is not in the text anyway."""
        self.flush()
        if tag == "dialog" and "open" not in attributes:
            return
        section, disabled = self._section, self._disabled
        if name := self._names.of(node, tag, "group", attributes):
            self._section = name
            if not self._mute and ("aria-label" in attributes or "title" in attributes) and "aria-labelledby" not in attributes:
                self.lines.append(f"— {escaped(name)} —")
        if tag == "fieldset" and "disabled" in attributes:
            self._disabled = True
            if (legend := node.find("legend")) is not None:
                self._exempt[legend] = disabled
        self.inside(node)
        self.flush()
        self._section, self._disabled = section, disabled

    def _legend(self, node: Node, *_: object) -> None:
        self.flush()
        before = self._disabled
        self._disabled = self._exempt.get(node, before)
        if lines := self._apart(node):
            self.lines.append(f"— {' '.join(lines)} —")
        self._disabled = before

    def _details(self, node: Node, *_: object) -> None:
        """Details: of closed ones the summary only."""
        if self._live.open(node):
            self._block(node)
            return
        summary = node.find("summary")
        if summary is not None and not unseen("summary", attributes := attributes_of(summary)):
            self._any(summary, "summary", attributes)

    def _navigation(self, node: Node, tag: str, attributes: Attributes) -> None:
        self.flush()
        section, nav = self._section, self._nav
        name = self._names.of(node, tag, "navigation", attributes)
        self._section, self._nav = name, True
        lines = self._apart(node)
        self._section, self._nav = section, nav
        if lines:
            head = f"navigation {escaped(quoted(name))}:" if name else "navigation:"
            line = f"{head} {' · '.join(lines)}"
            self.lines += [line] if len(line) <= _NAV_LINE else [head, *[f"- {line}" for line in lines]]

    def _message(self, node: Node, *_: object) -> None:
        self.flush()
        if lines := self._apart(node):
            self.lines += [f"! {lines[0]}", *lines[1:]]

    # --- Lists and tables ---

    def _list(self, node: Node, tag: str, attributes: Attributes) -> None:
        before = self._number
        self._number = _number(attributes, "start", 1) if tag == "ol" else 0
        self._block(node)
        self._number = before

    def _item(self, node: Node, *_: object) -> None:
        self.flush()
        mark, section, first = "- ", self._section, len(self._found)
        number, self._number = self._number, 0
        lines = self._apart(node)
        if number:
            mark, number = f"{number}. ", number + 1
        self._number, self._section = number, section
        if self._nav:
            self.lines += lines
        elif lines:
            self.lines.append(mark + lines[0])
            self.lines += [" " * len(mark) + line for line in lines[1:]]
        if first < len(self._found) and not self._nav:
            said = self._names.prose(node)
            for at in range(first, len(self._found)):
                if not self._contexts[at] and said != self._found[at][2]:
                    self._contexts[at] = said

    def _table(self, node: Node, _: str, attributes: Attributes) -> None:
        before = (self._rows, self._spans)
        self._rows, self._spans = attributes.get("role") not in ("none", "presentation"), {}
        self._block(node)
        self._rows, self._spans = before

    def _row(self, node: Node, tag: str, _: object) -> None:
        if tag == "tr" and not self._rows:
            self._block(node)
            return
        self.flush()
        outer, before, first = self.begin(), (self._row_lines, self._cells), len(self._found)
        cells: list[_Cell] = []
        self._row_lines, self._cells = self.lines, cells
        self.inside(node)
        self._row_lines, self._cells = before
        if strays := self.end(outer):
            cells.append((cell(strays), "", 0, 0))
        if self._spans:
            self._reach(cells)
            self._spans = {at: (rows - 1, said) for at, (rows, said) in self._spans.items() if rows > 1}
        if any(shown for shown, _, _, _ in cells):
            self.lines.append(f"| {' | '.join([shown for shown, _, _, _ in cells])} |")
        for at in range(first, len(self._found)):
            if not self._contexts[at]:
                name = self._found[at][2]
                told = [said for _, said, begin, end in cells if said and not (said == name and begin <= at < end)]
                self._contexts[at] = " ".join(told)

    def _cell(self, node: Node, _: str, attributes: Attributes) -> None:
        """A cell, after what strays in the row before it."""
        if self._row_lines is not self.lines:
            self._block(node)
            return
        self.flush()
        if self._spans:
            self._reach(self._cells)
        column = len(self._cells)
        if len(node) or self.lines or self._mute:
            first, section = len(self._found), self._section
            strays = self.lines.copy()
            self.lines.clear()
            shown = cell([*strays, *self._apart(node)])
            said = "" if self._mute else self._names.prose(node)
            self._section = section
            self._cells.append((shown, said, first, len(self._found)))
        else:
            said = " ".join((node.text or "").split())
            self._cells.append((cell([safe(said)]), said, 0, 0))
        if "colspan" in attributes:
            self._cells += [("", "", 0, 0)] * (min(_number(attributes, "colspan", 1), 100) - 1)
        if "rowspan" in attributes:
            rows = _number(attributes, "rowspan", 1) or _ALL_ROWS
            self._spans |= dict.fromkeys(range(column, len(self._cells)), (rows, said))

    def _reach(self, cells: list[_Cell]) -> None:
        """Leaves out the next columns of a row that cells above reach into."""
        while len(cells) in self._spans:
            cells.append(("", self._spans[len(cells)][1], 0, 0))

    def _definitions(self, node: Node, *_: object) -> None:
        self.flush()
        before = (self._dl_lines, self._told_until, self._terms, self._values, self._section)
        self._dl_lines, self._told_until, self._terms, self._values = self.lines, len(self.lines), [], []
        self.inside(node)
        self._define()
        self._dl_lines, self._told_until, self._terms, self._values, self._section = before

    def _term(self, node: Node, *_: object) -> None:
        if self._dl_lines is not self.lines:
            self._block(node)
            return
        self._stray()
        if self._values:
            self._define()
        self._terms.append(" ".join(self._apart(node)).rstrip(" :"))
        self._section = self._names.prose(node) or self._section

    def _value(self, node: Node, *_: object) -> None:
        if self._dl_lines is not self.lines:
            self._block(node)
            return
        self._stray()
        self._values.append(" ".join(self._apart(node)))

    def _stray(self) -> None:
        """Adds what strays in a definition to its values."""
        self.flush()
        if (self._terms or self._values) and len(self.lines) > self._told_until:
            self._values.append(" ".join(self.lines[self._told_until :]))
            del self.lines[self._told_until :]

    def _define(self) -> None:
        """Ends a definition."""
        self._stray()
        term, value = ", ".join(filter(None, self._terms)), ", ".join(filter(None, self._values))
        if term or value:
            self.lines.append(f"{term}: {value}".rstrip() if term else value)
        self._told_until, self._terms, self._values = len(self.lines), [], []


def _number(attributes: Attributes, name: str, default: int) -> int:
    text = attributes.get(name, "").strip()[:9]
    return int(text) if text.isdecimal() else default


_Handler = Callable[[_Walk, Node, str, Attributes], None]

_BY_TAG: dict[str, _Handler] = {
    **dict.fromkeys(BLOCKS, _Walk._block),
    **dict.fromkeys(_HEADINGS, _Walk._heading),
    **dict.fromkeys(("article", "aside", "main", "section"), _Walk._scope),
    **dict.fromkeys(("dialog", "fieldset", "form"), _Walk._group),
    **dict.fromkeys(("ul", "ol", "menu"), _Walk._list),
    **dict.fromkeys(("td", "th"), _Walk._cell),
    **dict.fromkeys(("progress", "meter"), _Walk._gauge),
    **dict.fromkeys(("img", "svg"), _Walk._image),
    **dict.fromkeys(("br", "hr"), _Walk._break),
    "details": _Walk._details,
    "dd": _Walk._value,
    "dl": _Walk._definitions,
    "dt": _Walk._term,
    "label": _Walk._label,
    "legend": _Walk._legend,
    "li": _Walk._item,
    "nav": _Walk._navigation,
    "output": _Walk._message,
    "pre": _Walk._pre,
    "table": _Walk._table,
    "tr": _Walk._row,
}
_HANDLERS: dict[str, _Handler] = {
    **_BY_TAG,
    **dict.fromkeys(UNSEEN, _Walk._nothing),
    **dict.fromkeys(("button", "input", "select", "textarea"), _Walk._field),
    **dict.fromkeys(("area", "summary"), _Walk._any),
    "a": _Walk._link,
}
_BY_ROLE: dict[str, _Handler] = {
    **dict.fromkeys(("alertdialog", "dialog", "form", "group", "radiogroup"), _Walk._group),
    **dict.fromkeys(("alert", "status"), _Walk._message),
    **dict.fromkeys(("meter", "progressbar"), _Walk._gauge),
    **dict.fromkeys(("cell", "columnheader", "gridcell", "rowheader"), _Walk._cell),
    **dict.fromkeys(("grid", "table"), _Walk._table),
    "heading": _Walk._heading,
    "img": _Walk._image,
    "list": _Walk._list,
    "listitem": _Walk._item,
    "navigation": _Walk._navigation,
    "row": _Walk._row,
}
