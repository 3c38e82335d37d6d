"""Random values for the part of JSON Schema that tool parameters use, regular expressions included."""

import re
from collections.abc import Mapping
from re import _constants as sre
from re import _parser as sre_parser
from typing import Any

import numpy as np

__all__ = ["sample_schema"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CATEGORIES = {sre.CATEGORY_DIGIT: "0123456789", sre.CATEGORY_WORD: _LETTERS + "0123456789_", sre.CATEGORY_SPACE: " "}
_REPEATS = 6


def sample_schema(schema: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """Draws a value that the schema accepts.

    Covers ``const, enum, anyOf, oneOf, type`` (also a list of types), ``properties, required, items, minItems, maxItems,
    minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, pattern``. Optional properties are given half
    of the time.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][int(rng.integers(len(schema["enum"])))]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return sample_schema(schema[key][int(rng.integers(len(schema[key])))], rng)
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = kind[int(rng.integers(len(kind)))]
    if kind == "object":
        required = schema.get("required", ())
        return {
            name: sample_schema(part, rng) for name, part in schema.get("properties", {}).items() if name in required or rng.integers(2)
        }
    if kind == "array":
        low = schema.get("minItems", 0)
        count = int(rng.integers(low, max(low, schema.get("maxItems", low + 3)) + 1))
        return [sample_schema(schema.get("items", {}), rng) for _ in range(count)]
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 101) - 1)
        drawn = int(rng.integers(int(np.ceil(low)), int(np.floor(high)) + 1))
        return drawn if kind == "integer" else float(drawn)
    if kind == "boolean":
        return bool(rng.integers(2))
    if kind == "null":
        return None
    return _text(schema, rng)


def _text(schema: Mapping[str, Any], rng: np.random.Generator) -> str:
    if "pattern" in schema:
        return _matching(list(sre_parser.parse(schema["pattern"])), rng)
    low = schema.get("minLength", 0)
    length = int(rng.integers(max(low, 1), max(low, 1, min(schema.get("maxLength", 12), low + 12)) + 1))
    return "".join(_LETTERS[int(i)] for i in rng.integers(0, len(_LETTERS), length))


def _matching(nodes: list[tuple[Any, Any]], rng: np.random.Generator) -> str:
    """A text that a parsed regular expression matches."""
    return "".join(_node(op, value, rng) for op, value in nodes)


def _node(op: Any, value: Any, rng: np.random.Generator) -> str:
    if op is sre.LITERAL:
        return chr(value)
    if op is sre.AT:
        return ""
    if op is sre.ANY:
        return _LETTERS[int(rng.integers(len(_LETTERS)))]
    if op is sre.IN:
        return _one_of(value, rng)
    if op is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        low, high, body = value
        count = int(rng.integers(low, min(int(high), low + _REPEATS) + 1))
        return "".join(_matching(list(body), rng) for _ in range(count))
    if op is sre.SUBPATTERN:
        return _matching(list(value[-1]), rng)
    if op is sre.BRANCH:
        return _matching(list(value[1][int(rng.integers(len(value[1])))]), rng)
    raise NotImplementedError(f"no samples for the regular-expression element {op}")


def _one_of(members: list[tuple[Any, Any]], rng: np.random.Generator) -> str:
    if members[0][0] is sre.NEGATE:
        allowed = [c for c in _LETTERS + "0123456789" if not re.match(_class(members[1:]), c)]
        return allowed[int(rng.integers(len(allowed)))]
    op, value = members[int(rng.integers(len(members)))]
    if op is sre.LITERAL:
        return chr(value)
    if op is sre.RANGE:
        return chr(int(rng.integers(value[0], value[1] + 1)))
    if op is sre.CATEGORY and value in _CATEGORIES:
        return _CATEGORIES[value][int(rng.integers(len(_CATEGORIES[value])))]
    raise NotImplementedError(f"no samples for the character class {op} {value}")


def _class(members: list[tuple[Any, Any]]) -> str:
    """The character class again as text, so that a negated one can be tested."""
    parts = []
    for op, value in members:
        if op is sre.LITERAL:
            parts.append(re.escape(chr(value)))
        elif op is sre.RANGE:
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
        elif op is sre.CATEGORY and value in _CATEGORIES:
            parts.append({sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_SPACE: r"\s"}[value])
        else:
            raise NotImplementedError(f"no samples for the character class {op} {value}")
    return "[" + "".join(parts) + "]"
