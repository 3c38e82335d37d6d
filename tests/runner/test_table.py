"""The table of a pool's figures."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from agent_gym.runner.monitor import EnvStats, PoolStats
from agent_gym.runner.table import PoolTable, watch
from agent_gym.runner.usage import Alert

STATS = PoolStats(
    backend="process",
    num_envs=3,
    window_s=30.0,
    throughput_per_s=1234.5,
    fraction_of_bound=0.934,
    step_p50_s=0.03,
    step_p95_s=0.15,
    step_p99_s=0.31,
    overhead_p50_s=0.00008,
    learner_wait_p50_s=0.002,
    steps=98765,
    episodes=432,
    faults=2,
    restarts=1,
    late_answers=1,
    outstanding=3,
    arrived=0,
    learner_wait_s=12.0,
    states={"busy": 2, "restarting": 1},
    retired=[],
    tasks={"waiting": 5, "running": 2, "done": 7, "quarantined": 0},
    envs=[
        EnvStats(0, "busy", 50, 0, 2.0, 80.0, 20, 1),
        EnvStats(1, "busy", 40, 0, 2.0, 90.0, 400, 1),
        EnvStats(2, "restarting", 8, 2),
    ],
    alerts=[Alert(1, "fds", 400.0, 12.0, "env 1 keeps growing: 400 open files, +12 a minute")],
)


def shown(table: PoolTable) -> list[str]:
    console = Console(file=io.StringIO(), width=120)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_the_table_tells_the_figures_and_names_what_grows() -> None:
    assert shown(PoolTable(STATS)) == [
        "steps 98,765, 1,234.5 a second, 93% of the bound",
        "step p50 30 ms, p95 150 ms, p99 310 ms",
        "waits learner 2 ms, runner 0.08 ms (p50); 3 outstanding, 0 arrived",
        "envs 3 by process: 2 busy, 1 restarting",
        "tasks 5 waiting, 2 running, 7 done",
        "episodes 432",
        "faults 2 faults, 1 restarts, 1 late answers",
        "env 1 keeps growing: 400 open files, +12 a minute",
        "env state steps faults CPU s MiB files processes",
        "1 busy 40 0 2 90 400 1",
        "2 restarting 8 2 – – – –",
        "0 busy 50 0 2 80 20 1",
    ]


def test_of_many_envs_it_shows_those_that_matter() -> None:
    many = [EnvStats(slot, "busy", 1, int(slot == 150)) for slot in range(200)]
    lines = shown(PoolTable(replace(STATS, envs=many, alerts=[], remark="threads share one process"), rows=3))
    assert [line.split()[0] for line in lines[-5:-1]] == ["150", "0", "1", "…"]
    assert lines[-2].startswith("… 197 more")
    assert lines[-1] == "threads share one process"


class Pool:
    def __init__(self) -> None:
        self.asked = 0

    def stats(self) -> PoolStats:
        self.asked += 1
        return STATS


@pytest.mark.parametrize("terminal", [True, False])
def test_watch_shows_it_live_on_a_terminal_and_is_silent_elsewhere(terminal: bool) -> None:
    pool, file = Pool(), io.StringIO()
    with watch(pool, console=Console(file=file, width=120, force_terminal=terminal)):
        pass
    assert ("98,765" in file.getvalue()) is terminal
    assert (pool.asked > 0) is terminal


def test_watch_lets_errors_through() -> None:
    with pytest.raises(KeyError), watch(Pool(), console=Console(file=io.StringIO(), force_terminal=True)):
        raise KeyError
