"""Spaces for text, JSON and tool calls, and what lets `AsyncVectorEnv` carry them through shared memory.

Gymnasium's own ``Text`` holds a fixed alphabet; tool output is any Unicode. These spaces bound the size in bytes instead.
Only the three shared-memory functions are registered: a reader returns a lazy sequence that decodes when it is copied, because
``AsyncVectorEnv`` reads once and copies at every step.
"""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import orjson
from gymnasium.spaces import Space
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps, plain
from agent_gym.core.schema_sample import sample_schema
from agent_gym.core.tool import ToolSpec
from agent_gym.errors import InvalidAction

__all__ = ["Json", "ToolCallSpace", "Unicode"]

_SAMPLE_ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 .,:;!?'\"-\n éßñ東京🙂"
_LENGTH_BYTES = 4


def _refuse_masks(space: Space[Any], mask: object, probability: object) -> None:
    if mask is not None or probability is not None:
        raise ValueError(f"{type(space).__name__}.sample takes no mask and no probability")


class _Bytes(Space[Any], ABC):
    """A space whose elements travel as at most ``max_bytes`` bytes."""

    def __init__(self, max_bytes: int, seed: int | np.random.Generator | None = None) -> None:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, got {max_bytes}")
        self.max_bytes = max_bytes
        super().__init__(None, None, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: elements have no fixed size."""
        return False

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """The element as bytes.

        Raises:
            TypeError, ValueError: It is no element of this kind of space.
        """

    @abstractmethod
    def decode(self, raw: bytes) -> Any:
        """The element that `encode` made these bytes of."""

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is of this kind and fits."""
        try:
            return len(self.encode(x)) <= self.max_bytes
        except (TypeError, ValueError):
            return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_bytes={self.max_bytes})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.max_bytes == self.max_bytes

    __hash__ = None  # type: ignore[assignment]


