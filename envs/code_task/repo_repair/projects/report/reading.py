"""CSV to rows, and back."""

from __future__ import annotations


class CsvError(ValueError):
    """A text that is no CSV."""


def read(text: str, separator: str = ",") -> list[list[str]]:
    """Rows of fields. A field in double quotes may hold separators, ends of lines, and quotes that are doubled."""
    rows: list[list[str]] = []
    row: list[str] = []
    field = ""
    quoted = False
    at = 0
    while at < len(text):
        char = text[at]
        if quoted:
            if char == '"' and text[at + 1 : at + 2] == '"':
                field += char
                at += 1
            elif char == '"':
                quoted = False
            else:
                field += char
        elif char == '"' and not field:
            quoted = True
        elif char == separator:
            row.append(field)
            field = ""
        elif char == "\n":
            rows.append([*row, field])
            row, field = [], ""
        elif char != "\r":
            field += char
        at += 1
    if quoted:
        raise CsvError("quote")
    if row or field:
        rows.append([*row, field])
    return rows


def write(rows: list[list[str]], separator: str = ",") -> str:
    """The text of some rows."""
    lines = []
    for row in rows:
        fields = []
        for field in row:
            special = any(char in field for char in (separator, '"', "\n"))
            fields.append('"' + field.replace('"', '""') + '"' if special else field)
        lines.append(separator.join(fields))
    return "".join(f"{line}\n" for line in lines)
