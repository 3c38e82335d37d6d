"""``agent-gym eval POLICY ENV_ID``."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium
import typer

from agent_gym.cli.output import (
    FaultsOption,
    JsonOption,
    RetriesOption,
    SeedOption,
    SetOption,
    StoreOption,
    bar,
    console,
    parse_settings,
    print_json,
    table,
    tell_skipped,
)
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.evaluation import evaluate as run_evaluation
from agent_gym.evaluation import frozen, robustness
from agent_gym.evaluation.protocols import PROTOCOLS
from agent_gym.policies import load

__all__ = ["evaluate", "summary_rows"]


def evaluate(
    policy: Annotated[str, typer.Argument(help="A policy's name (random, heuristic, oracle, …), a saved model, or an import string.")],
    env_id: Annotated[str, typer.Argument(help="An environment's id, such as AgentBase/ToolTask-v0.")],
    split: Annotated[str, typer.Option(help="The split.")] = "test",
    episodes: Annotated[int | None, typer.Option(help="How many episodes; 200, or every task of --tasks once.", min=1)] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Families or task ids, with commas between, or a file of them; or one of frozen tasks.")
    ] = None,
    seed: SeedOption = 0,
    faults: FaultsOption = None,
    retries: RetriesOption = None,
    settings: SetOption = None,
    perturb: Annotated[
        str | None, typer.Option(help="Measure again on the same tasks, perturbed: wording, interface, state, with commas between.")
    ] = None,
    strength: Annotated[Literal["mild", "strong"], typer.Option(help="How much is perturbed.")] = "mild",
    protocol: Annotated[
        str | None, typer.Option(help=f"As others measure: {', '.join(PROTOCOLS)}. --episodes and --tasks then mean those of each family.")
    ] = None,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Measure a policy, with intervals, by family and by what the tasks take."""
    keywords = parse_settings(settings, faults=faults, retries=retries)
    agreed = None if protocol is None else PROTOCOLS.get(protocol)
    if protocol is not None and agreed is None:
        raise unknown("protocol", protocol, PROTOCOLS)
    if agreed is not None:
        if env_id.rpartition(":")[2] != agreed.env_id:
            raise ConfigurationError(f"the protocol {protocol!r} is for {agreed.env_id}, not for {env_id}")
        keywords = {**agreed.keywords, **keywords}
    keywords = frozen.settings(frozen.read(tasks), env_id, keywords)
    made = gymnasium.make(env_id, interface="text", disable_env_checker=True, **{"split": split, **keywords})
    try:
        tell_skipped(made.get_wrapper_attr("tasks").skipped)
        measure: Callable[..., dict[str, Any]] = run_evaluation
        if perturb is not None:
            measure = partial(robustness, kinds=[kind.strip() for kind in perturb.split(",")], strength=strength)
        wanted: str | list[str] | None = tasks
        if agreed is not None:
            families = None if tasks is None else [name.strip() for name in tasks.split(",")]
            wanted = agreed.task_ids(made.get_wrapper_attr("tasks"), split, families or keywords.get("families"), episodes)
        with bar(f"{policy} on {env_id}") as progress:
            result = measure(
                load(policy, made, seed=seed),
                env_id,
                episodes=episodes if agreed is None else None,
                split=split,
                seed=seed,
                tasks=wanted,
                env_kwargs=keywords,
                store=store,
                progress=progress,
            )
    finally:
        made.close()
    if as_json:
        print_json(result)
        return
    table(f"{result['policy']} on {env_id}, {result['split']} split, seed {seed}", _COLUMNS, summary_rows(result))
    if result["by_capability"]:
        rows = [_row(*part) for part in result["by_capability"].items()]
        table("by what the tasks take (each counts under all of its labels)", ["capability", *_COLUMNS[1:]], rows)
    if any(_troubles(result)):
        kinds = [name.replace("_", " ") for name in result["retry_safety"]]
        parts = {**result["by_task_type"], "all": result}.items()
        rows = [[name, *("–" if figure is None else figure for figure in _troubles(part))] for name, part in parts]
        table("failures, and how they were dealt with, per episode", ["task type", "faults", "retries", *kinds], rows)
    if "robustness" in result:
        measured = {"plain": {**result, "drop": None, "drop_ci95": None, "ratio": None}, **result["robustness"]}
        rows = [[kind, *_figures(part, "success_rate", "drop", "drop_ci95", "ratio")] for kind, part in measured.items()]
        table(f"the same tasks, perturbed ({strength})", ["perturbed", "success", "drop", "95 % interval", "ratio"], rows)
    if result["success_macro_ci95"] is not None:
        low, high = result["success_macro_ci95"]
        told = f"mean over families {result['success_macro']:.3f} (95 % interval {low:.3f} to {high:.3f}); recorded in {store}"
        console.print(told, soft_wrap=True)


_COLUMNS = ["task type", "episodes", "success", "95 % interval", "turns", "invalid actions", "tool calls ok", "infra errors"]


def summary_rows(result: dict[str, Any]) -> list[list[Any]]:
    """The rows of a table: every family, then all."""
    return [_row(name, part) for name, part in {**result["by_task_type"], "all": result}.items()]


def _figures(part: dict[str, Any], *keys: str) -> list[Any]:
    """Figures as cells of a table."""
    shown = ["–" if part[key] is None else part[key] for key in keys]
    return [f"{cell[0]:.3f} to {cell[1]:.3f}" if isinstance(cell, list) else cell for cell in shown]


def _troubles(part: dict[str, Any]) -> list[float | None]:
    return [part["faults_mean"], part["retries_mean"], *part["retry_safety"].values()]


def _row(name: str, part: dict[str, Any]) -> list[Any]:
    interval = part["success_ci95"]
    figures = [
        part["success_rate"],
        interval and f"{interval[0]:.3f}–{interval[1]:.3f}",
        part["turns_mean"],
        part["invalid_action_rate"],
        part["tool_success_rate"],
    ]
    shown = ["–" if figure is None else figure for figure in figures]
    return [name, part["episodes"], *shown, part["infra_errors"]]
