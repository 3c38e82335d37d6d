"""Files that appear under their name whole and on disk, or not at all."""

import hashlib
import os
from pathlib import Path

__all__ = ["checksum", "hidden", "rename_durably", "sync"]


def hidden(path: Path) -> Path:
    """The name of a file until it is whole; those who read Parquet folders skip such names."""
    return path.with_name(f".{path.name}.tmp")


def rename_durably(path: Path) -> None:
    """Gives a hidden file its name, once it is on disk.

    Raises:
        OSError: It could not be done.
    """
    sync(hidden(path))
    hidden(path).rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file or folder is on disk.

    Raises:
        OSError: It is not there, or could not be written.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def checksum(path: Path) -> str:
    """The SHA-256 of a file.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
