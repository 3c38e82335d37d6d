"""Two thousand hostile episodes in a row, while zygotes, bwraps, episodes and whole host workers are killed at random."""

import multiprocessing
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox import SandboxPool
from tests.sandbox import hostile
from tests.sandbox.test_pool import footprint, until

_EPISODES = 2_000
_WORKERS = 2
# Those that take a while come up less often.
_SLOW = ("4 ", "6 ", "7 ", "9 ", "15 ", "19 stack")
_SHORT = [name for name, program in hostile.PROGRAMS.items() if program.limits is hostile.PATIENT and not name.startswith(_SLOW)]
_LONG = [name for name in hostile.PROGRAMS if name not in _SHORT]


def _work(seed: int, channel: Connection) -> None:
    """Episodes until the parent has had enough; says of each what did not hold, or ``infra`` if the sandbox died."""
    draw = np.random.default_rng(seed)
    fresh = b""
    with hostile.canary() as outside, SandboxPool(1, max_resets=100) as pool:
        while True:
            name = str(draw.choice(_LONG if draw.random() < 0.03 else _SHORT))
            program = hostile.PROGRAMS[name]
            try:
                with pool.acquire(loopback=program.loopback) as sandbox:
                    outcome = hostile.try_program(sandbox, program, outside)
                    if not program.loopback and draw.random() < 0.2:
                        seen = hostile.look(sandbox)
                        fresh = fresh or seen
                        outcome = outcome or ("" if seen == fresh else f"left a trace: {seen!r} after {fresh!r}")
            except InfrastructureError:
                outcome = "infra"
            channel.send(outcome and f"{name}: {outcome}" if outcome != "infra" else outcome)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_sandbox")
def test_thousands_of_hostile_episodes_and_random_kills_leave_nothing_and_break_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    context = multiprocessing.get_context("spawn")
    draw = np.random.default_rng(7)
    first = context.Process(target=print)
    first.start()  # starts what this process itself keeps for such children
    first.join()
    first.close()
    before, seen = footprint(), set[psutil.Process]()
    workers: dict[Connection, Any] = {}
    outcomes: list[str] = []
    kills = dict.fromkeys(("bwrap", "zygote", "episode", "worker"), 0)

    def start() -> None:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(int(draw.integers(1 << 30)), theirs), daemon=True)
        worker.start()
        theirs.close()
        workers[ours] = worker

    def end(channel: Connection) -> None:
        worker = workers.pop(channel)
        worker.join()
        worker.close()
        channel.close()

    def kill(worker: Any) -> None:
        drawn = str(draw.choice([*kills], p=[0.3, 0.35, 0.25, 0.1]))
        victim = drawn if all(kills.values()) else min(kills, key=lambda one: kills[one])  # each at least once
        try:
            line = [psutil.Process(worker.pid)]
            for _ in range(3):
                line.append(line[-1].children()[-1])
            seen.update(line[0].children(recursive=True))
            if victim == "worker":
                line[0].kill()
            else:
                line[1 + ["bwrap", "zygote", "episode"].index(victim)].kill()
            kills[victim] += 1
        except (psutil.NoSuchProcess, IndexError):
            pass  # it is between two of them

    for _ in range(_WORKERS):
        start()
    while len(outcomes) < _EPISODES:
        for channel in [one for one in wait(list(workers), timeout=120) if isinstance(one, Connection)]:
            try:
                outcomes.append(channel.recv())
            except EOFError:
                end(channel)
                start()
                continue
            if draw.random() < 0.03:
                kill(workers[channel])
    for channel, worker in list(workers.items()):
        seen.update(psutil.Process(worker.pid).children(recursive=True))
        worker.kill()
        end(channel)

    assert [outcome for outcome in outcomes if outcome not in ("", "infra")] == []
    assert outcomes.count("infra") < len(outcomes) // 10
    assert all(kills.values()), kills
    assert until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in seen))
    assert {path.name[:16] for path in tmp_path.iterdir()} <= {"agent-gym-canary"}  # those of workers that were killed
    assert footprint() == before
