# ruff: noqa: E501 - a hostile program is easier to read on one line
"""The codec: exact builtins travel exactly, nothing else travels, and no text can hurt the reader."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.sandbox.codec import MAX_BYTES, MAX_DEPTH, MAX_INT_BITS, CodecError, dumps, loads

any_text = st.text(st.characters(exclude_categories=[]))  # lone surrogates too
hashables = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | any_text | st.binary(),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=8,
)
values = st.recursive(
    hashables,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(hashables, max_size=4)
        | st.dictionaries(hashables, inner, max_size=4)
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal, of the same types throughout, in the same order; NaN is itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)
    return bool(a == b)


def test_a_text_of_more_values_than_may_travel_is_refused() -> None:
    with pytest.raises(CodecError, match="values"):
        loads(b"[" + b"[]," * 600_000 + b"[]]")


@given(values)
def test_every_plain_value_comes_back_exactly(value: Any) -> None:
    assert same(loads(dumps(value)), value)


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        5e-324,
        0.1 + 0.2,
        True,
        1,
        1.0,
        2**64,
        -(2**4000),
        "\ud83d\ude00",
        "😀",
        {},
        (),
        [[]],
        {(1,): {2: {3}}},
    ],
)
def test_values_that_text_formats_like_to_bend(value: Any) -> None:
    assert same(loads(dumps(value)), value)


class List(list[Any]):
    pass


class Int(int):
    pass


class Liar:
    __class__ = list  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def endless() -> Any:
    while True:
        yield 0


@pytest.mark.parametrize(
    "value",
    [
        List(),
        Int(1),
        Liar(),
        object(),
        type,
        len,
        range(3),
        iter([]),
        endless(),
        bytearray(),
        memoryview(b""),
        NotImplemented,
        ...,
        {1: List()},
        [{Int(2)}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_other_type_is_refused_anywhere(value: Any) -> None:
    with pytest.raises(CodecError):
        dumps(value)
    with pytest.raises(CodecError):
        dumps([(value,)])


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def shared() -> list[Any]:
    value: list[Any] = [0] * 10
    for _ in range(30):
        value = [value] * 10
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda: nested(MAX_DEPTH + 1),
        lambda: nested(10**6),
        itself,
        shared,
        lambda: 1 << MAX_INT_BITS,
        lambda: "x" * (MAX_BYTES + 1),
        lambda: [b"x" * MAX_BYTES] * 100,
        lambda: [0] * 10**6,
    ],
    ids=["deep", "deeper", "itself", "shared", "integer", "text", "bytes", "many"],
)
def test_what_is_too_large_is_refused(make: Any) -> None:
    with pytest.raises(CodecError):
        dumps(make())


def test_depth_is_allowed_up_to_the_limit() -> None:
    assert loads(dumps(nested(MAX_DEPTH))) == nested(MAX_DEPTH)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"x", b"[", b"\xff", b"{}", b'{"a":1,"b":2}', b'{"object":[]}', b'{"set":[[1]]}', b'{"set":1}', b'{"dict":[[1]]}', b'{"dict":[[[1],2]]}', b'{"bytes":"x"}',
        b'{"int":"z"}', b'{"int":5}', b'{"complex":[1,2]}', b'{"str":"00"}', b"[" * 10**6, b'{"tuple":' * 10**5, b"9" * 10**6, b'{"int":"' + b"f" * 10**6 + b'"}',
        b" " * (MAX_BYTES + 1),
    ],
    ids=lambda text: text[:12].decode(errors="replace"),
)  # fmt: skip
def test_a_text_that_is_none_of_ours_is_refused(text: bytes) -> None:
    with pytest.raises(CodecError):
        loads(text)


def test_colliding_hashes_are_refused() -> None:
    colliding = [i * (2**61 - 1) for i in range(20_000)]
    for tag in ("set", "frozenset"):
        with pytest.raises(CodecError, match="hash"):
            loads(json.dumps({tag: [{"int": hex(n)} for n in colliding]}).encode())
    with pytest.raises(CodecError, match="hash"):
        loads(json.dumps({"dict": [[{"int": hex(n)}, 0] for n in colliding]}).encode())


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | values.map(dumps).map(lambda data: data[:-1]))
def test_reading_raises_nothing_but_its_own_error(data: bytes) -> None:
    try:
        value = loads(data)
    except CodecError:
        return
    dumps(value)
