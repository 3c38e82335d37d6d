"""Acting on a document: what clicking, filling and choosing do to it, and where they lead.

Every function changes the document's live state, or returns the `Navigation` that follows, or raises and has changed nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent_gym.browser.inprocess.document import Document
from agent_gym.browser.inprocess.forms import (
    SUBMITTERS,
    controls_of,
    kind_of_button,
    labelled_by,
    owner_of,
    radio_group,
    reset,
    submission,
)
from agent_gym.browser.inprocess.site import quoted
from agent_gym.browser.inprocess.validation import first_invalid, is_readonly, length_of, longest
from agent_gym.browser.inputs import SCALES, TEXT_KINDS, kind_of, sanitized, takes
from agent_gym.browser.live import Live, Node, around, is_disabled, label_of, labels_of, options_of, value_of
from agent_gym.browser.page import Blocked, NoSuchElement, NotAllowed

__all__ = [
    "Navigation",
    "activate",
    "activated",
    "check",
    "control_for",
    "fill",
    "focus",
    "focusable",
    "is_text",
    "pick",
    "refuse_disabled",
    "refuse_programs",
    "select",
    "submit",
    "toggles",
    "upload",
]

_MAX_TEXT = 100_000
"""Characters that a field takes."""

_FILLABLE = TEXT_KINDS | SCALES.keys() | {"color", "textarea"}
_CONTROLS = frozenset({"button", "input", "select", "textarea"})
_INSTEAD = {"select": "select_option", "checkbox": "check", "radio": "check", "file": "upload_file"}
_SHOWN = 20
"""Options named in a message."""


class Navigation(NamedTuple):
    """Where an action leads.

    Attributes:
        href: As written in the page; None for the document itself.
        method: ``GET`` or ``POST``.
        content_type: Of the body.
        body: What a POST sends.
        query: What takes the place of the URL's query; None leaves it.
        target: The tab it is for, as written; empty for this one.
        save: The file name to save the answer under (maybe empty); None shows it.
        referrer: Whether the site is told where it comes from.
    """

    href: str | None
    method: str = "GET"
    content_type: str = ""
    body: bytes = b""
    query: str | None = None
    target: str = ""
    save: str | None = None
    referrer: bool = True


# --- Clicking ---


def activate(document: Document, node: Node, files: Mapping[str, bytes]) -> Navigation | None:
    """What a click does: it activates the nearest thing around it that can be, and the focus goes there."""
    live = document.live
    target = activated(node)
    if target is None or is_label(target):
        live.focus = next((each for each in (node, *node.iterancestors()) if focusable(each)), None)
        return None
    refuse_disabled(target)
    if target.tag in ("a", "area"):
        return _followed(document, target)
    kind = kind_of_button(target) or kind_of(target)
    form = owner_of(target)
    if form is not None and kind in SUBMITTERS:
        return submit(document, form, target, files)
    live.focus, live.marked, live.invalid = target, None, None
    if target.tag == "summary":
        _toggle(live, target)
    elif kind == "reset" and form is not None:
        reset(form, live)
    elif kind == "checkbox":
        live.checks[target] = not live.checked(target)
    elif kind == "radio":
        pick(live, target)
    return None


def pick(live: Live, radio: Node) -> None:
    """Checks a radio button, and unchecks the others of its group."""
    for other in radio_group(radio):
        live.checks[other] = other is radio


def toggles(node: Node) -> bool:
    """Whether a second click takes back what the first one did."""
    target = activated(node)
    return target is not None and (target.tag == "summary" or kind_of(target) == "checkbox")


def is_label(node: Node) -> bool:
    """Whether an element is a label."""
    return node.tag == "label"


def control_for(node: Node) -> Node:
    """What an action on an element is meant for: a label's control, else the element itself."""
    control = labelled_by(node) if is_label(node) else None
    return node if control is None else control


def activated(node: Node) -> Node | None:
    """What a click on an element activates: the nearest thing around it that can be, a label's control; None if nothing."""
    for each in (node, *around(node)):
        if each.tag in _CONTROLS or _is_link(each) or _details_of(each) is not None:
            return each
        if is_label(each):
            return control_for(each)
    return None


