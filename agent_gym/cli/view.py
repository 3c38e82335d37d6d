"""``agent-gym view``."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from agent_gym.cli.output import StoreOption, bar, console
from agent_gym.trajectories import TrajectoryStore

__all__ = ["view"]


def view(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Episodes by their ids: one is opened, two are set side by side; by default the newest."),
    ] = None,
    store: StoreOption = Path("runs/store"),
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    where: Annotated[str | None, typer.Option(help="A condition in SQL, such as \"outcome = 'failure' and n_turns > 5\".")] = None,
    limit: Annotated[int, typer.Option(help="The newest so many; 0 takes all.", min=0)] = 200,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("runs/view.html"),
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Whether it is opened in a browser.")] = False,
) -> None:
    """Write episodes as one HTML file to look at: a list with filters, each step by step, and two side by side."""
    from agent_gym.report.viewer import write_viewer

    kept = TrajectoryStore(store)
    if ids:
        if run is not None or where is not None:
            raise typer.BadParameter("episodes that are named are shown as they are; leave --run and --where out", param_hint="'ID'")
        episodes = [kept.episode(one) for one in dict.fromkeys(ids)]
    else:
        episodes = kept.episodes(limit or None, where, run_id=run)
    opened = [row["episode_id"] for row in episodes] if ids and len(episodes) <= 2 else []
    with bar("episodes") as tell:
        done = write_viewer(kept, episodes, out, opened=opened, tell=tell)
    left_out = f", {done.pictures_left_out} left out" if done.pictures_left_out else ""
    held = [("episode", done.episodes), ("step", done.steps), ("picture", done.pictures)]
    counts = ", ".join(f"{count:,} {one}{'' if count == 1 else 's'}" for one, count in held)
    console.print(f"{counts}{left_out}; {done.bytes / 2**20:.1f} MiB", highlight=False, soft_wrap=True)
    console.print(f"view: {out}", highlight=False, soft_wrap=True)
    if opens:
        webbrowser.open(done.path.as_uri())
