"""What code inside can see and reach: nothing of the host's."""

import contextlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agent_gym.sandbox
from agent_gym.sandbox import Limits
from tests.sandbox.conftest import Make

pytestmark = pytest.mark.usefixtures("needs_sandbox")


@pytest.fixture
def run(make: Make) -> Callable[[str], Any]:
    """Runs a program that leaves JSON in ``out`` and returns it."""

    def run(program: str) -> Any:
        result = make(limits=Limits(wall_s=60), loopback=True).run_python("import json, os\n" + program + "\nprint(json.dumps(out))")
        assert result.ok, result.stderr.decode()
        return json.loads(result.stdout)

    return run


def test_no_network_but_its_own_loopback(run: Callable[[str], Any]) -> None:
    program = """
import socket
out = []
for address in (("1.1.1.1", 53), ("169.254.169.254", 80), ("2606:4700::1111", 53)):
    try: socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET).connect(address)
    except OSError as e: out.append(type(e).__name__)
    else: out.append("connected")
try: out.append(socket.gethostbyname("example.org"))
except OSError: out.append("no name")
server = socket.create_server(("localhost", 0))
out.append(socket.create_connection(server.getsockname()) is not None)
"""
    assert run(program) == ["OSError", "OSError", "OSError", "no name", True]


def test_the_hosts_own_ports_and_abstract_sockets_are_out_of_reach(run: Callable[[str], Any]) -> None:
    name = f"\0agent-gym-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(name)
        abstract.listen()
        program = f"""
import socket
out = []
for family, address in ((socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]})), (socket.AF_UNIX, {name!r})):
    try: socket.socket(family).connect(address)
    except ConnectionRefusedError: out.append("refused")
"""
        assert run(program) == ["refused", "refused"]


def test_odd_socket_families_are_refused(run: Callable[[str], Any]) -> None:
    program = """
import socket
out = []
for family in (*range(3, 10), *range(11, 46)):
    for make in (socket.socket, socket.socketpair):
        try: make(family, socket.SOCK_RAW)
        except OSError as e:
            if e.errno != 97: out.append([family, e.errno])
        else: out.append([family, "made"])
"""
    assert run(program) == []


def test_no_file_of_the_hosts_but_the_system(run: Callable[[str], Any]) -> None:
    project = Path(agent_gym.sandbox.__file__).parents[2]
    paths = [
        "/root",
        "/home",
        "/etc/shadow",
        "/etc/ssh",
        "/var",
        "/opt",
        "/srv",
        "/mnt",
        "/boot",
        "/sys",
        str(Path.home()),
        str(project),
        "/usr/../root",
    ]
    program = f"out = [[p for p in {paths!r} if os.path.lexists(p)], sorted(os.listdir('/')), open('/etc/passwd').read()]"
    found, root, passwd = run(program)
    assert found == []
    assert set(root) <= {"bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "tmp", "usr", "workspace"}
    assert passwd.count("\n") == 1


def test_no_environment_and_no_descriptor_of_the_hosts(monkeypatch: pytest.MonkeyPatch, run: Callable[[str], Any]) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "canary-9f3a")
    read, write = os.pipe()
    os.set_inheritable(read, True)
    try:
        program = """
out = [sorted(int(d) for d in os.listdir("/proc/self/fd")), "canary-9f3a" in str(os.environ)]
for pid in os.listdir("/proc"):
    if pid.isdigit():
        try: out.append(b"canary" in open(f"/proc/{pid}/environ", "rb").read())
        except PermissionError: out.append(None)
"""
        descriptors, *seen = run(program)
    finally:
        os.close(read)
        os.close(write)
    assert descriptors == [0, 1, 2, 3]  # 3 is the listing itself
    assert True not in seen


def test_only_its_own_processes_and_no_privileges(run: Callable[[str], Any]) -> None:
    program = """
status = {words[0]: words[1] for words in map(str.split, open("/proc/self/status")) if len(words) > 1}
out = [sorted(p for p in os.listdir("/proc") if p.isdigit()), os.getuid(),
       [status[k + ":"] for k in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp")]]
"""
    processes, uid, status = run(program)
    assert processes == ["1", "2"]
    assert uid == 1000
    assert [int(value, 16) for value in status] == [0, 0, 0, 0, 1, 2]


def test_on_the_host_its_processes_are_an_ordinary_users(make: Make) -> None:
    mark = f"marked-{os.getpid()}"
    with make() as sandbox:
        thread = threading.Thread(target=sandbox.run, args=(["bash", "-c", f"exec -a {mark} sleep 60"],))
        thread.start()
        owners: set[int] = set()
        deadline = time.monotonic() + 30
        while not owners and time.monotonic() < deadline:
            for path in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if (path / "cmdline").read_bytes().startswith(mark.encode()):
                        owners.add(path.stat().st_uid)
            time.sleep(0.05)
        sandbox.interrupt()
        thread.join()
    assert owners
    assert 0 not in owners