def _is_link(node: Node) -> bool:
    return node.tag in ("a", "area") and node.get("href") is not None


def _details_of(summary: Node) -> Node | None:
    """The ``details`` that an element opens and closes."""
    details = summary.getparent() if summary.tag == "summary" else None
    return details if details is not None and details.tag == "details" and details.find("summary") is summary else None


def _toggle(live: Live, summary: Node) -> None:
    details = _details_of(summary)
    if details is None:
        return
    opened = live.opened[details] = not live.open(details)
    name = details.get("name")
    for other in details.getroottree().getroot().iter("details") if opened and name else ():
        if other is not details and other.get("name") == name:
            live.opened[other] = False


def refuse_disabled(node: Node) -> None:
    """Raises `Blocked` for a control that is disabled."""
    if is_disabled(node):
        raise Blocked(f"the {_called(node)} is disabled")


def _called(node: Node) -> str:
    if node.tag in ("a", "area"):
        return "link"
    return f"{kind_of(node)} input" if node.tag == "input" else str(node.tag)


# --- Going somewhere ---


def _followed(document: Document, link: Node) -> Navigation:
    href = (link.get("href") or "").strip()
    refuse_programs(href)
    relations = (link.get("rel") or "").lower().split()
    target = link.get("target")
    target = document.target if target is None else target
    if target.lower() not in ("", "_self", "_parent", "_top") and ("noopener" in relations or "noreferrer" in relations):
        target = "_blank"  # no tab that is there already
    return Navigation(href, target=target, save=link.get("download"), referrer="noreferrer" not in relations)


def submit(document: Document, form: Node, submitter: Node | None, files: Mapping[str, bytes]) -> Navigation | None:
    """Submits a form by a button, or (None) without one.

    Raises:
        Blocked: A control breaks a constraint: it gets the focus and shows the message, and nothing is sent.
    """
    live = document.live
    live.invalid = None
    if form.get("novalidate") is None and (submitter is None or submitter.get("formnovalidate") is None):
        live.invalid = first_invalid(controls_of(form), live)
        if live.invalid is not None:
            live.focus, message = live.invalid
            where = document.bids.get(live.focus) or quoted(live.focus.get("name") or _called(live.focus))
            raise Blocked(f'blocked by validation message "{message}" at element {where}')
    sent = submission(form, submitter, live, files)
    if sent.method == "dialog":
        if (dialog := next(form.iterancestors("dialog"), None)) is not None:
            dialog.attrib.pop("open", "")
            live.focus = None
        return None
    refuse_programs(sent.action)
    target = document.target if sent.target is None else sent.target
    if sent.method == "post":
        return Navigation(sent.action or None, "POST", sent.content_type, sent.data, target=target)
    return Navigation(sent.action or None, query=sent.data.decode(), target=target)


def refuse_programs(href: str) -> None:
    """Raises for a URL that runs a script (`Blocked`) or another program (`NotAllowed`)."""
    scheme = href.partition(":")[0].lower()
    if scheme == "javascript":
        raise Blocked("this runs a script, which needs the Chromium engine")
    if scheme in ("mailto", "tel", "sms"):
        raise NotAllowed(f"{quoted(href)} is no page: it opens another program")


# --- Focus ---


def focusable(node: Node) -> bool:
    """Whether an element can have the focus."""
    if node.tag in _CONTROLS:
        return not is_disabled(node) and kind_of(node) != "hidden"
    tabindex = (node.get("tabindex") or "").strip().removeprefix("-")
    return _is_link(node) or _details_of(node) is not None or tabindex.isdecimal() or _editable(node)


def focus(document: Document, node: Node) -> None:
    """Gives an element the focus."""
    refuse_disabled(node)
    if not focusable(node):
        raise Blocked(f"the {_called(node)} cannot have the focus")
    document.live.focus, document.live.marked = node, None


# --- Filling and choosing ---


def is_text(node: Node) -> bool:
    """Whether an element takes text."""
    return kind_of(node) in _FILLABLE or _editable(node)


