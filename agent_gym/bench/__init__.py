"""Speed, measured: each benchmark gives ``{"bench", "machine", "metrics"}``, and a ratio in it is taken within one run."""

import importlib
import os
import platform
from collections.abc import Callable
from typing import Any

from agent_gym.errors import ConfigurationError, unknown

__all__ = ["BENCHES", "run_bench"]

BENCHES = {
    name: f"agent_gym.bench.{name}" for name in ("code", "gateway", "runner", "sandbox", "store", "tools", "training", "web", "wrappers")
}
"""Benchmarks by name; each module has ``measure(progress) -> dict`` of metrics."""


def run_bench(name: str, progress: Callable[[str], None] = lambda _: None, against: str | None = None) -> dict[str, Any]:
    """Runs one benchmark.

    Args:
        name: One of `BENCHES`.
        progress: Is told what is being measured.
        against: Another library to measure beside ours, as `agent_gym.bench.against` takes it; only ``web`` has one.

    Raises:
        ConfigurationError: There is none of that name, or it is measured against nobody.
    """
    if name not in BENCHES:
        raise unknown("benchmark", name, BENCHES)
    if against is not None and name != "web":
        raise ConfigurationError(f"the benchmark {name!r} is measured against nobody; 'web' is")
    metrics = importlib.import_module(BENCHES[name]).measure(progress, *(() if against is None else (against,)))
    return {"bench": name, "machine": _machine(), "metrics": metrics}


def _machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
