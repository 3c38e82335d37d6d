"""Words and hashed bags of words: features with no vocabulary and no fitting, equal on every machine."""

import functools
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

__all__ = ["MAX_TOKENS", "bag", "json_tokens", "shapes", "slot", "tokens", "unit", "value_tokens"]

MAX_TOKENS = 2_000
"""At most this many words of one text are looked at."""

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_ESCAPE = re.compile(r'\\(?:[nrtbf"/\\]|u[0-9a-fA-F]{4})')


@functools.lru_cache(maxsize=65_536)
def _short_tokens(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower().replace("_", " ")))


def tokens(text: str) -> tuple[str, ...]:
    """The words of a text in lower case; underscores part words."""
    if len(text) <= 256:
        return _short_tokens(text)
    return tuple(match.group() for _, match in zip(range(MAX_TOKENS), _WORD.finditer(text.lower().replace("_", " ")), strict=False))


def json_tokens(value: Any) -> list[str]:
    """The words of a JSON value in order, those of its keys too."""
    text = orjson.dumps(value).decode()
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    return list(tokens(text))


def value_tokens(value: Any) -> Iterator[str]:
    """The words of a JSON value in order, those of its keys left out."""
    if isinstance(value, str):
        yield from tokens(value)
    elif isinstance(value, dict):
        for part in value.values():
            yield from value_tokens(part)
    elif isinstance(value, list):
        for part in value:
            yield from value_tokens(part)
    elif value is not None:
        yield str(value).lower()


@functools.lru_cache(maxsize=65_536)
def _shape(token: str) -> str:
    return _DIGIT.sub("0", token)


def shapes(words: Iterable[str]) -> list[str]:
    """The words with every digit as 0: an id or an amount is told by its form, not by its value."""
    return [_shape(word) for word in words]


@functools.lru_cache(maxsize=262_144)
def slot(token: str, size: int) -> int:
    """A token's signed slot: its place, counted from 1, negative for half of all tokens."""
    code = zlib.crc32(token.encode())
    return (code % size + 1) * (1 if code & 0x8000_0000 else -1)


def bag(words: Sequence[str], size: int, bigrams: bool = False) -> NDArray[np.float32]:
    """A signed hashed bag of words.

    Args:
        words: The words, in order.
        size: Length of the result.
        bigrams: Whether neighbouring pairs count too.

    Returns:
        ``float32[size]``, sums of ±1. (Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".)
    """
    grams: list[str] = list(words)
    if bigrams:
        grams += [f"{a} {b}" for a, b in itertools.pairwise(words)]
    if not grams:
        return np.zeros(size, np.float32)
    slots = np.array([slot(gram, size) for gram in grams])
    return np.bincount(np.abs(slots) - 1, np.sign(slots), size).astype(np.float32)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors along the last axis at length 1; all zeros stay so."""
    norms = np.sqrt((vectors * vectors).sum(-1, keepdims=True))
    norms[norms == 0] = 1
    scaled: NDArray[np.float32] = vectors / norms
    return scaled