def _editable(node: Node) -> bool:
    return (node.get("contenteditable") or "no").lower() in ("true", "plaintext-only") or node.get("contenteditable") == ""


def fill(document: Document, node: Node, text: str) -> None:
    """Puts a text into a field, as its type takes it."""
    kind = kind_of(node)
    refuse_disabled(node)
    if not is_text(node):
        instead = _INSTEAD.get(kind)
        raise Blocked(f"the {_called(node)} cannot be filled" + (f"; use {instead}" if instead else ""))
    if is_readonly(node):
        raise Blocked(f"the {_called(node)} is readonly")
    if len(text) > _MAX_TEXT:
        raise Blocked(f"the text has {len(text)} characters; a field takes {_MAX_TEXT}")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half a character cannot be sent
    text = text.replace("\0", "")  # which no keyboard has
    wanted = takes(kind)
    if wanted:
        text = text.strip()
        scale = SCALES.get(kind)
        fits = scale.parse(text) is not None if scale is not None else sanitized(node, text) == text.lower()
        if text and not fits:
            raise Blocked(f"the {_called(node)} takes {wanted}, not {quoted(text)}")
    text = sanitized(node, text)
    most = longest(node)
    if most is not None and length_of(text) > max(most, length_of(document.live.value(node))):
        raise Blocked(f"the {_called(node)} takes at most {most} characters, not {length_of(text)}")
    live = document.live
    live.values[node] = text
    live.focus, live.marked, live.invalid = node, None, None


def check(document: Document, node: Node, checked: bool) -> None:
    """Brings a checkbox or radio button into a state."""
    kind = kind_of(node)
    live = document.live
    if kind not in ("checkbox", "radio"):
        raise Blocked(f"the {_called(node)} cannot be checked: it is no checkbox or radio button")
    refuse_disabled(node)
    if live.checked(node) != checked:
        if kind == "radio":
            if not checked:
                raise Blocked("a radio button cannot be unchecked by itself; check another of its group")
            pick(live, node)
        live.checks[node] = checked
    live.focus, live.marked, live.invalid = node, None, None


def select(document: Document, node: Node, wanted: Sequence[str]) -> None:
    """Selects exactly these options, named by label or else by value."""
    if node.tag != "select":
        raise Blocked(f"the {_called(node)} has no options to select")
    refuse_disabled(node)
    if node.get("multiple") is None and len(wanted) != 1:
        raise Blocked(f"the select takes one option, not {len(wanted)}")
    options, labels = options_of(node), labels_of(node)
    named: dict[str, Node] = {}
    for name_of in (labels.__getitem__, label_of, value_of):  # labels as shown first; of equal names the first that can be chosen
        for disabled in (False, True):
            for option in options:
                if is_disabled(option) is disabled:
                    named.setdefault(name_of(option), option)
    chosen = set()
    for name in wanted:
        choice = named.get(name, named.get(" ".join(name.split())))
        if choice is None:
            there = ", ".join(map(quoted, list(labels.values())[:_SHOWN]))
            raise NoSuchElement(f"no option {quoted(name)}; there are {there or 'none'}{', …' * (len(labels) > _SHOWN)}")
        if is_disabled(choice):
            raise Blocked(f"the option {quoted(name)} is disabled")
        chosen.add(choice)
    live = document.live
    live.selections[node] = [option for option in options if option in chosen]
    live.focus, live.marked, live.invalid = node, None, None


def upload(document: Document, node: Node, names: Sequence[str], files: Mapping[str, bytes]) -> None:
    """Chooses files for a file field, by the names that the episode offers."""
    if kind_of(node) != "file":
        raise Blocked(f"the {_called(node)} takes no files")
    refuse_disabled(node)
    for name in names:
        if name not in files:
            raise NoSuchElement(f"no file {quoted(name)}; there are {', '.join(map(quoted, sorted(files)[:_SHOWN])) or 'none'}")
    if len(names) > 1 and node.get("multiple") is None:
        raise Blocked(f"the file input takes one file, not {len(names)}")
    live = document.live
    live.values[node] = "\n".join(names)
    live.focus, live.marked, live.invalid = node, None, None
