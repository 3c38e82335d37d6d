"""The append-only log of one writer: one JSON object a line, each with its number and a checksum, written with one write().

A line that was written survives the death of the process (not of the machine: nothing is synced until the log is sealed). Its
writer holds a lock on the file for as long as it lives, which is how a sealer knows that a log is finished. ::

    {"crc":"8a1f03c2","seq":0,"episode":{…},"step":{…},"calls":[…]}

``crc`` is the CRC-32 of everything between its comma and the end of the line. Texts too long for a row are blobs before the line
is written.
"""

import errno
import fcntl
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from agent_gym.errors import StoreError
from agent_gym.trajectories.blobs import BLOB_BYTES, Blobs
from agent_gym.trajectories.rows import as_json

__all__ = ["DamagedLog", "LogWriter", "encoded", "read_log", "store_error", "try_lock"]

_TRIES = 100
_READ_BYTES = 2**20
_CRC_AT, _TAIL_AT = 8, 18


class DamagedLog(StoreError):
    """A line other than an unfinished last one is not what was written.

    Args:
        path: The log.
        line: The line's number, from 1.
        detail: What is wrong with it.
    """

    def __init__(self, path: Path, line: int, detail: str) -> None:
        super().__init__(f"{path}: line {line} is damaged ({detail}); nothing of this log was sealed, and the file was left as it is")
        self.path = path
        self.line = line
        self.detail = detail

    def __reduce__(self) -> tuple[type["DamagedLog"], tuple[Path, int, str]]:
        return type(self), (self.path, self.line, self.detail)


def store_error(what: str, path: Path, error: OSError) -> StoreError:
    """The error for a file operation that failed; ``what`` goes on after "cannot"."""
    return StoreError(f"cannot {what} {path}: {error.strerror or error}")


class LogWriter:
    """Appends to a new log, which appears under its name only once it is locked.

    Args:
        path: The log. Its folder is made.
        blobs: Where long texts go.

    Raises:
        StoreError: It cannot be made.
    """

    def __init__(self, path: Path, blobs: Blobs) -> None:
        self.path = path
        self.size = 0
        self.opened_s = time.monotonic()
        self._blobs = blobs
        self._pid = os.getpid()
        self._seq = 0
        self._fd: int | None = None
        try:
            self._fd = _create(path)
        except OSError as error:
            raise store_error("write", path, error) from error

    @property
    def usable(self) -> bool:
        """Whether this process may append: false after `close`, and in a forked child, where the log stays the parent's."""
        return self._fd is not None and self._pid == os.getpid()

    def append(self, entry: dict[str, Any]) -> None:
        """Writes one line; when this returns, the line is acknowledged.

        Raises:
            StoreError: It could not be written whole; the log is then as it was before.
        """
        if self._fd is None or not self.usable:
            raise StoreError(f"{self.path} is closed")
        entry = {"seq": self._seq, **entry}
        try:
            body = encoded(entry)
            if len(body) > BLOB_BYTES:
                for row in _rows(entry):
                    self._blobs.take_from(as_json(row))
                body = encoded(entry)
            tail = body[1:]
            line = b'{"crc":"%08x",%b\n' % (zlib.crc32(tail), tail)
            if os.write(self._fd, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self._fd, self.size)
            raise store_error("write", Path(error.filename or self.path), error) from error
        self.size += len(line)
        self._seq += 1

    def close(self) -> None:
        """Unlocks and closes the log; closing twice is fine."""
        if self._fd is not None:
            if self.usable:  # the lock is shared with forked children, who may still hold the file open
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:
        self.close()


def _create(path: Path) -> int:
    hidden = path.with_name(f".{path.name}.new")
    for left in reversed(range(_TRIES)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:  # a sealer may remove the folder, which was empty, at any of these points
            fd = os.open(hidden, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            if not left:
                raise
            continue
        break
    fcntl.flock(fd, fcntl.LOCK_EX)
    hidden.rename(path)
    return fd


def _rows(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for value in entry.values():
        if isinstance(value, dict):
            yield value
        elif isinstance(value, list):
            yield from value


def encoded(entry: dict[str, Any]) -> bytes:
    """An entry as the JSON object that is written."""
    try:
        return orjson.dumps(entry, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return orjson.dumps(_encodable(entry), option=orjson.OPT_SERIALIZE_NUMPY)


def _encodable(value: Any) -> Any:
    """A copy in which text that is no Unicode (lone surrogates, as a model may write) is escaped."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


def read_log(path: Path, damage: list[DamagedLog] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries of a log, each with the bytes of its line. An unfinished last line was never acknowledged and is left out.

    Args:
        path: The log.
        damage: Where to put what is wrong, instead of raising; lines that are whole are then given all the same.

    Raises:
        DamagedLog: A line is not what was written.
    """

    def report(number: int, detail: str) -> None:
        error = DamagedLog(path, number, detail)
        if damage is None:
            raise error
        damage.append(error)

    due = 0
    with path.open("rb", buffering=_READ_BYTES) as log:
        for number, line in enumerate(log, 1):
            if not line.endswith(b"\n"):
                return
            try:
                entry = _checked(line)
            except ValueError as error:
                report(number, str(error))
                due += 1
                continue
            if entry["seq"] != due:
                report(number, f"number {entry['seq']} where {due} is due")
            due = entry["seq"] + 1
            yield len(line), entry


def _checked(line: bytes) -> dict[str, Any]:
    tail = line[_TAIL_AT:-1]
    if int(line[_CRC_AT : _CRC_AT + 8], 16) != zlib.crc32(tail):
        raise ValueError("checksum does not match")
    entry: dict[str, Any] = orjson.loads(line)
    return entry


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock of a log whose writer is gone; None where the writer lives or the log is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd
