"""Images and long texts, each a file named by the digest of its content, shared by all runs and never written twice."""

import os
import struct
import threading
import warnings
import zlib
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.errors import StoreError

__all__ = ["BLOB_BYTES", "Blobs", "png"]

BLOB_BYTES = 65_536
"""A text with more bytes of UTF-8 than this does not stay in its row."""
_DIGEST_BYTES = 32


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
        digest = blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
        path = self.path(digest)
        if path.exists() and path.stat().st_size == len(content):
            return digest
        path.parent.mkdir(parents=True, exist_ok=True)
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
        if blake2b(content, digest_size=_DIGEST_BYTES).hexdigest() != digest:
            raise StoreError(f"{self.path(digest)} is damaged: its content has another digest")
        return content

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
        """A row with its long texts in their places. One that is missing or damaged stays null, with a warning that names it."""
        for blob in row.get("blobs") or ():
            try:
                row = row | {blob["column"]: self.get(blob["digest"]).decode()}
            except StoreError as error:
                warnings.warn(str(error), RuntimeWarning, stacklevel=2)
        return row


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
