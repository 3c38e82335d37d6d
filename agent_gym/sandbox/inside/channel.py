"""Messages over descriptor 3, for the two programs that speak with the host: a message is one value of the codec."""

from __future__ import annotations

import os

from agent_gym.sandbox.codec import MAX_BYTES, MESSAGE_DEPTH, dumps, loads
from agent_gym.sandbox.frames import frame, read_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["receive", "send"]

_CHANNEL = 3


def send(message: object) -> None:
    """Sends one message.

    Raises:
        CodecError: It holds something that may not travel; nothing was sent.
    """
    data = memoryview(frame(dumps(message, max_depth=MESSAGE_DEPTH)))
    while data:
        data = data[os.write(_CHANNEL, data) :]


def receive() -> Any:
    """Waits for one message.

    Raises:
        EOFError: The host is gone.
    """
    return loads(read_frame(lambda size: os.read(_CHANNEL, size), MAX_BYTES), max_depth=MESSAGE_DEPTH)
