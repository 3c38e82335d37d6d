"""Values as people read them on a page, in a form from which they can be read back exactly.

A text is shown as it is where that can be told apart from everything else, its lines with a ``¶`` after each; any other in quotes,
by the rules of JSON. Money (integers named ``…_cents``) is shown in dollars, true and false as ``yes`` and ``no``, null as ``—``, an
empty text as ``(empty)``. A list is ``one; two``, an object ``Label: value; Label: value``, both in parentheses inside another; an
empty one is ``(none)``. Whether ``12`` is a text or a number follows from the schema.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["Leaf", "collapsed", "part", "read", "rows_of", "same", "told", "types_of"]

Schema = Mapping[str, Any]
Leaf = Callable[[str, Any, str], str]
"""How a scalar is shown: from its field's name, its value and its text."""

_NULL, _EMPTY, _NONE, _END = "—", "(empty)", "(none)", "¶"
_WORDS = {"yes": True, "no": False}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MONEY = re.compile(r"(-?)\$([0-9]+)\.([0-9]{2})")
_ESCAPED = re.compile(r"\\+(?:#+|[-!|—]) ")
"""What an outline makes of a text that begins like something else: with one backslash more."""
_BLANKS = re.compile(r'(?<= ) |(?<=^") | (?="$)')
"""Blanks that an outline drops."""
_TERM = re.compile(r"(\w+): ")
_DECODER = json.JSONDecoder()
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_ALL = frozenset(_NAMES.values())


def types_of(schema: Schema) -> frozenset[str]:
    """The types of JSON values that a schema takes, as far as it says."""
    if "type" in schema:
        named = schema["type"]
        return frozenset((named,) if isinstance(named, str) else named)
    if "enum" in schema:
        return frozenset(_NAMES[type(value)] for value in schema["enum"])
    several = schema.get("anyOf") or schema.get("oneOf")
    return frozenset().union(*map(types_of, several)) if several else _ALL


def part(schema: Schema, name: str) -> Schema:
    """The part of a schema that speaks of ``items`` or ``properties``, also where it is one of several."""
    for one in (schema, *(schema.get("anyOf") or schema.get("oneOf") or ())):
        if name in one:
            found: Schema = one[name]
            return found
    return {}


def rows_of(schema: Schema) -> Schema | None:
    """Of a list of objects the objects' properties, else None."""
    items = part(schema, "items") if "array" in types_of(schema) else {}
    return part(items, "properties") or None


def same(one: Any, other: Any) -> bool:
    """Whether two scalars are equal and of one type."""
    return type(one) is type(other) and bool(one == other)


def collapsed(text: str) -> str:
    """A text as an outline has it."""
    return " ".join(text.split())


def told(
    value: Any, schema: Schema, name: str, label: Callable[[str], str], leaf: Leaf = lambda _, __, text: text, inner: bool = False
) -> str:
    """A value in words.

    Args:
        value: A JSON value.
        schema: Its schema; what it does not say of a part is told all the same.
        name: The field's name.
        label: What fields are called.
        leaf: How a scalar is shown; what it gives reads as the text it is given.
        inner: Whether it stands inside another value.
    """
    if isinstance(value, dict):
        known = part(schema, "properties")
        called = {key: label(key) if known else key for key in _ordered(value, known)}
        parts = [f"{term}: {told(value[key], known.get(key, {}), key, label, leaf, True)}" for key, term in called.items()]
    elif isinstance(value, list):
        items, one = part(schema, "items"), name.removesuffix("s")
        parts = [told(item, items, one, label, leaf, True) for item in value]
    else:
        return leaf(name, value, _scalar(value, schema, name, inner))
    text = "; ".join(parts)
    return f"({text})" if inner and parts else text or _NONE


def _ordered(record: Mapping[str, Any], known: Schema) -> Iterator[str]:
    """A record's fields in the schema's order, then others."""
    yield from (key for key in known if key in record)
    yield from (key for key in record if key not in known)


