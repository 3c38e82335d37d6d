"""Unified diffs, applied exactly: a line that is not where the diff says is an error, never looked for elsewhere."""

import re
from collections.abc import Mapping

__all__ = ["apply"]

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_ENDED = re.compile(r"[^\n]*\n|[^\n]+")
_SIDES = {"-": "-", "+": "+", " ": "-+"}
_REFUSED = ("rename from ", "copy from ", "GIT binary patch", "Binary files ")


def apply(files: Mapping[str, str], diff: str) -> dict[str, str | None]:
    """What a diff makes of files.

    Args:
        files: Texts by path.
        diff: As ``git diff`` writes it.

    Returns:
        The files that it changes: their new text, None where it removes one.

    Raises:
        ValueError: It does not fit, or does more than change lines.
    """
    changed: dict[str, str | None] = {}
    lines = [*diff.split("\n"), ""]
    at = 0
    while at < len(lines):
        if lines[at].startswith(_REFUSED):
            raise ValueError(f"line {at + 1}: {lines[at][:100]!r} is no change of lines")
        if not (lines[at].startswith("--- ") and lines[at + 1 : at + 2] and lines[at + 1].startswith("+++ ")):
            at += 1
            continue
        before, after = _path(lines[at][4:]), _path(lines[at + 1][4:])
        path = after or before
        if path is None or (before and after and before != after):
            raise ValueError(f"line {at + 1}: it names no one file")
        if path in changed:
            raise ValueError(f"line {at + 1}: {path!r} is changed twice")
        if before is not None and before not in files:
            raise ValueError(f"line {at + 1}: there is no file {before!r}")
        text, at = _hunks(files[before] if before else "", lines, at + 2, path)
        changed[path] = text if after else None
    if not changed:
        raise ValueError("it changes no file")
    return changed


def _path(name: str) -> str | None:
    name = name.split("\t")[0].rstrip("\r")
    return None if name == "/dev/null" else name.removeprefix("a/").removeprefix("b/") if name[:2] in ("a/", "b/") else name


def _hunks(text: str, lines: list[str], at: int, path: str) -> tuple[str, int]:
    """The text after all hunks from there on, and where they end."""
    old = _ENDED.findall(text)
    new: list[str] = []
    done = 0
    while at < len(lines) and (found := _HUNK.match(lines[at])):
        counts = {"-": int(found[2] or 1), "+": int(found[3] or 1)}
        start = int(found[1]) - (counts["-"] > 0)
        if not done <= start <= len(old):
            raise ValueError(f"{path}: no hunk can be at line {found[1]}")
        new += old[done:start]
        done, at = start, at + 1
        while any(counts.values()):
            mark, line = lines[at][:1] or " ", lines[at][1:] if at < len(lines) - 1 else ""  # an empty line may have lost its space
            at += 1
            if mark not in _SIDES or at >= len(lines):
                raise ValueError(f"{path}: a hunk ends early")
            if lines[at].startswith("\\"):  # this line has no end
                at += 1
            else:
                line += "\n"
            for side in _SIDES[mark]:
                counts[side] -= 1
            if min(counts.values()) < 0:
                raise ValueError(f"{path}: a hunk has more lines than it says")
            if "-" in _SIDES[mark]:
                if done >= len(old) or old[done] != line:
                    raise ValueError(f"{path}: line {done + 1} is not {line[:100]!r}")
                done += 1
            if "+" in _SIDES[mark]:
                new.append(line)
    return "".join([*new, *old[done:]]), at
