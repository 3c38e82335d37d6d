"""Pages that take the pointer held down, or keys that move something: boxes, lists, sliders, texts to mark."""

import cmath
import re
from collections.abc import Mapping, Sequence

from agent_gym.core import ToolCall
from agent_gym.envs.miniwob.oracles.seeing import (
    Element,
    Fields,
    Oracle,
    Script,
    View,
    Walk,
    act,
    all_of,
    asked,
    drag,
    find,
    middle,
    number,
    ordinal,
    picked,
    submitted,
)

__all__ = ["DRAGGING"]

_WAYS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


def _box(_goal: str, _fields: Fields, view: View) -> Script:
    view = yield drag(middle(find(view, "generic", "s")), middle(find(view, "generic", "L")))
    yield from submitted(view)


def _one_way(goal: str, _fields: Fields, view: View) -> Script:
    across, down = _WAYS[asked("Drag the (?:circle|item) (.*) then", goal)[0]]
    x, y = middle(find(view, "img"))
    view = yield drag((x, y), (x + 35 * across, y + 35 * down))
    yield from submitted(view)


def _into(box: Sequence[int], count: int) -> tuple[float, float]:
    """A place within a box for one thing after another, beside each other."""
    return box[0] + 16 + 14 * (count % 4), box[1] + 15 + 10 * (count // 4)


def _shapes(goal: str, _fields: Fields, view: View) -> Script:
    """Boxes are wide; what is asked for goes into the first, and into the second, where there is one, everything else."""
    kind = asked(r"all (\w+)", goal)[0].removesuffix("s").replace("aqua", "cyan")
    shown = list(all_of(view, "img"))
    boxes = sorted(one["box"] for one in shown if one["box"][2] > 40)
    inside = [0] * len(boxes)
    for one in shown:
        place = 0 if kind in one["name"].split(" ") else 1
        if one["box"][2] <= 40 and place < len(boxes):
            view = yield drag(middle(one), _into(boxes[place], inside[place]))
            inside[place] += 1
    yield from submitted(view)


# --- Lists ---


def _drop(item: Element, onto: Element) -> ToolCall:
    """Drags an item past the middle of another."""
    (x, y), (to_x, to_y) = middle(item), middle(onto)
    return drag((x, y), (to_x + _sign(to_x - x) * 6, to_y + _sign(to_y - y) * 6))


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _list_item(goal: str, _fields: Fields, view: View) -> Script:
    name, where = asked(r"^Drag (.*?) ((?:to|up|down) .*)$", goal)
    items = list(all_of(view, "generic"))
    at = items.index(find(view, "generic", name))
    places = {"to the top.": 0, "to the bottom.": len(items) - 1, "up by one position.": at - 1, "down by one position.": at + 1}
    to = places.get(where, ordinal(where) - 1)
    yield _drop(items[at], items[to])


def _grid_item(goal: str, _fields: Fields, view: View) -> Script:
    name, where = asked(r"^Drag (.*?) ((?:to the|up|down|left|right) .*)\.$", goal)
    items = list(all_of(view, "generic"))
    at = items.index(find(view, "generic", name))
    if found := re.match(r"(\w+) by one", where):
        across, down = _WAYS[found[1]]
        to = at + across + 3 * down
    else:
        row = 0 if "top" in where else 2 if "bottom" in where else 1
        to = 3 * row + (0 if "left" in where else 2 if "right" in where else 1)
    lower = (items[3]["box"][1] - items[0]["box"][1]) * 3 // 8  # the name is at the top of its item
    (x, y), (to_x, to_y) = ((middle(items[place])[0], items[place]["box"][1] + lower) for place in (at, to))
    if to > at:
        yield from _carry((x, y), (x + 3 * _sign(to_x - x), y + 3), (to_x + 8 * _sign(to_x - x), to_y + 8))
    else:
        yield from _carry((x, y), _beyond(items), (to_x - 8, to_y - 8))


def _beyond(items: Sequence[Element]) -> tuple[int, int]:
    """A place to the right of all and below: what comes from there goes in before, not after, whatever it is let go upon."""
    boxes = [one["box"] for one in items]
    return max(box[0] + box[2] for box in boxes) + 20, max(box[1] + box[3] for box in boxes) + 40


def _carry(*places: tuple[int, int]) -> Script:
    """Takes what is at the first place to all others, in leaps, and lets it go at the last."""
    yield ToolCall("mouse_down", {"x": places[0][0], "y": places[0][1]})
    for x, y in places[1:]:
        yield ToolCall("mouse_move", {"x": x, "y": y})
    yield ToolCall("mouse_up", {"x": places[-1][0], "y": places[-1][1]})


def _sort(_goal: str, _fields: Fields, view: View) -> Script:
    """The least of what is left goes up to its place, one after another."""
    for place in range(len(list(all_of(view, "generic"))) - 1):
        items = list(all_of(view, "generic"))
        least = min(range(place, len(items)), key=lambda at: int(items[at]["name"]))
        if least != place:
            view = yield _drop(items[least], items[place])
    yield from submitted(view)


# --- Sliders and the like ---


def _slide(view: View, place: int, wanted: int) -> Walk:
    """Brings a slider's value to what is wanted, by pages and then by ones; how much a page is shows when one is turned."""
    page = 0
    while (value := _value(view, place)) != wanted:
        far = not page or 2 * abs(wanted - value) > page
        key = ("PageUp" if wanted > value else "PageDown") if far else ("ArrowRight" if wanted > value else "ArrowLeft")
        view = yield act("press", picked(all_of(view, "img", match="slider-handle"), place), key_comb=key)
        if far:
            page = max(page, abs(_value(view, place) - value))
    return view


def _value(view: View, place: int) -> int:
    return int(picked(all_of(view, "generic", match=r"^-?\d+$"), place)["name"])


def _slider(goal: str, _fields: Fields, view: View) -> Script:
    view = yield from _slide(view, 1, number(goal))
    yield from submitted(view)


def _sliders(goal: str, _fields: Fields, view: View) -> Script:
    for place, wanted in enumerate(asked(r"\[(\d+),(\d+),(\d+)\]", goal), 1):
        view = yield from _slide(view, place, int(wanted))
    yield from submitted(view)


def _slider_and_box(goal: str, _fields: Fields, view: View) -> Script:
    view = yield from _slide(view, 1, number(goal))
    view = yield act("check", picked(all_of(view, "checkbox"), ordinal(goal)))
    yield from submitted(view)


def _spin(goal: str, _fields: Fields, view: View) -> Script:
    wanted = number(goal)
    while (value := int(find(view, "spinbutton")["value"])) != wanted:
        view = yield act("press", find(view, "spinbutton"), key_comb="ArrowUp" if wanted > value else "ArrowDown")
    yield from submitted(view)


def _resize(goal: str, _fields: Fields, view: View) -> Script:
    side, way = asked(r"the (\w+) is (\w+) than", goal)
    handle = find(view, "img", match=f"ui-resizable-{'e' if side == 'width' else 's'}$")
    x, y = (handle["box"][at] + 1 for at in (0, 1))  # the rest of it is cut off
    by = 15 if way == "larger" else -15
    view = yield drag((x, y), (x + by, y) if side == "width" else (x, y + by))
    yield from submitted(view)


def _scroll(goal: str, _fields: Fields, view: View) -> Script:
    x, y = middle(find(view, "textbox"))
    view = yield ToolCall("scroll_at", {"x": x, "y": y, "dx": 0, "dy": 10_000 if "bottom" in goal else -10_000})
    yield from submitted(view)


def _highlight(goal: str, _fields: Fields, view: View) -> Script:
    left, top, width, height = picked(all_of(view, "generic"), ordinal(goal))["box"]
    view = yield drag((left, top + 2), (left + width - 1, top + height - 2))
    yield from submitted(view)


def _line(goal: str, _fields: Fields, view: View) -> Script:
    """The dot is met a little above and to the left of its middle, which is where the page looks for it."""
    x, y = (at - 1 for at in middle(find(view, "img", match="circle")))
    across, down = (30, 0) if "horizontal" in goal else (0, 30)
    yield from _carry((x - across, y - down), (x, y), (x + across, y + down))
    yield from submitted(view)


def _circle(_goal: str, _fields: Fields, view: View) -> Script:
    x, y = middle(find(view, "img", match="circle"))
    turns = [cmath.rect(22, cmath.tau * part / 12) for part in range(13)]
    yield from _carry(*((round(x + turn.real), round(y + turn.imag)) for turn in turns))
    yield from submitted(view)


DRAGGING: Mapping[str, Oracle] = {
    "drag-box": _box,
    "drag-circle": _one_way,
    "drag-items": _list_item,
    "drag-items-grid": _grid_item,
    "drag-shapes": _shapes,
    "drag-shapes-2": _shapes,
    "drag-single-shape": _one_way,
    "drag-sort-numbers": _sort,
    "draw-circle": _circle,
    "draw-line": _line,
    "form-sequence": _slider_and_box,
    "highlight-text": _highlight,
    "highlight-text-2": _highlight,
    "resize-textarea": _resize,
    "scroll-text-2": _scroll,
    "use-slider": _slider,
    "use-slider-2": _sliders,
    "use-spinner": _spin,
}
"""The oracles, by the page's name."""
