"""Tables, and what can be asked of them."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.report.reading import CsvError, read

Row = dict[str, str]


def table(text: str) -> list[Row]:
    """Rows by the names in the first line; empty lines are passed over, and what is missing is empty."""
    lines = [line for line in read(text) if line != [""]]
    if not lines:
        return []
    heads = [head.strip() for head in lines[0]]
    if len(set(heads)) < len(heads):
        raise CsvError("heads")
    rows = []
    for line in lines[1:]:
        if len(line) > len(heads):
            raise CsvError("fields")
        rows.append({head: line[index] if index < len(line) else "" for index, head in enumerate(heads)})
    return rows


def number(text: str) -> float:
    """A number as people write it: ``1,250.5``, ``(3)`` for less than nothing, nothing for 0."""
    plain = text.strip().replace(",", "")
    if plain.startswith("(") and plain.endswith(")"):
        return -number(plain[1:-1])
    return float(plain) if plain else 0.0


def where(rows: list[Row], column: str, test: str, value: str) -> list[Row]:
    """The rows of which a column is, is not, is above or is below a value, or holds it."""
    kept = []
    for row in rows:
        found = row[column]
        if test == "is":
            keep = found == value
        elif test == "is not":
            keep = found != value
        elif test == "above":
            keep = number(found) > number(value)
        elif test == "below":
            keep = number(found) < number(value)
        elif test == "holds":
            keep = value.lower() in found.lower()
        else:
            raise ValueError(test)
        if keep:
            kept.append(row)
    return kept


def join(left: list[Row], right: list[Row], column: str) -> list[Row]:
    """Rows of the left with what the right says of the same; those that it does not know are left out."""
    known: dict[str, list[Row]] = {}
    for row in right:
        known.setdefault(row[column], []).append(row)
    return [{**other, **row} for row in left for other in known.get(row[column], [])]


def order(rows: list[Row], column: str, numeric: bool = False, descending: bool = False) -> list[Row]:
    """Sorted by a column; equals stay as they were."""
    if numeric:
        return sorted(rows, key=lambda row: number(row[column]), reverse=descending)
    return sorted(rows, key=lambda row: row[column], reverse=descending)
