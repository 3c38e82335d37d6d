"""``agent-gym episodes list | query | show | calls``."""

import csv
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, Literal

import orjson
import typer
from rich.text import Text

from agent_gym.cli.output import JsonOption, StoreOption, console, print_json, table
from agent_gym.core.action import ToolCall
from agent_gym.core.tool import CALL_FAILED, STATUSES
from agent_gym.errors import StoreError, unknown
from agent_gym.play.screen import printable
from agent_gym.report.episodes import StepView, episode_view
from agent_gym.report.figures import readable
from agent_gym.trajectories import TrajectoryStore

__all__ = ["app"]

_COLUMNS = ("episode_id", "policy_id", "task_id", "outcome", "end_reason", "n_turns", "n_tool_failures", "reward_total")
_TABLE_ROWS = 50
_JSON_COLUMNS = ("obs_data", "action", "note", "arguments", "structured", "checks", "changes", "reset_options", "payload")
_ABOUT = (
    "env_id",
    "env_version",
    "policy_id",
    "source",
    "seed",
    "episode_index",
    "split",
    "tools_version",
    "prompt_version",
    "code_version",
)
_COSTS = ("env_us", "grade_us", "tool_us", "model_us", "human_s", "prompt_tokens", "completion_tokens", "cost_usd")
_ALIKE = ("state_digest", "obs_digest", "rng_digest", "obs_image")

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
    _list(f"{len(rows)} episodes in {store}", rows)


