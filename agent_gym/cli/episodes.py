"""``agent-gym episodes list``."""

from pathlib import Path
from typing import Annotated

import typer

from agent_gym.cli.output import JsonOption, StoreOption, print_json, table
from agent_gym.trajectories import TrajectoryStore

__all__ = ["app"]

app = typer.Typer(help="Look at recorded episodes.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look at recorded episodes."""


@app.command("list")
def list_episodes(
    store: StoreOption = Path("runs/store"),
    limit: Annotated[int, typer.Option(help="The newest so many; 0 lists all.", min=0)] = 20,
    where: Annotated[str | None, typer.Option(help="A condition in SQL, such as \"outcome = 'failure' and n_turns > 5\".")] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List episodes, the newest last. What a killed process left behind is sealed first."""
    rows = TrajectoryStore(store).episodes(limit or None, where, run_id=run)
    if as_json:
        print_json({"store": str(store), "episodes": rows})
        return
    columns = ["episode_id", "policy_id", "task_id", "outcome", "end_reason", "n_turns", "reward_total"]
    table(f"{len(rows)} episodes in {store}", columns, [["" if row[c] is None else row[c] for c in columns] for row in rows])
