# ruff: noqa: B905 - zip(strict=) is newer than Python 3.9
"""Values between a grader and the code it grades: plain builtins, copied exactly, nothing else.

A value counts by its exact type, so an object that claims to equal everything, or a list with a changed ``__eq__``, is not a value at all.
What arrives is built from text by this module: no code of the sender's travels, and no pickle is read. Size, depth, number of values and
hash collisions are bounded on both ways.

Format: JSON. ``None``, ``bool``, ``float`` (with ``NaN``, ``Infinity``), ``list``, and most ``int`` and ``str`` stand for themselves.
The rest is an object with one key, the type's name: ``{"tuple": […]}``, ``{"dict": [[key, value], …]}``, ``{"bytes": "<hex>"}``,
``{"int": "<hex>"}``.

Needs nothing of this package and only Python 3.9: it also runs inside the sandbox.
"""

from __future__ import annotations

import json
from collections import Counter

TYPE_CHECKING = False  # typing itself would take as long to import as all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MESSAGE_DEPTH", "CodecError", "dumps", "loads"]

MAX_DEPTH = 50
"""Containers inside each other."""
MESSAGE_DEPTH = MAX_DEPTH + 2
"""The same for a message, which holds values in a tuple, in a tuple of arguments."""
MAX_BYTES = 4 << 20
"""Length of the text."""
MAX_VALUES = 500_000
"""Values in all."""
MAX_INT_BITS = 1 << 18
"""Size of one integer: about 79,000 decimal digits."""
MAX_SAME_HASH = 64
"""Members of one set or keys of one dict that share a hash: more would take quadratic time to put together."""

_PLAIN_INT_BITS = 64  # above it an integer travels as hex: reading decimals takes quadratic time


class CodecError(ValueError):
    """Not a plain value, or too large a one; or a text that is not one of ours."""


def dumps(value: object, *, max_depth: int = MAX_DEPTH) -> bytes:
    """A value as text.

    Args:
        value: None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset or dict, by exact type, and the same inside it.
        max_depth: Containers inside each other.

    Raises:
        CodecError: Any other type, or too large.
    """
    text = json.dumps(_Encoder().plain(value, max_depth), separators=(",", ":"))
    if len(text) > MAX_BYTES:
        raise CodecError(f"a value of {len(text)} bytes, at most {MAX_BYTES} may travel")
    return text.encode("ascii")


def loads(data: bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """The value of a text; equal to what ``dumps`` was given, and of the same types throughout.

    Args:
        data: From a sender who need not be honest.
        max_depth: Containers inside each other.

    Raises:
        CodecError: The text is not one that ``dumps`` makes.
    """
    if len(data) > MAX_BYTES:
        raise CodecError(f"{len(data)} bytes, at most {MAX_BYTES} are read")
    try:
        return _Decoder().value(json.loads(data), max_depth)
    except (ValueError, RecursionError, TypeError) as error:
        raise CodecError(f"not a value: {error}") from None


class _Encoder:
    def __init__(self) -> None:
        self.room = MAX_VALUES
        self.bytes = MAX_BYTES

    def plain(self, value: Any, depth: int) -> Any:
        self.room -= 1
        if self.room < 0:
            raise CodecError(f"more than {MAX_VALUES} values")
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int:
            bits = value.bit_length()
            if bits > MAX_INT_BITS:
                raise CodecError(f"an integer of {bits} bits, at most {MAX_INT_BITS} may travel")
            if bits <= _PLAIN_INT_BITS:
                return value
            self.spend(bits // 4)
            return {"int": hex(value)}
        if kind is str or kind is bytes:
            self.spend(len(value))
            if kind is bytes:
                return {"bytes": value.hex()}
            # JSON cannot tell two lone surrogates from the character that the pair encodes.
            lone = any("\ud800" <= c <= "\udfff" for c in value) if not value.isascii() else False
            return {"str": value.encode("utf-32-be", "surrogatepass").hex()} if lone else value
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if depth == 0:
            raise CodecError("nested too deep")
        if kind is list:
            return self.all(value, depth)
        if kind is tuple or kind is set or kind is frozenset:
            return {kind.__name__: self.all(value, depth)}
        if kind is dict:
            return {"dict": [[self.plain(k, depth - 1), self.plain(v, depth - 1)] for k, v in value.items()]}
        raise CodecError("a value that is not a plain builtin")

    def spend(self, size: int) -> None:
        self.bytes -= size
        if self.bytes < 0:
            raise CodecError(f"more than {MAX_BYTES} bytes of text")

    def all(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.plain(value, depth - 1) for value in values]


class _Decoder:
    def __init__(self) -> None:
        self.room = MAX_VALUES

    def value(self, plain: Any, depth: int) -> Any:
        self.room -= 1
        if self.room < 0:
            raise CodecError(f"more than {MAX_VALUES} values")
        if type(plain) is not list and type(plain) is not dict:
            return plain
        if type(plain) is dict:
            if len(plain) != 1:
                raise CodecError("an object that is not one of ours")
            ((name, content),) = plain.items()
            if name == "int" and type(content) is str and len(content) <= MAX_INT_BITS // 4 + 4:
                return int(content, 16)
            if name == "bytes" and type(content) is str:
                return bytes.fromhex(content)
            if name == "str" and type(content) is str:
                return bytes.fromhex(content).decode("utf-32-be", "surrogatepass")
            if name == "complex" and type(content) is list and list(map(type, content)) == [float, float]:
                return complex(*content)
            if name not in ("tuple", "set", "frozenset", "dict") or type(content) is not list:
                raise CodecError("an object that is not one of ours")
        else:
            name, content = "list", plain
        if depth == 0:
            raise CodecError("nested too deep")
        if name == "dict":
            if not all(type(pair) is list and len(pair) == 2 for pair in content):
                raise CodecError("a dict that is not made of pairs")
            keys = _distinct([self.value(key, depth - 1) for key, _ in content])
            return dict(zip(keys, [self.value(value, depth - 1) for _, value in content]))
        values = [self.value(item, depth - 1) for item in content]
        if name == "list":
            return values
        if name == "tuple":
            return tuple(values)
        return set(_distinct(values)) if name == "set" else frozenset(_distinct(values))


def _distinct(values: list[Any]) -> list[Any]:
    if values and max(Counter(map(hash, values)).values()) > MAX_SAME_HASH:
        raise CodecError("too many values with one hash")
    return values
