"""The report of ``make demo``: what was trained, how well it does beside other policies, and three episodes to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_gym.errors import ConfigurationError
from agent_gym.report.charts import Dot, Point, Row, Series, Tone, dot_chart, learning_curves
from agent_gym.report.episodes import EpisodeView
from agent_gym.report.figures import whole_percent, whole_range
from agent_gym.report.kit import render, write

__all__ = ["TRAINED", "DemoReport", "write_demo_report"]

TRAINED = "trained"
"""The name under which the trained policy's figures are found."""

_TONES: dict[str, Tone] = {TRAINED: "blue", "oracle": "green", "heuristic": "orange"}
_COUNTS = ("No episodes", "One episode", "Two episodes", "Three episodes", "Four episodes", "Five episodes")


@dataclass(frozen=True, kw_only=True)
class DemoReport:
    """All that the report shows."""

    seed: int
    """Root seed of the run."""
    wall_s: float
    """Seconds from the first demonstration to the last evaluation."""
    command: str
    """The command that makes these figures again."""
    versions: Mapping[str, str]
    """Name and version of what matters to the figures; machine and Python too."""
    demonstrations: int
    """Oracle episodes that the policy imitated before PPO."""
    with_demonstrations: tuple[Point, ...]
    """Learning curve of the trained policy; the point at 0 steps is what imitation alone gives."""
    evaluations: Mapping[str, Mapping[str, Any]]
    """By the policy's name in the report, in the order shown: what ``agent-gym eval --json`` gives. ``trained`` must be there."""
    without_demonstrations: tuple[Point, ...] = ()
    """Learning curve of the same training without demonstrations; empty if it was not run."""
    code_evaluations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The same for HumanEval; empty where it was skipped."""
    code_skipped: str = ""
    """Why HumanEval was skipped, or empty. It goes on after "Skipped because "."""
    episodes: tuple[EpisodeView, ...] = ()
    """Episodes shown step by step."""
    env_id: str = "AgentBase/ToolTask-v0"
    """The environment trained on."""
    curve_split: str = "validation"
    """The split on which the learning curves were measured."""
    title: str = "Learning to use tools: a small policy on ToolTask"
    """Heading of the page."""

    def __post_init__(self) -> None:
        if TRAINED not in self.evaluations:
            raise ConfigurationError(f"evaluations must hold {TRAINED!r}, got {sorted(self.evaluations)}")


_GROUPS = (
    ("by_task_type", "Family", "The figures behind this chart"),
    ("by_capability", "Capability", "By what the tasks take; an episode counts under each of its task's labels"),
)
"""The tables of success: by which part of an evaluation, what a row is, how it is announced."""


def write_demo_report(data: DemoReport, path: Path) -> Path:
    """Writes the report as one HTML file that needs nothing else; equal data gives equal bytes.

    Args:
        data: What it shows.
        path: Where it goes; folders are made, a file that is there is replaced.

    Returns:
        The path, absolute.

    Raises:
        MissingExtra: Matplotlib is not installed.
        OSError: The file cannot be written.
    """
    trained = data.evaluations[TRAINED]
    all_series = [
        series
        for series in (
            Series("with demonstrations, then PPO", data.with_demonstrations, "blue"),
            Series("PPO without demonstrations", data.without_demonstrations, "orange"),
        )
        if series.points
    ]
    families = sorted({family for result in data.evaluations.values() for family in result["by_task_type"]})
    page = render(
        "demo.html.j2",
        data=data,
        key=TRAINED,
        trained=trained,
        families=families,
        groups=_GROUPS,
        headline=_headline(data),
        training_steps=max((point.steps for point in data.with_demonstrations), default=None),
        all_series=all_series,
        curve_rows=_curve_rows(all_series),
        banded=any(point.low is not None for series in all_series for point in series.points),
        curves=learning_curves(all_series, title="Success rate over environment steps"),
        by_family=dot_chart([_row(family, data) for family in families], title="Success rate by family and policy") if families else None,
    )
    return write(path, page)


def _curve_rows(all_series: Sequence[Series]) -> list[tuple[int, list[Point | None]]]:
    """The curves as a table: at each number of steps the point of each curve, if it has one there."""
    curves = [{point.steps: point for point in series.points} for series in all_series]
    return [(steps, [curve.get(steps) for curve in curves]) for steps in sorted({steps for curve in curves for steps in curve})]


def _row(family: str, data: DemoReport) -> Row:
    dots = []
    for name, result in data.evaluations.items():
        figures = result["by_task_type"].get(family, {})
        dots.append(Dot(name, figures.get("success_rate"), figures.get("success_ci95"), _TONES.get(name, "grey")))
    return Row(family, dots)


def _headline(data: DemoReport) -> dict[str, str]:
    """The sentences that depend on how it went."""
    trained = data.evaluations[TRAINED]
    others = [
        f"{said} {whole_percent(data.evaluations[name]['success_rate'])}"
        for name, said in (("random", "random solves"), ("heuristic", "the heuristic"), ("oracle", "the oracle"))
        if name in data.evaluations
    ]
    return {
        "trained": "The trained policy solves",
        "others": "; " + ", ".join(others) + "." if others else ".",
        "detail": f"{_macro(trained)} {_without(data)}".strip(),
        "episodes": _COUNTS[len(data.episodes)] if len(data.episodes) < len(_COUNTS) else f"{len(data.episodes)} episodes",
        "same": ", and every policy gets the same ones" if _same_tasks(data) else "",
        "invalid": _invalid(data),
    }


def _macro(trained: Mapping[str, Any]) -> str:
    rates = {name: figures["success_rate"] for name, figures in trained["by_task_type"].items() if figures["success_rate"] is not None}
    if not rates:
        return ""
    weakest = min(rates, key=lambda name: (rates[name], name))
    return (
        f"Averaged over {len(rates)} families, each counting the same, it solves {whole_percent(trained['success_macro'])} "
        f"({whole_range(trained['success_macro_ci95'])}); its weakest family is {weakest} with {whole_percent(rates[weakest])}."
    )


def _without(data: DemoReport) -> str:
    if not data.without_demonstrations:
        return ""
    last = data.without_demonstrations[-1]
    return f"The same training without demonstrations stands at {whole_percent(last.success)} after {last.steps:,} steps."


def _same_tasks(data: DemoReport) -> bool:
    return len({(result["split"], result["seed"], result["episodes"]) for result in data.evaluations.values()}) == 1


def _invalid(data: DemoReport) -> str:
    """How many episodes are in no rate, because the environment failed."""
    results = [*data.evaluations.values(), *data.code_evaluations.values()]
    failed, played = sum(result["infra_errors"] for result in results), sum(result["episodes"] for result in results)
    rule = "An episode in which the environment itself failed (an infra error) is neither a success nor a failure: it is counted apart."
    if not failed:
        return f"{rule} There was none among the {played:,} episodes of this report."
    return f"{rule} There {'was one' if failed == 1 else f'were {failed:,}'} among the {played:,} episodes of this report."
