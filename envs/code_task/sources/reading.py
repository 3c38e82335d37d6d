"""Files of problems as rows, each with its place; whatever a file holds, reading it takes bounded time and memory."""

import gzip
import json
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from agent_gym.errors import DatasetError

__all__ = ["MAX_BYTES", "MAX_DIGITS", "MAX_LINE", "MAX_LINES", "MAX_RATIO", "MAX_VALUES", "SUFFIXES", "changed", "inflate", "parse", "rows"]

MAX_LINE = 64 << 20
"""Bytes of one line, of a whole ``.json`` list, and of a packed value in it."""
MAX_BYTES = 2 << 30
"""Bytes of a file, unpacked."""
MAX_LINES = 1_000_000
"""Lines of a file."""
MAX_VALUES = 8_000_000
"""Brackets and commas of one JSON text."""
MAX_DIGITS = 20_000
"""Digits of one integer."""
MAX_RATIO = 50
"""How many times its own size a gzipped file may have, unpacked, where that is more than `MAX_LINE`."""
SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
"""How names of files of problems end."""

_AT_ONCE = 4_000  # digits; Python reads a few more at a time
_APPS = ("question.txt", "input_output.json", "solutions.json", "metadata.json", "starter_code.py")


def rows(path: Path) -> Iterator[tuple[str, bytes | Mapping[str, Any]]]:
    """The rows of a file, or of all files in a folder, in the order of their names: where each stands, and what stands there.

    What comes as bytes is for `parse`. Folders of APPS's layout, which have a ``question.txt``, give a row each.

    Raises:
        DatasetError: The file is missing, torn, too large, or a list that is no JSON; names file and line.
    """
    try:
        if not path.is_dir():
            yield from _items(path) if path.name.removesuffix(".gz").endswith(".json") else _lines(path)
        elif _is_problem(path):
            yield str(path), _apps(path)
        else:
            for child in _children(path):
                yield from rows(child)
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file; give the path of a {', '.join(SUFFIXES)} file, or of a folder") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from error


def changed(path: Path) -> tuple[Any, ...]:
    """Another value once what is read of a path was changed; empty where it cannot be read. Its files' names and sizes are part of it,
    since changes within one tick of the clock have the same time.
    """
    try:
        below = [] if not path.is_dir() else [*path.iterdir()] if _is_problem(path) else _children(path)
        now = path.stat()
        return (path.name, now.st_ino, now.st_size, now.st_mtime_ns, *map(changed, sorted(below)))
    except OSError:
        return ()


def parse(text: bytes | str, where: str) -> Any:
    """A JSON text's value.

    Raises:
        DatasetError: It is none, or not UTF-8, nested too deep, or has an integer that is too long; names the place.
    """
    try:
        return _DECODER.decode(_counted(_decoded(text, where) if isinstance(text, bytes) else text))
    except RecursionError:
        raise DatasetError(f"{where}: nested too deep") from None
    except ValueError as error:
        raise DatasetError(f"{where}: not JSON: {_said(error)}") from None


def inflate(packed: bytes, where: str) -> bytes:
    """What zlib packed.

    Raises:
        DatasetError: It is torn, no such thing, or more than `MAX_LINE` bytes.
    """
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(packed, MAX_LINE)
    except zlib.error as error:
        raise DatasetError(f"{where}: cannot be unpacked: {error}") from None
    if not unpacking.eof:
        why = f"more than {MAX_LINE >> 20} MiB" if unpacking.unconsumed_tail or len(data) == MAX_LINE else "torn"
        raise DatasetError(f"{where}: cannot be unpacked: {why}")
    return data


def _is_problem(path: Path) -> bool:
    return (path / _APPS[0]).is_file()


def _children(folder: Path) -> list[Path]:
    """What is read of a folder."""
    return [child for child in sorted(folder.iterdir()) if child.name.endswith(SUFFIXES) or _is_problem(child)]


