"""AsyncMaskablePPO beside MaskablePPO on SubprocVecEnv: the time to the same return with slow tools, the learning curves with quick ones.

    OMP_NUM_THREADS=1 python examples/async_against_sync.py --seeds 5

Prints a table of the one and of the other, in Markdown.
"""

import argparse
import os
import sys
from typing import Any

import numpy as np

from agent_gym.bench.training import LATENCY_S, TARGET, Training, learn, warm_start


def main() -> None:
    """Trains all, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--latency-ms", type=float, default=1000 * LATENCY_S, help="mean latency of a tool")
    parser.add_argument("--curve-steps", type=int, default=9216, help="steps of the learning curves; 0 for none")
    options = parser.parse_args()
    starts = [warm_start(seed) for seed in range(options.seeds)]
    slow: dict[str, list[Training]] = {"sync": [], "async": []}
    quick: dict[str, list[Training]] = {"sync": [], "async": []}
    for seed, start in enumerate(starts):
        for kind in ("sync", "async") if options.latency_ms else ():
            slow[kind].append(learn(kind == "async", start, seed, latency_s=options.latency_ms / 1000))
            tell(kind, seed, slow[kind][-1])
    if options.latency_ms:
        print_times(slow)
    for seed, start in enumerate(starts):
        for kind in ("sync", "async") if options.curve_steps else ():
            quick[kind].append(learn(kind == "async", start, seed, latency_s=0.0, target=2.0, most_steps=options.curve_steps))
            tell(kind, seed, quick[kind][-1])
    if options.curve_steps:
        print_curves(quick, options.curve_steps)


def tell(kind: str, seed: int, training: Training) -> None:
    """Says on stderr how a training went, and how busy the machine is."""
    times = f"collection {training.collection_s:.1f} s, in all {training.wall_s:.1f} s, load {os.getloadavg()[0]:.1f}"
    print(f"{kind} seed {seed}: reached {training.reached}, {training.steps} steps, {times}", file=sys.stderr, flush=True)


def print_times(trainings: dict[str, list[Training]]) -> None:
    """A row a seed, and the sums."""
    print(f"| seed | sync: steps to {TARGET} | collection, s | in all, s | async: steps | collection, s | in all, s |\n" + "|---" * 7 + "|")
    for seed, (sync, other) in enumerate(zip(trainings["sync"], trainings["async"], strict=True)):
        cells = [f"{training.steps} | {training.collection_s:.0f} | {training.wall_s:.0f}" for training in (sync, other)]
        print(f"| {seed} | {' | '.join(cells)} |")
    sync, other = (np.sum([training[1:4] for training in trainings[kind]], axis=0) for kind in ("sync", "async"))
    print(f"\nasync ÷ sync: collection {other[1] / sync[1]:.2f}, in all {other[2] / sync[2]:.2f}, steps {other[0] / sync[0]:.2f}")
    print(f"steps a second while collecting: sync {sync[0] / sync[1]:.0f}, async {other[0] / other[1]:.0f}\n", flush=True)


def print_curves(trainings: dict[str, list[Training]], steps: int) -> None:
    """The mean return over seeds along the way, with its standard deviation, and what remains between the two."""
    places = np.linspace(steps / 4, steps, 6)
    curves = {kind: np.array([read(training, places) for training in trainings[kind]]) for kind in trainings}
    print("| steps | " + " | ".join(f"{place:.0f}" for place in places) + " |\n" + "|---" * (len(places) + 1) + "|")
    freedom = min(1, len(trainings["sync"]) - 1)
    for kind, rows in curves.items():
        print(
            f"| {kind} | " + " | ".join(f"{m:.2f} ± {s:.2f}" for m, s in zip(rows.mean(0), rows.std(0, ddof=freedom), strict=True)) + " |"
        )
    apart = curves["async"].mean(1) - curves["sync"].mean(1)
    print(f"\nasync − sync, mean of the curve: {apart.mean():+.3f} ± {apart.std(ddof=freedom) / len(apart) ** 0.5:.3f} (standard error)")


def read(training: Training, places: Any) -> Any:
    """The return at these steps, between rollouts by a straight line."""
    known = [(steps, mean) for steps, mean in training.curve if mean == mean]
    return np.interp(places, [steps for steps, _ in known], [mean for _, mean in known])


if __name__ == "__main__":
    main()