class Unicode(_Bytes):
    """Any Unicode text of at most ``max_bytes`` bytes of UTF-8.

    Args:
        max_bytes: Size limit in bytes.
        seed: Seed of `sample`.
    """

    def encode(self, value: Any) -> bytes:
        """UTF-8."""
        if not isinstance(value, str):
            raise TypeError(f"{type(value).__name__} is no text")
        return value.encode()

    def decode(self, raw: bytes) -> str:
        """From UTF-8."""
        return raw.decode()

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Up to 40 characters of several scripts."""
        _refuse_masks(self, mask, probability)
        length = int(self.np_random.integers(0, 41))
        text = "".join(_SAMPLE_ALPHABET[int(i)] for i in self.np_random.integers(0, len(_SAMPLE_ALPHABET), length))
        return text.encode()[: self.max_bytes].decode(errors="ignore")


class Json(_Bytes):
    """A JSON object of at most ``max_bytes`` bytes, as Python values.

    Args:
        max_bytes: Size limit of its compact encoding, in bytes.
        seed: Seed of `sample`.
    """

    def encode(self, value: Any) -> bytes:
        """Compact JSON."""
        if type(value) is not dict:
            raise TypeError(f"{type(value).__name__} is no JSON object")
        raw = orjson.dumps(value)
        if orjson.loads(raw) != value:
            raise ValueError("not a plain JSON value")
        return raw

    def decode(self, raw: bytes) -> Any:
        """From JSON; an empty buffer is an empty object."""
        return orjson.loads(raw) if raw else {}

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:
        """A small object of strings, numbers, truth values and lists."""
        _refuse_masks(self, mask, probability)
        rng = self.np_random
        makers: tuple[Callable[[], Any], ...] = (
            lambda: int(rng.integers(-1000, 1000)),
            lambda: float(rng.integers(0, 1000)) / 8,
            lambda: bool(rng.integers(2)),
            lambda: None,
            lambda: "".join(_SAMPLE_ALPHABET[int(i)] for i in rng.integers(0, len(_SAMPLE_ALPHABET), 8)),
            lambda: [int(i) for i in rng.integers(0, 9, 3)],
        )
        value = {f"key{i}": makers[int(rng.integers(len(makers)))]() for i in range(int(rng.integers(0, 5)))}
        return value if len(self.encode(value)) <= self.max_bytes else {}


class ToolCallSpace(Space[ToolCall]):
    """Calls of a fixed set of tools.

    Contains every well-formed call, also of an unknown tool or with arguments that the tool's schema refuses: those are
    invalid *actions*, and a policy is free to make them. Samples are valid calls.

    Args:
        tools: The tools that samples call.
        seed: Seed of `sample`.
    """

    def __init__(self, tools: Sequence[ToolSpec], seed: int | np.random.Generator | None = None) -> None:
        self.tools = tuple(tools)
        super().__init__(None, None, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: calls have no fixed size."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> ToolCall:
        """A tool drawn uniformly, with arguments that its schema accepts."""
        _refuse_masks(self, mask, probability)
        spec = self.tools[int(self.np_random.integers(len(self.tools)))]
        return ToolCall(spec.name, sample_schema(spec.parameters, self.np_random))

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a `ToolCall`, a mapping of ``name`` and ``arguments``, or text."""
        if isinstance(x, str | InvalidAction):
            return True
        if isinstance(x, ToolCall):
            x = x.to_dict()
        if not isinstance(x, Mapping) or not isinstance(x.get("name"), str) or not isinstance(x.get("arguments", {}), dict):
            return False
        try:
            plain(x.get("arguments", {}))
        except TypeError:
            return False
        return set(x) <= {"name", "arguments"}

    def to_jsonable(self, sample_n: Iterable[ToolCall]) -> list[Any]:
        """Calls as JSON values."""
        return [call.to_dict() for call in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[ToolCall]:
        """Calls from JSON values."""
        return [ToolCall(item["name"], item["arguments"]) for item in sample_n]

    def __repr__(self) -> str:
        return f"ToolCallSpace({', '.join(spec.name for spec in self.tools)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCallSpace) and dumps(self._shape_of_tools()) == dumps(other._shape_of_tools())

    __hash__ = None  # type: ignore[assignment]

    def _shape_of_tools(self) -> list[list[Any]]:
        return [[spec.name, dict(spec.parameters)] for spec in self.tools]


class _SharedValues(Sequence[Any]):
    """A view of shared memory that decodes when it is read or copied."""

    def __init__(self, space: _Bytes, memory: Any, n: int) -> None:
        self._space, self._memory, self._n = space, memory, n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._n)))
        if not -self._n <= index < self._n:
            raise IndexError(index)
        raw = memoryview(self._memory.get_obj()).cast("B")
        start = (index % self._n) * (self._space.max_bytes + _LENGTH_BYTES)
        length = int.from_bytes(raw[start : start + _LENGTH_BYTES], "little")
        return self._space.decode(bytes(raw[start + _LENGTH_BYTES : start + _LENGTH_BYTES + length]))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._n))

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[Any, ...]:
        return tuple(self)


@create_shared_memory.register(_Bytes)
def _create(space: _Bytes, n: int = 1, ctx: ModuleType | Any = None) -> Any:
    return ctx.Array(ctypes.c_uint8, n * (space.max_bytes + _LENGTH_BYTES))


@read_from_shared_memory.register(_Bytes)
def _read(space: _Bytes, shared_memory: Any, n: int = 1) -> _SharedValues:
    return _SharedValues(space, shared_memory, n)


@write_to_shared_memory.register(_Bytes)
def _write(space: _Bytes, index: int, value: Any, shared_memory: Any) -> None:
    raw = space.encode(value)
    if len(raw) > space.max_bytes:
        raise ValueError(f"{len(raw)} bytes do not fit into {space!r}")
    start = index * (space.max_bytes + _LENGTH_BYTES)
    memory = memoryview(shared_memory.get_obj()).cast("B")
    memory[start + _LENGTH_BYTES : start + _LENGTH_BYTES + len(raw)] = raw
    memory[start : start + _LENGTH_BYTES] = len(raw).to_bytes(_LENGTH_BYTES, "little")
