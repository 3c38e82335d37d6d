"""What the machine, the user's script or an environment's author may do to a pool of processes without bringing it down."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium.spaces import Box, Discrete

from agent_gym.runner import AsyncPool, Row
from agent_gym.runner.backends.process import ProcessBackend
from agent_gym.runner.messages import Answer, Ask
from agent_gym.runner.worker import Factory

SIGNAL, NO_FOLDER, FORK, CHILD, HANG, LARGE = range(1, 7)


class Unlucky(gymnasium.Env[Any, Any]):
    """What happens to it is its action."""

    def __init__(self) -> None:
        self.observation_space = Box(0.0, 1.0, (1,), np.float64)
        self.action_space = Discrete(7)
        self.drawn = float(np.random.random())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1), {"options": options}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        info: dict[str, Any] = {"pid": os.getpid(), "action": action}
        if action == SIGNAL:
            os.kill(os.getpid(), signal.SIGRTMIN + 6)
        elif action == NO_FOLDER:  # its successor's temporary folder cannot be made
            folder = Path(os.environ["TMPDIR"]).parent
            shutil.rmtree(folder)
            folder.write_text("")
            os._exit(3)
        elif action == FORK:
            os.fork()
            info["pid"] = os.getpid()
        elif action == CHILD:
            info["child"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True).pid
        elif action == HANG:
            time.sleep(600)
        elif action == LARGE:
            info["large"] = b"x" * 20_000_000
        return np.zeros(1), 1.0, False, False, info


def started(num_envs: int = 2, **keywords: Any) -> AsyncPool:
    pool = AsyncPool(Unlucky, num_envs, backend="process", **keywords)
    pool.async_reset()
    assert [row.fault for row in pool.recv(num_envs)] == [""] * num_envs
    return pool


def step(pool: AsyncPool, actions: list[Any]) -> list[Row]:
    """The rows by slot."""
    pool.send(actions, range(len(actions)))
    rows: list[Row] = []
    while len(rows) < len(actions):
        rows += pool.recv(timeout=30)
    return sorted(rows, key=lambda row: row.env_id)


def test_a_death_by_any_signal_and_a_full_disk_are_one_slots_matter() -> None:
    with started(3, max_restarts=2) as pool:
        pid = step(pool, [0, 0, 0])[2].info["pid"]
        rows = step(pool, [SIGNAL, NO_FOLDER, 0])
        assert "was killed by signal" in rows[0].fault
        assert "exited with code 3" in rows[1].fault
        pool.async_reset([0, 1])
        reset = {row.env_id: row for _ in range(2) for row in pool.recv(timeout=30)}
        assert reset[0].fault == ""
        assert "could not be started" in reset[1].fault
        pool.send([0], [2])
        assert pool.recv().rows[0].info["pid"] == pid


def test_unseeded_workers_draw_differently() -> None:
    with started(3) as pool:
        assert len(set(pool.call("drawn"))) == 3


def test_the_child_of_an_environment_that_forks_itself_answers_nothing() -> None:
    with started(1) as pool:
        (row,) = step(pool, [FORK])
        pids = {step(pool, [0])[0].info["pid"] for _ in range(5)} | {row.info["pid"]}
        assert len(pids) == 1
        assert pool.counters.late_answers == 0


def test_options_that_cannot_be_pickled_cost_nobody_elses_row() -> None:
    with AsyncPool(Unlucky, 3, backend="process") as pool:
        pool.async_reset(options=[{}, {"lock": threading.Lock()}, {}])
        rows = {row.env_id: row.fault for row in pool.recv(3)}
        assert rows[0] == rows[2] == ""
        assert "can only be given what can be pickled" in rows[1]
        assert pool.states == ["idle", "done", "idle"]
        pool.async_reset([1])
        assert pool.recv().rows[0].fault == ""


_SCRIPT = """
import dataclasses
from agent_gym.runner import AsyncPool
from tests.runner.test_misfortunes import Unlucky

@dataclasses.dataclass
class Action:
    number: int

with AsyncPool(Unlucky, 1, backend="process") as pool:
    pool.async_reset(options={"own": Action(1)})
    print(pool.recv().rows[0].info["options"]["own"].number)
    pool.send([Action(2)], [0])
    print(pool.recv().rows[0].info["action"].number)
"""


def test_a_scripts_own_classes_can_be_actions_and_options(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(_SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "2"], done.stderr


class _Unreadable:
    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_an_action_that_the_worker_cannot_read_is_told_and_the_worker_lives() -> None:
    with started(1) as pool:
        with pytest.raises(TypeError, match="cannot be unpickled"):
            pool.call("drawn", _Unreadable())
        assert "what step was given cannot be unpickled: ValueError" in step(pool, [_Unreadable()])[0].fault


def test_large_answers_that_are_read_late_are_no_faults() -> None:
    with started(4, step_timeout_s=0.5) as pool:
        pool.send([LARGE] * 4, range(4))
        time.sleep(1.5)
        rows = [row for _ in range(4) for row in pool.recv(1, 1)]
        assert [row.fault for row in rows] == [""] * 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_close_is_as_quick_and_thorough_if_the_pools_process_has_forked() -> None:
    pool = started()
    child = step(pool, [CHILD])[0].info["child"]
    pool.send([HANG], [1])
    fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    fork.start()
    nursery = pool._backend._nursery  # type: ignore[attr-defined]
    pool.close(0.1)
    assert nursery.returncode == 0, "it ended by itself"
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    fork.kill()
    fork.join()


def test_more_workers_can_be_asked_for_than_the_nurserys_socket_holds(tmp_path: Path) -> None:
    backend = ProcessBackend(1000, tmp_path)
    backend._control = backend._start_nursery([])
    assert backend._nursery is not None
    os.kill(backend._nursery.pid, signal.SIGSTOP)  # as if it took long to import
    for number in range(1000):
        backend._tell({"kill": -number})
    backend.spawn(0, Ask(1, "make", Factory.of("CartPole-v1")))
    assert len(backend._orders) > 0
    os.kill(backend._nursery.pid, signal.SIGCONT)
    answers: list[Answer] = []
    while not answers:
        answers = backend.receive(30)
    assert [(answer.kind, answer.error) for answer in answers] == [("make", "")]
    backend.close(5.0)
