# ruff: noqa: E501 - a hostile program is easier to read on one line
"""The pool: sandboxes that are ready, belong to one owner, are replaced when worn or broken, and never outlive their process."""

import concurrent.futures
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

import agent_gym.sandbox
from agent_gym.errors import InfrastructureError
from agent_gym.sandbox import Limits, Sandbox, SandboxPool, default_pool
from agent_gym.sandbox.warm import Box

pytestmark = pytest.mark.usefixtures("needs_sandbox")


@pytest.fixture
def own() -> Iterator[SandboxPool]:
    with SandboxPool(1, max_resets=5) as pool:
        yield pool


def box_of(sandbox: Sandbox) -> Box:
    place = sandbox._place
    assert isinstance(place, Box)
    return place


def zygote_of(sandbox: Sandbox) -> psutil.Process:
    [zygote] = psutil.Process(box_of(sandbox).pid).children()
    return zygote


def until(holds: Callable[[], object], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_an_owner_has_one_sandbox_at_a_time(own: SandboxPool) -> None:
    with own.acquire(owner="env") as first, own.acquire(owner="env") as second, own.acquire(owner="other") as third:
        assert first.run(["true"]).ok
        with pytest.raises(ValueError, match="'env' has a sandbox already"):
            second.run(["true"])
        assert third.run(["true"]).ok
        first.close()
        assert second.run(["true"]).ok


def test_what_is_given_back_is_used_again_after_a_reset_and_replaced_when_worn(own: SandboxPool) -> None:
    pids = []
    for _ in range(12):
        with own.acquire() as sandbox:
            assert sandbox.run(["bash", "-c", "ls -A . /tmp; echo x > /tmp/x; echo x > x; sleep 60 &"]).stdout == b".:\n\n/tmp:\n"
            pids.append(box_of(sandbox).pid)
    assert 2 <= len(set(pids)) <= 4
    assert own.recycled >= 2


def test_prewarmed_sandboxes_are_there_before_they_are_asked_for() -> None:
    with SandboxPool(2) as pool:
        before = set(psutil.Process().children())
        pool.prewarm()
        started = {process.pid for process in set(psutil.Process().children()) - before}
        assert len(started) == 2
        with pool.acquire() as sandbox:
            sandbox.run(["true"])
            assert box_of(sandbox).pid in started


@pytest.mark.parametrize("victim", ["zygote", "bwrap", "episode"])
def test_a_sandbox_that_was_killed_is_an_infrastructure_error_and_the_next_run_gets_another(own: SandboxPool, victim: str) -> None:
    with own.acquire({"kept": b"yes"}) as sandbox:
        sandbox.run(["true"])
        first, zygote = box_of(sandbox), zygote_of(sandbox)
        [episode] = zygote.children()
        if victim == "bwrap":
            os.kill(first.pid, signal.SIGKILL)
            zygote.kill()  # bwrap only waits; what it started is what matters
        else:
            (zygote if victim == "zygote" else episode).kill()
        with pytest.raises(InfrastructureError):
            sandbox.run(["true"])
        assert sandbox.run(["cat", "kept"]).stdout == b"yes"
        assert box_of(sandbox).pid != first.pid


def test_a_sandbox_that_dies_during_a_run_is_an_infrastructure_error(own: SandboxPool) -> None:
    with own.acquire() as sandbox:
        sandbox.run(["true"])
        timer = threading.Timer(0.3, zygote_of(sandbox).kill)
        timer.start()
        with pytest.raises(InfrastructureError, match="the sandbox failed: no report"):
            sandbox.run(["sleep", "60"])
        timer.join()
        assert sandbox.run(["true"]).ok


def test_one_that_died_while_nobody_had_it_is_not_handed_out(own: SandboxPool) -> None:
    with own.acquire() as sandbox:
        sandbox.run(["true"])
        zygote = zygote_of(sandbox)
    zygote.kill()
    assert until(lambda: not zygote.is_running() or zygote.status() == psutil.STATUS_ZOMBIE)
    with own.acquire() as sandbox:
        assert sandbox.run(["true"]).ok


def test_a_reset_ends_everything_and_the_sandbox_goes_on(own: SandboxPool) -> None:
    with own.acquire({"a": b"1"}) as sandbox:
        sandbox.run(["bash", "-c", "sleep 1000 & echo b > b"], background=True)
        sandbox.reset({"c": b"3"})
        result = sandbox.run(["bash", "-c", "ls -A; ls /proc | grep -c '^[0-9]'"])
        assert result.stdout == b"c\n4\n"  # process 1, bash, and the two of the pipe
        assert list(sandbox.files) == ["c"]


def test_what_is_left_running_on_purpose_lives_until_a_run_without_it(own: SandboxPool) -> None:
    server = "import os, http.server as h\nos.fork() and os._exit(0)\nos.dup2(os.open('log', os.O_CREAT | os.O_WRONLY), 2)\nh.HTTPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
    fetch = "import time, urllib.request\nfor _ in range(600):\n  try: print(urllib.request.urlopen('http://127.0.0.1:8000/page').read().decode()); break\n  except OSError: time.sleep(0.05)"
    with own.acquire({"page": b"one"}, loopback=True, limits=Limits(cpu_s=60, wall_s=120)) as sandbox:
        sandbox.run_python(server, background=True)
        assert sandbox.run_python(fetch, background=True).stdout == b"one\n"
        sandbox.write_file("page", "two")
        sandbox.write_file("new/dir/file", "f")
        assert sandbox.run_python(fetch, background=True).stdout == b"two\n"
        sandbox.delete_file("page")
        assert sandbox.run(["bash", "-c", "cat page new/dir/file"], background=True).stdout == b"f"
        assert list(sandbox.files) == ["log", "new/dir/file"]
        assert b"1" not in sandbox.run(["bash", "-c", "true"]).stdout
        assert (
            b"refused"
            in sandbox.run_python(
                "import urllib.request as u\ntry: u.urlopen('http://127.0.0.1:8000/')\nexcept OSError as e: print(e)"
            ).stdout
        )


@pytest.mark.parametrize(
    ("left", "why"),
    [
        ("os.fork()\nb = bytearray(60 << 20)\ntime.sleep(100)", "memory"),
        ("while True: pass", "cpu"),
        ("i = 0\nwhile True:\n  open(f'{i}', 'w').close(); i += 1", "files"),
    ],
)
def test_what_is_left_running_is_held_to_the_limits_and_the_next_run_says_so(own: SandboxPool, left: str, why: str) -> None:
    program = f"import os, time\nif os.fork():\n  os._exit(0)\nos.setsid()\n{left}"
    limits = Limits(memory_mib=96, cpu_s=0.5, workspace_files=200, wall_s=120)
    with own.acquire(limits=limits) as sandbox:
        result = sandbox.run_python(program, background=True)
        deadline = time.monotonic() + 60
        while result.fate is None and result.reason == "exit":
            assert time.monotonic() < deadline
            time.sleep(1)
            result = sandbox.run(["true"], background=True)
        assert why in (result.fate, result.reason)


def test_hostile_changes_around_a_living_process_do_not_lead_the_host_astray(own: SandboxPool) -> None:
    program = "import os, shutil\nif os.fork(): os._exit(0)\nwhile True:\n  os.symlink('/etc', 'd'); os.unlink('d'); os.mkdir('d'); open('d/f', 'w').write('mine'); shutil.rmtree('d')"
    with own.acquire(limits=Limits(cpu_s=100, wall_s=100)) as sandbox:
        sandbox.run_python(program, background=True)
        for number in range(40):
            sandbox.write_file("kept", str(number))
            if "d/f" not in sandbox.files:
                sandbox.write_file("d/passwd", "theirs")
            result = sandbox.run(["cat", "kept"], background=True)
            assert result.stdout == str(number).encode()
            assert set(sandbox.files) <= {"kept", "d/f", "d/passwd"}
            assert sandbox.files.get("d/passwd", b"theirs") == b"theirs"
            if "d/passwd" in sandbox.files:
                sandbox.delete_file("d/passwd")


def test_background_needs_a_warm_sandbox() -> None:
    with Sandbox() as sandbox, pytest.raises(ValueError, match="needs a warm sandbox"):
        sandbox.run(["true"], background=True)


def test_as_many_as_were_in_use_at_once_are_kept() -> None:
    with SandboxPool(1) as pool:
        taken = []
        for _ in range(2):
            with ExitStack() as stack:
                taken.append({stack.enter_context(pool.lease()) for _ in range(3)})
    assert taken[0] == taken[1]
    assert len(taken[0]) == 3


def test_sizes_are_checked() -> None:
    for arguments in ({"size": 0}, {"max_resets": 0}):
        with pytest.raises(ValueError, match="expected 1 or more"):
            SandboxPool(**arguments)


def test_a_closed_and_a_busy_sandbox_say_so(own: SandboxPool) -> None:
    sandbox = own.acquire()
    thread = threading.Thread(target=sandbox.run, args=(["sleep", "60"],))
    thread.start()
    assert until(lambda: sandbox._run_now)
    for use in (lambda: sandbox.run(["true"]), sandbox.reset):
        with pytest.raises(InfrastructureError, match="running something already"):
            use()
    sandbox.close()
    thread.join()
    for use in (lambda: sandbox.run(["true"]), sandbox.reset):
        with pytest.raises(InfrastructureError, match="closed"):
            use()


def _in_child(queue: Any, inherited: Sandbox | None) -> None:
    if inherited is not None:
        try:
            inherited.run(["true"])
        except InfrastructureError as error:
            queue.put(str(error))
    with default_pool().acquire({"n": b"1"}) as sandbox:
        queue.put(sandbox.run(["cat", "n"]).stdout)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_has_its_own_and_leaves_its_parents_alone(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    with default_pool().acquire() as sandbox:
        sandbox.run(["true"])
        queue = context.Queue()
        child = context.Process(target=_in_child, args=(queue, sandbox if method == "fork" else None))
        child.start()
        if method == "fork":
            assert "not to a fork" in queue.get(timeout=60)
        assert queue.get(timeout=60) == b"1"
        child.join()
        assert child.exitcode == 0
        assert sandbox.run(["true"]).ok


@pytest.mark.parametrize("end", ["exit", "kill -9", "kill -9 beside a fork"])
def test_nothing_is_left_of_a_host_that_has_ended(end: str) -> None:
    fork = "import os\nif os.fork() == 0: time.sleep(20); os._exit(0)\n" if "fork" in end else ""
    program = (
        "import sys, time\nfrom agent_gym.sandbox import SandboxPool\np = SandboxPool(3); p.prewarm()\ns = p.acquire(); s.run(['true'])\n"
        f"{fork}print('ready', flush=True)\nsys.stdin.read()\n"
    )
    root = Path(agent_gym.sandbox.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        assert host.stdout.readline() == b"ready\n"
        assert until(lambda: len(psutil.Process(host.pid).children(recursive=True)) >= 9)  # of each a bwrap, a zygote, an episode
        children = [p for p in psutil.Process(host.pid).children(recursive=True) if p.cmdline()[:1] != [sys.executable]]
        if end == "exit":
            host.stdin.close()
        else:
            host.kill()
        host.wait()
    assert until(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in children))


def _environments(number: int, queue: Any) -> None:
    """Eight environments at once, which all write the same file names."""

    def episode(slot: int) -> str:
        mark = f"{number}-{slot}"
        with default_pool().acquire({"log.txt": mark.encode()}, owner=slot) as sandbox:
            for _ in range(3):
                program = "import time\nm = open('log.txt').read()\nfor i in range(40): print(m, i)\nopen('/tmp/log.txt', 'a').write(m); open('out.txt', 'a').write(m)\nprint(open('/tmp/log.txt').read())"
                result = sandbox.run_python(program)
                if result.stdout.decode() != "".join(f"{mark} {i}\n" for i in range(40)) + f"{mark}\n" or result.stderr:
                    return f"{mark}: {result}"
            return "" if sandbox.read_file("out.txt").decode() == mark * 3 else f"{mark}: {sandbox.files}"

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        queue.put([complaint for complaint in threads.map(episode, range(8)) if complaint])


@pytest.mark.slow
def test_sixty_four_environments_in_eight_processes_see_nothing_of_each_other() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    children = [context.Process(target=_environments, args=(number, queue)) for number in range(8)]
    for child in children:
        child.start()
    assert [complaint for _ in children for complaint in queue.get(timeout=200)] == []
    for child in children:
        child.join()


def footprint() -> tuple[int, int]:
    """Descriptors, and mounts of the host's."""
    return len([*Path("/proc/self/fd").iterdir()]), len(Path("/proc/self/mountinfo").read_text().splitlines())


@pytest.mark.slow
def test_two_hundred_times_open_and_close_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with SandboxPool(1) as pool, pool.acquire() as sandbox:
        sandbox.run(["true"])  # whatever is imported on the way
    before, children = footprint(), set(psutil.Process().children(recursive=True))
    for _ in range(200):
        with SandboxPool(1) as pool, pool.acquire() as sandbox:
            assert sandbox.run(["true"]).ok
    assert footprint() == before
    assert [*tmp_path.iterdir()] == []
    assert set(psutil.Process().children(recursive=True)) == children


@pytest.mark.slow
def test_five_thousand_resets_make_nothing_grow() -> None:
    with SandboxPool(1, max_resets=10_000) as pool, pool.acquire() as sandbox:
        sandbox.run(["true"])
        box, zygote = box_of(sandbox), zygote_of(sandbox)

        def state() -> tuple[int, int, int, int]:
            box.wait()
            mounts = len(Path(f"/proc/{zygote.pid}/mountinfo").read_text().splitlines())
            return zygote.num_fds(), mounts, len(psutil.Process(box.pid).children(recursive=True)), len([*Path("/proc/self/fd").iterdir()])

        for _ in range(200):
            sandbox.reset({"f": b"x"})
            sandbox.run(["cp", "f", "/tmp/g"])
        sandbox.reset()
        before, memory = state(), zygote.memory_info().rss
        for number in range(4_800):
            sandbox.reset({"f": b"x"})
            if number % 20 == 0:
                sandbox.run_python("open('/tmp/f', 'wb').write(bytes(2 << 20))")
        sandbox.reset()
        until = time.monotonic() + 20  # the zygote lets go of the last episode when it comes to it
        while any(map(operator.gt, state(), before)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(operator.gt, after := state(), before)), (after, before)  # `before` may hold an episode it was about to let go
        assert zygote.memory_info().rss <= memory + (1 << 20)
        assert box.resets > 5_000
