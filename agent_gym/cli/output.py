"""How the command talks: figures on stdout, everything else on stderr."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from agent_gym.errors import ConfigurationError
from agent_gym.play.screen import printable

__all__ = [
    "FaultsOption",
    "JsonOption",
    "RetriesOption",
    "SeedOption",
    "SetOption",
    "StoreOption",
    "bar",
    "console",
    "parse_settings",
    "print_json",
    "progress_console",
    "table",
    "tell_skipped",
]

console = Console()
"""For figures."""
progress_console = Console(stderr=True)
"""For progress and errors."""

_SHOWN_SKIPPED = 10

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
SeedOption = Annotated[int, typer.Option(help="Seed of everything that is drawn.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=JSON", help="A keyword of the environment, such as --set 'families=[\"cancel\"]'.")
]
FaultsOption = Annotated[
    float | None,
    typer.Option(help="Share of calls of remote tools into which a fault is injected; short for --set faults=….", min=0, max=1),
]
RetriesOption = Annotated[
    Literal["gateway", "agent"] | None,
    typer.Option(help="Who retries a call that failed in passing; short for --set retries=….", show_default=False),
]
StoreOption = Annotated[
    Path,
    typer.Option(help="Folder of the trajectory store.", envvar="AGENT_GYM_STORE"),
]


def parse_settings(settings: Sequence[str] | None, **options: Any) -> dict[str, Any]:
    """Reads ``KEY=JSON`` pairs; a value that is no JSON is taken as text.

    Args:
        settings: The pairs.
        **options: Keywords that have an option of their own; None is left out.

    Raises:
        ConfigurationError: A pair without ``=``, or a keyword that was also given by its own option.
    """
    parsed = {key: value for key, value in options.items() if value is not None}
    own = frozenset(parsed)
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"--set {setting!r}: write KEY=JSON")
        if key in own:
            raise ConfigurationError(f"--set {setting!r}: already given by --{key}")
        try:
            parsed[key] = json.loads(value)
        except json.JSONDecodeError:
            parsed[key] = value
    return parsed


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY, default=str) + b"\n")
    sys.stdout.buffer.flush()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on stdout; numbers stand right."""
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        numeric = all(isinstance(row[index], int | float) or str(row[index])[:1].isdigit() for row in rows) and bool(rows)
        shown.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row))
    (console if console.is_terminal else Console(width=int(os.environ.get("COLUMNS", "140")))).print(shown)


def tell_skipped(skipped: Sequence[str]) -> None:
    """Says on stderr how many rows of a source were left out, and why the first were."""
    if skipped:
        progress_console.print(f"{len(skipped)} rows of the source were skipped:", style="yellow")
        for why in [*skipped[:_SHOWN_SKIPPED], *(["…"] if len(skipped) > _SHOWN_SKIPPED else [])]:
            progress_console.print(f"  {printable(why)}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def bar(what: str) -> Iterator[Any]:
    """A progress bar on stderr, if that is a terminal: gives a function of (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=progress_console, transient=True, disable=not progress_console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
