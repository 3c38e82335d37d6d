"""Lines of an outline as they are put together, with everything escaped in a page's text that would look like something it is not."""

import re

__all__ = ["Lines", "cell", "escaped", "quoted", "safe", "short", "wrapped"]

_MINE = "\0"
"""Marks an element's bracket while its line is put together. No document can hold it."""
_FAKE = re.compile(rf"(?<!{_MINE})\[(?=\d+\])")
_LOOKING = frozenset("#-!|—")
_LONGEST = 3_000
"""Characters of a line."""
_LOOKS = re.compile(r"(?:#+|[-!|—]) ")


class Lines:
    """Lines that are done, and one that is being put together.

    Attributes:
        lines: The lines that are done.
        run: The pieces of the line that is not; blanks and line breaks in them count for nothing.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.run: list[str] = []
        self._full = False  # the line has a control already: the next one begins a line

    def flush(self) -> None:
        """Ends the line."""
        if self.run:
            line = " ".join("".join(self.run).split())
            self.run.clear()
            self._full = False
            if line:
                self.lines.append(safe(line))

    def add_element(self, bid: str, text: str, alone: bool) -> None:
        """Adds an element to the line.

        Args:
            bid: Its id.
            text: What is told of it.
            alone: Whether it takes a line in which no other such element is.
        """
        if alone:
            if self._full:
                self.flush()
            self._full = True
        self.run.append(f" {_MINE}[{bid}] {text} ")

    def begin(self) -> tuple[list[str], list[str], bool]:
        """Begins a part whose lines are kept apart, and returns what `end` takes."""
        outer = (self.lines, self.run, self._full)
        self.lines, self.run, self._full = [], [], False
        return outer

    def end(self, outer: tuple[list[str], list[str], bool]) -> list[str]:
        """Ends that part and returns its lines."""
        self.flush()
        lines = self.lines
        self.lines, self.run, self._full = outer
        return lines


def escaped(text: str) -> str:
    """A page's text in which no bracket looks like an element's; those that are one lose their mark."""
    if text.count("[") != text.count(_MINE):
        text = _FAKE.sub(r"\\[", text)
    return text.replace(_MINE, "")


def safe(line: str) -> str:
    """A line of a page's text that looks like nothing else: no element, heading, item, row or message."""
    if "[" in line:
        line = escaped(line)
    return "\\" + line if line[:1] in _LOOKING and _LOOKS.match(line) else line


def cell(lines: list[str]) -> str:
    """Lines as the text of a table cell."""
    return " ".join(lines).replace("|", "\\|")


def short(text: str, most: int) -> str:
    """A text, of a long one the beginning."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def wrapped(lines: list[str]) -> list[str]:
    """Lines of which none is very long: such a one goes on, two blanks in, after a blank."""
    if max(map(len, lines), default=0) <= _LONGEST:
        return lines
    kept: list[str] = []
    for line in lines:
        rest = line
        while len(rest) > _LONGEST:
            at = rest.rfind(" ", 3, _LONGEST)
            if at < 0 and (at := rest.find(" ", _LONGEST)) < 0:
                break
            kept.append(short(rest[:at], _LONGEST))
            rest = "  " + rest[at + 1 :]
        kept.append(short(rest, _LONGEST))
    return kept


def quoted(text: str) -> str:
    """A text in quotes."""
    if "\\" in text or '"' in text or _MINE in text:
        text = text.replace(_MINE, "").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
