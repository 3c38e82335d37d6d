"""Pages of shapes, colours and places: what is meant is told by how it looks or where it is."""

from collections.abc import Mapping

from agent_gym.core import ToolCall
from agent_gym.envs.miniwob.oracles.seeing import (
    Element,
    Fields,
    NotShown,
    Oracle,
    Script,
    View,
    act,
    all_of,
    asked,
    find,
    middle,
    picked,
    pressed,
    submitted,
)

__all__ = ["SHAPES"]

_SHAPES = ("circle", "rectangle", "triangle")
_LARGE = 15
"""Pixels of a large shape's height at least; a large letter is higher still."""


def _kind(what: str) -> str:
    return "shape" if what in _SHAPES else "digit" if what.isdigit() else "letter"


def _is(shape: Element, description: str) -> bool:
    """Whether a shape is what is asked for: ``large``, a colour, and what it is, each of which may be left open."""
    colour, what = shape["name"].split(" ")
    size = "large" if shape["box"][3] >= _LARGE else "small"
    return all(word in (size, colour, what, _kind(what), "item") for word in description.replace("aqua", "cyan").split(" "))


def _shape(goal: str, _fields: Fields, view: View) -> Script:
    description = asked("Click on a (.*?) ?$", goal)[0]
    yield pressed(picked((one for one in all_of(view, "img") if _is(one, description)), 1))


def _count(goal: str, _fields: Fields, view: View) -> Script:
    description = asked("How many (.*)s are there", goal)[0]
    yield pressed(find(view, "button", str(sum(_is(one, description) for one in all_of(view, "img")))))


def _name(_goal: str, _fields: Fields, view: View) -> Script:
    what = find(view, "img")["name"].split(" ")[1]
    name = {"digit": "Number", "letter": "Letter"}.get(_kind(what), what.capitalize())
    yield pressed(find(view, "button", name))


def _colour(goal: str, _fields: Fields, view: View) -> Script:
    yield pressed(find(view, "img", f"{asked('the (.*) colored', goal)[0]} color"))


def _shades(goal: str, _fields: Fields, view: View) -> Script:
    """A shade of a colour has more of it than of the two others."""
    wanted = ("red", "green", "blue").index(asked("shades of (.*) and", goal)[0])
    for one in list(all_of(view, "img", match="^#")):
        parts = [int(one["name"][at : at + 2], 16) for at in (1, 3, 5)]
        if parts[wanted] > max(parts[:wanted] + parts[wanted + 1 :]):
            view = yield pressed(one)
    yield from submitted(view)


def _coordinate(goal: str, _fields: Fields, view: View) -> Script:
    """The axes cross at (0, 0); beside each stands where 1 is."""
    x, y = map(int, asked(r"\((-?\d),(-?\d)\)", goal))
    points = {middle(one): one for one in all_of(view, "img", match="circle")}
    columns, rows = sorted({at for at, _ in points}), sorted({at for _, at in points}, reverse=True)
    yield pressed(points[columns[len(columns) // 2 + x], rows[len(rows) // 2 + y]])


_DIGITS = (
    *(".##. #..# #..# #..# #..# #..# .##.", "..#. .##. ..#. ..#. ..#. ..#. ..#.", ".##. #..# #..# ..#. .#.. #... ####"),
    *(".##. #..# ...# .##. ...# #..# .##.", "#... #.#. #.#. #### ..#. ..#. ..#.", "#### #... #... ###. ...# #..# .##."),
    *(".##. #..# #... ###. #..# #..# .##.", "#### #..# ...# ..#. ..#. .#.. .#..", ".##. #..# #..# .##. #..# #..# .##."),
    *(".##. #..# #..# .### ...# #..# .##.",),
)
"""What the picture of each digit shows, row by row."""


def _draw_digit(goal: str, _fields: Fields, view: View) -> Script:
    pattern = _DIGITS[int(asked(r'"(\d)"', goal)[0])].replace(" ", "")
    for box, mark in zip(list(all_of(view, "checkbox")), pattern, strict=False):
        if mark == "#":
            view = yield act("check", box)
    yield from submitted(view)


def _hot(_goal: str, _fields: Fields, view: View) -> Script:
    """The pointer is told how far the place is: within 5 pixels, 10, 40, or farther; what it is told leaves ever fewer places."""
    left, top, width, height = find(view, "img", "touch-area")["box"]
    places = [(x, y) for x in range(left, left + width, 3) for y in range(top, top + height, 3)]
    rings = {"HOT": (0, 7), "WARM": (3, 12), "COLD": (8, 42), "ICE COLD": (38, 999)}
    while places:
        x, y = _probe(places)
        view = yield ToolCall("mouse_move", {"x": x, "y": y})
        told = next((one["name"] for one in all_of(view, match="^(?:HOT|WARM|COLD|ICE COLD)$")), "")
        if told == "HOT":
            yield ToolCall("mouse_click", {"x": x, "y": y})
        least, most = rings.get(told, (0, 999))
        places = [(a, b) for a, b in places if least <= ((a - x) ** 2 + (b - y) ** 2) ** 0.5 <= most]
    raise NotShown("HOT")


def _probe(places: list[tuple[int, int]]) -> tuple[int, int]:
    """Of some places the one that has nearest to half of all within 40 pixels."""
    some = places[:: max(1, len(places) // 60)]

    def unfair(place: tuple[int, int]) -> float:
        return abs(sum((a - place[0]) ** 2 + (b - place[1]) ** 2 < 1600 for a, b in some) - len(some) / 2)

    return min(some, key=unfair)


SHAPES: Mapping[str, Oracle] = {
    "click-color": _colour,
    "click-shades": _shades,
    "click-shape": _shape,
    "count-shape": _count,
    "grid-coordinate": _coordinate,
    "hot-cold": _hot,
    "identify-shape": _name,
    "number-checkboxes": _draw_digit,
}
"""The oracles, by the page's name."""