def _opened(path: Path) -> BufferedReader | gzip.GzipFile:
    if not stat.S_ISREG(path.stat().st_mode):
        raise DatasetError(f"{path}: is no regular file")  # a pipe would be waited for, a device may have no end
    return gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb")


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    packed = path.suffix == ".gz"
    most = min(MAX_BYTES, max(MAX_LINE, MAX_RATIO * path.stat().st_size)) if packed else MAX_BYTES
    left = most
    with _opened(path) as file:
        for number in range(1, MAX_LINES + 2):
            line = file.readline(MAX_LINE + 1)
            if not line:
                return
            left -= len(line)
            if len(line) > MAX_LINE:
                raise DatasetError(f"{path}:{number}: longer than {MAX_LINE >> 20} MiB")
            if left < 0:
                raise DatasetError(f"{path}:{number}: the file has more than {most >> 20} MiB{', unpacked' * packed}; split it")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield f"{path}:{number}", line
    raise DatasetError(f"{path}: more than {MAX_LINES} lines; split it")


def _items(path: Path) -> Iterator[tuple[str, bytes | Mapping[str, Any]]]:
    """Those of a list; what is no list has a row in each line, whatever its name."""
    with _opened(path) as file:
        raw = file.read(MAX_LINE + 1)
    if not raw.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        yield from _lines(path)
        return
    if len(raw) > MAX_LINE:
        raise DatasetError(f"{path}: a list of more than {MAX_LINE >> 20} MiB; write it as .jsonl, one object a line")
    text = _decoded(raw.removeprefix(b"\xef\xbb\xbf"), str(path))
    try:
        _counted(text)
    except ValueError as error:
        raise DatasetError(f"{path}: {error}") from None
    at, line, counted, number = text.index("[") + 1, 1, 0, 0
    while True:
        at = _solid(text, at)
        line, counted = line + text.count("\n", counted, at), at
        if number == 0 and text[at : at + 1] == "]":
            break
        number += 1
        where = f"{path}:{line} (item {number})"
        try:
            value, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            raise DatasetError(f"{where}: nested too deep") from None
        except ValueError as error:
            raise DatasetError(f"{where}: not JSON: {_said(error)}") from None
        yield where, value
        at = _solid(text, at) + 1
        if (mark := text[at - 1 : at]) != ",":
            if mark != "]":
                raise DatasetError(f"{where}: not JSON: a list goes on with a comma or ends with a bracket")
            break
    if text[at + (number == 0) :].strip():
        raise DatasetError(f"{path}: not JSON: something follows the list")


def _apps(path: Path) -> dict[str, Any]:
    """A folder of APPS as the row that it is elsewhere."""
    found: dict[str, Any] = {"problem_id": f"{path.absolute().parent.name}/{path.name}", "input_output": ""}
    for name in _APPS:
        if not (path / name).is_file():
            continue
        with _opened(path / name) as file:
            raw = file.read(MAX_LINE + 1)
        if len(raw) > MAX_LINE:
            raise DatasetError(f"{path / name}: larger than {MAX_LINE >> 20} MiB")
        found[name.partition(".")[0]] = _decoded(raw.removeprefix(b"\xef\xbb\xbf"), str(path / name))
    about = parse(found.pop("metadata", "{}"), str(path / "metadata.json"))
    return {**(about if isinstance(about, dict) else {}), **found}


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DatasetError(f"{where}: not UTF-8: {error.reason} at byte {error.start}") from None


def _said(error: ValueError) -> str:
    return f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)


def _solid(text: str, at: int) -> int:
    """Where white space ends."""
    found = _WHITE.match(text, at)
    return at if found is None else found.end()


def _counted(text: str) -> str:
    """The text, unless it may hold so many values that they would take far more memory than it does."""
    if len(text) > MAX_VALUES and sum(map(text.count, "[{,")) > MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES} values")
    return text


def _integer(digits: str) -> int:
    """Python's own reader refuses long integers, as it takes quadratic time; so it gets them in pieces, and not without end."""
    if len(digits) <= _AT_ONCE:
        return int(digits)
    sign, digits = (-1, digits[1:]) if digits[0] == "-" else (1, digits)
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits, at most {MAX_DIGITS} are read")
    return sign * _whole(digits)


def _whole(digits: str) -> int:
    if len(digits) <= _AT_ONCE:
        return int(digits)
    half = len(digits) // 2
    return _whole(digits[:-half]) * int(10**half) + _whole(digits[-half:])


_WHITE = re.compile(r"[ \t\r\n]+")
_DECODER = json.JSONDecoder(parse_int=_integer)
