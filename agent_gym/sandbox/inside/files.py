# ruff: noqa: B905, SIM105, PTH101, PTH103, PTH118, PTH120, PTH123, PTH208
# (zip(strict=) is newer than Python 3.9; pathlib and contextlib would double the time that a sandbox of its own takes to start)
"""The workspace, seen from process 1: files put into it and taken out again, and no path that a program made ever followed.

Needs only Python 3.9, and imports little.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WORKSPACE", "collect", "put", "unpack_files"]

WORKSPACE = "/workspace"
_LONGEST_PATH = 1024
_WRITTEN_AT = 946684800  # 2000-01-01: no clock reading gets into what an agent sees of its files
_PAGE = 4096  # as the host counts
_BELOW = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def unpack_files(contents: list[bytes]) -> None:
    """Fills an empty workspace that nobody else is in: path, bytes, path, bytes, and so on."""
    directories = {WORKSPACE.encode()}
    for path, data in zip(contents[::2], contents[1::2]):
        target = os.path.join(WORKSPACE.encode(), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        directories.update(os.path.join(WORKSPACE.encode(), parent) for parent in _parents(path))
        with open(target, "xb") as file:
            file.write(data)
        os.utime(target, (_WRITTEN_AT, _WRITTEN_AT))
    for directory in directories:
        os.utime(directory, (_WRITTEN_AT, _WRITTEN_AT))


def put(path: bytes, data: bytes | None) -> None:
    """Replaces one file of a workspace that others may be changing at this moment; None removes it. What is in the way stays there."""
    *directories, name = path.split(b"/")
    place = os.open(WORKSPACE, _BELOW)
    try:
        for directory in directories:
            if data is not None:
                try:
                    os.mkdir(directory, dir_fd=place)
                except FileExistsError:
                    pass
            below = os.open(directory, _BELOW, dir_fd=place)
            os.close(place)
            place = below
        if data is None:
            os.unlink(name, dir_fd=place)
            return
        new = b".%d~" % os.getpid()
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=place), "wb") as file:
            file.write(data)
        os.rename(new, name, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        pass  # a program made something else of that place; the files that come back tell
    finally:
        os.close(place)


def collect(room: int, places: int) -> tuple[list[bytes], list[bytes]]:
    """Reads the workspace, which others may be changing at this moment.

    Only regular files under UTF-8 names are taken; links are not followed, pipes and sockets not opened.

    Args:
        room: How much is taken, in bytes, counted in pages.
        places: How many files and directories are taken.

    Returns:
        Path, bytes, path, bytes, …; and what was left out: path, reason, path, reason, …
    """
    contents: list[bytes] = []
    left_out: list[bytes] = []
    pages = room // _PAGE
    counted = {b""}  # directories that hold a file that is kept
    os.chmod(WORKSPACE, 0o700)
    pending = [b""]
    while pending:
        directory = pending.pop()
        for name, handle in _entries(directory):
            path = directory + b"/" + name if directory else name
            details = os.fstat(handle)
            kind = stat.S_IFMT(details.st_mode)
            if len(path) > _LONGEST_PATH or not _is_utf8(path):
                why = b"name"
            elif kind == stat.S_IFDIR:
                os.chmod(f"/proc/self/fd/{handle}", 0o700)
                pending.append(path)
                continue
            elif kind != stat.S_IFREG:
                why = {stat.S_IFLNK: b"symbolic link", stat.S_IFIFO: b"pipe", stat.S_IFSOCK: b"socket"}.get(kind, b"special file")
            elif -(-details.st_size // _PAGE) > pages or len(set(_parents(path)) - counted) >= places:
                why = b"too much"
            else:
                data = _content(handle, details.st_size)
                pages -= -(-len(data) // _PAGE)
                places -= 1 + len(set(_parents(path)) - counted)
                counted.update(_parents(path))
                contents += (path, data)
                continue
            if len(left_out) < 32:
                left_out += (ascii(path)[2:-1].encode()[:200], why)
    return contents, left_out


def _entries(directory: bytes) -> Iterator[tuple[bytes, int]]:
    """What is in a directory, sorted: names, and descriptors that stand for the very thing that was found under that name."""
    place = os.open(WORKSPACE, _BELOW)
    try:
        for part in directory.split(b"/") if directory else ():
            below = os.open(part, _BELOW, dir_fd=place)
            os.close(place)
            place = below
        for name in sorted(map(os.fsencode, os.listdir(place))):
            try:
                handle = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=place)
            except FileNotFoundError:
                continue  # it went away meanwhile
            try:
                yield name, handle
            finally:
                os.close(handle)
    except OSError:
        pass  # it went away, or is something else meanwhile
    finally:
        os.close(place)


def _content(handle: int, size: int) -> bytes:
    """At most ``size`` bytes of the regular file that a descriptor stands for."""
    path = f"/proc/self/fd/{handle}"
    os.chmod(path, 0o600)
    with open(path, "rb", buffering=0) as file:
        return file.read(size) or b""


def _parents(path: bytes) -> list[bytes]:
    """The directories that a path leads through."""
    parts = path.split(b"/")
    return [b"/".join(parts[:i]) for i in range(1, len(parts))]


def _is_utf8(path: bytes) -> bool:
    """Whether the name is text."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
