"""Pages that take a text: one that the goal says, or that follows from what is shown."""

import re
from collections.abc import Callable, Mapping

from agent_gym.core import ToolCall
from agent_gym.envs.miniwob.oracles.seeing import (
    Fields,
    NotShown,
    Oracle,
    Script,
    View,
    Walk,
    act,
    all_of,
    asked,
    fill,
    find,
    ordinal,
    picked,
    pressed,
    submitted,
)

__all__ = ["TYPING"]

Answer = Callable[[str, View], str]
"""What to enter, from what is asked and what is shown."""


def _answering(answer: Answer) -> Oracle:
    """Enters the answer wherever nothing stands yet."""

    def script(goal: str, _fields: Fields, view: View) -> Script:
        text = answer(goal, view)
        for box in list(all_of(view, "textbox")):
            if not box.get("value"):
                view = yield fill(box, text)
        yield from submitted(view)

    return script


def _quoted(goal: str, _view: View) -> str:
    return asked('"(.*)"', goal)[0]


def _in_case(goal: str, view: View) -> str:
    text = _quoted(goal, view)
    return text.upper() if "upper case" in goal else text.lower()


def _date(goal: str, _view: View) -> str:
    month, day, year = asked(r"(\d+)/(\d+)/(\d+)", goal)
    return f"{year}-{month}-{day}"


def _time(goal: str, _view: View) -> str:
    hour, minute, half = asked(r"(\d+):(\d+)\s*([AP])M", goal)
    return f"{int(hour) % 12 + (12 if half == 'P' else 0):02}:{minute}"


def _copied(goal: str, view: View) -> str:
    return str(picked((one for one in all_of(view, "textbox") if one.get("value")), ordinal(goal))["value"])


def _word(goal: str, view: View) -> str:
    words = find(view, "generic")["name"].split()
    return re.sub("[^a-zA-Z]", "", words[ordinal(goal) - 1])


def _letters(_goal: str, view: View) -> str:
    return "".join(one["name"] for one in all_of(view, "generic"))


def _sum(_goal: str, view: View) -> str:
    one, sign, other = asked(r"(\d+) ([-+x]) (\d+)", find(view, "generic")["name"])
    first, second = int(one), int(other)
    return str({"+": first + second, "-": first - second, "x": first * second}[sign])


def _unknown(_goal: str, view: View) -> str:
    left, sign, right, result = asked(r"(\w+) ([-+]) (\w+) = (\d+)", find(view, "generic")["name"])
    known = int(left if right == "x" else right)
    if sign == "+":
        return str(int(result) - known)
    return str(int(result) + known if left == "x" else known - int(result))


def _blocks(_goal: str, view: View) -> str:
    return str(sum(1 for _ in all_of(view, "img", match="addition-block")))


def _row(label: str, view: View) -> str:
    """What stands beside a label in a table."""
    return str(next((one["name"] for one in all_of(view, "generic") if one.get("context") == label), ""))


def _value_of(goal: str, view: View) -> str:
    return _row(asked("value of (.*) into", goal)[0], view)


def _labelled(_goal: str, _fields: Fields, view: View) -> Script:
    label = ""
    for one in view["elements"]:
        if one["role"] == "textbox":
            view = yield fill(one, _row(label, view))
        label = one.get("name", "").removesuffix(":")
    yield from submitted(view)


def _focus(goal: str, _fields: Fields, view: View) -> Script:
    yield pressed(picked(all_of(view, "textbox"), ordinal(goal)))


def _log_in(goal: str, _fields: Fields, view: View) -> Script:
    """What pops up meanwhile is sent away."""
    user, password = asked('"(.*)" and the password "(.*)"', goal)
    for name, text in (("username", user), ("password", password)):
        view = yield fill(find(view, "textbox", name), text)
        for no in all_of(view, "button", "Cancel"):
            view = yield pressed(no)
            view = yield fill(find(view, "textbox", name), text)
    yield pressed(find(view, "button", match="OK|Login"))


def _movie(goal: str, _fields: Fields, view: View) -> Script:
    """A field's label stands before it, or else after it; the way to send all off comes last."""
    genre, director, year = asked(r"for (.*) movies directed by (.*) from year (\d+)", goal)
    elements = view["elements"]
    boxes = [at for at, one in enumerate(elements) if one["role"] == "textbox"]
    beside = 1 if boxes and boxes[0] == 0 else -1
    for at in boxes:
        label = elements[at + beside]["name"]
        text = genre if "Genre" in label else director if "Director" in label else year
        view = yield fill(elements[at], text)
    yield pressed(elements[-1])


def _guess(_goal: str, _fields: Fields, view: View) -> Script:
    low, high = 0, 9
    while low <= high:
        guess = (low + high) // 2
        view = yield fill(find(view, "spinbutton"), str(guess))
        view = yield pressed(find(view, "button"))
        low, high = (guess + 1, high) if "higher than" in view["outline"] else (low, guess - 1)


def _last_word(_goal: str, _fields: Fields, view: View) -> Script:
    """The text is longer than what is told of it: its end, a word and a stop, is copied from it."""
    text, answer = picked(all_of(view, "textbox"), 1), picked(all_of(view, "textbox"), 2)
    view = yield act("focus", text)
    for keys in ("Control+End", "Control+Shift+ArrowLeft", "Control+Shift+ArrowLeft", "Control+C"):
        view = yield ToolCall("keyboard_press", {"key": keys})
    view = yield act("focus", answer)
    view = yield ToolCall("keyboard_press", {"key": "Control+V"})
    yield from submitted(view)


