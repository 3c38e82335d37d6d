"""``agent-gym tasks list | show | count | explain | from-episode``."""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import orjson
import typer
from rich.text import Text

from agent_gym.cli.output import JsonOption, SetOption, StoreOption, bar, console, parse_settings, print_json, table, tell_skipped
from agent_gym.core.canonical import pretty
from agent_gym.core.task import TaskSet
from agent_gym.errors import StoreError
from agent_gym.evaluation import frozen
from agent_gym.evaluation.admission import admit
from agent_gym.evaluation.explain import explain
from agent_gym.play.screen import printable
from agent_gym.trajectories import TrajectoryStore

__all__ = ["app"]

app = typer.Typer(help="Look at tasks.", no_args_is_help=True)

EnvArgument = Annotated[str, typer.Argument(help="An environment's id, such as AgentBase/ToolTask-v0.")]


@app.command("list")
def list_tasks(
    env_id: EnvArgument,
    split: Annotated[str, typer.Option(help="The split.")] = "test",
    family: Annotated[str | None, typer.Option(help="Only this family.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many of each family.", min=1)] = 10,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List tasks with their goals."""
    tasks = _tasks(env_id, settings)
    chosen = tasks.select(split, [family] if family else None)
    found = [tasks.get(task_id) for ids in chosen.by_family.values() for task_id in ids[:limit]]
    if as_json:
        listed = [{"id": t.id, "type": t.type, "difficulty": t.difficulty, "goal": t.goal} for t in found]
        print_json({"tasks": listed, **({"skipped": list(tasks.skipped)} if tasks.skipped else {})})
    else:
        table(f"{env_id}, {split}", ["id", "goal"], [[t.id, t.goal.splitlines()[0][:100]] for t in found])


@app.command()
def show(env_id: EnvArgument, task_id: Annotated[str, typer.Argument(help="The task's id.")], settings: SetOption = None) -> None:
    """Show all about a task, also what only its grader knows."""
    task = _tasks(env_id, settings).get(task_id)
    shown = {name: getattr(task, name) for name in task.__dataclass_fields__}
    console.print_json(pretty({**shown, "capabilities": list(task.capabilities), "doors": list(task.doors), "spec": dict(task.spec)}))


@app.command()
def count(
    env_id: EnvArgument,
    ways: Annotated[bool, typer.Option("--ways", help="Also by how many sequences of tools the oracle solves 40 of each.")] = False,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the tasks of each split and family, and the ways to solve them."""
    tasks = _tasks(env_id, settings)
    counts: dict[str, dict[str, Any]] = {
        split: {family: len(tasks.ids(split, family)) for family in tasks.families(split)} for split in tasks.splits()
    }
    if ways:
        keywords, workers = parse_settings(settings), len(os.sched_getaffinity(0))
        for split in counts:
            with bar(f"solving tasks of {split}") as progress:
                solved = admit(env_id, split=split, seeds=1, policies=["oracle"], env_kwargs=keywords, workers=workers, progress=progress)
            counts[split] = {row.family: {"tasks": counts[split][row.family], "ways": row.ways, "steps": row.steps} for row in solved}
    if as_json:
        print_json(counts)
        return
    rows = [[split, family, *_cells(n)] for split, by in counts.items() for family, n in by.items()]
    table(env_id, ["split", "family", "tasks", *(["ways", "steps"] if ways else [])], rows)


def _cells(counted: int | Mapping[str, Any]) -> list[Any]:
    return [counted] if isinstance(counted, int) else ["–" if figure is None else figure for figure in counted.values()]


@app.command("explain")
def explain_episode(
    episode: Annotated[str | None, typer.Argument(metavar="EPISODE", help="The episode's id; by default the newest.")] = None,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Say why a recorded episode counted as it did: which check failed on which row, what was wanted there and what was found."""
    kept = TrajectoryStore(store)
    if episode is None:
        if not (newest := kept.episodes(1)):
            raise StoreError(f"no episodes in {store}")
        episode = str(newest[0]["episode_id"])
    found = explain(kept.episode(episode))
    if as_json:
        print_json({"store": str(store), **found})
        return
    _line((f"{found['episode_id']}  {found['task_id'] or 'unknown task'}", "bold cyan"))
    _line((f"  {found['goal'] or ''}", ""))
    _line((found["outcome"], "bold"), (f"  {found['end_reason'] or ''}", ""))
    for check in found["checks"]:
        passed = check["passed"]
        told = "" if check["rows"] else check["detail"]
        _line(("  passed  " if passed else "  failed  ", "green" if passed else "red"), (f"{check['name']}  {told}", ""))
        for row in check["rows"]:
            place = f"{row['table']} " + ", ".join(f"{name}={_json(value)}" for name, value in row["row"].items())
            column = "" if row["column"] is None else f": {row['column']}"
            _line((f"          {place}{column}  expected {_json(row['expected'])}, found {_json(row['found'])}", ""))
    if found["note"]:
        _line((found["note"], "dim"))


@app.command("from-episode")
def from_episode(
    episode: Annotated[str, typer.Argument(metavar="ID", help="The id of an episode that failed.")],
    out: Annotated[Path | None, typer.Option(help="The file of frozen tasks to add it to; by default it is printed.")] = None,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Make a recorded failure a regression task, which begins again exactly as it did: agent-gym eval POLICY ENV --tasks FILE."""
    task = frozen.freeze(TrajectoryStore(store), episode)
    added = out is not None and frozen.add(task, out)
    if as_json:
        print_json({"store": str(store), "out": None if out is None else str(out), "added": added, "task": asdict(task)})
    elif out is None:
        sys.stdout.buffer.write(orjson.dumps(asdict(task), option=orjson.OPT_APPEND_NEWLINE))
    else:
        _line((f"{task.env_id} {task.task_id}", "bold cyan"), ("" if added else f"  is in {out} already", "yellow"))
        _line((f"  {task.goal}", ""))
        for check in task.failed["checks"] or [{"name": task.failed["end_reason"], "detail": ""}]:
            _line(("  failed  ", "red"), (f"{check['name']}  {check['detail']}", ""))
        _line((f"agent-gym eval POLICY {task.env_id} --tasks {out}", "dim"))


def _json(value: Any) -> str:
    return "nothing" if value is None else orjson.dumps(value).decode()


def _line(*parts: tuple[str, str]) -> None:
    console.print(Text.assemble(*((printable(text), style) for text, style in parts)), soft_wrap=True)


def _tasks(env_id: str, settings: list[str] | None) -> TaskSet:
    env = gymnasium.make(env_id, interface="text", disable_env_checker=True, **parse_settings(settings))
    tasks: TaskSet = env.get_wrapper_attr("tasks")
    env.close()
    tell_skipped(tasks.skipped)
    return tasks
