"""What an agent can do in a browser: the names and meanings of BrowserGym's actions, and how each is done on a `Page`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_gym.core import ToolSpec

__all__ = ["DEEDS", "REPORT_INFEASIBLE", "SEND_MESSAGE", "browser_tools", "pointing_tools"]

Schema = dict[str, Any]

_BID: Schema = {"type": "string", "pattern": r"^[0-9]{1,9}$", "x-entity": "bid", "description": "The number in brackets before an element."}
_TEXT: Schema = {"type": "string", "maxLength": 2_000}
_PIXELS: Schema = {"type": "number", "minimum": -100_000, "maximum": 100_000}
_OPTION: Schema = {"type": "string", "maxLength": 200}
_OPTIONS: Schema = {
    "type": ["string", "array"],
    "maxLength": 1_000,
    "items": _OPTION,
    "maxItems": 20,
    "x-entity": "option",
    "description": "One label or several.",
}
_FILES: Schema = {
    "type": ["string", "array"],
    "maxLength": 1_000,
    "items": _OPTION,
    "maxItems": 20,
    "description": "Names of files on offer.",
}
_PLACE: Schema = {"type": "number", "minimum": 0, "maximum": 10_000, "description": "Pixels from the window's left or upper edge."}
_BUTTON: Schema = {"enum": ["left", "middle", "right"]}
_URL: Schema = {"type": "string", "maxLength": 2_000}
_KEYS: Schema = {"type": "string", "minLength": 1, "maxLength": 64, "description": "Such as Enter, Tab, Space, a, Control+A."}


def _several(one_or_more: str | list[str]) -> list[str]:
    return [one_or_more] if isinstance(one_or_more, str) else one_or_more


SEND_MESSAGE = "send_msg_to_user"
"""The tool that says something to whoever set the task: the answer that ``finish`` takes if it is given none."""
DEEDS: Mapping[str, Callable[..., None]] = {
    "click": lambda page, bid: page.click(bid),
    "dblclick": lambda page, bid: page.dblclick(bid),
    "hover": lambda page, bid: page.hover(bid),
    "fill": lambda page, bid, value: page.fill(bid, value),
    "clear": lambda page, bid: page.fill(bid, ""),
    "select_option": lambda page, bid, options: page.select(bid, _several(options)),
    "check": lambda page, bid: page.check(bid, True),
    "uncheck": lambda page, bid: page.check(bid, False),
    "press": lambda page, bid, key_comb: page.press(bid, key_comb),
    "focus": lambda page, bid: page.focus(bid),
    "scroll": lambda page, delta_x, delta_y: page.scroll(delta_x, delta_y),
    "goto": lambda page, url: page.goto(url),
    "go_back": lambda page: page.go_back(),
    "go_forward": lambda page: page.go_forward(),
    "new_tab": lambda page: page.new_tab(),
    "tab_focus": lambda page, index: page.focus_tab(index),
    "tab_close": lambda page: page.close_tab(),
    "upload_file": lambda page, bid, file: page.upload(bid, _several(file)),
    "noop": lambda page, **_: page.scroll(0, 0),  # a page without scripts does not change by itself
    SEND_MESSAGE: lambda page, **_: page.scroll(0, 0),
    "accept_dialog": lambda page, text=None: page.accept_dialog(text),
    "dismiss_dialog": lambda page: page.dismiss_dialog(),
    "drag_and_drop": lambda page, from_bid, to_bid: page.drag_and_drop(from_bid, to_bid),
    "scroll_at": lambda page, x, y, dx, dy: page.scroll_at(x, y, dx, dy),
    "mouse_move": lambda page, x, y: page.mouse_move(x, y),
    "mouse_down": lambda page, x, y, button="left": page.mouse_down(x, y, button),
    "mouse_up": lambda page, x, y, button="left": page.mouse_up(x, y, button),
    "mouse_click": lambda page, x, y, button="left": page.mouse_click(x, y, button),
    "mouse_dblclick": lambda page, x, y, button="left": page.mouse_click(x, y, button, 2),
    "mouse_drag_and_drop": lambda page, from_x, from_y, to_x, to_y: page.mouse_drag(from_x, from_y, to_x, to_y),
    "keyboard_down": lambda page, key: page.keyboard(key, True),
    "keyboard_up": lambda page, key: page.keyboard(key, False),
    "keyboard_press": lambda page, key: page.keyboard(key),
    "keyboard_type": lambda page, text: page.keyboard_type(text),
    "keyboard_insert_text": lambda page, text: page.keyboard_type(text, False),
}
"""How each is done on a page; the last ones only in a real browser."""


def _tool(name: str, description: str, *, writes: bool = False, required: Iterable[str] | None = None, **properties: Schema) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties if required is None else required),
            "additionalProperties": False,
        },
        annotations={"readOnlyHint": not writes, "destructiveHint": writes, "idempotentHint": not writes, "openWorldHint": False},
        may_block=False,
        carries=True,
    )


REPORT_INFEASIBLE = _tool("report_infeasible", "Refuse the task: the same as refuse, with the same reasons.", reason=_TEXT)
"""BrowserGym's name for ``refuse``; it closes the episode."""


