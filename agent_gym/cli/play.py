"""``agent-gym play ENV_ID``."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from agent_gym.cli.output import FaultsOption, RetriesOption, SeedOption, SetOption, StoreOption, console, parse_settings
from agent_gym.play import play as run_play

__all__ = ["play"]


def play(
    env_id: Annotated[str, typer.Argument(help="An environment's id, such as AgentBase/ToolTask-v0.")],
    split: Annotated[str, typer.Option(help="The split.")] = "train",
    episodes: Annotated[int | None, typer.Option(help="How many; without it every task of --tasks once, or until you quit.", min=1)] = None,
    tasks: Annotated[
        str | None, typer.Option("--tasks", "--task", help="Families or task ids, with commas between, or a file of them.")
    ] = None,
    seed: SeedOption = 0,
    faults: FaultsOption = None,
    retries: RetriesOption = None,
    settings: SetOption = None,
    store: StoreOption = Path("runs/store"),
    record: Annotated[bool, typer.Option("--record/--no-record", help="Keep the episodes in the store, with source human.")] = True,
) -> None:
    """Play an environment yourself. Type calls such as get_order("W1234567"), or the number of a choice; ? helps.

    Episodes are those that eval plays with the same options. Moves may also come from a pipe, one a line.
    """
    run_play(
        env_id,
        split=split,
        episodes=episodes,
        tasks=tasks,
        seed=seed,
        env_kwargs=parse_settings(settings, faults=faults, retries=retries),
        store=store if record else None,
        console=console if console.is_terminal else Console(width=int(os.environ.get("COLUMNS", "100"))),
    )
