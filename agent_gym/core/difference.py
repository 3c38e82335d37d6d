"""Where two values differ first."""

import math
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Difference", "difference"]

_MOST = 200


class Difference(NamedTuple):
    """A place in which two values differ.

    Attributes:
        where: The place, such as ``observation.data.view.tabs[1]``.
        one: What the first has there, in words, at most 200 characters; of a text the line that differs.
        other: What the second has there.
    """

    where: str
    one: str
    other: str


def difference(one: Any, other: Any, where: str) -> Difference | None:
    """Where two values differ first, types and the bytes of arrays included; None if they do not.

    Args:
        one: A value: containers, arrays, plain values.
        other: Another.
        where: What the place is called that they have.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        places = ((_part(one, key), _part(other, key), f"{where}.{key}") for key in {**one, **other})
    elif isinstance(one, list | tuple) and type(one) is type(other):
        pairs = zip_longest(one, other, fillvalue=_NOTHING)
        places = ((*pair, f"{where}[{index}]") for index, pair in enumerate(pairs))
    else:
        return None if _equal(one, other) else Difference(where, *_told(one, other))
    return next((found for place in places if (found := difference(*place))), None)


class _Nothing:
    def __str__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def _part(value: Mapping[Any, Any], key: Any) -> Any:
    return value.get(key, _NOTHING)


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def _told(one: Any, other: Any) -> tuple[str, str]:
    if isinstance(one, str) and isinstance(other, str):
        lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
        one, other = next((pair for pair in lines if pair[0] != pair[1]), (one, other))
    told = str(one)[:_MOST], str(other)[:_MOST]
    return told if told[0] != told[1] else (f"{told[0]} ({type(one).__name__})", f"{told[1]} ({type(other).__name__})")
