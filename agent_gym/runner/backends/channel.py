"""Whole messages over a stream socket, as bytes. What cannot be written at once is kept, so that a reader who hangs delays nobody."""

import contextlib
import socket
import struct

__all__ = ["Channel"]

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 18


class Channel:
    """One end of a socket pair.

    Args:
        end: The socket. If it blocks, so do `send` and `receive`.

    Attributes:
        open: False once the other end has hung up.
    """

    def __init__(self, end: socket.socket) -> None:
        self.open = True
        self._end = end
        self._incoming, self._outgoing = bytearray(), bytearray()

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._end.fileno()

    @property
    def received(self) -> int:
        """How many bytes of a message whose end has not come yet are here."""
        return len(self._incoming)

    def send(self, message: bytes) -> bool:
        """Sends a message, as far as that goes at once; gives False if `flush` has to do the rest. Without an other end it is lost."""
        self._outgoing += _LENGTH.pack(len(message))
        self._outgoing += message
        return self.flush()

    def flush(self) -> bool:
        """Goes on sending; gives whether all is sent."""
        try:
            while self._outgoing:
                del self._outgoing[: self._end.send(self._outgoing)]
        except BlockingIOError:
            return False
        except OSError:  # hung up, as `receive` will find too
            self._outgoing.clear()
        return True

    def receive(self) -> list[bytes]:
        """Reads what is there, and on to the end of a message that has begun, if that does not mean to wait; gives whole messages."""
        messages: list[bytes] = []
        while self.open:
            try:
                chunk = self._end.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:  # reset by the other end
                chunk = b""
            self.open = bool(chunk)
            self._incoming += chunk
            messages += self._whole()
            if not self._incoming:
                break
        return messages

    def _whole(self) -> list[bytes]:
        messages, start = [], 0
        while len(self._incoming) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._incoming, start)
            if len(self._incoming) - start - _LENGTH.size < length:
                break
            start += _LENGTH.size + length
            with memoryview(self._incoming) as view:  # a slice would be one copy more
                messages.append(bytes(view[start - length : start]))
        del self._incoming[:start]
        return messages

    def close(self) -> None:
        """Hangs up."""
        with contextlib.suppress(OSError):
            self._end.close()
