"""``agent-gym tasks list | show | count``."""

from typing import Annotated

import gymnasium
import typer

from agent_gym.cli.output import JsonOption, SetOption, console, parse_settings, print_json, table
from agent_gym.core.canonical import pretty
from agent_gym.core.task import TaskSet

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
        print_json({"tasks": [{"id": t.id, "type": t.type, "difficulty": t.difficulty, "goal": t.goal} for t in found]})
    else:
        table(f"{env_id}, {split}", ["id", "goal"], [[t.id, t.goal.splitlines()[0][:100]] for t in found])


@app.command()
def show(env_id: EnvArgument, task_id: Annotated[str, typer.Argument(help="The task's id.")], settings: SetOption = None) -> None:
    """Show all about a task, also what only its grader knows."""
    task = _tasks(env_id, settings).get(task_id)
    shown = {name: getattr(task, name) for name in task.__dataclass_fields__}
    console.print_json(pretty({**shown, "capabilities": list(task.capabilities), "doors": list(task.doors), "spec": dict(task.spec)}))


@app.command()
def count(env_id: EnvArgument, settings: SetOption = None, as_json: JsonOption = False) -> None:
    """Count the tasks of each split and family."""
    tasks = _tasks(env_id, settings)
    counts = {split: {family: len(tasks.ids(split, family)) for family in tasks.families(split)} for split in tasks.splits()}
    if as_json:
        print_json(counts)
    else:
        table(env_id, ["split", "family", "tasks"], [[split, family, n] for split, by in counts.items() for family, n in by.items()])


def _tasks(env_id: str, settings: list[str] | None) -> TaskSet:
    env = gymnasium.make(env_id, interface="text", disable_env_checker=True, **parse_settings(settings))
    tasks: TaskSet = env.get_wrapper_attr("tasks")
    env.close()
    return tasks
