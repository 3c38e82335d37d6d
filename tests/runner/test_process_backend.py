"""What workers in processes may do without anything being left, lost or held up."""

import contextlib
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest

from agent_gym.runner import AsyncPool, Batch
from agent_gym.runner.worker import Factory
from tests.runner.faulty import Faulty


def started(pool: AsyncPool, **options: Any) -> Batch:
    pool.async_reset(options=options or None)
    return pool.recv(pool.num_envs)


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pids(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in sorted(folder.iterdir())]


def gone(processes: set[int], folder: Path) -> bool:
    return not any(alive(pid) for pid in processes) and not list(folder.iterdir())


def process(**keywords: Any) -> AsyncPool:
    return AsyncPool(Faulty, **{"num_envs": 2, "backend": "process", **keywords})


def test_close_gives_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "children").mkdir()
    descriptors, threads, others = psutil.Process().num_fds(), threading.active_count(), psutil.Process().children()
    pool = process()
    started(pool)
    pool.send([f"children:{tmp_path}/children"], [0])
    assert pool.recv().rows[0].fault == ""
    workers = pool.call("pid")
    assert all(alive(pid) for pid in (*workers, *pids(tmp_path / "children")))
    pool.close()
    assert not any(alive(pid) for pid in (*workers, *pids(tmp_path / "children")))
    assert psutil.Process().children() == others
    assert (psutil.Process().num_fds(), threading.active_count()) == (descriptors, threads)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_a_worker_started_dies_with_it_and_what_others_started_does_not(tmp_path: Path) -> None:
    for name in ("dying", "living"):
        (tmp_path / name).mkdir()
    with process() as pool:
        started(pool)
        pool.send([f"children:{tmp_path}/dying", f"children:{tmp_path}/living"], [0, 1])
        pool.recv(2)
        pool.send(["kill"], [0])
        assert "SIGKILL" in pool.recv().rows[0].fault
        assert eventually(lambda: not any(alive(pid) for pid in pids(tmp_path / "dying")))
        assert all(alive(pid) for pid in pids(tmp_path / "living"))
        assert not list(Path(str(pool.call("places", env_ids=[1])[0][1])).parent.parent.glob("env-0/tmp-1"))


