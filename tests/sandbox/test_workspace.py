"""The workspace: files go in, programs see and change them, the host never follows what they made."""

import concurrent.futures
import hashlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import agent_gym.sandbox
from agent_gym.errors import InfrastructureError
from agent_gym.sandbox import Changes, Limits
from tests.sandbox.conftest import Make

pytestmark = pytest.mark.usefixtures("needs_sandbox")


def test_files_persist_between_the_runs_of_an_episode(make: Make) -> None:
    with make({"data/in.txt": b"1 2 3"}) as sandbox:
        sandbox.write_file("total.py", "def total(text): return sum(map(int, text.split()))\n")
        first = sandbox.run_python("from total import total\nopen('out.txt', 'w').write(str(total(open('data/in.txt').read())))")
        assert first.ok, first.stderr
        second = sandbox.run_python("print(open('out.txt').read())")
        assert second.stdout == b"6\n"
        assert list(sandbox.files) == ["data/in.txt", "out.txt", "total.py"]


def test_any_bytes_survive_the_way_there_and_back(make: Make) -> None:
    data = bytes(range(256)) * 100
    with make({"ä/ö": data, "empty": b""}) as sandbox:
        result = sandbox.run(["sha256sum", "ä/ö"])
        assert result.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
        assert sandbox.files == {"ä/ö": data, "empty": b""}


def test_arguments_stdin_and_exit_code_reach_the_program_and_come_back(make: Make) -> None:
    with make() as sandbox:
        program = "import sys\nprint(sys.argv[1:], sys.stdin.read())\nprint('oh', file=sys.stderr)\nsys.exit(3)"
        result = sandbox.run_python(program, "a", "b c", stdin=b"in")
        assert (result.stdout, result.stderr) == (b"['a', 'b c'] in\n", b"oh\n")
        assert (result.reason, result.exit_code, result.signal, result.ok) == ("exit", 3, None, False)


def test_a_signal_and_a_missing_command_are_results(make: Make) -> None:
    with make() as sandbox:
        crash = sandbox.run_python("import ctypes; ctypes.string_at(0)")
        assert (crash.exit_code, crash.signal) == (None, "SIGSEGV")
        assert sandbox.run(["no-such-command"]).exit_code == 127


def test_deleted_files_are_gone(make: Make) -> None:
    with make({"a": b"", "d/b": b""}) as sandbox:
        sandbox.run(["rm", "-r", "d"])
        assert list(sandbox.files) == ["a"]
        sandbox.delete_file("a")
        with pytest.raises(FileNotFoundError):
            sandbox.read_file("a")


def test_what_a_program_leaves_running_is_killed_and_its_output_does_not_hold_up_the_run(make: Make) -> None:
    program = "import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(0.3)\n  open('late', 'w')\n  time.sleep(60)\n"
    with make() as sandbox:
        result = sandbox.run_python(program)
        assert result.ok
        assert result.wall_s < 20
        time.sleep(0.5)
        assert "late" not in sandbox.run(["ls"]).stdout.decode()


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("ln -s /etc/passwd x", "symbolic link"),
        ("ln -s /proc/1/root x", "symbolic link"),
        ("ln -s / x", "symbolic link"),
        ("mkfifo x", "pipe"),
        ("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('x')\"", "socket"),
    ],
)
def test_links_pipes_and_sockets_are_left_out_and_never_opened(command: str, kind: str, make: Make) -> None:
    with make({"kept": b"yes"}) as sandbox:
        result = sandbox.run(["bash", "-c", command])
        assert result.ok, result.stderr
        assert result.left_out == (("x", kind),)
        assert sandbox.files == {"kept": b"yes"}


def test_hostile_names_depths_and_permissions_do_not_stop_the_way_back(make: Make) -> None:
    program = r"""
import os
open(b"\xff\xfe", "w")
open("new\nline", "w").write("n")
os.mkdir("locked"); open("locked/f", "w").write("l"); os.chmod("locked/f", 0); os.chmod("locked", 0)
open("a", "w").write("h"); os.link("a", "b")
for _ in range(1500):
    os.mkdir("deeeeep"); os.chdir("deeeeep")
"""
    with make() as sandbox:
        result = sandbox.run_python(program)
        assert result.ok, result.stderr
        assert sandbox.files == {"locked/f": b"l", "a": b"h", "b": b"h"}
        assert {why for _, why in result.left_out} == {"name"}
        assert (r"new\nline", "name") in result.left_out


