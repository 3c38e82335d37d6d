"""What a user has made of a document: the live state of its controls, beside the markup it was loaded with."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml.etree import _Element as Node

from agent_gym.browser.inputs import sanitized
from agent_gym.browser.lines import short

__all__ = [
    "BOX",
    "FRAME",
    "LABEL",
    "LEAF",
    "Live",
    "Node",
    "around",
    "is_disabled",
    "label_of",
    "labels_of",
    "options_of",
    "shows_list",
    "text_of",
    "value_of",
]

FRAME = "_frame"
"""The attribute of an element that stands for a frame: what is in it is a document of its own."""
BOX = "_box"
"""The attribute that holds where an element is in the window, where that was asked for: left, top, width and height in pixels."""
LEAF = "_leaf"
"""The attribute of what is an element for no other reason than that it shows something."""
LABEL = 100
"""Characters of an option's label as it is shown."""
_DISABLEABLE = frozenset({"button", "input", "select", "textarea", "optgroup", "option", "fieldset"})


@dataclass
class Live:
    """The live state of one document. What was not touched is as the markup says.

    Attributes:
        values: The text of fields that were filled; of a file field the chosen files' names, joined by newlines.
        checks: Checkedness of checkboxes and radio buttons that were touched.
        selections: The options selected in a select that was touched, in document order.
        opened: Whether a ``details`` that was touched is open.
        focus: The focused element.
        marked: The field whose whole text is selected, so that typing replaces it.
        invalid: The control that blocked the last submission, and the validation message shown at it.
    """

    values: dict[Node, str] = field(default_factory=dict)
    checks: dict[Node, bool] = field(default_factory=dict)
    selections: dict[Node, list[Node]] = field(default_factory=dict)
    opened: dict[Node, bool] = field(default_factory=dict)
    focus: Node | None = None
    marked: Node | None = None
    invalid: tuple[Node, str] | None = None

    def value(self, control: Node) -> str:
        """The text that a field holds now (a checkbox's or button's ``value`` as it is)."""
        known = self.values.get(control)
        if known is not None:
            return known
        if control.tag == "textarea":
            return sanitized(control, text_of(control)).removeprefix("\n")
        if control.tag not in ("input", "button"):  # an editable text
            return " ".join(text_of(control).split())
        return sanitized(control, control.get("value") or "")

    def checked(self, control: Node) -> bool:
        """Whether a checkbox or radio button is checked now."""
        known = self.checks.get(control)
        return control.get("checked") is not None if known is None else known

    def selected(self, select: Node) -> list[Node]:
        """The options that are selected now, by HTML's rules: one that shows a list of one selects its first enabled option."""
        known = self.selections.get(select)
        if known is not None:
            return known
        options = options_of(select)
        chosen = [option for option in options if option.get("selected") is not None]
        if select.get("multiple") is not None:
            return chosen
        if chosen:
            return chosen[-1:]
        if shows_list(select):
            return []
        return next(([option] for option in options if not is_disabled(option)), [])

    def open(self, details: Node) -> bool:
        """Whether a ``details`` is open now."""
        known = self.opened.get(details)
        return details.get("open") is not None if known is None else known


def shows_list(select: Node) -> bool:
    """Whether a select shows a list of options at once, not one in a box that drops down."""
    size = (select.get("size") or "").strip()
    lines = int(size[:6]) if size.isascii() and size.isdigit() else 0
    return (lines or (4 if select.get("multiple") is not None else 1)) > 1


def options_of(select: Node) -> list[Node]:
    """A select's options in document order, those in an ``optgroup`` too."""
    return list(select.iter("option"))


def label_of(option: Node) -> str:
    """An option's label: its ``label`` or its text, blanks collapsed."""
    return option.get("label") or " ".join(text_of(option).split())


def labels_of(select: Node) -> dict[Node, str]:
    """What each option of a select is called: its label; where several have the same, after that of its ``optgroup``."""
    labels = {option: short(label_of(option), LABEL) for option in options_of(select)}
    if len(set(labels.values())) < len(labels):
        counts = Counter(labels.values())
        for option, label in labels.items():
            group = option.getparent()
            if counts[label] > 1 and group is not None and group.tag == "optgroup" and (called := group.get("label")):
                labels[option] = short(f"{' '.join(called.split())}: {label}", LABEL)
    return labels


def value_of(option: Node) -> str:
    """What an option stands for in a form: its ``value`` or its text, blanks collapsed."""
    value = option.get("value")
    return " ".join(text_of(option).split()) if value is None else value


def text_of(node: Node) -> str:
    """All text inside an element."""
    return node.text or "" if not len(node) else "".join(map(str, node.itertext()))


def around(node: Node) -> Iterator[Node]:
    """What an element stands in, from the nearest on, within the document that it belongs to."""
    for above in node.iterancestors():
        if above.get(FRAME) is not None:
            return
        yield above


def is_disabled(control: Node) -> bool:
    """Whether a control is disabled by HTML's rules: itself, by its ``optgroup``, or by a ``fieldset`` around it (but for what
    stands in that fieldset's first ``legend``).
    """
    if control.tag not in _DISABLEABLE:
        return False
    if control.get("disabled") is not None:
        return True
    if control.tag == "option":
        parent = control.getparent()
        return parent is not None and parent.tag == "optgroup" and parent.get("disabled") is not None
    if control.tag == "optgroup":
        return False
    below = control
    for above in around(control):
        if above.tag == "fieldset" and above.get("disabled") is not None:
            legend = next(above.iterchildren("legend"), None)
            if legend is None or below is not legend:
                return True
        below = above
    return False
