"""What isolation costs: runs in a warm sandbox beside runs in one of their own, and episodes a second."""

import concurrent.futures
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from agent_gym.sandbox import Sandbox, SandboxPool, preflight
from agent_gym.sandbox.jail import Place
from agent_gym.sandbox.warm import Box

__all__ = ["measure"]

_ROUNDS = 15
_EPISODES = 150
_PYTHON = "print(sum(range(10)))"
_BASH = ["bash", "-c", "echo $((1 + 1))"]


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Takes turns between what is compared, so that a busy machine is busy for all of it.

    Returns:
        ``cold_exec_ms``: a Python program by the one-shot backend, a bwrap and a Python for each; ``warm_exec_ms``: the same in a warm
        sandbox; ``cold_bare_ms``: a bwrap and a ``python3 -I -S`` alone, with no limits, filter or files; ``warm_bash_ms``;
        ``create_ms``: a new warm sandbox until it is ready; ``reset_ms``; ``warm_speedup_x`` (cold ÷ warm), ``reset_over_cold``
        and ``reset_over_create``; ``episodes_per_s``: two sandboxes, each a reset, one Python and one bash; ``idle_pss_mib``: memory of a
        sandbox that waits. Times are medians over rounds, and a ratio is the median of the rounds' own.
    """
    machine = preflight(warm=True)
    rounds: dict[str, list[float]] = {}
    with Sandbox() as cold, SandboxPool(2) as pool, pool.acquire() as warm, pool.lease() as place:
        warm.run(["true"])
        assert isinstance(place, Box)
        progress("runs and resets")
        for _ in range(_ROUNDS):
            for key, what in (
                ("cold_exec_ms", lambda: cold.run_python(_PYTHON)),
                ("cold_bare_ms", lambda: _bare(machine.bwrap)),
                ("warm_exec_ms", lambda: warm.run_python(_PYTHON)),
                ("warm_bash_ms", lambda: warm.run(_BASH)),
                ("reset_ms", lambda: _reset(place)),
            ):
                rounds.setdefault(key, []).append(_ms(what, 1 if key.startswith("cold") else 9))
            rounds.setdefault("create_ms", []).append(_create_ms())
        idle = _pss_mib(place)
        progress("episodes")
        rate = statistics.median(_episodes_per_s(pool) for _ in range(3))
    median = {key: statistics.median(values) for key, values in rounds.items()}

    def ratio(above: str, below: str) -> float:
        return statistics.median(a / b for a, b in zip(rounds[above], rounds[below], strict=True))

    return {
        **median,
        "warm_speedup_x": ratio("cold_exec_ms", "warm_exec_ms"),
        "reset_over_cold": ratio("reset_ms", "cold_exec_ms"),
        "reset_over_create": ratio("reset_ms", "create_ms"),
        "episodes_per_s": rate,
        "idle_pss_mib": idle,
    }


def _ms(what: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        what()
        taken.append(time.perf_counter() - started)
    return 1_000 * statistics.median(taken)


def _reset(box: Box) -> None:
    box.reset()
    box.wait()


def _create_ms() -> float:
    started = time.perf_counter()
    box = Box(preflight(warm=True))
    box.wait()
    taken = time.perf_counter() - started
    box.close()
    return 1_000 * taken


def _bare(bwrap: Path) -> None:
    words = (
        "--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp"
    )
    command = [str(bwrap), *words.split(), "--unshare-all", "--clearenv", "/usr/bin/python3", "-I", "-S", "-c", _PYTHON]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)


def _episodes_per_s(pool: SandboxPool) -> float:
    def episodes(sandbox: Sandbox) -> None:
        for _ in range(_EPISODES):
            sandbox.reset({"main.py": b"X = 1\n"})
            sandbox.run_python("import main; print(main.X)")
            sandbox.run(_BASH)

    with pool.acquire() as one, pool.acquire() as other, concurrent.futures.ThreadPoolExecutor(2) as threads:
        for sandbox in (one, other):
            sandbox.run(["true"])
        started = time.perf_counter()
        list(threads.map(episodes, (one, other)))
        return 2 * _EPISODES / (time.perf_counter() - started)


def _pss_mib(place: Place) -> float:
    """Memory of bwrap and all below it."""
    assert isinstance(place, Box)
    total, pids = 0, [place.pid]
    while pids:
        pid = pids.pop()
        total += sum(int(line.split()[1]) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
        pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return total / 1024
