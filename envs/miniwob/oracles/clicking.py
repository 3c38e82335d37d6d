"""Pages that take clicks alone: buttons, links, checkboxes, tabs, menus and dialogs, in the order that is asked for."""

import re
from collections.abc import Mapping

from agent_gym.envs.miniwob.oracles.seeing import Fields, NotShown, Oracle, Script, View, act, all_of, asked, find, pressed, submitted

__all__ = ["CLICKING"]

_QUOTED = '"(.*)"'


def _clicking(role: str, pattern: str) -> Oracle:
    """Clicks what the goal names."""

    def script(goal: str, _fields: Fields, view: View) -> Script:
        yield pressed(find(view, role, asked(pattern, goal)[0]))

    return script


def _buttons(goal: str, _fields: Fields, view: View) -> Script:
    for name in re.findall(r"button (\w+)", goal):
        view = yield pressed(find(view, "button", name))


def _only_button(_goal: str, _fields: Fields, view: View) -> Script:
    yield from submitted(view)


def _tick(goal: str, _fields: Fields, view: View) -> Script:
    names = asked("^Select (.*) and click Submit", goal)[0]
    for name in [] if names == "nothing" else names.split(", "):
        for role in ("checkbox", "radio"):
            for box in all_of(view, role, name):
                view = yield act("check", box)
    yield from submitted(view)


def _select(goal: str, _fields: Fields, view: View) -> Script:
    names = asked("^Select (.*) from the (?:scroll )?list and click Submit", goal)[0]
    chooser = find(view, name="options")
    view = yield act("select_option", chooser, options=names.split(", ") if chooser["role"] == "listbox" else names)
    yield from submitted(view)


def _in_order(_goal: str, _fields: Fields, view: View) -> Script:
    """The numbers are covered as soon as the first has been found, and whatever is found goes."""
    view = yield pressed(find(view, "img", match=" 1$"))
    while True:
        view = yield pressed(find(view, "img"))


def _open_until_shown(goal: str, _fields: Fields, view: View) -> Script:
    """Opens one section after another until what the goal names is there."""
    name = asked(_QUOTED, goal)[0]
    for section in list(all_of(view, "tab")):
        for found in all_of(view, "generic", name):
            yield pressed(found)
        if "expanded" not in section.get("states", ()):
            view = yield pressed(section)
    yield pressed(find(view, "generic", name))


def _open_and_submit(_goal: str, _fields: Fields, view: View) -> Script:
    view = yield pressed(find(view, "tab", match="^Section"))
    yield pressed(find(view, name="Submit"))


def _close_dialog(goal: str, _fields: Fields, view: View) -> Script:
    name = asked(_QUOTED, goal)[0]
    yield pressed(find(view, "button", "Close" if name == "x" else name))


def _walk_menu(goal: str, _fields: Fields, view: View) -> Script:
    *above, name = asked("^Select (.*)$", goal)[0].split(">")
    for one in above:
        view = yield act("hover", find(view, "menuitem", one))
    yield pressed(find(view, "menuitem", name))


_ICONS = {
    **{"disk": "Save", "stop": "Stop", "play": "Play", "zoomin": "Zoom In", "zoomout": "Zoom Out"},
    **{"seek-start": "Prev", "seek-end": "Next"},
}
"""What an icon on a menu stands for."""


def _player(goal: str, _fields: Fields, view: View) -> Script:
    if "labeled" in goal:
        name = asked('labeled "(.*)"', goal)[0]
    else:
        name = _ICONS.get(asked("ui-icon ui-icon-(.*)$", find(view, "img")["name"])[0], "")
    view = yield pressed(find(view, "button", "Menu"))
    if not any(all_of(view, "menuitem", name)):
        view = yield act("hover", find(view, "menuitem", "Playback"))
    yield pressed(find(view, "menuitem", name))