def test_process_1_cannot_be_read_signalled_or_traced(run: Callable[[str], Any]) -> None:
    program = """
import ctypes, signal
out = []
for name in ("mem", "environ", "maps", "fd/0", "root", "cwd", "exe"):
    try:
        os.readlink(f"/proc/1/{name}") if name in ("root", "cwd", "exe", "fd/0") else open(f"/proc/1/{name}", "rb").read(1)
    except PermissionError: pass
    else: out.append(name)
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
    for pid in (1, -1):
        try: os.kill(pid, n)
        except ProcessLookupError: pass  # -1: there is nobody but process 1 and this one
libc = ctypes.CDLL(None, use_errno=True)
out.append(libc.ptrace(16, 1, 0, 0))
"""
    assert run(program) == [-1]


def test_dangerous_system_calls_are_refused(run: Callable[[str], Any]) -> None:
    # x86_64 and aarch64 share the numbers from 424 on; the rest go by name through the C library.
    program = r"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(f, *args):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno()) if f(*args) < 0 else "allowed"
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
out = {
    "io_uring_setup": call(libc.syscall, 425, 1, 0),
    "clone3": call(libc.syscall, 435, 0, 0),
    "memfd_secret": call(libc.syscall, 447, 0),
    "pidfd_getfd": call(libc.syscall, 438, 1, 1, 0),
    "memfd_create": call(libc.memfd_create, b"x", 0),
    "unshare": call(libc.unshare, 0x10000000),
    "clone(NEWUSER)": call(libc.syscall, clone, 0x10000011, 0, 0, 0, 0),
    "setns": call(libc.setns, 0, 0),
    "mount": call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, 0),
    "umount2": call(libc.umount2, b"/workspace", 2),
    "chroot": call(libc.chroot, b"/tmp"),
    "shmget": call(libc.shmget, 0, 4096, 0o1600),
    "msgget": call(libc.msgget, 0, 0o1600),
    "semget": call(libc.semget, 0, 1, 0o1600),
    "mq_open": call(libc.mq_open, b"/x", 0o102, 0o600, 0),
    "personality": call(libc.personality, 0x0040000),
    "process_vm_readv": call(libc.process_vm_readv, 1, 0, 0, 0, 0, 0),
    "sethostname": call(libc.sethostname, b"x", 1),
}
"""
    out = run(program)
    assert out.pop("clone3") == "ENOSYS"
    assert set(out.values()) == {"EPERM"}, out


def test_ordinary_programs_are_not_disturbed(run: Callable[[str], Any]) -> None:
    program = """
import asyncio, concurrent.futures, multiprocessing, sqlite3, subprocess, tempfile, threading
with concurrent.futures.ThreadPoolExecutor(4) as pool: out = [sum(pool.map(abs, range(10)))]
async def main():
    p = await asyncio.create_subprocess_exec("echo", "hi", stdout=-1)
    return (await p.communicate())[0].decode()
out.append(asyncio.run(main()))
with multiprocessing.get_context("fork").Pool(2) as pool: out.append(pool.map(abs, [-1, -2]))
out.append(sqlite3.connect("x.db").execute("select 1").fetchone()[0])
out.append(subprocess.run("echo $((1+1)) | cat", shell=True, capture_output=True, text=True).stdout)
with tempfile.NamedTemporaryFile() as f: out.append(f.name.startswith("/tmp/"))
"""
    assert run(program) == [45, "hi\n", [1, 2], 1, "2\n", True]


def test_a_filter_is_well_formed_for_each_architecture_and_its_numbers_are_the_kernels() -> None:
    from agent_gym.sandbox.seccomp import ARCHITECTURES, NUMBERS, bpf

    for machine in ARCHITECTURES:
        program = bpf(machine)
        count = len(program) // 8
        for position in range(count):
            code, if_true, if_false, _ = struct.unpack_from("<HBBI", program, position * 8)
            if code & 7 == 5:  # jumps stay inside, and forward
                assert position + 1 + max(if_true, if_false) < count
        assert struct.unpack_from("<H", program, len(program) - 8) == (0x06,)
    for column, header in ((0, "x86_64-linux-gnu/asm/unistd_64.h"), (1, "asm-generic/unistd.h")):
        path = Path("/usr/include") / header
        if path.exists():
            lines = [line.split() for line in path.read_text().splitlines() if line.startswith("#define __NR")]
            known = {w[1].removeprefix("__NR3264_").removeprefix("__NR_"): int(w[2]) for w in lines if len(w) > 2 and w[2].isdigit()}
            for name, numbers in NUMBERS.items():
                assert known.get(name, numbers[column]) == numbers[column], name
