"""``agent-gym check …``. Exit status: 0 if all holds, 1 if something fails, 2 on misuse."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from agent_gym.cli.output import JsonOption, SeedOption, SetOption, bar, console, parse_settings, print_json, table
from agent_gym.core.verdict import Check
from agent_gym.evaluation.admission import BOUNDS, AdmissionRow, admit, admit_all, faults_of_worlds
from agent_gym.evaluation.card import gameability_card
from agent_gym.evaluation.checks import check_clean_start, check_determinism, check_reward, check_spaces, check_truncation

__all__ = ["app"]

app = typer.Typer(help="Check what environments promise.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Check what environments promise."""


@app.command()
def tasks(
    env_id: Annotated[str | None, typer.Argument(help="An environment's id; AgentBase/ToolTask-v0 by default.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every id, world, door and split whose tasks have an oracle.")] = False,
    split: Annotated[str, typer.Option(help="The split.")] = "train",
    seeds: Annotated[int, typer.Option(help="So many times tasks are drawn.", min=1)] = 20,
    episodes: Annotated[int, typer.Option(help="Tasks of each family that are drawn with each seed.", min=1)] = 2,
    card: Annotated[Path | None, typer.Option(help="With --all: writes the gameability card here, in Markdown.")] = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no family can be gamed: what scripted policies score on it, beside what they may."""
    if every and (env_id or settings):
        raise typer.BadParameter("it takes no id and no keywords of one", param_hint="'--all'")
    if card and not every:
        raise typer.BadParameter("a card is about everything; add --all", param_hint="'--card'")
    env_id = env_id or "AgentBase/ToolTask-v0"
    workers = len(os.sched_getaffinity(0))
    with bar("playing") as progress:
        if every:
            rows = admit_all(seeds=seeds, episodes=episodes, workers=workers, progress=progress)
        else:
            keywords = parse_settings(settings)
            rows = admit(env_id, split=split, seeds=seeds, episodes=episodes, env_kwargs=keywords, workers=workers, progress=progress)
    faults = faults_of_worlds(rows)
    failed = bool(faults) or any(row.faults for row in rows)
    if card:
        card.write_text(gameability_card(rows, seeds=seeds, episodes=episodes), encoding="utf-8")
    if as_json:
        about = {"env_id": None if every else env_id, "split": None if every else split, "seeds": seeds, "episodes": episodes}
        shown = [dataclasses.asdict(row) for row in rows]
        print_json({**about, "bounds": BOUNDS, "families": shown, "faults": faults, "admitted": not failed})
    else:
        _show(rows, seeds, episodes)
        for fault in faults:
            console.print(fault, soft_wrap=True)
        console.print("something is not admitted" if failed else "every family is admitted")
    raise typer.Exit(1 if failed else 0)


def _promise(name: str, check: Callable[..., Sequence[Check]], about: str, episodes_are: str, usual: int = 10) -> None:
    """Adds the command of a check that plays some episodes of an environment."""

    @app.command(name, help=about)
    def command(
        env_id: Annotated[str, typer.Argument(help="An environment's id.")],
        split: Annotated[str, typer.Option(help="The split.")] = "train",
        episodes: Annotated[int, typer.Option(help=episodes_are, min=1)] = usual,
        seed: SeedOption = 0,
        settings: SetOption = None,
        as_json: JsonOption = False,
    ) -> None:
        found = check(env_id, split=split, episodes=episodes, seed=seed, env_kwargs=parse_settings(settings))
        _report({"env_id": env_id, "split": split, "episodes": episodes, "seed": seed}, found, as_json)


_promise(
    "reward",
    check_reward,
    "Check that the reward says what it should: its parts, their signs, who earns most, what shaping and scaling do to it.",
    "Tasks that each policy plays.",
)
_promise(
    "truncation",
    check_truncation,
    "Check that an episode that was cut short can be told from one that has ended, alone and in a vector environment.",
    "Tasks that each policy plays.",
    usual=5,
)
_promise(
    "determinism",
    check_determinism,
    "Check that equal seeds and actions give the same in two processes that hash differently.",
    "Episodes through each interface.",
)
_promise(
    "spaces",
    check_spaces,
    "Check that every observation is in its space, and that what the action space and the mask offer is valid.",
    "Episodes through each interface.",
)


@app.command()
def clean_start(
    env_id: Annotated[str, typer.Argument(help="An environment's id.")],
    sample: Annotated[int, typer.Option(help="How many of the environments are compared with fresh ones.", min=1)] = 10,
    envs: Annotated[int, typer.Option(help="Environments side by side.", min=1)] = 64,
    episodes: Annotated[int, typer.Option(help="Random episodes in each before that.", min=1)] = 2,
    split: Annotated[str, typer.Option(help="The split.")] = "train",
    seed: SeedOption = 0,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that episodes start as in a fresh environment and leave nothing in the process; names each channel that does not."""
    about = {"env_id": env_id, "split": split, "sample": sample, "envs": envs, "episodes": episodes, "seed": seed}
    keywords = parse_settings(settings)
    with bar("playing") as progress:
        found = check_clean_start(
            env_id, split=split, sample=sample, envs=envs, episodes=episodes, seed=seed, env_kwargs=keywords, progress=progress
        )
    _report(about, found, as_json)


def _report(about: Mapping[str, Any], checks: Sequence[Check], as_json: bool) -> NoReturn:
    """Prints what was checked, and exits."""
    passed = all(check.passed for check in checks)
    if as_json:
        print_json({**about, "checks": [dataclasses.asdict(check) for check in checks], "passed": passed})
    else:
        rows = [[check.name, "ok" if check.passed else "FAILED", check.detail] for check in checks]
        table(str(about["env_id"]), ["check", "", "seen"], rows)
    raise typer.Exit(0 if passed else 1)


def _show(rows: Sequence[AdmissionRow], seeds: int, episodes: int) -> None:
    """A table for every id and split."""
    columns = ["family", *BOUNDS, "ways", "steps", "verdict"]
    for env_id, split in dict.fromkeys((row.env_id, row.split) for row in rows):
        of_these = [row for row in rows if (row.env_id, row.split) == (env_id, split)]
        cells = [
            ["–" if cell is None else cell for cell in (row.family, *(row.scores[name] for name in BOUNDS), row.ways, row.steps)]
            + ["; ".join(row.faults) or "ok"]
            for row in of_these
        ]
        table(f"{env_id}, {split} split, {seeds} seeds × {episodes} tasks", columns, cells)