def browser_tools(patterns: Iterable[str]) -> tuple[ToolSpec, ...]:
    """The tools of a browser.

    Args:
        patterns: What is worth typing into fields, as patterns of what a goal may name; learners that cannot write are offered
            these texts.
    """
    typed = sorted(patterns)
    return (
        _tool("click", "Click an element: follow a link, push a button, tick a box.", writes=True, bid=_BID),
        _tool("dblclick", "Click an element twice.", writes=True, bid=_BID),
        _tool("hover", "Move the pointer over an element.", bid=_BID),
        _tool("fill", "Put a text into a field, in place of what it holds.", bid=_BID, value={**_TEXT, "x-find": typed}),
        _tool("clear", "Empty a field.", bid=_BID),
        _tool("select_option", "Select exactly these options of a select, by their labels.", bid=_BID, options=_OPTIONS),
        _tool("check", "Tick a checkbox or pick a radio button.", bid=_BID),
        _tool("uncheck", "Untick a checkbox.", bid=_BID),
        _tool("press", "Press a key, with an element focused.", writes=True, bid=_BID, key_comb=_KEYS),
        _tool("focus", "Give an element the focus.", bid=_BID),
        _tool("scroll", "Scroll by pixels, to see another part of a long page.", delta_x=_PIXELS, delta_y=_PIXELS),
        _tool("goto", "Go to a URL of the site, or a path.", url=_URL),
        _tool("go_back", "Go back in the history."),
        _tool("go_forward", "Go forward in the history."),
        _tool("new_tab", "Open a blank tab."),
        _tool("tab_focus", "Go to a tab, counted from 0.", index={"type": "integer", "minimum": 0, "maximum": 1_000}),
        _tool("tab_close", "Close the tab."),
        _tool("upload_file", "Choose files for a file field.", bid=_BID, file=_FILES),
        _tool(SEND_MESSAGE, "Say something to whoever set the task.", text=_TEXT),
        _tool("noop", "Do nothing.", required=(), wait_ms={"type": "number", "minimum": 0, "maximum": 60_000}),
    )


def pointing_tools() -> tuple[ToolSpec, ...]:
    """What only a real browser has: dialogs, and pointer and keyboard by themselves."""
    point: dict[str, Any] = {"x": _PLACE, "y": _PLACE}
    at: dict[str, Any] = {**point, "button": _BUTTON}
    return (
        _tool("accept_dialog", "Say yes to the dialog that is open.", writes=True, required=(), text=_TEXT),
        _tool("dismiss_dialog", "Say no to the dialog that is open."),
        _tool("drag_and_drop", "Drag an element onto another.", writes=True, from_bid=_BID, to_bid=_BID),
        _tool("scroll_at", "Turn the wheel over a point of the window.", **point, dx=_PIXELS, dy=_PIXELS),
        _tool("mouse_move", "Move the pointer to a point of the window.", **point),
        _tool("mouse_down", "Press a mouse button at a point and hold it.", writes=True, required=point, **at),
        _tool("mouse_up", "Let a mouse button go at a point.", writes=True, required=point, **at),
        _tool("mouse_click", "Click at a point.", writes=True, required=point, **at),
        _tool("mouse_dblclick", "Click twice at a point.", writes=True, required=point, **at),
        _tool("mouse_drag_and_drop", "Drag from a point to another.", writes=True, from_x=_PLACE, from_y=_PLACE, to_x=_PLACE, to_y=_PLACE),
        _tool("keyboard_down", "Press a key and hold it.", writes=True, key=_KEYS),
        _tool("keyboard_up", "Let a key go.", writes=True, key=_KEYS),
        _tool("keyboard_press", "Press a key where the focus is.", writes=True, key=_KEYS),
        _tool("keyboard_type", "Type a text where the focus is, key by key.", writes=True, text=_TEXT),
        _tool("keyboard_insert_text", "Put a text where the focus is, without keys.", writes=True, text=_TEXT),
    )
