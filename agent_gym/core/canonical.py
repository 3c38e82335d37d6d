"""One canonical form of JSON, so that equal values are equal bytes, equal digests and equal observations."""

import hashlib
from typing import Any

import orjson

__all__ = ["digest", "dumps", "plain", "pretty"]

_PASS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_SORTED = orjson.OPT_SORT_KEYS | _PASS


def dumps(value: Any) -> bytes:
    """Encodes a JSON value with sorted keys.

    Raises:
        TypeError: For anything that is not a plain JSON value (also integers beyond 64 bits, lone surrogates, other types).
    """
    return orjson.dumps(value, option=_SORTED)


def plain(value: Any) -> Any:
    """A deep copy made of nothing but dict, list, str, int, float, bool and None; NaN and infinities become None.

    Raises:
        TypeError: If ``value`` holds anything that JSON does not.
    """
    return orjson.loads(orjson.dumps(value, option=_PASS))


def pretty(value: Any) -> str:
    """Indented JSON for people."""
    return orjson.dumps(value, option=_PASS | orjson.OPT_INDENT_2).decode()


def digest(value: Any) -> str:
    """A 128-bit BLAKE2b of the canonical form, as 32 hex digits."""
    return hashlib.blake2b(dumps(value), digest_size=16).hexdigest()
