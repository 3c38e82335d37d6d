"""Tables to look at."""

from __future__ import annotations


def pretty(value: float, digits: int = 2) -> str:
    """A number, such as ``1,250.50``; whole ones without digits after the point."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


def grid(heads: list[str], rows: list[list[str]], right: list[int]) -> str:
    """Columns side by side; those in ``right`` are set to the right."""
    widths = [max(len(row[index]) for row in [heads, *rows]) for index in range(len(heads))]
    lines = []
    for row in [heads, ["-" * width for width in widths], *rows]:
        cells = []
        for index, cell in enumerate(row):
            if index in right:
                cells.append(cell.rjust(widths[index]))
            else:
                cells.append(cell.ljust(widths[index]))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def bars(pairs: list[tuple[str, float]], width: int = 20) -> list[str]:
    """A bar for each pair, the largest as long as ``width``; one above 0 is never empty."""
    most = max((value for _, value in pairs), default=0)
    names = max((len(name) for name, _ in pairs), default=0)
    lines = []
    for name, value in pairs:
        length = int(width * value / most + 0.5) if most > 0 else 0
        if value > 0 and length == 0:
            length = 1
        lines.append(f"{name.ljust(names)} {'#' * length}".rstrip())
    return lines