def _pie(goal: str, _fields: Fields, view: View) -> Script:
    """What has been opened shows a minus."""
    if not any(all_of(view, "img", match=" -$")):
        view = yield pressed(find(view, "img", match=r" \+$"))
    yield pressed(find(view, "img", match=f" {asked(_QUOTED, goal)[0]}$"))


def _generate(goal: str, _fields: Fields, view: View) -> Script:
    """Draws numbers until one will do."""
    kind, limit = asked(r"(odd|even|less than|greater than) ?(\d*)", goal)
    while True:
        view = yield pressed(find(view, "button", "Generate"))
        drawn = int(find(view, "generic")["name"])
        if {"odd": drawn % 2, "even": not drawn % 2, "less than": drawn < int(limit or 0), "greater than": drawn > int(limit or 0)}[kind]:
            yield pressed(find(view, "button", "Submit"))


def _dropdown(goal: str, _fields: Fields, view: View) -> Script:
    option, button = asked('Choose (.*) from the dropdown, then click the button labeled "(.*)"', goal)
    if find(view, "combobox").get("value") != option:
        view = yield pressed(find(view, "generic", "▾"))
        view = yield pressed(find(view, "generic", option))
    yield pressed(find(view, "button", button))


def _widget(goal: str, _fields: Fields, view: View) -> Script:
    kind = asked('"(.*)" widget', goal)[0]
    if kind in ("text", "textarea"):
        yield pressed(find(view, "textbox", kind))
    else:
        yield act("check" if kind in ("checkbox", "radio") else "click", find(view, kind))


def _tree(goal: str, _fields: Fields, view: View) -> Script:
    """Opens folder after folder, from above, until the name is there; what is in an open folder stands below it."""
    name = asked(_QUOTED, goal)[0]
    opened: set[str] = set()
    while True:
        for found in all_of(view, "generic", name):
            yield pressed(found)
        closed = [one for one in all_of(view, "img", match="expandable-hitarea") if one["bid"] not in opened]
        if not closed:
            raise NotShown(name)
        opened.add(closed[0]["bid"])
        view = yield pressed(closed[0])


def _odd_or_even(_goal: str, _fields: Fields, view: View) -> Script:
    elements = view["elements"]
    for before, one, after in zip(elements, elements[1:], elements[2:], strict=False):
        if one["role"] == "generic":
            yield pressed(before if int(one["name"]) % 2 else after)
    yield from submitted(view)


CLICKING: Mapping[str, Oracle] = {
    "ascending-numbers": _in_order,
    "choose-list": _select,
    "click-button": _clicking("button", _QUOTED),
    "click-button-sequence": _buttons,
    "click-checkboxes": _tick,
    "click-checkboxes-large": _tick,
    "click-checkboxes-transfer": _tick,
    "click-collapsible": _open_and_submit,
    "click-collapsible-2": _open_until_shown,
    "click-collapsible-2-nodelay": _open_until_shown,
    "click-collapsible-nodelay": _open_and_submit,
    "click-dialog": _close_dialog,
    "click-dialog-2": _close_dialog,
    "click-link": _clicking("generic", _QUOTED),
    "click-menu": _walk_menu,
    "click-menu-2": _player,
    "click-option": _tick,
    "click-pie": _pie,
    "click-scroll-list": _select,
    "click-tab": _clicking("tab", r"(Tab #\d)"),
    "click-tab-2": _open_until_shown,
    "click-tab-2-easy": _open_until_shown,
    "click-tab-2-hard": _open_until_shown,
    "click-tab-2-medium": _open_until_shown,
    "click-test": _only_button,
    "click-test-2": _buttons,
    "click-test-transfer": _buttons,
    "click-widget": _widget,
    "form-sequence-3": _dropdown,
    "generate-number": _generate,
    "navigate-tree": _tree,
    "odd-or-even": _odd_or_even,
    "unicode-test": _clicking("button", _QUOTED),
}
"""The oracles, by the page's name."""
