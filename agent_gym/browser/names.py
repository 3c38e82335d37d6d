"""Accessible names: what a person would call an element of a page."""

from collections.abc import Iterator
from functools import cached_property

from agent_gym.browser.accessibility import (
    BLOCKS,
    BY_CONTENT,
    CONTROLS,
    RANGES,
    UNSEEN,
    Attributes,
    attributes_of,
    hidden,
    role_of,
    unseen,
    value_shown,
)
from agent_gym.browser.live import Live, Node, around

__all__ = ["Names"]

_LABELABLE = ("button", "input", "meter", "output", "progress", "select", "textarea")
_BUTTON_NAMES = {"submit": "Submit", "reset": "Reset"}
_CAPTIONS = {"fieldset": "legend", "table": "caption", "figure": "figcaption", "svg": "title"}
_WORDLESS = frozenset({"area", "img", "input", "svg"})
_BREAKS = frozenset({"br", "button", "input", "select", "td", "textarea", "th"})
_APART = BLOCKS | _BREAKS
_LONGEST = 2_000
"""What is read for one name: so many characters and elements together."""
_DEEPEST = 80
"""Levels of elements that are read for one name."""


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
        self._room = _LONGEST  # what may still be read for this name
        self._depth = 0
        self.labels: dict[Node, list[Node]] = {}
        self.labelled: dict[Node, Node] = {}
        labels = list(body.iter("label"))
        controls: dict[str, Node] = {}
        for control in _labelable(body) if labels else ():
            if identity := control.get("id"):
                controls.setdefault(identity, control)
        for label in labels:
            target = label.get("for")
            labelled = (
                controls.get(target)
                if target is not None
                else next((control for control in _labelable(label) if label in around(control)), None)
            )
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
        """The name of an element, blanks collapsed; empty where it has none. Of a very long one the beginning."""
        self._room = _LONGEST
        if "aria-labelledby" in attributes and (name := self._referenced(node, tag, role, attributes)):
            return name
        return self._own(node, tag, role, attributes)

    def text(self, node: Node, but: Node | None = None) -> str:
        """What an element's content says, blanks collapsed: as a name from content.

        Args:
            node: The element.
            but: A control inside that says nothing, since it is the one to be named.
        """
        self._room = _LONGEST
        return self._gathered(node, but, reveal=False, follow=True)

    def prose(self, node: Node) -> str:
        """What an element says apart from the controls in it: text, links and images, blanks collapsed."""
        if not len(node):
            return " ".join((node.text or "").split())
        said: list[str] = []
        self._tell(node, said)
        return " ".join("".join(said).split())

    def _tell(self, node: Node, said: list[str]) -> None:
        if text := node.text:
            said.append(text)
        for child in node:
            tag = child.tag
            attributes = attributes_of(child)
            apart = tag in _APART
            if apart:
                said.append(" ")
            if (
                (tag in CONTROLS and tag != "a")
                or unseen(tag, attributes)
                or child in self.labelled
                or (tag == "details" and not self._live.open(child))
            ):
                pass
            elif tag == "img" or "aria-label" in attributes:
                said.append(self.of(child, tag, "", attributes))
            else:
                self._tell(child, said)
            if apart:
                said.append(" ")
            if text := child.tail:
                said.append(text)

    def _own(self, node: Node, tag: str, role: str, attributes: Attributes, reveal: bool = False, follow: bool = True) -> str:
        """The name that an element has of itself: all steps but ``aria-labelledby``."""
        if "aria-label" in attributes and (name := " ".join(attributes["aria-label"].split())):
            return name
        if node in self.labels and (name := " ".join(self._gathered(label, node, reveal, follow) for label in self.labels[node]).strip()):
            return name
        if tag != "a" and (name := self._native(node, tag, attributes, reveal, follow)):
            return name
        if role in BY_CONTENT and tag != "input" and (name := self._gathered(node, None, reveal, follow)):
            return name
        for source in ("title", "placeholder"):
            if source in attributes and (name := " ".join(attributes[source].split())):
                return name
        return "Submit Query" if tag == "input" and attributes.get("type", "").lower() == "image" else ""

    def _native(self, node: Node, tag: str, attributes: Attributes, reveal: bool, follow: bool) -> str:
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
            caption = next((child for child in node if child.tag == _CAPTIONS[tag]), None)
            return "" if caption is None else self._gathered(caption, None, reveal, follow)
        return ""

    def _referenced(self, node: Node, tag: str, role: str, attributes: Attributes) -> str:
        """The name by ``aria-labelledby``, which is followed once: what it refers to is named without it."""
        names: list[str] = []
        for identity in dict.fromkeys(attributes["aria-labelledby"].split()):
            target = self.by_id.get(identity)
            if target is node:
                names.append(self._own(node, tag, role, attributes, follow=False))
            elif target is not None:
                said: list[str] = []
                self._say(target, said, None, reveal=hidden(target, self._live), follow=False)
                names.append(" ".join("".join(said).split()))
        return " ".join(filter(None, names))

    def _gathered(self, node: Node, but: Node | None, reveal: bool, follow: bool) -> str:
        if not len(node):
            return " ".join((node.text or "").split())
        said: list[str] = []
        self._gather(node, said, but, reveal, follow)
        return " ".join("".join(said).split())

    def _gather(self, node: Node, said: list[str], but: Node | None, reveal: bool, follow: bool) -> None:
        """Adds what the content of an element says, as far as there is room."""
        if node.tag == "details" and not reveal and not self._live.open(node):
            if (summary := node.find("summary")) is not None:
                self._say(summary, said, but, reveal, follow)
            return
        if text := node.text:
            said.append(text)
            self._room -= len(text)
        self._depth += 1
        for child in node:
            if self._room <= 0 or self._depth > _DEEPEST:
                break
            if child is not but:
                self._say(child, said, but, reveal, follow)
            if text := child.tail:
                said.append(text)
                self._room -= len(text)
        self._depth -= 1

    def _say(self, node: Node, said: list[str], but: Node | None, reveal: bool, follow: bool) -> None:
        """Adds what an element says in a name that it is part of.

        Args:
            node: The element.
            said: Where to add it.
            but: The control that is being named.
            reveal: Whether hidden elements speak: where ``aria-labelledby`` refers to something hidden.
            follow: Whether ``aria-labelledby`` is followed.
        """
        self._room -= 1
        tag = node.tag
        attributes = attributes_of(node)
        if (tag in UNSEEN) if reveal else unseen(tag, attributes):
            return
        if not attributes and tag not in _APART and tag != "svg":
            self._gather(node, said, but, reveal, follow)
            return
        role = role_of(node, tag, attributes)
        if "aria-labelledby" in attributes and follow and (name := self._referenced(node, tag, role, attributes)):
            said.append(name)
            return
        apart = tag in _APART
        if apart:
            said.append(" ")
        if role in ("textbox", "searchbox", "combobox", "listbox") or role in RANGES:
            said.append(self._embedded(node, tag, role, attributes, reveal, follow))
        elif name := attributes.get("aria-label", "").strip() or (
            self._native(node, tag, attributes, reveal, follow) if tag in _WORDLESS else ""
        ):
            said.append(name)
        else:
            length = len(said)
            if tag != "input":
                self._gather(node, said, but, reveal, follow)
            if "title" in attributes and not "".join(said[length:]).strip():
                said.append(attributes["title"])
        if apart:
            said.append(" ")

    def _embedded(self, node: Node, tag: str, role: str, attributes: Attributes, reveal: bool, follow: bool) -> str:
        """What a control says in the name of another: its value."""
        if role in RANGES:
            for source in ("aria-valuetext", "aria-valuenow", "value"):
                if source in attributes and not (source == "value" and tag == "input"):
                    return attributes[source]
        if tag in ("input", "select", "textarea"):
            return value_shown(node, tag, attributes, self._live)
        if role in ("combobox", "listbox"):
            chosen = [child for child in node.iter() if child.get("role") == "option" and child.get("aria-selected") == "true"]
            if chosen:
                return ", ".join(self._gathered(option, None, reveal, follow) for option in chosen if self._room > 0)
        return "" if role == "listbox" else self._gathered(node, None, reveal, follow)


def _labelable(node: Node) -> Iterator[Node]:
    return (control for control in node.iter(*_LABELABLE) if (control.get("type") or "").lower() != "hidden")
