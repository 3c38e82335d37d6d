"""Forms by the HTML standard: which controls belong to one, what it submits, and how that travels.

https://html.spec.whatwg.org/multipage/form-control-infrastructure.html is the source of every rule here.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from mimetypes import MimeTypes
from typing import NamedTuple
from urllib.parse import quote_plus

from agent_gym.browser.inputs import kind_of
from agent_gym.browser.live import Live, Node, around, is_disabled, value_of

__all__ = [
    "SUBMITTERS",
    "Submission",
    "blocks_implicit_submission",
    "by_id",
    "controls_of",
    "default_button",
    "hidden_fields",
    "kind_of_button",
    "labelled_by",
    "owner_of",
    "radio_group",
    "reset",
    "settle_radios",
    "submission",
]

SUBMITTERS = frozenset({"submit", "image"})
_CONTROLS = ("button", "input", "select", "textarea")
_DIRECTED = frozenset({"hidden", "text", "search", "tel", "url", "email", "password", "submit", "reset", "button", "textarea"})
_LONE = frozenset({"text", "search", "tel", "url", "email", "password", "date", "month", "week", "time", "datetime-local", "number"})
_METHODS = frozenset({"get", "post", "dialog"})
_ENCODINGS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
_NEWLINE = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r"token|[cx]srf|nonce|viewstate|eventvalidation", re.IGNORECASE)
_TYPES = MimeTypes()  # the table in the standard library, not the machine's


class Submission(NamedTuple):
    """What a form sends.

    Attributes:
        action: Where to, as written; empty for the document itself.
        method: ``get``, ``post`` or ``dialog``.
        content_type: The body's media type; empty for ``get``.
        data: The body, or the query for ``get``.
        target: The tab it is for, as written.
    """

    action: str
    method: str
    content_type: str
    data: bytes
    target: str | None


class _File(NamedTuple):
    name: str
    content: bytes


_Entries = list[tuple[str, str | _File]]


def by_id(node: Node) -> dict[str, Node]:
    """The elements of a document by their ``id``, the first where several have the same."""
    found: dict[str, Node] = {}
    for each in node.getroottree().getroot().iter():
        if name := each.get("id"):
            found.setdefault(name, each)
    return found


def owner_of(control: Node, named: Mapping[str, Node] | None = None) -> Node | None:
    """A control's form: the one its ``form`` names, else the nearest around it.

    Args:
        control: The control.
        named: What `by_id` gives, if the forms of many controls are asked for.
    """
    name = control.get("form")
    if name is None:
        return next((above for above in around(control) if above.tag == "form"), None)
    form = (by_id(control) if named is None else named).get(name)
    return form if form is not None and form.tag == "form" else None


def controls_of(form: Node) -> list[Node]:
    """The controls that belong to a form, in tree order, buttons and images too."""
    named = by_id(form)
    return [control for control in form.getroottree().getroot().iter(*_CONTROLS) if owner_of(control, named) is form]


def kind_of_button(control: Node) -> str:
    """What a button does: ``submit``, ``image``, ``reset`` or ``button``; empty for what is no button."""
    if control.tag == "button":
        kind = (control.get("type") or "submit").lower()
        return kind if kind in ("reset", "button") else "submit"
    kind = kind_of(control)
    return kind if kind in ("submit", "image", "reset", "button") else ""


def default_button(controls: Iterable[Node]) -> Node | None:
    """The button that Enter in a field of the form presses."""
    return next((control for control in controls if kind_of_button(control) in SUBMITTERS), None)


def blocks_implicit_submission(control: Node) -> bool:
    """Whether a form with two such fields and no submit button does not submit by Enter."""
    return control.tag == "input" and kind_of(control) in _LONE


def labelled_by(label: Node) -> Node | None:
    """The control that a label stands for."""
    name = label.get("for")
    if name is not None:
        control = by_id(label).get(name)
        return control if control is not None and _labelable(control) else None
    return next((node for node in label.iterdescendants() if _labelable(node) and label in around(node)), None)


def _labelable(node: Node) -> bool:
    return node.tag in ("button", "meter", "output", "progress", "select", "textarea") or (
        node.tag == "input" and kind_of(node) != "hidden"
    )


def radio_group(radio: Node) -> list[Node]:
    """The radio buttons of which one can be checked, in tree order; one without a name is alone."""
    name = radio.get("name")
    if not name:
        return [radio]
    named = by_id(radio)
    form = owner_of(radio, named)
    return [
        other
        for other in radio.getroottree().getroot().iter("input")
        if other.get("name") == name and kind_of(other) == "radio" and owner_of(other, named) is form
    ]


def settle_radios(controls: Iterable[Node], live: Live) -> None:
    """Of radio buttons that the markup checks together, the last stays checked."""
    checked = [each for each in controls if each.get("checked") is not None and each.get("name") and kind_of(each) == "radio"]
    named = by_id(checked[0]) if len(checked) > 1 else {}
    last = {(owner_of(radio, named), radio.get("name")): radio for radio in checked}
    live.checks.update((radio, False) for radio in checked if last[owner_of(radio, named), radio.get("name")] is not radio)


def reset(form: Node, live: Live) -> None:
    """Puts a form's controls back to what the markup says."""
    controls = controls_of(form)
    for control in controls:
        live.values.pop(control, None)
        live.checks.pop(control, None)
        live.selections.pop(control, None)
    settle_radios(controls, live)
    live.invalid = None


