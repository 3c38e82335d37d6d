"""``agent-gym bench NAME``."""

from typing import Annotated

import typer

from agent_gym.bench import BENCHES, run_bench
from agent_gym.cli.output import JsonOption, print_json, progress_console, table

__all__ = ["bench"]


def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(BENCHES)}.")],
    against: Annotated[
        str | None,
        typer.Option(help="For web: browsergym=PATH of a virtual environment that has it. Ours beside it is all that is measured."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast a part of this package is on this machine."""
    result = run_bench(name, lambda what: progress_console.print(f"[dim]{what} …[/]"), against)
    if as_json:
        print_json(result)
    else:
        machine = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
        table(f"{name} ({machine})", ["metric", "value"], [[key, float(value)] for key, value in result["metrics"].items()])
