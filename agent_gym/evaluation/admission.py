"""Admission: which families of tasks may be trained on and measured with, decided by what scripted policies score.

A family that doing nothing, trying everything or always refusing can solve rewards the wrong thing; one that its oracle cannot
solve is broken; one that random play or the heuristic solves teaches nothing.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium

from agent_gym.core.task import TaskSet
from agent_gym.evaluation.evaluate import evaluate
from agent_gym.policies import load

__all__ = ["BOUNDS", "AdmissionRow", "admit"]

BOUNDS: dict[str, tuple[float, float]] = {
    "oracle": (1.0, 1.0),
    "noop": (0.0, 0.0),
    "spam": (0.0, 0.0),
    "refuse-always": (0.0, 0.0),
    "random": (0.0, 0.05),
    "heuristic": (0.0, 0.8),
}
"""Lowest and highest success rate that each policy may have on a family. Refusing at once earns nothing even where refusing is right:
the record that shows why was not read."""


@dataclass(frozen=True)
class AdmissionRow:
    """What was found of one family.

    Attributes:
        family: ``world/family``.
        scores: Success rate by policy; None where the policy does not apply.
        faults: What is out of bounds, in words; empty if the family is admitted.
    """

    family: str
    scores: Mapping[str, float | None]
    faults: tuple[str, ...]


def admit(
    env_id: str,
    *,
    split: str = "train",
    seeds: int = 5,
    episodes: int = 20,
    env_kwargs: Mapping[str, Any] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[AdmissionRow]:
    """Plays every scripted policy on every family of a split.

    Args:
        env_id: The environment.
        split: The split whose families are looked at.
        seeds: Evaluations with different seeds, pooled.
        episodes: Episodes of each policy and seed, for each family on average.
        env_kwargs: Keywords of the environment.
        progress: Is told the policy, and how many of its episodes are done.

    Returns:
        A row for every family.
    """
    keywords = {"split": split, **(env_kwargs or {})}
    env = gymnasium.make(env_id, interface="text", disable_env_checker=True, **keywords)
    try:
        tasks: TaskSet = env.get_wrapper_attr("tasks")
        families = list(tasks.select(split, keywords.get("families")).by_family)
        exempt = any(tasks.get(tasks.ids(split, family)[0]).oracle_kind == "none" for family in families)
        scores: dict[str, dict[str, float | None]] = {family: dict.fromkeys(BOUNDS) for family in families}
        for name in BOUNDS:
            if name == "oracle" and exempt:
                continue
            results = [
                evaluate(
                    load(name, env, seed=seed),
                    env_id,
                    split=split,
                    seed=seed,
                    episodes=episodes * len(families),
                    env_kwargs=keywords,
                    progress=functools.partial(progress, name) if progress is not None else None,
                )
                for seed in range(seeds)
            ]
            for family in families:
                scores[family][name] = _pooled([result["by_task_type"][family] for result in results if family in result["by_task_type"]])
    finally:
        env.close()
    return [AdmissionRow(family, scores[family], _faults(scores[family])) for family in families]


def _pooled(parts: Sequence[Mapping[str, Any]]) -> float | None:
    """The success rate over several evaluations."""
    known = [(part["success_rate"], part["episodes"] - part["infra_errors"]) for part in parts if part["success_rate"] is not None]
    total = sum(count for _, count in known)
    return sum(rate * count for rate, count in known) / total if total else None


def _faults(scores: Mapping[str, float | None]) -> tuple[str, ...]:
    faults = []
    for name, (low, high) in BOUNDS.items():
        score = scores[name]
        if score is not None and not low <= score <= high:
            faults.append(f"{name} scores {score:.2f}, " + (f"at least {low:g} is wanted" if score < low else f"at most {high:g} may be"))
    return tuple(faults)