def hidden_fields(form: Node) -> tuple[tuple[str, str], ...]:
    """What a form says without showing it, but for tokens that change with each load."""
    return tuple(
        (name, field.get("value") or "")
        for field in form.iter("input")
        if (field.get("type") or "").lower() == "hidden" and (name := field.get("name")) and not _TOKEN.search(name)
    )


def submission(form: Node, submitter: Node | None, live: Live, files: Mapping[str, bytes]) -> Submission:
    """What a form sends when it is submitted by a button, or (None) without one."""

    def attribute(name: str) -> str | None:
        own = submitter.get(f"form{name}") if submitter is not None else None
        return form.get(name) if own is None else own

    method = (attribute("method") or "get").lower()
    encoding = (attribute("enctype") or "").lower()
    entries = _entries(form, submitter, live, files)
    if method != "post" or encoding not in _ENCODINGS:
        encoding = "application/x-www-form-urlencoded"
    content_type, data = _encoded(entries, encoding)
    return Submission(
        (attribute("action") or "").strip(),
        method if method in _METHODS else "get",
        content_type if method == "post" else "",
        data,
        attribute("target"),
    )


def _entries(form: Node, submitter: Node | None, live: Live, files: Mapping[str, bytes]) -> _Entries:
    """The standard's entry list."""
    entries: _Entries = []
    for control in controls_of(form):
        kind = kind_of_button(control) or kind_of(control)
        if is_disabled(control) or next(control.iterancestors("datalist"), None) is not None:
            continue
        if (kind_of_button(control) and control is not submitter) or (kind in ("checkbox", "radio") and not live.checked(control)):
            continue
        name = control.get("name") or ""
        if kind == "image":
            prefix = f"{name}." if name else ""
            entries += [(f"{prefix}x", "0"), (f"{prefix}y", "0")]
        if kind == "image" or not name:
            continue
        if kind == "select":
            entries += [(name, value_of(option)) for option in live.selected(control) if not is_disabled(option)]
        elif kind in ("checkbox", "radio"):
            value = control.get("value")
            entries.append((name, "on" if value is None else value))
        elif kind == "file":
            chosen = live.values.get(control)
            entries += [(name, _File(file, files[file])) for file in chosen.split("\n")] if chosen else [(name, _File("", b""))]
        elif kind == "hidden" and name.lower() == "_charset_":
            entries.append((name, "UTF-8"))
        else:
            entries.append((name, live.value(control)))
            direction = control.get("dirname")
            if direction and kind in _DIRECTED:
                entries.append((direction, _direction(control)))
    return entries


def _direction(control: Node) -> str:
    for node in (control, *control.iterancestors()):
        stated = (node.get("dir") or "").lower()
        if stated in ("ltr", "rtl"):
            return stated
    return "ltr"


def _encoded(entries: _Entries, encoding: str) -> tuple[str, bytes]:
    """A body, and its media type with whatever parameters it has."""
    if encoding == "multipart/form-data":
        # derived from what it must not occur in, so that the same form gives the same bytes
        boundary = f"----FormBoundary{blake2b(repr(entries).encode(), digest_size=8).hexdigest()}"
        return f"{encoding}; boundary={boundary}", _multipart(entries, boundary.encode())
    pairs = [(_crlf(name), _crlf(value.name if isinstance(value, _File) else value)) for name, value in entries]
    if encoding == "text/plain":
        return encoding, "".join(f"{name}={value}\r\n" for name, value in pairs).encode()
    return encoding, "&".join(f"{_percent(name)}={_percent(value)}" for name, value in pairs).encode()


def _multipart(entries: _Entries, boundary: bytes) -> bytes:
    parts: list[bytes] = []
    for name, value in entries:
        head = f'Content-Disposition: form-data; name="{_escaped(_crlf(name))}"'
        if isinstance(value, _File):
            kind = _TYPES.guess_type(value.name)[0] or "application/octet-stream"
            head += f'; filename="{_escaped(value.name)}"\r\nContent-Type: {kind}'
        content = value.content if isinstance(value, _File) else _crlf(value).encode()
        parts.append(b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary, head.encode(), content))
    return b"".join(parts) + b"--%b--\r\n" % boundary


def _crlf(text: str) -> str:
    return _NEWLINE.sub("\r\n", text)


def _escaped(name: str) -> str:
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


def _percent(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")
