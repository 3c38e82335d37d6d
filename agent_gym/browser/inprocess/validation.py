"""Constraint validation by the HTML standard: what keeps a form from being submitted, and what the user is told.

The messages are those that browsers show.
"""

import math
import re
from collections.abc import Container, Sequence
from fractions import Fraction
from functools import lru_cache
from urllib.parse import urlsplit

import jsonschema_rs

from agent_gym.browser.inprocess.forms import kind_of_button
from agent_gym.browser.inputs import SCALES, TEXT_KINDS, kind_of, limits_of
from agent_gym.browser.live import Live, Node, is_disabled, options_of, shows_list, value_of

__all__ = ["first_invalid", "is_readonly", "length_of", "longest"]

_NOT_REQUIRED = frozenset({"hidden", "range", "color"})
_WRITABLE = TEXT_KINDS | (SCALES.keys() - {"range"}) | {"textarea"}
"""The kinds that ``readonly`` applies to."""

_EMAIL = re.compile(
    r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_WITH_HOST = frozenset({"http", "https", "ws", "wss", "ftp"})
_NOT_IN_HOST = re.compile(r"[\x00-\x20#%/:<>?@\[\\\]^|\x7f]")
_MAX_PATTERN = 1_000
_BACKTRACKS = 10_000
"""What a pattern may cost; browsers have no such limit, and some patterns hang them."""


def first_invalid(controls: Sequence[Node], live: Live) -> tuple[Node, str] | None:
    """The first of a form's controls that breaks a constraint, and the message for it."""
    radios = [control for control in controls if kind_of(control) == "radio"]
    lacking = {radio.get("name") for radio in radios if radio.get("required") is not None}
    lacking -= {radio.get("name") for radio in radios if live.checked(radio)}
    for control in controls:
        if not _barred(control):
            message = _radio(control, lacking, live) if kind_of(control) == "radio" else _message(control, live)
            if message:
                return control, message
    return None


def is_readonly(control: Node) -> bool:
    """Whether ``readonly`` holds for a control."""
    return control.get("readonly") is not None and kind_of(control) in _WRITABLE


def length_of(text: str) -> int:
    """A text's length as HTML counts it, in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def longest(control: Node) -> int | None:
    """What ``maxlength`` says, where it applies."""
    return _length(control, "maxlength")


def _length(control: Node, name: str) -> int | None:
    stated = control.get(name)
    kind = kind_of(control)
    if stated is None or (kind not in TEXT_KINDS and kind != "textarea"):
        return None
    digits = re.match(r"[\t\n\f\r ]*\+?(\d{1,9})", stated, re.ASCII)
    return int(digits[1]) if digits else None


def _barred(control: Node) -> bool:
    """Whether a control is barred from constraint validation."""
    return (
        kind_of_button(control) != ""
        or kind_of(control) == "hidden"
        or is_disabled(control)
        or is_readonly(control)
        or next(control.iterancestors("datalist"), None) is not None
    )


def _message(control: Node, live: Live) -> str:
    kind = kind_of(control)
    missing = _missing(control, kind, live)
    if missing or kind in ("select", "checkbox", "file"):
        return missing
    value = live.value(control)
    if not value:
        return ""
    if kind in SCALES:
        return _out_of_scale(control, kind, value)
    wrong = _mistyped(control, kind, value) or (_mismatched(control, value) if kind in TEXT_KINDS else "")
    if wrong or control not in live.values:  # only what the user has edited can be too long or too short
        return wrong
    length, most, least = length_of(value), longest(control), _length(control, "minlength")
    using = f"(you are currently using {length} character{'' if length == 1 else 's'})."
    if most is not None and length > most:
        return f"Please shorten this text to {most} characters or less {using}"
    if least is not None and length < least:
        return f"Please lengthen this text to {least} characters or more {using}"
    return ""


def _radio(radio: Node, lacking: Container[str | None], live: Live) -> str:
    """The message at a radio button: one of its group is required, and none is checked."""
    name = radio.get("name")
    missing = name in lacking if name else radio.get("required") is not None and not live.checked(radio)
    return "Please select one of these options." if missing else ""


def _missing(control: Node, kind: str, live: Live) -> str:
    if control.get("required") is None or kind in _NOT_REQUIRED:
        return ""
    if kind == "checkbox":
        return "" if live.checked(control) else "Please check this box if you want to proceed."
    if kind == "select":
        return "" if _chosen(control, live) else "Please select an item in the list."
    if kind == "file":
        return "" if live.values.get(control) else "Please select a file."
    return "" if live.value(control) else "Please fill out this field."


def _chosen(select: Node, live: Live) -> bool:
    """Whether something is selected besides the placeholder that a list of one begins with."""
    selected = live.selected(select)
    if select.get("multiple") is not None or shows_list(select):
        return bool(selected)
    first = next(iter(options_of(select)), None)
    placeholder = first if first is not None and value_of(first) == "" and first.getparent() is select else None
    return any(option is not placeholder for option in selected)


def _mistyped(control: Node, kind: str, value: str) -> str:
    if kind == "email":
        if control.get("multiple") is not None:
            fine = all(_EMAIL.fullmatch(part) for part in value.split(","))
            return "" if fine else "Please enter a comma-separated list of email addresses."
        return "" if _EMAIL.fullmatch(value) else "Please enter an email address."
    return "Please enter a URL." if kind == "url" and not _is_url(value) else ""


def _is_url(value: str) -> bool:
    """Whether a text is an absolute URL: a scheme, and where the scheme has one a host."""
    found = _SCHEME.fullmatch(value)
    if not found or found[1].lower() not in _WITH_HOST:
        return found is not None
    try:
        url = urlsplit("http://" + found[2].lstrip("/\\"))
        host, port = url.hostname or "", url.port
    except ValueError:
        return False
    plain = host if url.netloc.rpartition("@")[2].startswith("[") is False else ""
    return bool(host) and not _NOT_IN_HOST.search(plain) and (port is None or port <= 65_535)


def _mismatched(control: Node, value: str) -> str:
    pattern = control.get("pattern")
    if pattern is None:
        return ""
    values = value.split(",") if kind_of(control) == "email" and control.get("multiple") is not None else [value]
    matcher = _matcher(pattern)
    if matcher is None or all(map(matcher.is_valid, values)):
        return ""
    title = " ".join((control.get("title") or "").split())
    return f"Please match the requested format: {title}" if title else "Please match the requested format."


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> jsonschema_rs.Draft202012Validator | None:
    """What checks a text against a pattern; None if it is none, which browsers ignore. JSON Schema has the same regular expressions
    as HTML (ECMAScript's), and this validator bounds what they cost.
    """
    if len(pattern) > _MAX_PATTERN:
        return None
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)  # `a)(b` is no pattern, but would be one below
        return jsonschema_rs.Draft202012Validator({"pattern": f"^(?:{pattern})$"}, pattern_options=options)
    except jsonschema_rs.ValidationError:
        return None


def _out_of_scale(control: Node, kind: str, value: str) -> str:
    scale, (low, high, step, base) = SCALES[kind], limits_of(control)
    number = scale.parse(value)
    if number is None:
        return ""
    plain = kind in ("number", "range")
    if kind == "time" and low is not None and high is not None and low > high:  # from the evening to the morning
        if high < number < low:
            return f"Value must be between {scale.show(low)} and {scale.show(high)}."
        low = high = None
    if low is not None and number < low:
        return f"Value must be greater than or equal to {scale.show(low)}." if plain else f"Value must be {scale.show(low)} or later."
    if high is not None and number > high:
        return f"Value must be less than or equal to {scale.show(high)}." if plain else f"Value must be {scale.show(high)} or earlier."
    if step is None or (number - base) % step == 0:
        return ""
    below = base + math.floor((number - base) / step) * step
    near = [
        shown
        for each in (below, below + step)
        if (low is None or each >= low) and (high is None or each <= high) and (shown := _shown(kind, each))
    ]
    told = {2: f" The two nearest valid values are {' and '.join(near)}.", 1: f" The nearest valid value is {near[0]}." if near else ""}
    return "Please enter a valid value." + told.get(len(near), "")


def _shown(kind: str, number: Fraction) -> str:
    try:
        return SCALES[kind].show(number)
    except (ValueError, OverflowError):  # before the first year or after the last
        return ""