_SCRIPT = """
import sys
from agent_gym.runner import AsyncPool
from tests.runner.faulty import Faulty

class Own(Faulty):  # in the script, which has no guard and is not imported again
    pass

pool = AsyncPool(Own, 2, backend="process")
pool.async_reset()
pool.recv(2)
pool.send([f"children:{sys.argv[1]}"], [0])
print(*[row.fault for row in pool.recv()], *pool.call("pid"), flush=True)
if len(sys.argv) > 2:
    sys.exit()
pool.send(["hang"], [1])
pool.recv()
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    (tmp_path / "script.py").write_text(_SCRIPT)

    def run(how: signal.Signals | None) -> subprocess.Popen[str]:
        own = tmp_path / str(how)
        for name in ("children", "tmp"):
            (own / name).mkdir(parents=True)
        return subprocess.Popen(
            [sys.executable, str(tmp_path / "script.py"), str(own / "children"), *([] if how else ["end"])],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(own / "tmp")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


def test_nothing_outlives_the_pools_process_however_it_ends(script: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    ways = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None]
    with contextlib.ExitStack() as ends:
        for how, running in [(how, ends.enter_context(script(how))) for how in ways]:  # all are started at once
            assert running.stdout is not None
            line = running.stdout.readline()
            workers = [int(word) for word in line.split()]
            assert len(workers) == 2, line
            family = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)] if how else []
            if how:
                running.send_signal(how)
            running.wait(60)
            left = {*workers, *pids(tmp_path / str(how) / "children"), *(found.pid for found in family)}
            assert len(left) >= 5
            assert eventually(functools.partial(gone, left, tmp_path / str(how) / "tmp"))


def test_a_pool_that_nobody_closes_is_closed_when_it_is_forgotten() -> None:
    others = psutil.Process().children()
    pool = process()
    workers = pool.call("pid")
    del pool
    assert eventually(lambda: not any(alive(pid) for pid in workers))
    assert psutil.Process().children() == others


def test_if_the_nursery_dies_so_do_the_workers_and_both_are_replaced() -> None:
    others = psutil.Process().children()
    with process() as pool:
        started(pool)
        workers = pool.call("pid")
        (nursery,) = (child for child in psutil.Process().children() if child not in others)
        pool.send(["hang", "hang"], [0, 1])
        nursery.kill()
        rows = [row for _ in range(2) for row in pool.recv(timeout=20)]
        assert ["forked from died" in row.fault for row in rows] == [True, True]
        assert eventually(lambda: not any(alive(pid) for pid in workers))
        assert [row.fault for row in started(pool)] == ["", ""]


def test_a_child_that_holds_the_workers_socket_does_not_hide_its_death() -> None:
    with process(num_envs=1) as pool:
        started(pool)
        pool.send(["fork"], [0])
        assert pool.recv().rows[0].fault == ""
        pool.send(["kill"], [0])
        assert "SIGKILL" in pool.recv(timeout=30).rows[0].fault


def test_a_worker_that_reads_nothing_holds_nobody_up() -> None:
    with process(step_timeout_s=1.0, env_kwargs={"length": 10**6}) as pool:
        started(pool)
        (pid,) = pool.call("pid", env_ids=[0])
        os.kill(pid, signal.SIGSTOP)
        large = np.zeros(1 << 20)  # more than a socket takes
        pool.send([large], [0])
        pool.send([0], [1])
        assert pool.recv(timeout=30).env_ids.tolist() == [1]
        assert "did not come back" in pool.recv(timeout=30).rows[0].fault
        assert eventually(lambda: not alive(pid))
        started(pool)
        pool.send([large, large], [0, 1])  # takes several rounds, and arrives
        assert [row.fault for _ in range(2) for row in pool.recv()] == ["", ""]


def test_each_environment_has_a_temporary_folder_and_a_log_of_its_own(tmp_path: Path) -> None:
    with process(workdir=tmp_path) as pool:
        places = pool.call("places")
        for env_id, (file, folder) in enumerate(places):
            assert Path(folder).is_relative_to(tmp_path / f"env-{env_id}")
            assert Path(file).is_relative_to(folder)
        started(pool)
        pool.send(["exit"], [0])
        fault = pool.recv().rows[0].fault
        assert "exited with code 3" in fault
        assert "hello from the environment" in fault  # the end of its log
        assert not Path(places[0][1]).exists()
    assert (tmp_path / "env-1" / "log.txt").read_text() == "hello from the environment\n"
    assert list(tmp_path.glob("env-*/tmp-*")) == []


def test_what_cannot_be_pickled_is_told() -> None:
    with process() as pool:
        started(pool)
        with pytest.raises(TypeError, match="can be pickled"):
            pool.send([threading.Lock()], [0])
        pool.send(["lambda", 0], [0, 1])
        rows = {row.env_id: row for _ in range(2) for row in pool.recv(timeout=10)}
        assert "cannot be pickled" in rows[0].fault
        assert rows[1].fault == ""
        assert pool.counters.steps == 1


def _leave(pool: AsyncPool) -> None:
    pool.close()
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_of_the_pools_process_cannot_close_it() -> None:
    with process() as pool:
        started(pool)
        child = multiprocessing.get_context("fork").Process(target=_leave, args=(pool,))
        child.start()
        child.join()
        pool.send([0, 0], [0, 1])
        assert [row.fault for _ in range(2) for row in pool.recv(timeout=10)] == ["", ""]


def test_an_id_that_only_the_users_script_registers_is_known_to_workers() -> None:
    gymnasium.register("Runner/OnlyHere-v0", entry_point="tests.runner.faulty:Faulty", kwargs={"length": 3})
    try:
        with AsyncPool("Runner/OnlyHere-v0", 1, backend="process") as pool:
            assert pool.call("length") == [3]
    finally:
        del gymnasium.registry["Runner/OnlyHere-v0"]


@pytest.mark.parametrize(
    ("env", "modules"),
    [
        ("agent_gym:AgentBase/ToolTask-v0", ("agent_gym.factory", "agent_gym.envs.tool_task")),
        ("CartPole-v1", ()),
        ("No/SuchEnv-v0", ()),
        (Faulty, ("tests.runner.faulty",)),
    ],
)
def test_what_every_worker_needs_is_imported_once(env: Any, modules: tuple[str, ...]) -> None:
    assert Factory.of(env).modules == modules


def test_usage_is_told_by_environment(tmp_path: Path) -> None:
    with process() as pool:
        started(pool)
        pool.send([f"children:{tmp_path}"], [1])
        pool.recv()
        usages = pool.usages()
    assert usages[0].processes == 1
    assert usages[1].processes >= 3
    assert usages[0].fds > 0
