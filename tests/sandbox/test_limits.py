"""Every field of Limits bites, and hitting one is a result that tells which."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_gym.sandbox import ExecResult, Limits
from tests.sandbox.conftest import Make

Run = Callable[..., ExecResult]


@pytest.fixture
def run(make: Make) -> Run:
    """Runs a program under these limits."""
    return lambda program, **limits: make(limits=Limits(**{"wall_s": 60, **limits})).run_python(program)


def host_memory_mib() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) >> 10
    raise AssertionError("no VmHWM")


def test_wall_time_ends_a_program_that_ignores_every_signal_and_keeps_its_output(run: Run) -> None:
    program = """
import os, signal, time
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
print("begun", flush=True)
while True: time.sleep(1)
"""
    result = run(program, wall_s=0.5)
    assert (result.reason, result.signal, result.stdout) == ("wall", "SIGKILL", b"begun\n")
    assert 0.5 <= result.wall_s < 30


@pytest.mark.parametrize(
    "program",
    ["while True: pass", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n", "import os\nos.closerange(0, 256)\nwhile True: pass"],
)
def test_loops_stopped_processes_and_closed_descriptors_end_at_the_wall(program: str, run: Run) -> None:
    assert run(program, wall_s=0.5).reason == "wall"


def test_cpu_time_counts_for_the_whole_tree(run: Run) -> None:
    alone = run("while True: pass", cpu_s=0.3)
    assert alone.reason == "cpu"
    assert 0.3 <= alone.cpu_s < 10
    family = run("import os\nfor _ in range(3): os.fork()\nwhile True: pass", cpu_s=0.5)
    assert family.reason == "cpu"
    children = run("import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-c', 'sum(range(10**6))'])", cpu_s=0.5)
    assert children.reason == "cpu"


def test_memory_of_one_process_is_a_failed_allocation(run: Run) -> None:
    result = run("try:\n  b = bytearray(200 << 20)\nexcept MemoryError:\n  print('refused')", memory_mib=128)
    assert result.stdout == b"refused\n"
    assert run("b = bytearray(60 << 20)\nprint(len(b))", memory_mib=128).ok


@pytest.mark.parametrize(
    "program",
    [
        "import os, time\nfor _ in range(3): os.fork()\nb = bytearray(60 << 20)\ntime.sleep(60)",
        "import mmap, time\nm = [mmap.mmap(-1, 50 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(1)]\n"
        "import os\nfor _ in range(3): os.fork()\nfor i in range(0, len(m[0]), 4096): m[0][i] = 1\ntime.sleep(60)",
        "import os, time, ctypes\nctypes.CDLL(None).prctl(4, 0)\nfor _ in range(3): os.fork()\nb = bytearray(60 << 20)\ntime.sleep(60)",
    ],
    ids=["many processes", "pages made after a fork", "undumpable"],
)
def test_memory_of_all_processes_together_ends_the_run(program: str, run: Run) -> None:
    assert run(program, memory_mib=128).reason == "memory"


def test_memory_that_no_process_would_be_charged_for_cannot_be_made(run: Run) -> None:
    program = """
import ctypes, mmap, os
try: mmap.mmap(-1, 1 << 20)
except OSError as e: print(e.errno)
zero = open("/dev/zero", "r+b", 0)
try: mmap.mmap(zero.fileno(), 1 << 20)
except OSError as e: print(e.errno)
print(zero.read(3), len(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))
open("f", "wb").write(bytes(4096))
file = open("f", "r+b")
print(len(mmap.mmap(file.fileno(), 4096)))
print(ctypes.CDLL(None).syscall(206 if os.uname().machine == "x86_64" else 0, 1, ctypes.byref(ctypes.c_ulong(0))))
"""
    assert run(program).stdout == b"1\n19\nb'\\x00\\x00\\x00' 4096\n4096\n-1\n"


def test_children_that_nobody_waits_for_count_too(run: Run) -> None:
    program = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        while time.process_time() < 0.2: pass
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
"""
    assert run(program, cpu_s=0.6, wall_s=20).reason == "cpu"


def test_processes_that_share_their_memory_are_not_counted_twice(run: Run) -> None:
    result = run("import os, time\nb = bytearray(60 << 20)\nfor _ in range(3): os.fork()\ntime.sleep(0.5)", memory_mib=128)
    assert result.ok, result.reason


@pytest.mark.parametrize(
    "more", ["os.fork() == 0 and time.sleep(60)", "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"]
)
def test_one_process_or_thread_too_many_fails(more: str, run: Run) -> None:
    program = f"""
import os, threading, time
try:
    for n in range(1, 100): {more}
except (OSError, RuntimeError): print(n, flush=True)
os._exit(0)
"""
    assert run(program, processes=10).stdout == b"10\n"


def test_a_fork_bomb_ends_and_leaves_the_machine_alone(run: Run, make: Make) -> None:
    python = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    assert run(python, wall_s=1).reason in ("wall", "cpu")
    with make(limits=Limits(wall_s=1)) as sandbox:
        assert sandbox.run(["bash", "-c", ":(){ :|:& };:; sleep 60"]).reason == "wall"
        assert sandbox.run(["true"]).ok


