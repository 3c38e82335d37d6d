"""What ``finish`` may answer: values of results, and of pages, put in words as a person would."""

import re
from collections.abc import Iterator
from typing import Any

from agent_gym.core.canonical import dumps
from agent_gym.interface.hashing import tokens

__all__ = ["answers", "said", "term"]

_MAX_ANSWER = 2_000
"""Characters that ``finish`` takes."""
_LINK = re.compile(r'(?<!\\)\[\d+\] link "((?:[^"\\]|\\.)*)"(?: \([a-z, ]+\))?')
_MONEY = re.compile(r"(-?)\$([0-9]+)\.([0-9]{2})")


def said(value: Any) -> str:
    """A field's value as ``finish`` would say it; empty where it cannot be said."""
    if isinstance(value, list):
        return ", ".join(map(said, value)) if not any(isinstance(part, list | dict) for part in value) else ""
    text = value if isinstance(value, str) else "" if value is None or isinstance(value, dict) else dumps(value).decode()
    return text if len(text) <= _MAX_ANSWER else ""


def answers(outline: str, asks: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a page shows under the name of what is asked for, each with the words of its line."""
    wanted, column, rows = term(asks), -1, False
    for line in outline.split("\n"):
        if line.startswith("| "):
            cells = line[2:].removesuffix(" |").split(" | ")
            if not rows:  # the headings
                column = next((at for at, heading in enumerate(cells) if term(heading) == wanted), -1)
            elif 0 <= column < len(cells) and (text := _shown(cells[column].replace("\\|", "|"), asks)):
                yield text, tokens(line)
            rows = True
            continue
        rows = False
        name, _, value = line.partition(": ")
        if value and term(name) == wanted and (text := _shown(value, asks)):
            yield text, tokens(line)


def term(name: str) -> str:
    """A name as fields and pages have it in common: of ``total_cents`` and *Total*, ``total``."""
    return "".join(word for word in tokens(name) if word not in ("id", "cents"))


def _shown(text: str, asks: str) -> str:
    """What a piece of an outline says as a result would, links by their names; empty for what is too long to be said."""
    text = _LINK.sub(lambda link: link[1], text).replace("\\[", "[").strip()
    if asks.endswith("_cents") and (money := _MONEY.fullmatch(text)):
        text = str(int(money[1] + money[2] + money[3]))
    return text if len(text) <= _MAX_ANSWER else ""