def test_sparse_files_do_not_fill_the_hosts_memory(make: Make) -> None:
    program = "for i in range(200):\n  with open(f's{i}', 'wb') as f: f.truncate(1 << 20)\n"
    with make(limits=Limits(workspace_mib=4)) as sandbox:
        result = sandbox.run_python(program)
        assert sum(map(len, sandbox.files.values())) <= 4 << 20
        assert "too much" in {why for _, why in result.left_out}


@pytest.mark.parametrize(
    "program",
    [
        "open('new\\nline', 'w').write('x')\nopen('nb\\u00a0', 'w')",
        "for i in range(300):\n  with open(f's{i}', 'wb') as f: f.truncate(1)",
        "import os\nfor i in range(300):\n  os.mkdir(f'd{i}'); open(f'd{i}/f', 'w').close()",
        "with open('big', 'wb') as f: f.truncate(3 << 20)",
        "import os\nos.makedirs('a/' * 200)\nopen('a/' * 200 + 'f', 'w')",
    ],
    ids=["names", "pages", "directories", "size", "depth"],
)
@pytest.mark.parametrize("limits", [None, Limits(workspace_mib=4), Limits(workspace_files=50)], ids=["own", "size", "number"])
def test_whatever_a_program_leaves_the_workspace_goes_on(program: str, limits: Limits | None, make: Make) -> None:
    with make(limits=Limits(workspace_mib=1, workspace_files=120)) as sandbox:
        sandbox.run_python(program, limits=limits)
        sandbox.restore(sandbox.snapshot())
        for again in (limits, None):
            assert sandbox.run(["true"], limits=again).ok
        sandbox.run(["find", ".", "-delete"])
        sandbox.write_file("ok.py", "1")
        assert sandbox.run(["true"]).ok


def test_a_run_with_smaller_limits_than_the_workspace_needs_is_refused(make: Make) -> None:
    with make({"a": bytes(3 << 20)}) as sandbox:
        with pytest.raises(ValueError, match="MiB"):
            sandbox.run(["true"], limits=Limits(workspace_mib=1))
        assert sandbox.run(["true"]).ok


def test_a_program_may_be_bytes_in_any_encoding(make: Make) -> None:
    with make() as sandbox:
        assert sandbox.run_python(b"# -*- coding: latin-1 -*-\nprint(len('\xe9'))").stdout == b"1\n"
        assert sandbox.run_python(b"\xef\xbb\xbfprint(2)").stdout == b"2\n"


def test_a_fork_that_holds_the_pipes_and_one_that_closes_disturb_nothing(monkeypatch: pytest.MonkeyPatch, make: Make) -> None:
    real, forks = subprocess.Popen, []

    def forking(*args: Any, **keywords: Any) -> Any:
        process = real(*args, **keywords)
        forks.append(os.fork())  # stands for another thread's, at this moment
        if not forks[-1]:
            time.sleep(30)
            os._exit(0)
        return process

    with make() as sandbox:
        monkeypatch.setattr(subprocess, "Popen", forking)
        started = time.monotonic()
        try:
            result = sandbox.run(["echo", "said"])
        finally:
            monkeypatch.undo()
            for pid in forks:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
        assert (result.stdout, time.monotonic() - started < 20) == (b"said\n", True)

        def close_in_a_fork() -> None:
            pid = os.fork()
            if not pid:
                sandbox.close()
                os._exit(0)
            os.waitpid(pid, 0)

        timer = threading.Timer(0.5, close_in_a_fork)
        timer.start()
        assert sandbox.run(["sleep", "1.5"]).ok
        timer.join()


def test_a_program_cannot_leave_anything_but_files_to_the_next_run(make: Make) -> None:
    leave = """
import os
for directory in ("/tmp", "/dev/shm"):
    open(directory + "/x", "w").write("x")
os.environ["X"] = "x"
if os.fork() == 0:
    os.pause()
"""
    look = """
import os
print(os.listdir("/tmp"), os.listdir("/dev/shm"), os.environ.get("X"), [p for p in os.listdir("/proc") if p.isdigit()])
"""
    with make() as sandbox:
        sandbox.run_python(leave)
        assert sandbox.run_python(look).stdout == b"[] [] None ['1', '2']\n"


def test_snapshot_restore_digest_and_changes(make: Make) -> None:
    with make({"a": b"1", "b": b"2"}) as sandbox:
        before, digest = sandbox.snapshot(), sandbox.digest()
        sandbox.run(["bash", "-c", "echo 3 > c; echo 1 > a; rm b"])
        assert sandbox.changes(before) == Changes(added=("c",), changed=("a",), removed=("b",))
        assert sandbox.digest() != digest
        sandbox.restore(before)
        assert (sandbox.digest(), sandbox.snapshot()) == (digest, before)