def _scalar(value: Any, schema: Schema, name: str, inner: bool) -> str:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _text(value, schema, name, inner)
    if isinstance(value, int) and name.endswith("_cents"):
        return f"{'-' * (value < 0)}${abs(value) // 100}.{abs(value) % 100:02d}"
    return json.dumps(value)


def _text(text: str, schema: Schema, name: str, inner: bool) -> str:
    lines = text.split("\n")
    plain = all(line.isprintable() and collapsed(line) == line for line in lines) and not text.startswith('"') and not _ESCAPED.match(text)
    if plain and not (inner and (len(lines) > 1 or not set(";()").isdisjoint(text))):
        shown = f" {_END}\n".join(lines) or _EMPTY
        if same(_read_scalar(collapsed(shown), schema, name), text):
            return shown
    return _quoted(text)


def _quoted(text: str) -> str:
    """A text as a JSON string in which every character can be seen."""
    shown = _BLANKS.sub(r"\\u0020", json.dumps(text, ensure_ascii=False))
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in shown)


def read(text: str, schema: Schema, name: str, label: Callable[[str], str]) -> Any:
    """The value that `told` has told so.

    Raises:
        ValueError: It is none.
    """
    cursor = _Cursor(text, label)
    kinds = types_of(schema)
    if kinds & {"array", "object"} and text != _NULL:
        if text == _NONE:
            return {} if "array" not in kinds else []
        return cursor.items(schema, name) if "array" in kinds else cursor.fields(schema)
    return _read_scalar(text, schema, name)


def _read_scalar(text: str, schema: Schema, name: str) -> Any:
    kinds = types_of(schema)
    if text == _NULL:
        return None
    if text == _EMPTY:
        return ""
    if text.startswith('"'):
        return json.loads(text)
    if "boolean" in kinds and text in _WORDS:
        return _WORDS[text]
    if "integer" in kinds and name.endswith("_cents") and (money := _MONEY.fullmatch(text)):
        return (-1 if money[1] else 1) * (100 * int(money[2]) + int(money[3]))
    if kinds & {"integer", "number"} and _NUMBER.fullmatch(text):
        return json.loads(text)
    if _ESCAPED.match(text):
        text = text[1:]
    return "\n".join(piece.strip() for piece in text.split(_END)) if _END in text else text


class _Cursor:
    """Reads lists and objects."""

    def __init__(self, text: str, label: Callable[[str], str]) -> None:
        self.text = text
        self.at = 0
        self.label = label

    def items(self, schema: Schema, name: str) -> list[Any]:
        items, one, found = part(schema, "items"), name.removesuffix("s"), []
        while True:
            found.append(self.value(items, one))
            if not self.skip("; "):
                return found

    def fields(self, schema: Schema) -> dict[str, Any]:
        found: dict[str, Any] = {}
        known = part(schema, "properties")
        while not known and (term := _TERM.match(self.text, self.at)):  # an object of any fields
            self.at = term.end()
            found[term[1]] = self.value({}, term[1])
            self.skip("; ")
        for key, inner in known.items():
            if self.skip(f"{self.label(key)}: "):
                found[key] = self.value(inner, key)
                self.skip("; ")
        return found

    def value(self, schema: Schema, name: str) -> Any:
        if self.skip(_NONE):
            return [] if "array" in types_of(schema) else {}
        if self.skip(_EMPTY):
            return ""
        if self.skip("("):
            found: Any = self.items(schema, name) if "array" in types_of(schema) else self.fields(schema)
            if not self.skip(")"):
                raise ValueError(f"no end of {self.text!r}")
            return found
        if self.text.startswith('"', self.at):
            found, self.at = _DECODER.raw_decode(self.text, self.at)
            return found
        first, self.at = (
            self.at,
            min(end for end in (self.text.find(";", self.at), self.text.find(")", self.at), len(self.text)) if end >= 0),
        )
        return _read_scalar(self.text[first : self.at], schema, name)

    def skip(self, text: str) -> bool:
        """Goes on behind a text, if it is there."""
        there = self.text.startswith(text, self.at)
        self.at += len(text) if there else 0
        return there
