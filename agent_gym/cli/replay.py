"""``agent-gym episodes replay``."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from agent_gym.cli.output import JsonOption, SeedOption, StoreOption, bar, console, print_json, table
from agent_gym.core.seeding import derive
from agent_gym.errors import AgentGymError, StoreError
from agent_gym.play.screen import printable
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.replay import VERDICTS, Difference, Report, replay

__all__ = ["newest", "replay_episodes"]

_DIFFS = 20
_LINES = 60
_SHOWN = 8
"""Lines of the first difference that are shown in any case."""
_LINE_CHARS = 300
_FAILED = "not replayed"


def replay_episodes(
    episode: Annotated[str | None, typer.Argument(metavar="ID", help="The episode's id; by default the newest.")] = None,
    mode: Annotated[
        Literal["execute", "cassette", "rescore"],
        typer.Option(help="Everything anew; or with the recorded results of tools; or everything anew, but only the verdict is compared."),
    ] = "execute",
    diff: Annotated[bool, typer.Option("--diff", help=f"Also show the differences as text, at most {_DIFFS}.")] = False,
    sample: Annotated[int | None, typer.Option(help="Replay so many episodes instead, drawn at random.", min=1)] = None,
    run: Annotated[str | None, typer.Option(help="Draw from this run; by default from the newest.")] = None,
    where: Annotated[str | None, typer.Option(help="Draw from those under a condition in SQL, such as \"outcome = 'failure'\".")] = None,
    jobs: Annotated[int, typer.Option(help="Processes that replay a sample.", min=1)] = 1,
    seed: SeedOption = 0,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Play a recorded episode again in a fresh environment, and say what comes out otherwise. Exit status 1 if anything does."""
    kept = TrajectoryStore(store)
    if sample is None:
        if run is not None or where is not None:
            raise typer.BadParameter("only with --sample, which draws from what they leave", param_hint="'--run' / '--where'")
        report = replay(kept, episode or newest(kept), mode)
        if as_json:
            print_json({"store": str(store), **report.to_dict(_DIFFS if diff else 0)})
        else:
            _tell(report, diff)
        raise typer.Exit(0 if report.well else 1)
    if episode is not None:
        raise typer.BadParameter("a sample is drawn; leave out the ID", param_hint="ID")
    ids = _drawn(kept, sample, run, where, seed)
    results = []
    with bar("replaying") as progress:
        for done, result in enumerate(_replayed(store, ids, mode, jobs), 1):
            results.append(result)
            progress(done, len(ids))
    _sum_up(store, results, mode, diff, as_json)
    raise typer.Exit(0 if all(isinstance(result, Report) and result.well for _, result in results) else 1)


def newest(kept: TrajectoryStore) -> str:
    """The id of a store's newest episode.

    Raises:
        StoreError: There is none.
    """
    if not (rows := kept.episodes(1)):
        raise StoreError(f"no episodes in {kept.path}")
    return str(rows[0]["episode_id"])


def _drawn(kept: TrajectoryStore, sample: int, run: str | None, where: str | None, seed: int) -> list[str]:
    if run is None and (runs := kept.runs()):
        run = runs[-1]["run_id"]
    ids = sorted(str(row["episode_id"]) for row in kept.episodes(None, where, run_id=run))
    if not ids:
        raise StoreError(f"no such episodes in {kept.path}" + (f", run {run}" if run else ""))
    chosen = derive("replay sample", seed).permutation(len(ids))[:sample]
    return [ids[int(index)] for index in sorted(chosen)]


def _one(store: Path, mode: str, episode: str) -> tuple[str, Report | str]:
    """What came of one episode: a report, or why there is none."""
    try:
        return episode, replay(TrajectoryStore(store), episode, mode)
    except AgentGymError as error:
        return episode, f"{type(error).__name__}: {error}"


def _replayed(store: Path, ids: Sequence[str], mode: str, jobs: int) -> Iterator[tuple[str, Report | str]]:
    job = partial(_one, store, mode)
    with ExitStack() as stack:
        if jobs == 1:
            yield from map(job, ids)
        else:
            yield from stack.enter_context(ProcessPoolExecutor(min(jobs, len(ids)), get_context("spawn"))).map(job, ids)


def _sum_up(store: Path, results: Sequence[tuple[str, Report | str]], mode: str, diff: bool, as_json: bool) -> None:
    reports = [result for _, result in results if isinstance(result, Report)]
    failed = {episode: result for episode, result in results if isinstance(result, str)}
    counted = Counter(report.verdict for report in reports)
    verdicts = {verdict: counted[verdict] for verdict in VERDICTS} | {_FAILED.replace(" ", "_"): len(failed)}
    if as_json:
        told = [report.to_dict(_DIFFS if diff else 0) for report in reports]
        print_json({"store": str(store), "mode": mode, "replayed": len(reports), "verdicts": verdicts, "episodes": told, "failed": failed})
        return
    for report in reports:
        if not report.well:
            _tell(report, diff)
            console.print()
    for episode, why in failed.items():
        _line((episode, "bold cyan"), (f"  {_FAILED}  ", "bold red"), (why, ""))
    table(f"{len(results)} episodes in {store}, {mode}", ["verdict", "episodes"], [[name, n] for name, n in verdicts.items() if n])


def _tell(report: Report, diff: bool) -> None:
    _line((report.episode_id, "bold cyan"))
    _line((f"{report.env_id}  {report.task_id or 'unknown task'}  {report.mode}, {report.steps} steps", "bold"))
    _line((report.verdict, "bold green" if report.well else "bold red"))
    for name, (then, now) in report.versions.items():
        _line((f"  {name} was {then}, is {now}", "yellow"))
    for name, (then, now) in report.ends.items():
        if then != now:
            _line((f"  {name} was {then}, is {now}", "yellow"))
    for note in report.notes:
        _line((f"  {note}", ""))
    if (first := report.first) is not None:
        _line(("  first: ", ""), (_place(first), "bold"))
        _changed(first.unified().splitlines()[2:], _SHOWN)
        counts = Counter(one.field + (" (volatile)" if one.volatile else "") for one in report.differences)
        _line((f"  differing: {', '.join(f'{name} {n}' for name, n in counts.items())}", ""))
    for one in report.differences[:_DIFFS] if diff else ():
        _line((f"\n{_place(one)}", "bold"), ("  volatile" if one.volatile else "", "dim"))
        _changed(one.unified().splitlines()[2:], _LINES)
    if diff and len(report.differences) > _DIFFS:
        _line((f"\n… {len(report.differences) - _DIFFS} more differences", "dim"))


def _place(one: Difference) -> str:
    return f"step {one.step}, {one.field}" + (f", attempt {one.attempt}" if one.attempt is not None else "")


def _changed(lines: Sequence[str], most: int) -> None:
    """Lines of a text diff, so many of them; a long one is cut."""
    for line in lines[:most]:
        shown = line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…"
        _line((f"    {shown}", {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")))
    if len(lines) > most:
        _line((f"    … {len(lines) - most} more lines", "dim"))


def _line(*parts: tuple[str, str]) -> None:
    console.print(Text.assemble(*((printable(text), style) for text, style in parts)), soft_wrap=True)
