"""``agent-gym check tasks``. Exit status: 0 if all holds, 1 if something fails, 2 on misuse."""

from typing import Annotated

import typer

from agent_gym.cli.output import JsonOption, SetOption, bar, console, parse_settings, print_json, table
from agent_gym.evaluation.admission import BOUNDS, admit

__all__ = ["app"]

app = typer.Typer(help="Check what environments promise.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Check what environments promise."""


@app.command()
def tasks(
    env_id: Annotated[str, typer.Argument(help="An environment's id.")] = "AgentBase/ToolTask-v0",
    split: Annotated[str, typer.Option(help="The split.")] = "train",
    seeds: Annotated[int, typer.Option(help="Evaluations with different seeds, pooled.", min=1)] = 5,
    episodes: Annotated[int, typer.Option(help="Episodes of each family, policy and seed.", min=1)] = 20,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no family can be gamed: what scripted policies score on it, beside what they may."""
    with bar("playing") as progress:
        rows = admit(
            env_id,
            split=split,
            seeds=seeds,
            episodes=episodes,
            env_kwargs=parse_settings(settings),
            progress=lambda _, done, total: progress(done, total),
        )
    failed = any(row.faults for row in rows)
    if as_json:
        shown = [{"family": row.family, "scores": dict(row.scores), "faults": list(row.faults)} for row in rows]
        print_json({"env_id": env_id, "split": split, "seeds": seeds, "bounds": BOUNDS, "families": shown, "admitted": not failed})
    else:
        cells = [
            [row.family, *("–" if row.scores[n] is None else row.scores[n] for n in BOUNDS), "; ".join(row.faults) or "ok"] for row in rows
        ]
        table(f"{env_id}, {split} split, {seeds} seeds × {episodes} episodes", ["family", *BOUNDS, "verdict"], cells)
        console.print("some families are not admitted" if failed else "every family is admitted")
    raise typer.Exit(1 if failed else 0)
