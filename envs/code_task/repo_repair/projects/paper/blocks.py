"""Headings, paragraphs, lists and quotations."""

from __future__ import annotations


def blocks(text: str) -> list[tuple[str, int, str]]:
    """Blocks as ``(kind, number, text)``: ``heading`` with its level, ``item`` with its depth, ``step`` with its number, ``quote``,
    ``rule`` and ``paragraph`` with 0.
    """
    found: list[tuple[str, int, str]] = []
    joined = False
    for line in text.splitlines():
        kind, number, rest = classify(line)
        if kind == "blank":
            joined = False
            continue
        if joined and (kind == "paragraph" or (kind == "quote" and found[-1][0] == "quote")):
            last = found[-1]
            found[-1] = (last[0], last[1], f"{last[2]} {rest}")
            continue
        found.append((kind, number, rest))
        joined = kind not in ("heading", "rule")
    return found


def classify(line: str) -> tuple[str, int, str]:
    """What kind of line it is."""
    text = line.strip()
    depth = (len(line) - len(line.lstrip())) // 2
    if not text:
        return ("blank", 0, "")
    level = len(text) - len(text.lstrip("#"))
    if 0 < level <= 6 and text[level : level + 1] == " ":
        return ("heading", level, text[level:].strip())
    if len(text) >= 3 and set(text) == {"-"}:
        return ("rule", 0, "")
    if text.startswith("- "):
        return ("item", depth, text[2:].strip())
    digits, dot, rest = text.partition(". ")
    if dot and digits.isdigit():
        return ("step", int(digits), rest.strip())
    if text.startswith(">"):
        return ("quote", 0, text[1:].strip())
    return ("paragraph", 0, text)