@app.command("query")
def query_episodes(
    condition: Annotated[str, typer.Argument(help='A condition on episodes in SQL, such as "n_tool_failures > 3"; with --sql, a query.')],
    sql: Annotated[bool, typer.Option("--sql", help="It is a whole query, to episodes, steps, tool_calls, events and tokens.")] = False,
    form: Annotated[Literal["table", "json", "csv"], typer.Option("--format", help="How the answer is printed.")] = "table",
    limit: Annotated[int | None, typer.Option(help="The newest so many episodes; a table has 50 by default, all else all.", min=1)] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Find episodes by what is known of them, or answer any question in SQL."""
    form = "json" if as_json else form
    kept = TrajectoryStore(store)
    if sql and (run is not None or limit is not None):
        raise typer.BadParameter("a query says by itself which run it is about and how many rows it wants", param_hint="'--sql'")
    if limit is None and form == "table":
        limit = _TABLE_ROWS
    rows = kept.sql(condition) if sql else kept.episodes(limit, condition, run_id=run)
    if form == "json":
        print_json({"store": str(store), "rows" if sql else "episodes": rows})
    elif form == "csv":
        _csv(rows)
    elif sql:
        columns = list(rows[0]) if rows else ["no rows"]
        table(f"{len(rows)} rows", columns, [[_cell(row[column]) for column in columns] for row in rows])
    else:
        _list(f"{len(rows)} episodes in {store}" + (", the newest" if len(rows) == limit else ""), rows)


@app.command("show")
def show_episode(
    episode: Annotated[str | None, typer.Argument(metavar="ID", help="The episode's id; by default the newest.")] = None,
    step: Annotated[int | None, typer.Option(help="Only this step, with everything that is known of it; 0 is the reset.", min=0)] = None,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Show an episode step by step: what was called, what came back, and how it ended."""
    kept = TrajectoryStore(store)
    if episode is None:
        if not (newest := kept.episodes(1)):
            raise StoreError(f"no episodes in {store}")
        episode = str(newest[0]["episode_id"])
    row = kept.episode(episode)
    steps, calls = list(kept.steps(episode)), list(kept.tool_calls(episode))
    if step is not None:
        steps, calls = ([one for one in rows if one["step"] == step] for rows in (steps, calls))
        if not steps:
            raise StoreError(f"episode {episode} has no step {step}; it has {row['n_turns']} after the reset, which is 0")
    events = kept.events(episode)
    if as_json:
        parts = {"episode": _read(row), "steps": map(_read, steps), "tool_calls": map(_read, calls), "events": map(_read, events)}
        print_json({"store": str(store), **{name: list(part) if isinstance(part, map) else part for name, part in parts.items()}})
    elif step is not None:
        _head(row)
        _step(_read(steps[0]))
        _calls(map(_read, calls))
    else:
        _head(row)
        for one in episode_view(row, steps).steps:
            _turn(one)
        _foot(_read(row), events)


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
    rows = [_read(row) for row in found]
    if as_json:
        print_json({"store": str(store), "run_id": run, "calls": rows})
    else:
        _show(f"{len(rows)} attempts in {store}" + (f", run {run}" if run else ""), rows)


def _list(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table(title, _COLUMNS, [[_cell(row[column]) for column in _COLUMNS] for row in rows])


def _csv(rows: Sequence[Mapping[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return (
        orjson.dumps(value, default=str).decode()
        if isinstance(value, list | dict)
        else printable(value)
        if isinstance(value, str)
        else value
    )


def _read(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its JSON columns as values."""
    return {name: orjson.loads(value) if name in _JSON_COLUMNS and value else value for name, value in row.items()}


def _line(*parts: tuple[str, str]) -> None:
    """Long lines are left to the terminal, so that they can be copied."""
    console.print(Text.assemble(*((printable(text), style) for text, style in parts)), soft_wrap=True)


def _told(value: Any, style: str = "") -> None:
    if value not in (None, ""):
        _line((indent((value if isinstance(value, str) else readable(value)).rstrip(), "  "), style))


def _named(row: Mapping[str, Any], names: Iterable[str]) -> str:
    return "  ".join(f"{name} {row[name]}" for name in names if row.get(name) is not None)


def _head(row: Mapping[str, Any]) -> None:
    _line((row["episode_id"], "bold cyan"))
    _line((f"{row['task_id'] or 'unknown task'}  {row['task_type'] or ''}", "bold"))
    _line((_named(row, _ABOUT), "dim"))
    _told(row["goal"])


def _turn(step: StepView) -> None:
    call = str(ToolCall(step.call, dict(step.arguments))) if step.call else step.given or "(an action that could not be read)"
    reward = "" if not step.reward else f"  reward {step.reward:+g}"
    _line((f"\nstep {step.index}  ", "dim"), (call, ""))
    failed = step.status in CALL_FAILED or step.status == "infra_error"
    _line(
        (f"  {step.status}", "bold red" if failed else "bold green"), (reward + "".join(f"  reached {m}" for m in step.milestones), "dim")
    )
    _told(step.outcome.text)


def _step(row: Mapping[str, Any]) -> None:
    _line((f"\nstep {row['step']}", "bold"), (f"  {row['status'] or 'reset'}", ""), (f"  {row['ending'] or ''}", "bold"))
    for name in ("action", "given", "invalid_reason", "reward", "reward_parts", "milestones", "gaps", "note"):
        if row[name] not in (None, []):
            _line((f"{name} ", "dim"), (row[name] if isinstance(row[name], str) else orjson.dumps(row[name]).decode(), ""))
    _line((_named(row, (*_ALIKE, *_COSTS)), "dim"))
    _line(("\nobservation", "bold"))
    _told(row["obs_text"])


def _foot(row: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> None:
    reward = "" if row["reward_total"] is None else f"  reward {row['reward_total']:g}"
    _line((f"\n{row['outcome']}", "bold"), (f"  {row['end_reason'] or ''}{reward}  {row['n_turns']} steps", ""))
    for check in row["checks"] or ():
        _line(
            ("  passed  " if check["passed"] else "  failed  ", "green" if check["passed"] else "red"),
            (f"{check['name']}  {check['detail']}", ""),
        )
    for change in row["changes"] or ():
        before, after = (orjson.dumps(change[when]).decode() for when in ("before", "after"))
        _line((f"  changed {change['where']} {change['key']}: {before} → {after}", ""))
    _told(row["error"], "red")
    _line((_named(row, _COSTS), "dim"))
    for event in events:
        _line((f"{event['happened_at']:%Y-%m-%d %H:%M}  {event['kind']}  {event['author'] or ''}  {event['reason'] or ''}", ""))


def _show(title: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """One block an attempt, under a line for each episode."""
    _line((title, "italic"))
    for (episode_id, task_id), calls in itertools.groupby(rows, lambda row: (row["episode_id"], row["task_id"])):
        _line((f"\n{episode_id}  {task_id or 'unknown task'}", "bold cyan"))
        _calls(calls)


def _calls(rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        failed = row["status"] in CALL_FAILED
        _line((f"step {row['step']}, attempt {row['attempt']}  ", "dim"), (str(ToolCall(row["tool"], row["arguments"])), ""))
        _line((f"  {row['status']}", "bold red" if failed else "bold green"), ("".join(f"  {fact}" for fact in _facts(row)), "dim"))
        _told(row["result"] or ("" if row["structured"] is None else orjson.dumps(row["structured"]).decode()))
        _told(row["error"], "dim red")


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
