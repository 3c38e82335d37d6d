"""``agent-gym benchmark``."""

import dataclasses
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from agent_gym.cli.output import JsonOption, console, print_json, progress_console, table
from agent_gym.errors import unknown
from agent_gym.play.screen import printable

if TYPE_CHECKING:
    from agent_gym.report.benchmark import Event

__all__ = ["benchmark"]

_INTERRUPTED = 130
_HOURS = 7_200.0
"""How far back the estimate of the time left looks, in seconds."""


def benchmark(
    suite: Annotated[str, typer.Option(help="small (two hours on two cores) or full (about a day).")] = "small",
    env: Annotated[str | None, typer.Option(help="Only these environments, with commas between; ToolTask is short for its id.")] = None,
    policy: Annotated[
        str | None, typer.Option(help="Only these policies, with commas between: random, bc, bc-candidate-ppo and so on.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds; those of the suite by default.", min=1)] = None,
    folder: Annotated[Path | None, typer.Option(help="Where everything is kept; runs/benchmark/SUITE by default.", file_okay=False)] = None,
    jobs: Annotated[
        int, typer.Option(help="Commands side by side; with 0 nothing is run, and the table is made from what is there.", min=0)
    ] = 2,
    docs: Annotated[Path | None, typer.Option(help="Where the table goes; into the folder by default.", file_okay=False)] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the command lines, and run nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure every policy on every environment, and make the table.

    What was answered is not run again. --env, --policy and --seeds narrow what is run and shown, not the page.
    """
    from agent_gym.report import benchmark as runs  # environments and matplotlib are loaded for this command alone
    from agent_gym.report.benchmark.page import write_page

    if suite not in runs.SUITES:
        raise unknown("suite", suite, runs.SUITES)
    chosen = runs.SUITES[suite]
    env_ids = [part.env_id for part in chosen.parts]
    wanted = env_ids if env is None else [_id(name.strip(), env_ids) for name in env.split(",")]
    policies = chosen.policies if policy is None else [name.strip() for name in policy.split(",")]
    if strange := sorted(set(policies) - set(chosen.policies)):
        raise unknown("policy", strange[0], chosen.policies)
    seeds = seeds or chosen.seeds
    folder = folder or Path("runs/benchmark") / suite
    docs = docs or folder
    whole = runs.plan(dataclasses.replace(chosen, seeds=max(seeds, chosen.seeds)))
    planned = whole.only(wanted, policies, seeds)
    if plan:
        lines = [command.line(folder) for chain in planned.chains for command in chain.commands]
        if as_json:
            print_json({"commands": lines, "left_out": [dataclasses.asdict(left) for left in planned.left_out]})
        else:
            print("\n".join(lines))
        return
    docs.mkdir(parents=True, exist_ok=True)  # so that work is not lost for want of it
    broken_off = False
    if jobs:
        with _interruptible(), _progress(quiet) as say:
            try:
                runs.work(planned, folder, jobs=jobs, say=say)
            except KeyboardInterrupt:
                broken_off = True
    result = runs.collect(planned, folder)
    page = write_page(runs.collect(whole, folder), docs)
    if as_json:
        print_json(result)
    else:
        _show(result, page)
    if broken_off:
        progress_console.print("broken off; the same command goes on from there", style="yellow")
        sys.exit(_INTERRUPTED)
    if result["missing"] or _unmade(result):
        sys.exit(1)


def _id(name: str, known: list[str]) -> str:
    for env_id in known:
        if name in (env_id, env_id.rpartition("/")[2], env_id.rpartition("/")[2].partition("-v")[0]):
            return env_id
    raise unknown("environment", name, known)


def _unmade(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The environments that could not be made."""
    return [left for left in result["left_out"] if left["policy"] is None]


def _show(result: dict[str, Any], page: Path) -> None:
    rows = [
        [
            row["env_id"].rpartition("/")[2],
            row["policy"],
            row["split"],
            row["episodes"],
            "–" if row["success_rate"] is None else row["success_rate"],
            "–" if row["success_ci95"] is None else "{:.3f}–{:.3f}".format(*row["success_ci95"]),
        ]
        for row in result["rows"]
    ]
    table(f"suite {result['suite']}", ["environment", "policy", "split", "episodes", "success", "95 % interval"], rows)
    for row in result["rows"]:
        if row["infra_errors"]:
            where = f"{row['env_id'].rpartition('/')[2]} {row['policy']} {row['split']}"
            progress_console.print(f"{where}: {row['infra_errors']} episodes were lost to infrastructure errors", style="yellow")
    for left in _unmade(result):
        progress_console.print(f"missing: {left['env_id']}: {printable(left['why'])}", markup=False, highlight=False, soft_wrap=True)
    for left in result["missing"]:
        where = f"{left['env_id'].rpartition('/')[2]} {left['policy']} seed {left['seed']} {left['step']}"
        progress_console.print(f"missing: {where}: {printable(left['why'])}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"table: {page}", soft_wrap=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """A request to end and a terminal that is closed are interrupts, too: no command is left running then."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[["Event"], None]]:
    """One bar on stderr, or a line for each command that ends where stderr is no terminal."""
    shown = progress_console.is_terminal and not quiet
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=progress_console, disable=not shown, speed_estimate_period=_HOURS) as progress:
        task = progress.add_task("", total=None)

        def say(event: "Event") -> None:
            if not (event.running or event.ended):  # the start: what was answered before says nothing about the time left
                progress.reset(task, total=event.total, completed=event.done)
            progress.update(task, completed=event.done, total=event.total, description=", ".join(event.running))
            if event.ended and not quiet:
                told = event.ended if shown else f"[{event.done}/{event.total}] {event.ended}"
                progress_console.print(told, markup=False, highlight=False, soft_wrap=True)

        yield say
