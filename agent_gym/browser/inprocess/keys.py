"""Pressing a key with an element focused: typing, Enter and Space, Tab, and arrows in radio groups and selects."""

from collections.abc import Mapping

from agent_gym.browser.inprocess.acting import Navigation, activate, fill, focus, focusable, is_text, pick, submit
from agent_gym.browser.inprocess.document import Document
from agent_gym.browser.inprocess.forms import (
    blocks_implicit_submission,
    controls_of,
    default_button,
    kind_of_button,
    owner_of,
    radio_group,
)
from agent_gym.browser.inprocess.site import quoted
from agent_gym.browser.inputs import kind_of
from agent_gym.browser.live import Node, is_disabled, options_of
from agent_gym.browser.outline import hidden
from agent_gym.browser.page import PageError

__all__ = ["press"]

_STEPS = {"ArrowDown": 1, "ArrowRight": 1, "ArrowUp": -1, "ArrowLeft": -1}
_WITHOUT_EFFECT = frozenset({"Escape", "Home", "End", "PageUp", "PageDown", "Shift", "Control", "Alt", "Meta"})
_SELECT_ALL = frozenset({"control+a", "meta+a", "controlormeta+a"})
_KNOWN = (
    "Enter, Space, Tab, Shift+Tab, Backspace, Delete, Escape, Home, End, PageUp, PageDown, ArrowUp, ArrowDown, ArrowLeft, ArrowRight, "
    "Control+A and single characters"
)


def press(document: Document, node: Node, key: str, files: Mapping[str, bytes]) -> Navigation | None:
    """Presses a key with an element focused. The text cursor is always at the end of a field.

    Raises:
        PageError: There is no such key.
    """
    live = document.live
    if key.lower() in _SELECT_ALL:
        if focusable(node):
            focus(document, node)
            live.marked = node if is_text(node) else None
        return None
    key = {"Space": " ", "Spacebar": " "}.get(key, key)
    if len(key) == 7 and key.startswith("Shift+"):
        key = key[-1].upper()
    typed = len(key) == 1 and key.isprintable()
    if not (typed or key in _STEPS or key in _WITHOUT_EFFECT or key in ("Enter", "Tab", "Shift+Tab", "Backspace", "Delete")):
        raise PageError(f"no key {quoted(key)}; there are {_KNOWN}")
    text = _edited(document, node, key) if is_text(node) else None
    if text is not None:
        fill(document, node, text)
        return None
    if focusable(node) or is_disabled(node):
        focus(document, node)
    if key in ("Tab", "Shift+Tab"):
        live.focus = _next_stop(document, node, back=key != "Tab")
    elif key == "Enter":
        return _enter(document, node, files)
    elif key == " " and (kind_of_button(node) or node.tag == "summary" or kind_of(node) in ("checkbox", "radio")):
        return activate(document, node, files)
    elif key in _STEPS:
        _move(document, node, _STEPS[key])
    return None


def _edited(document: Document, node: Node, key: str) -> str | None:
    """The text that a key makes of a field's; None for a key that does not change it."""
    replaces = document.live.marked is node
    held = "" if replaces else document.live.value(node)
    if key == "Backspace" or (key == "Delete" and replaces):
        return held[:-1]
    if key == "Enter" and node.tag != "input":
        return held + "\n"
    return held + key if len(key) == 1 else None


def _enter(document: Document, node: Node, files: Mapping[str, bytes]) -> Navigation | None:
    kind = kind_of(node)
    if node.tag in ("a", "area", "button", "summary") or kind_of_button(node):
        return activate(document, node, files)
    form = owner_of(node)
    if node.tag != "input" or form is None or kind in ("file", "color"):
        return None
    controls = controls_of(form)
    button = default_button(controls)
    if button is not None:
        return None if is_disabled(button) else activate(document, button, files)
    if sum(map(blocks_implicit_submission, controls)) > 1:
        return None
    return submit(document, form, None, files)


def _move(document: Document, node: Node, step: int) -> None:
    """What an arrow does: the next button of a radio group, round and round; the next option of a select, to its ends."""
    live = document.live
    if kind_of(node) == "radio":
        group = [radio for radio in radio_group(node) if not is_disabled(radio)]
        live.focus = group[(group.index(node) + step) % len(group)]
        pick(live, live.focus)
    elif node.tag == "select" and node.get("multiple") is None:
        options = [option for option in options_of(node) if not is_disabled(option)]
        selected = live.selected(node)
        at = options.index(selected[0]) if selected and selected[0] in options else -1
        if options:
            live.selections[node] = [options[max(0, min(at + step, len(options) - 1))]]


def _next_stop(document: Document, node: Node, back: bool) -> Node | None:
    """Where Tab goes from an element: by ``tabindex``, then by tree order; None after the last."""
    stops = [each for each in document.root.iter() if each is node or (focusable(each) and _tabindex(each) >= 0)]
    stops.sort(key=lambda each: _tabindex(each) or 1 << 31)
    at = stops.index(node)
    onward = stops[:at][::-1] if back else stops[at + 1 :]
    group = radio_group(node) if kind_of(node) == "radio" else []
    return next((each for each in onward if each not in group and not hidden(each, document.live)), None)


def _tabindex(node: Node) -> int:
    stated = (node.get("tabindex") or "0").strip()[:6]
    return int(stated) if stated.removeprefix("-").isdecimal() else 0
