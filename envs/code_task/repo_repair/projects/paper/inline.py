"""Markup within a line: ``*strong*``, ``_emphasis_``, ```code```, ``[text](link)``."""

from __future__ import annotations

MARKS = {"*": "strong", "_": "em", "`": "code"}


def spans(text: str) -> list[tuple[str, str, str]]:
    """Pieces as ``(kind, text, link)``; a backslash takes a mark's meaning away, and a mark that is not closed has none."""
    found: list[tuple[str, str, str]] = []
    plain = ""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            plain += text[at + 1]
            at += 2
            continue
        piece = span(text, at)
        if piece is None:
            plain += char
            at += 1
            continue
        if plain:
            found.append(("text", plain, ""))
            plain = ""
        found.append(piece[0])
        at = piece[1]
    if plain:
        found.append(("text", plain, ""))
    return found


def span(text: str, at: int) -> tuple[tuple[str, str, str], int] | None:
    """The piece that begins at a place, and where it ends; None if none does."""
    char = text[at]
    if char in MARKS:
        end = text.find(char, at + 1)
        if end > at + 1:
            return (MARKS[char], text[at + 1 : end], ""), end + 1
    if char == "[":
        middle = text.find("](", at)
        end = text.find(")", middle)
        if middle > at and end > middle:
            return ("link", text[at + 1 : middle], text[middle + 2 : end]), end + 1
    return None


def to_text(text: str) -> str:
    """Without the marks; links are told after their text."""
    return "".join(f"{inner} <{link}>" if kind == "link" else inner for kind, inner, link in spans(text))


def to_html(text: str) -> str:
    """As HTML."""
    made = ""
    for kind, inner, link in spans(text):
        if kind == "text":
            made += escape(inner)
        elif kind == "link":
            made += f'<a href="{escape(link)}">{escape(inner)}</a>'
        else:
            made += f"<{kind}>{escape(inner)}</{kind}>"
    return made


def escape(text: str) -> str:
    """Text as HTML can hold it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
