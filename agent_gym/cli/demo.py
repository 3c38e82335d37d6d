"""``agent-gym demo``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.cli.output import JsonOption, SeedOption, StoreOption, console, print_json, progress_console, table

__all__ = ["demo"]


def demo(
    folder: Annotated[Path, typer.Option(help="Where models, logs and the report go.")] = Path("runs/demo"),
    seed: SeedOption = 0,
    steps: Annotated[int, typer.Option(help="PPO's environment steps after the demonstrations.", min=1)] = 30_000,
    episodes: Annotated[int, typer.Option(help="Test episodes of each policy.", min=1)] = 600,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Train a policy on tool tasks, measure it beside others, and write a report: some minutes on two cores."""
    from agent_gym.report.demo import run_demo  # matplotlib and others are loaded for this command alone

    def say(command: str) -> None:
        progress_console.print(f"[dim]$[/] {command}", highlight=False, soft_wrap=True)

    result = run_demo(folder, store=store, seed=seed, steps=steps, episodes=episodes, say=say)
    if as_json:
        shown = {"report": str(result.report), "store": str(result.store), "seconds": result.seconds, "code_skipped": result.code_skipped}
        print_json({**shown, "evaluations": result.evaluations, "code_evaluations": result.code_evaluations})
        return
    rows = [[name, "ToolTask", *_figures(found)] for name, found in result.evaluations.items()]
    rows += [[name, "CodeTask, HumanEval", *_figures(found)] for name, found in result.code_evaluations.items()]
    table(
        f"test split, seed {seed}, {result.seconds:.0f} s in all",
        ["policy", "tasks", "episodes", "mean of families", "95 % interval"],
        rows,
    )
    if result.code_skipped:
        console.print(f"HumanEval was skipped: {result.code_skipped}", soft_wrap=True)
    console.print(f"episodes: agent-gym episodes list --store {result.store}", soft_wrap=True)
    console.print(f"report:   {result.report}", soft_wrap=True)


def _figures(found: Mapping[str, Any]) -> list[Any]:
    interval = found["success_macro_ci95"]
    return [found["episodes"], found["success_macro"], "–" if interval is None else f"{interval[0]:.3f}–{interval[1]:.3f}"]
