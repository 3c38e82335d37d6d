"""What environments use, and which keep growing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from agent_gym.core.seeding import derive
from agent_gym.runner.messages import Usage
from agent_gym.runner.usage import Growth, measure

# Does as it is told, line by line, and says when it has done it.
CHILD = """
import os, subprocess, sys
held = []
print("up", flush=True)
for line in sys.stdin:
    exec(line)
    print("did", flush=True)
"""
START = "held.append(subprocess.Popen(['cat'], stdin=subprocess.PIPE, start_new_session={}))"
LEAVE_BEHIND = "subprocess.run(['sh', '-c', 'sleep 60 > /dev/null 2>&1 &'])"


@contextmanager
def child() -> Iterator[tuple[int, Callable[[str], None]]]:
    """A process that leads a session of its own; gives its id, and what tells it to do something and waits until it has."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"

    def do(line: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        assert process.stdout.readline() == "did\n"

    try:
        yield process.pid, do
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)


def usage(fds: float = 20, memory_mib: float = 100.0, processes: int = 1, pid: int = 7) -> Usage:
    return Usage(pid=pid, cpu_s=0.0, memory_mib=memory_mib, fds=round(fds), processes=processes)


def alerts(samples: list[Usage], every_s: float = 5.0) -> list[tuple[int, str]]:
    growth = Growth()
    for number, sample in enumerate(samples):
        growth.add(number * every_s, {3: sample, 4: usage()})
    return [(alert.env_id, alert.what) for alert in growth.alerts()]


def test_a_real_process_that_leaks_files_is_named_and_one_that_closes_them_is_not() -> None:
    growth = Growth()
    with child() as (leaking, leak), child() as (healthy, work):
        for second in range(15):
            leak("held.append(os.open(os.devnull, os.O_RDONLY))")
            work("[os.close(os.open(os.devnull, os.O_RDONLY)) for _ in range(20)]")
            found = measure([leaking, healthy])
            growth.add(float(second), {0: found[healthy], 1: found[leaking]})
    (alert,) = growth.alerts()
    assert (alert.env_id, alert.what) == (1, "fds")
    assert alert.per_minute == pytest.approx(60.0)
    assert alert.text == f"env 1 keeps growing: {alert.now:.0f} open files, +60 a minute"


def test_what_a_process_started_counts_too_even_in_another_session() -> None:
    with child() as (pid, do):
        alone = measure([pid])[pid]
        do(START.format(False))
        do(START.format(True))
        three = measure([pid])[pid]
        do("[(one.stdin.close(), one.wait()) for one in held]")
        again = measure([pid])[pid]
    assert [one.processes for one in (alone, three, again)] == [1, 3, 1]
    assert three.memory_mib > alone.memory_mib > 1.0
    assert three.fds > alone.fds
    assert again.cpu_s >= three.cpu_s >= alone.cpu_s > 0.0  # also what ended processes used


def test_an_orphan_counts_as_long_as_it_is_in_the_session() -> None:
    with child() as (pid, do):
        do(LEAVE_BEHIND)
        assert measure([pid])[pid].processes == 2


def test_a_process_that_has_gone_is_left_out() -> None:
    with child() as (pid, _):
        pass
    assert measure([pid]) == {}
    assert measure([]) == {}


def test_steady_growth_is_an_alert_however_noisy() -> None:
    rng = derive("noise")
    assert alerts([usage(fds=20 + 2 * number + rng.normal()) for number in range(30)]) == [(3, "fds")]
    assert alerts([usage(memory_mib=100 + 10 * number + 5 * rng.normal()) for number in range(30)]) == [(3, "memory_mib")]
    assert alerts([usage(processes=1 + number // 2) for number in range(30)]) == [(3, "processes")]


@pytest.mark.parametrize(
    "fds",
    [
        [20.0] * 60,
        [20.0 + 40 * (number % 2) for number in range(60)],  # opens and closes
        [20.0 + 8 * (number % 10) for number in range(60)],  # grows through an episode, and is clean after it
        [20.0 + 40 * (number > 30) for number in range(60)],  # has come to need more, once
        [20.0 + 4 * min(number, 15) for number in range(60)],  # warms up
        [20.0 + number / 10 for number in range(60)],  # too little in the window
        [20.0 - number / 4 for number in range(60)],  # shrinks
    ],
)
def test_ups_and_downs_warm_ups_and_little_are_none(fds: list[float]) -> None:
    assert alerts([usage(fds=value) for value in fds]) == []
    assert alerts([usage(memory_mib=8 * value) for value in fds]) == []


def test_a_few_samples_say_nothing() -> None:
    assert alerts([usage(fds=20 * number) for number in range(9)]) == []


def test_a_new_worker_starts_anew_and_a_slot_without_one_is_forgotten() -> None:
    assert alerts([usage(fds=20 + 2 * number, pid=number // 8) for number in range(60)]) == []
    growth = Growth()
    for number in range(20):
        growth.add(number, {3: usage(fds=20 + 2 * number)})
    assert growth.alerts()
    growth.add(20.0, {})
    assert not growth.alerts()