@pytest.mark.parametrize("path", ["", "/abs", "../up", "a/../b", "a//b", "a/", ".", "nul\0", "x" * 256, "a/" * 600 + "a", "\ud800"])
def test_paths_that_are_not_plain_and_relative_are_refused(path: str, make: Make) -> None:
    with make() as sandbox, pytest.raises(ValueError, match="path"):
        sandbox.write_file(path, b"")


def test_files_that_do_not_fit_are_refused(make: Make) -> None:
    with make({"a": b"", "d/f": b""}, limits=Limits(workspace_mib=1, workspace_files=5)) as sandbox:
        for path in ("a/b", "d"):
            with pytest.raises(ValueError, match="same name"):
                sandbox.write_file(path, b"")
        with pytest.raises(ValueError, match="MiB"):
            sandbox.write_file("big", b"x" * (1 << 20) + b"x")
        with pytest.raises(ValueError, match="files"):
            sandbox.restore({str(i): b"" for i in range(6)})
        sandbox.write_file("full", b"x" * (1 << 20))
        assert sandbox.run(["wc", "-c", "full"]).ok


def test_what_cannot_be_run_is_refused(make: Make) -> None:
    with make(limits=Limits(tmp_mib=1)) as sandbox:
        for argv in ([], ["a\0b"]):
            with pytest.raises(ValueError, match="argv"):
                sandbox.run(argv)
        with pytest.raises(ValueError, match="stdin"):
            sandbox.run(["cat"], stdin=b"x" * ((1 << 20) + 1))
        assert sandbox.run(["wc", "-c"], stdin=b"x" * (1 << 20)).stdout == b"1048576\n"


def test_sandboxes_in_several_threads_do_not_disturb_each_other(make: Make) -> None:
    def episode(number: int) -> bytes:
        with make({"n": str(number).encode()}) as sandbox:
            for _ in range(3):
                sandbox.run(["bash", "-c", "echo $(($(cat n) + 1)) > n"])
            return sandbox.read_file("n")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert [*pool.map(episode, range(8))] == [b"%d\n" % (n + 3) for n in range(8)]


def test_the_same_run_gives_the_same_bytes(make: Make) -> None:
    program = """
import os, sys, time
print(hash("a"), time.tzname, os.uname().nodename, os.getpid(), sorted(os.environ.items()), sys.path, os.getcwd(), os.stat("f").st_mtime)
"""
    files = {"f": b""}
    with make(files) as one, make(files) as other:
        assert one.run_python(program).stdout == other.run_python(program).stdout == one.run_python(program).stdout


def test_a_run_can_be_interrupted_from_another_thread_and_keeps_what_it_wrote(make: Make) -> None:
    with make() as sandbox:
        timer = threading.Timer(2, sandbox.interrupt)
        timer.start()
        result = sandbox.run_python("import time\nopen('partial', 'w').write('p')\nprint('begun', flush=True)\ntime.sleep(60)")
        timer.join()
        assert result.reason == "interrupted"
        assert result.stdout == b"begun\n"
        assert sandbox.files == {"partial": b"p"}
        assert sandbox.run(["true"]).ok


def test_close_ends_a_run_is_idempotent_and_final(make: Make) -> None:
    sandbox = make()
    timer = threading.Timer(0.5, sandbox.close)
    timer.start()
    assert sandbox.run(["sleep", "60"]).reason == "interrupted"
    timer.join()
    sandbox.close()
    with pytest.raises(InfrastructureError):
        sandbox.run(["true"])


def test_runs_leave_no_descriptor_no_process_and_no_thread(make: Make) -> None:
    with make() as sandbox:
        sandbox.run(["true"])
        before = len([*Path("/proc/self/fd").iterdir()]), psutil.Process().children()
        threads = threading.enumerate()
        for _ in range(5):
            sandbox.run_python("import os\nos.fork()\nos.fork()")
        assert (len([*Path("/proc/self/fd").iterdir()]), psutil.Process().children()) == before
        assert set(threading.enumerate()) <= set(threads)


def test_when_the_host_dies_everything_inside_does() -> None:
    mark = f"sleep-{os.getpid()}"
    program = f"from agent_gym.sandbox import Sandbox\nSandbox().run(['bash', '-c', 'exec -a {mark} sleep 60'])\n"
    root = Path(agent_gym.sandbox.__file__).parents[2]
    host = subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    )
    try:
        assert _wait_until(lambda: _running(mark))
    finally:
        host.kill()
        host.wait()
    assert _wait_until(lambda: not _running(mark))


def _running(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(mark.encode() + b"\0"):
                return True
        except OSError:
            continue
    return False


def _wait_until(holds: object, seconds: float = 30) -> bool:
    assert callable(holds)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False
