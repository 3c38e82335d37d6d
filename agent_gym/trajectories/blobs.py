"""Images and long texts, each a file named by the digest of its content, shared by all runs and never written twice.

A row names its blobs. One that retention has dropped is still named, with null for its bytes.
"""

import fcntl
import os
import struct
import threading
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.errors import StoreError

__all__ = ["BLOB_BYTES", "Blobs", "blob_digest", "png"]

BLOB_BYTES = 65_536
"""A text with more bytes of UTF-8 than this does not stay in its row."""
_DIGEST_BYTES = 32
_LOCK = ".lock"
"""Shared while a blob is put, held alone while some are removed."""
_SWEPT_AT_ONCE = 256


class Blobs:
    """The blobs of a store.

    Args:
        root: The store.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / "blobs"

    def path(self, digest: str) -> Path:
        """Where the blob is, if it is there."""
        return self.folder / digest[:2] / digest

    def put(self, content: bytes) -> str:
        """Keeps a content, which appears whole or not at all.

        Returns:
            Its digest.

        Raises:
            OSError: It cannot be written.
        """
        digest = blob_digest(content)
        path = self.path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(fcntl.LOCK_SH):
            if path.exists() and path.stat().st_size == len(content):
                os.utime(path)  # a sweeper leaves alone what was put lately
                return digest
            hidden = path.with_name(f".{digest}.{os.getpid()}-{threading.get_native_id()}.tmp")
            try:
                hidden.write_bytes(content)
                hidden.rename(path)
            except OSError:
                hidden.unlink(missing_ok=True)
                raise
        return digest

    def get(self, digest: str) -> bytes:
        """A blob's content.

        Raises:
            StoreError: It is missing, or is not what was put there.
        """
        try:
            content = self.path(digest).read_bytes()
        except OSError as error:
            raise StoreError(f"cannot read {self.path(digest)}: {error.strerror}") from error
        if blob_digest(content) != digest:
            raise StoreError(f"{self.path(digest)} is damaged: its content has another digest")
        return content

    def sizes(self) -> dict[str, int]:
        """The bytes of each blob, by digest."""
        folders = [folder for folder in os.scandir(self.folder) if folder.is_dir()] if self.folder.exists() else []
        files = (file for folder in folders for file in os.scandir(folder.path) if not file.name.startswith("."))
        return {file.name: file.stat().st_size for file in files}

    def now_ns(self) -> int:
        """The time, by the clock that blobs are dated with."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _LOCK).touch()
        return (self.folder / _LOCK).stat().st_mtime_ns

    def sweep(self, digests: Iterable[str], put_before_ns: int, *, remove: bool = True) -> list[str]:
        """Removes blobs, but none that was put, or put again, later than the given time.

        Args:
            digests: Which.
            put_before_ns: The time, as `now_ns` gives it.
            remove: If false, only says which.

        Returns:
            Those that are gone.

        Raises:
            OSError: One cannot be removed.
        """
        gone, waiting = [], list(digests)
        for start in range(0, len(waiting), _SWEPT_AT_ONCE):
            with self._locked(fcntl.LOCK_EX):
                for digest in waiting[start : start + _SWEPT_AT_ONCE]:
                    path = self.path(digest)
                    if path.exists() and path.stat().st_mtime_ns < put_before_ns:
                        if remove:
                            path.unlink()
                        gone.append(digest)
        return gone

    def take_from(self, row: dict[str, Any]) -> None:
        """Takes a row's long texts out; its ``blobs`` then name them.

        Raises:
            OSError: One cannot be written.
        """
        for column, value in list(row.items()):
            if (
                isinstance(value, str)
                and 4 * len(value) > BLOB_BYTES
                and len(content := value.encode(errors="backslashreplace")) > BLOB_BYTES
            ):
                del row[column]
                row.setdefault("blobs", []).append({"column": column, "digest": self.put(content), "bytes": len(content)})

    def put_back(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row with its long texts in their places.

        One that was dropped stays null, and is one of the row's ``gaps``; so does one that is missing or damaged, with a warning that
        names it.
        """
        for blob in row.get("blobs") or ():
            if blob["bytes"] is None:
                row = row | {"gaps": [*(row.get("gaps") or ()), f"dropped:{blob['column']}"]}
                continue
            try:
                row = row | {blob["column"]: self.get(blob["digest"]).decode()}
            except StoreError as error:
                warnings.warn(str(error), RuntimeWarning, stacklevel=2)
        return row

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        with (self.folder / _LOCK).open("ab") as lock:
            fcntl.flock(lock, how)
            yield


def blob_digest(content: bytes) -> str:
    """The digest by which a content is kept."""
    return blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def png(image: NDArray[np.uint8]) -> bytes:
    """An image of ``uint8[H, W, 3]`` as a PNG; equal images give equal bytes.

    Format: https://www.w3.org/TR/png-3/, every line unfiltered.
    """
    height, width, _ = image.shape
    lines = np.zeros((height, 1 + 3 * width), np.uint8)
    lines[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b""))
    packed = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
