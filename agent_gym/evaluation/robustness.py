"""How well a policy holds out: the same tasks and seeds, plain and perturbed, and what it loses by that."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agent_gym.core.perturbation import KINDS, Perturbation
from agent_gym.core.policy import Policy
from agent_gym.errors import unknown
from agent_gym.evaluation.evaluate import evaluate, open_run
from agent_gym.evaluation.intervals import bootstrap_paired
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["robustness"]

Row = Mapping[str, Any]


def robustness(
    policy: Policy,
    env_id: str,
    kinds: Sequence[str],
    strength: str = "mild",
    *,
    seed: int = 0,
    store: str | Path | TrajectoryStore | None = None,
    progress: Callable[[int, int], None] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Measures a policy as `evaluate` does, and again under each kind of perturbation, on the same tasks and seeds.

    Args:
        policy: Who acts.
        env_id: Gymnasium id.
        kinds: Of `agent_gym.core.perturbation.KINDS`.
        strength: ``mild`` or ``strong``.
        seed: As for `evaluate`; the perturbations' seeds follow from it.
        store: Where the episodes are kept, a run a measurement. Without it they are forgotten.
        progress: Called with the number of episodes done and of all, of every measurement, after each.
        **arguments: Further ones of `evaluate`: ``episodes``, ``split``, ``tasks``, ``env_kwargs``, ``batch``.

    Returns:
        What `evaluate` does, of the plain episodes, and ``robustness``: by kind ``strength``, ``episodes``, ``success_rate`` and
        ``success_ci95`` of the perturbed episodes, ``infra_errors``; ``drop`` (plain minus perturbed, of the mean success of the
        tasks that ended both ways) and ``drop_ci95`` (by a bootstrap over tasks, each with itself), and ``ratio``, their quotient,
        1 at most. What cannot be computed is None.

    Raises:
        ConfigurationError: There is no such kind or strength, or as for `evaluate`.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("kind of perturbation", kind, KINDS)
    perturbations = [Perturbation(**{kind: True}, strength=strength, seed=seed) for kind in kinds]

    def measure(number: int, perturbation: Perturbation | None, stack: ExitStack) -> tuple[dict[str, Any], list[Row]]:
        run = open_run(store, stack, policy, env_id, seed)
        told = None if progress is None else lambda done, of: progress(number * of + done, (1 + len(perturbations)) * of)
        result = evaluate(policy, env_id, seed=seed, store=run, perturbation=perturbation, progress=told, **arguments)
        return result, list(TrajectoryStore(run.path).episodes(run_id=run.run_id))

    with ExitStack() as stack:
        result, plain = measure(0, None, stack)
        found = {}
        for number, (kind, perturbation) in enumerate(zip(kinds, perturbations, strict=True), 1):
            figures, rows = measure(number, perturbation, stack)
            kept = {key: figures[key] for key in ("episodes", "success_rate", "success_ci95", "infra_errors")}
            found[kind] = {"strength": strength, **kept, **_compared(plain, rows, seed)}
    return {**result, "robustness": found}


def _compared(plain: Sequence[Row], perturbed: Sequence[Row], seed: int) -> dict[str, Any]:
    before, after = _by_task(plain), _by_task(perturbed)
    both = [task for task in before if task in after]
    if not both:
        return {"drop": None, "drop_ci95": None, "ratio": None}
    lost = [before[task] - after[task] for task in both]
    base, left = (sum(of[task] for task in both) / len(both) for of in (before, after))
    interval = bootstrap_paired(lost, seed=seed)
    return {"drop": base - left, "drop_ci95": list(interval), "ratio": min(1.0, left / base) if base else None}


def _by_task(rows: Sequence[Row]) -> dict[str, float]:
    """The mean success of each task."""
    ends: dict[str, list[bool]] = {}
    for row in rows:
        if row["success"] is not None and row["outcome"] != "infra_error":
            ends.setdefault(row["task_id"], []).append(row["success"])
    return {task: sum(ended) / len(ended) for task, ended in ends.items()}
