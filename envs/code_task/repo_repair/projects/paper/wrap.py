"""Lines of a bounded width."""

from __future__ import annotations


def wrap(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    """Fills lines with words; a word that is too long is cut.

    Args:
        text: The words.
        width: Of a line with its indent.
        first: The indent of the first line.
        later: The indent of the others.
    """
    lines: list[str] = []
    line = first
    empty = True
    for word in pieces(text, width - max(len(first), len(later))):
        needed = len(line) + len(word) + (0 if empty else 1)
        if needed > width and not empty:
            lines.append(line)
            line = later
            empty = True
        line += word if empty else f" {word}"
        empty = False
    if not empty or not lines:
        lines.append(line)
    return lines


def pieces(text: str, most: int) -> list[str]:
    """The words of a text, none longer than so many characters."""
    if most < 1:
        raise ValueError("width")
    found = []
    for word in text.split():
        while len(word) > most:
            found.append(word[:most])
            word = word[most:]
        found.append(word)
    return found


def center(text: str, width: int) -> str:
    """The text in the middle of a line; what is left over goes to the right, and is left off."""
    room = width - len(text)
    return " " * (room // 2) + text if room > 0 else text
