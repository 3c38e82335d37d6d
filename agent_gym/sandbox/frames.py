"""Bytes on a stream socket: frames with a length in front, and a packet of byte strings to put in them.

Used on both sides of the sandbox's wall, so it needs nothing but ``struct`` (process 1 starts anew for every run and must start fast).
Reading never trusts a length: the reader says how much it takes.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # typing itself would cost process 1 a third of its start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FrameError", "frame", "pack", "read_frame", "unpack"]

_LENGTH = struct.Struct(">Q")
_CHUNK = 1 << 20


class FrameError(ValueError):
    """A frame is longer than the reader takes, or a packet does not add up."""


def frame(data: bytes) -> bytes:
    """The bytes to send for one message."""
    return _LENGTH.pack(len(data)) + data


def read_frame(read: Callable[[int], bytes], limit: int) -> bytes:
    """Reads one message.

    Args:
        read: Takes the largest number of bytes wanted and returns some, or none at the end of the stream.
        limit: The longest message taken, bytes.

    Raises:
        EOFError: The stream ended before the message did.
        FrameError: The message is longer than ``limit``.
    """
    (size,) = _LENGTH.unpack(_exactly(read, _LENGTH.size))
    if size > limit:
        raise FrameError(f"a message of {size} bytes, at most {limit} are taken")
    return _exactly(read, size)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    parts = []
    while size:
        part = read(min(size, _CHUNK))
        if not part:
            raise EOFError("the stream ended inside a message")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def pack(sections: Sequence[Sequence[bytes]]) -> bytes:
    """Lists of byte strings as one byte string."""
    parts = [_LENGTH.pack(len(sections))]
    for section in sections:
        parts.append(_LENGTH.pack(len(section)))
        for item in section:
            parts += (_LENGTH.pack(len(item)), item)
    return b"".join(parts)


def unpack(data: bytes) -> list[list[bytes]]:
    """What ``pack`` was given.

    Raises:
        FrameError: The lengths do not add up.
    """
    position = 0

    def take(size: int) -> bytes:
        nonlocal position
        position += size
        if position > len(data):
            raise FrameError("a packet is shorter than its lengths say")
        return data[position - size : position]

    def number() -> int:
        return int(_LENGTH.unpack(take(_LENGTH.size))[0])

    sections = [[take(number()) for _ in range(number())] for _ in range(number())]
    if position != len(data):
        raise FrameError("a packet is longer than its lengths say")
    return sections
