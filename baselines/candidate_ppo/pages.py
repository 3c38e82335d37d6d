"""What a page says, as records: its definitions are one, each row of its tables is one."""

import re
from typing import NamedTuple

from agent_gym.interface.hashing import shapes, tokens

__all__ = ["Page", "RowRecord", "read"]

_ELEMENT = re.compile(r'(?<!\\)\[(\d+)\] (\w+) "((?:[^"\\]|\\.)*)"')
_LINK = re.compile(r'(?<!\\)\[\d+\] link "((?:[^"\\]|\\.)*)"(?: \([a-z, ]+\))?')
_TERM = re.compile(r'[^\[\]"|:]{1,40}')
_NUMBER = re.compile(r"-?\$?\d+(?:\.\d+)?")
_MOST = 40
"""Characters of a value that is told as a whole."""

Fields = dict[str, str | int | float]


class RowRecord(NamedTuple):
    """A row of a table."""

    kind: str
    """What its table's headings are."""
    fields: Fields
    """By heading; cells with anything but text and one link are left out."""
    elements: frozenset[str]
    """The elements in it."""


class Page(NamedTuple):
    """A page's outline, read."""

    fields: Fields
    """What it defines: ``term: value``."""
    rows: list[RowRecord]
    """Of all its tables."""
    told: list[str]
    """The words of its headings and notices, as tokens."""


def read(outline: str) -> Page:
    """Reads an outline; see `agent_gym.browser.outline` for its form."""
    page = Page({}, [], [])
    headings: list[str] | None = None
    for line in outline.split("\n"):
        if line.startswith("| "):
            cells = line[2:].removesuffix(" |").split(" | ")
            if headings is None:
                headings = cells
            else:
                found = ((heading, _value(cell)) for heading, cell in zip(headings, cells, strict=False))
                fields = {heading: value for heading, value in found if value != ""}
                page.rows.append(RowRecord("|".join(headings), fields, frozenset(match[1] for match in _ELEMENT.finditer(line))))
            continue
        headings = None
        if line.startswith(("# ", "! ", "## ")):
            mark, _, text = line.partition(" ")
            page.told.extend(f"{mark}:{word}" for word in shapes(tokens(text)))
        term, _, text = line.partition(": ")
        if text and _TERM.fullmatch(term) and (value := _value(text)) != "":
            page.fields[term] = value
    return page


def _value(cell: str) -> str | int | float:
    """A cell's text, a number if it is one; empty where there is an element that is no link, or too much."""
    text = _LINK.sub(lambda link: link[1], cell).replace("\\|", "|").replace("\\[", "[").strip()
    if (_ELEMENT.search(cell) and _ELEMENT.search(_LINK.sub("", cell))) or len(text) > _MOST:
        return ""
    if _NUMBER.fullmatch(text):
        bare = text.replace("$", "")
        return float(bare) if "." in bare else int(bare)
    return text