def _radio_and_text(goal: str, _fields: Fields, view: View) -> Script:
    radio, text, box = asked(r'(\d)\w\w radio button and enter the number "(.*)" into the (\d)', goal)
    view = yield act("check", picked(all_of(view, "radio"), int(radio)))
    view = yield fill(picked(all_of(view, "textbox"), int(box)), text)
    yield from submitted(view)


def _complete(goal: str, _fields: Fields, view: View) -> Script:
    """Types what it starts with, and takes what is offered that also ends as asked."""
    start, end = asked('starts with "(.*?)"(?: and ends with "(.*?)")?', goal)
    view = yield pressed(find(view, "textbox"))
    view = yield ToolCall("keyboard_type", {"text": start})
    for _ in range(4):  # what is offered may take some time
        for offer in all_of(view, match=f"^{re.escape(start)}"):
            if offer["role"] != "textbox" and offer["name"].endswith(end):
                view = yield pressed(offer)
                yield from submitted(view)
        view = yield ToolCall("noop", {})
    raise NotShown(start)


_COLOURS = {
    **{"black": "000000", "gray": "808080", "silver": "C0C0C0", "white": "FFFFFF", "maroon": "800000", "red": "FF0000"},
    **{"olive": "808000", "yellow": "FFFF00", "green": "008000", "lime": "00FF00", "teal": "008080", "aqua": "00FFFF"},
    **{"navy": "000080", "blue": "0000FF", "purple": "800080", "magenta": "FF00FF", "gold": "FFD700", "orange": "FFA500"},
    **{"pink": "FFC0CB"},
}
"""Colours of style sheets by name."""


def _pick_colour(goal: str, _fields: Fields, view: View) -> Script:
    """A colour is asked for by its name, or shown in a box at the top; the field takes its six digits."""
    box = next(all_of(view, "img", match="^#"), None)
    colour = box["name"][1:7] if box else _COLOURS.get(asked("(?:Select (.*) with|$)", goal)[0], "")
    view = yield fill(find(view, "textbox"), colour)
    yield from submitted(view)


_PENS = {"red": "#e60000", "orange": "#ff9900", "yellow": "yellow", "green": "#008a00", "blue": "#0066cc", "purple": "#9933ff"}
"""The strongest of a colour's shades in the editor's palette."""


def _style(view: View, style: str) -> Walk:
    """Gives what is marked, or what is typed from now on, a style or a colour."""
    if button := {"bold": "ql-bold", "italics": "ql-italic", "underlined": "ql-underline"}.get(style):
        return (yield pressed(find(view, "button", match=f"^{button}")))
    view = yield pressed(find(view, "img", match="polyline"))
    return (yield pressed(find(view, "img", match=f"^{_PENS.get(style, style)} ql-picker-item")))


def _editor(goal: str, _fields: Fields, view: View) -> Script:
    """A single word is typed once more, with all that stands around it."""
    word, style = asked(r"(?:give the text (.*?)|everything) the (?:style|color) (\w+)", goal)
    text = str(find(view, "textbox")["value"])
    view = yield pressed(find(view, "textbox"))
    view = yield ToolCall("keyboard_press", {"key": "Control+A"})
    if not word:
        view = yield from _style(view, style)
    else:
        before, _, after = text.partition(word)
        view = yield ToolCall("keyboard_press", {"key": "Backspace"})
        if before:
            view = yield ToolCall("keyboard_type", {"text": before})
        view = yield from _style(view, style)
        view = yield ToolCall("keyboard_type", {"text": word})
        if after:
            view = yield from _style(view, "black" if style in _PENS else style)
            view = yield ToolCall("keyboard_type", {"text": after})
    yield from submitted(view)


def _terminal(goal: str, _fields: Fields, view: View) -> Script:
    """The files are listed; one with the ending goes."""
    ending = next(iter(re.findall(r"extension (\.\S+)", goal)), "")
    view = yield pressed(find(view, match="user"))
    view = yield ToolCall("keyboard_type", {"text": "ls"})
    view = yield ToolCall("keyboard_press", {"key": "Enter"})
    shown = [one["name"] for one in all_of(view, "generic")]
    for name in shown[shown.index("ls") + 1].split():
        if name.endswith(ending) if ending else "." not in name:
            view = yield ToolCall("keyboard_type", {"text": f"rm {name}"})
            yield ToolCall("keyboard_press", {"key": "Enter"})


TYPING: Mapping[str, Oracle] = {
    "copy-paste": _answering(_copied),
    "copy-paste-2": _answering(_copied),
    "enter-date": _answering(_date),
    "enter-password": _answering(_quoted),
    "enter-text": _answering(_quoted),
    "enter-text-2": _answering(_in_case),
    "enter-text-dynamic": _answering(_quoted),
    "enter-time": _answering(_time),
    "find-word": _answering(_word),
    "focus-text": _focus,
    "focus-text-2": _focus,
    "form-sequence-2": _radio_and_text,
    "guess-number": _guess,
    "login-user": _log_in,
    "login-user-popup": _log_in,
    "multi-layouts": _movie,
    "multi-orderings": _movie,
    "read-table": _answering(_value_of),
    "read-table-2": _labelled,
    "scroll-text": _last_word,
    "simple-algebra": _answering(_unknown),
    "simple-arithmetic": _answering(_sum),
    "terminal": _terminal,
    "text-editor": _editor,
    "text-transform": _answering(_letters),
    "use-autocomplete": _complete,
    "use-autocomplete-nodelay": _complete,
    "use-colorwheel": _pick_colour,
    "use-colorwheel-2": _pick_colour,
    "visual-addition": _answering(_blocks),
}
"""The oracles, by the page's name."""
