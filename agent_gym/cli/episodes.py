"""``agent-gym episodes list`` and ``agent-gym episodes calls``."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import orjson
import typer
from rich.text import Text

from agent_gym.cli.output import JsonOption, StoreOption, console, print_json, table
from agent_gym.core.action import ToolCall
from agent_gym.core.tool import CALL_FAILED, STATUSES
from agent_gym.errors import unknown
from agent_gym.play.screen import printable
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


@app.command("calls")
def list_calls(
    task: Annotated[str | None, typer.Option(help="Only this task's, by its id.")] = None,
    episode: Annotated[str | None, typer.Option(help="Only this episode's, by its id.")] = None,
    step: Annotated[int | None, typer.Option(help="Only those of this step; the first action is step 1.", min=1)] = None,
    status: Annotated[str | None, typer.Option(help="Only attempts with this status, such as unavailable.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only calls of this tool.")] = None,
    run: Annotated[str | None, typer.Option(help="Only this run; by default the newest, unless a task or an episode is named.")] = None,
    limit: Annotated[int, typer.Option(help="The newest so many; 0 shows all.", min=0)] = 50,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Show the calls of tools: every attempt with its arguments and its result, the newest last."""
    if status is not None and status not in STATUSES:
        raise unknown("status", status, STATUSES)
    kept = TrajectoryStore(store)
    if run is None and task is None and episode is None and (runs := kept.runs()):
        run = runs[-1]["run_id"]
    found = kept.calls(limit or None, task_id=task, episode_id=episode, step=step, status=status, tool=tool, run_id=run)
    rows = [{**row, **{name: row[name] and orjson.loads(row[name]) for name in ("arguments", "structured")}} for row in found]
    if as_json:
        print_json({"store": str(store), "run_id": run, "calls": rows})
    else:
        _show(f"{len(rows)} attempts in {store}" + (f", run {run}" if run else ""), rows)


def _show(title: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """One block an attempt, under a line for each episode. Long lines are left to the terminal, so that they can be copied."""

    def line(*parts: tuple[str, str]) -> None:
        console.print(Text.assemble(*((printable(text), style) for text, style in parts)), soft_wrap=True)

    line((title, "italic"))
    for (episode_id, task_id), calls in itertools.groupby(rows, lambda row: (row["episode_id"], row["task_id"])):
        line((f"\n{episode_id}  {task_id or 'unknown task'}", "bold cyan"))
        for row in calls:
            failed = row["status"] in CALL_FAILED
            line((f"step {row['step']}, attempt {row['attempt']}  ", "dim"), (str(ToolCall(row["tool"], row["arguments"])), ""))
            line((f"  {row['status']}", "bold red" if failed else "bold green"), ("".join(f"  {fact}" for fact in _facts(row)), "dim"))
            told = row["result"] or ("" if row["structured"] is None else orjson.dumps(row["structured"]).decode())
            for text, style in ((told, ""), (row["error"] or "", "dim red")):
                if text:
                    line((indent(text.rstrip(), "  "), style))


def _facts(row: Mapping[str, Any]) -> Iterable[str]:
    if row["retry_after_s"] is not None:
        yield f"retry after {row['retry_after_s']:g} s"
    if row["waited_s"]:
        yield f"waited {row['waited_s']:g} s"
    if row["fault"]:
        yield f"fault {row['fault']}"
    if row["took_effect"]:
        yield "took effect"
    if row["from_cache"]:
        yield "from the cache"
    if row["key"]:
        yield f"key {row['key']}"
    yield f"{row['dur_us'] / 1_000:.1f} ms"
