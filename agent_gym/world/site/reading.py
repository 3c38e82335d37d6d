"""Reads results off the pages, exactly as the operations behind them gave them: what an oracle learns by looking."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.world.scripts import refusal
from agent_gym.world.site.acts import Act
from agent_gym.world.site.app import NOT_DONE, REFUSALS, done
from agent_gym.world.site.plan import Place, Plan
from agent_gym.world.site.values import Schema, collapsed, read, rows_of

__all__ = ["answer", "clear_caches"]

View = Mapping[str, Any]

_FAKE = r"\\\[(?=\d+\])"
"""A bracket of a page's text, kept from looking like an element's."""
_MARKS = re.compile(rf'(?:(?<=\() )?(?<!\\)\[\d+\] link ("(?:[^"\\]|\\.)*")(?: \([a-z, ]+\))?(?: (?=[;)]))?|{_FAKE}')
_FINE = 200
_LONGEST = 3_000
"""Characters of a line of an outline."""
_TOO_LONG = "the page is too long"


def answer(plan: Plan, call: ToolCall, view: View) -> Mapping[str, Any] | None:
    """What an operation would answer, as far as a page tells it.

    Args:
        plan: The site.
        call: The operation and its arguments. One that changes something is answered by the page that says that just this was done.
        view: The page.

    Returns:
        The result, or a `refusal`, or None if this page tells neither.
    """
    act = plan.acts.get(call.name)
    if act is None or any(note.startswith(_TOO_LONG) for note in view["notes"]):
        return None
    lines = lines_of(view["outline"])
    heading = next((at for at, line in enumerate(lines) if line.startswith("# ")), len(lines))
    if not act.spec.read_only:
        return _deed(plan, act, call.arguments, view["status"], lines[:heading])
    place, own, _ = plan.at(view["url"])
    if place is None or place.act is not act or act.meant(own) != act.meant(call.arguments):
        return None
    if view["status"] in REFUSALS:
        alerts = [plain(line) for line in lines[:heading] if line.startswith("! ")]
        return refusal(REFUSALS[view["status"]], alerts[-1][2:]) if alerts and not alerts[-1].startswith(f"! {NOT_DONE}") else None
    if view["status"] != _FINE:
        return None
    found = _Reader(plan, place, lines[heading + 1 :]).record(act.result, 2)
    return found if found.keys() >= set((act.spec.output_schema or {}).get("required", ())) else None


def _deed(plan: Plan, act: Act, arguments: Mapping[str, Any], status: int, lines: tuple[str, ...]) -> Mapping[str, Any] | None:
    said, missed = (f"! {collapsed(done(plan, act, arguments, *what))}" for what in ((), (NOT_DONE,)))
    for at, line in enumerate(lines):
        told = plain(line)
        if told == said and status == _FINE:
            return _Reader(plan, None, lines[at + 1 :]).record(act.result, 3)
        if told.startswith(f"{missed}: ") and status in REFUSALS:
            return refusal(REFUSALS[status], told.removeprefix(f"{missed}: "))
    return None


def clear_caches() -> None:
    """Forgets the pages read."""
    lines_of.cache_clear()


@lru_cache(maxsize=1_024)
def lines_of(outline: str) -> tuple[str, ...]:
    """The lines of an outline; a very long one is put together again. None of one in which a word was too long and was cut."""
    lines: list[str] = []
    for line in outline.split("\n"):
        if len(line) >= _LONGEST and line.endswith("…"):
            return ()
        if line.startswith("  ") and lines:
            lines[-1] += line[1:]
        else:
            lines.append(line)
    return tuple(lines)


def plain(text: str) -> str:
    """A text of an outline as the page has it: links by what they say, and without what keeps it from looking like an element."""
    return _MARKS.sub(lambda mark: json.loads(re.sub(_FAKE, "[", mark[1])) if mark[1] else "[", text) if "[" in text else text


class _Reader:
    """Reads a record from the lines in which `rendering` has shown it."""

    def __init__(self, plan: Plan, place: Place | None, lines: tuple[str, ...]) -> None:
        self._plan = plan
        self._cards = place.page.cards if place is not None else ()
        self._lines = lines
        self._at = 0

    def record(self, known: Schema, level: int) -> dict[str, Any]:
        """The record that comes next.

        Args:
            known: Its fields.
            level: The level of the headings in it.
        """
        found: dict[str, Any] = {}
        for name, schema in known.items():
            if self._next().startswith(term := f"{self._plan.label(name)}: "):
                found[name] = read(plain(self._next()[len(term) :]), schema, name, self._plan.label)
                self._at += 1
        for name, schema in known.items():
            rows = rows_of(schema)
            if rows and name not in found:
                if name in self._cards and self._next() == f"{'#' * level} {self._plan.label(name)}":
                    self._at += 1
                    found[name] = list(self._each(rows, level + 1))
                elif name not in self._cards and self._next() == self._plan.label(name) and self._next(1).startswith("| "):
                    self._at += 2
                    found[name] = list(self._table(rows))
        return found

    def _next(self, further: int = 0) -> str:
        at = self._at + further
        return self._lines[at] if at < len(self._lines) else ""

    def _each(self, known: Schema, level: int) -> Any:
        number = 1
        while self._next() == f"{'#' * level} {number}":
            self._at += 1
            yield self.record(known, level + 1)
            number += 1

    def _table(self, known: Schema) -> Any:
        while (line := self._next()).startswith("| "):
            self._at += 1
            cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
            yield {
                name: read(plain(cell.replace("\\|", "|")), schema, name, self._plan.label)
                for (name, schema), cell in zip(known.items(), cells, strict=True)
                if cell
            }