def test_open_files(run: Run) -> None:
    program = "import os\ntry:\n  while True: last = os.open('/dev/null', 0)\nexcept OSError as e: print(last, e.errno)"
    assert run(program, open_files=40).stdout == b"39 24\n"


def test_file_size(run: Run) -> None:
    program = """
f = open("f", "wb", 0)
try:
    while True: f.write(bytes(1 << 16))
except OSError as e: print(f.tell(), e.errno)
"""
    assert run(program, file_mib=2).stdout == b"%d 27\n" % (2 << 20)
    assert b"File too large" in run("open('f', 'wb').truncate(3 << 20)", file_mib=2).stderr


@pytest.mark.parametrize(("path", "limit"), [("/workspace", "workspace_mib"), ("/tmp", "tmp_mib"), ("/dev/shm", "tmp_mib")])
def test_disk_space_is_memory_of_a_fixed_size(path: str, limit: str, run: Run) -> None:
    program = f"""
n = 0
try:
    for i in range(1000):
        with open(f"{path}/{{i}}", "wb", 0) as f:
            for _ in range(16): n += f.write(bytes(1 << 16))
except OSError as e:
    print(n >> 20, e.errno)
"""
    assert run(program, **{limit: 3}).stdout == b"3 28\n"


@pytest.mark.parametrize("path", ["/workspace", "/tmp", "/dev/shm"])
def test_number_of_files(path: str, run: Run) -> None:
    result = run(f"i = 0\nwhile True:\n  open(f'{path}/{{i}}', 'w').close()\n  i += 1", workspace_files=500)
    assert result.reason == "files"


@pytest.mark.parametrize("path", ["/", "/usr", "/etc", "/run", "/dev", "/proc/sys/kernel", "/run/lib/agent_gym/sandbox/inside"])
def test_nothing_else_can_be_written(path: str, run: Run) -> None:
    result = run(f"import errno\ntry: open('{path}/new', 'w')\nexcept OSError as e: print(errno.errorcode[e.errno])")
    assert result.stdout in (b"EROFS\n", b"EACCES\n", b"ENOENT\n"), result.stderr


def test_output_keeps_its_head_and_tail_and_counts_the_rest(run: Run) -> None:
    result = run("import sys\nprint('head', 'x' * 100_000, 'tail')\nprint('short', file=sys.stderr)", output_kib=4)
    assert result.stdout.startswith(b"head xxx")
    assert result.stdout.endswith(b"xxx tail\n")
    assert result.stdout_cut == 100_011 - 4096
    assert b"[... %d bytes cut ...]" % result.stdout_cut in result.stdout
    assert (result.stderr, result.stderr_cut) == (b"short\n", 0)
    whole = run("print('x' * 4095)", output_kib=4)
    assert (whole.stdout, whole.stdout_cut) == (b"x" * 4095 + b"\n", 0)


@pytest.mark.parametrize("stream", [1, 2])
def test_a_flood_of_output_ends_the_run_and_does_not_fill_the_host(stream: int, run: Run) -> None:
    before = host_memory_mib()
    result = run(f"import os\nwhile True: os.write({stream}, b'\\xff' * 65536)", flood_mib=8)
    assert result.reason == "output"
    assert len(result.stdout) + len(result.stderr) < 66 << 10
    assert host_memory_mib() - before < 16


def test_limits_cannot_be_raised_from_inside_nor_process_1_be_weakened(run: Run) -> None:
    program = """
import json, os, resource
def tries(*calls):
    for call, *args in calls:
        try: call(*args)
        except (OSError, ValueError): yield False
        else: yield True
one = 1
print(json.dumps(list(tries(
    (resource.setrlimit, resource.RLIMIT_CPU, (10**6, 10**6)),
    (resource.setrlimit, resource.RLIMIT_NPROC, (10**6, 10**6)),
    (resource.prlimit, one, resource.RLIMIT_AS, (4096, 4096)),
    (resource.prlimit, one, resource.RLIMIT_CPU, (1, 1)),
    (os.setpriority, os.PRIO_PROCESS, one, 19),
    (os.setpriority, os.PRIO_USER, 0, 19),
    (os.setpriority, os.PRIO_PROCESS, 0, -5),
    (os.sched_setscheduler, one, os.SCHED_IDLE, os.sched_param(0)),
    (os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)),
    (os.sched_setaffinity, one, {0}),
))))
"""
    assert json.loads(run(program).stdout) == [False] * 10


def test_limits_say_what_is_wrong_with_a_value() -> None:
    for name, value in (("cpu_s", 0), ("wall_s", float("nan")), ("memory_mib", 1), ("processes", 0), ("flood_mib", 10**9)):
        with pytest.raises(ValueError, match=rf"Limits\.{name}: got .*expected a value in"):
            Limits(**{name: value})  # type: ignore[arg-type]
    for name, wrong in (("memory_mib", 64.5), ("processes", True), ("cpu_s", "10")):
        with pytest.raises(TypeError, match=rf"Limits\.{name}"):
            Limits(**{name: wrong})  # type: ignore[arg-type]
    assert dataclasses.replace(Limits(), cpu_s=1).cpu_s == 1
