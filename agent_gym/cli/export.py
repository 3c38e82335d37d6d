"""``agent-gym episodes export``."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agent_gym.cli.output import JsonOption, StoreOption, bar, console, print_json, progress_console
from agent_gym.play.screen import printable
from agent_gym.trajectories import TrajectoryStore

__all__ = ["export_episodes"]

_SHOWN_REASONS = 10


def export_episodes(
    form: Annotated[Literal["chat", "preferences", "hf", "minari", "atif"], typer.Argument(metavar="FORMAT", help="The form.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file (chat, preferences) or folder (hf, minari, atif) to make.")],
    episodes: Annotated[list[str] | None, typer.Argument(metavar="[ID…]", help="These episodes; by default all.")] = None,
    where: Annotated[str | None, typer.Option(help='A condition in SQL that narrows them down, such as "success".')] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    limit: Annotated[int | None, typer.Option(help="The newest so many.", min=1)] = None,
    level: Annotated[Literal["episode", "step"], typer.Option(help="What preferences compares: episodes or single steps.")] = "episode",
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Write episodes in another form: chat rows, preference pairs, a Hugging Face or Minari dataset, ATIF files.

    Episodes whose reward is not valid are left out; failures are not, and each row says what became of its episode.
    """
    from agent_gym.trajectories.export import export  # which loads pyarrow

    with bar(f"exporting as {form}") as progress:
        done = export(
            TrajectoryStore(store), form, out, episodes or (), where=where, run_id=run, limit=limit, level=level, progress=progress
        )
    if as_json:
        print_json({"store": str(store), **done})
        return
    console.print(f"{done['rows']} rows of {done['episodes']} episodes in {out}", markup=False, highlight=False, soft_wrap=True)
    _tell(done["skipped"])


def _tell(skipped: list[dict[str, Any]]) -> None:
    """Says on stderr how many episodes were left out, and why."""
    reasons: dict[str, int] = {}
    for one in skipped:
        reasons[one["reason"]] = reasons.get(one["reason"], 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1])[:_SHOWN_REASONS]:
        progress_console.print(f"{count} left out: {printable(reason)}", markup=False, highlight=False, soft_wrap=True)
