"""The ``bwrap`` command: namespaces, a read-only system, one socket to the host; started, and ended again."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from agent_gym.sandbox.machine import Machine

__all__ = ["LIBRARY", "PROGRAM", "Sources", "bwrap", "end", "environment"]

LIBRARY = "/run/lib"
"""Where this package's own modules are, inside."""
PROGRAM = "/run/program/main.py"
"""Where the program to run is, inside."""

_PARTING_S = 5.0  # to end by itself; killed at once, process 1 would be an orphan that nobody may be there to reap
_HERE = Path(__file__).parent
_MODULES = ("codec.py", "frames.py", *(f"inside/{path.name}" for path in sorted((_HERE / "inside").glob("*.py"))))


class Sources(contextlib.AbstractContextManager["Sources"]):
    """Bytes as in-memory files, for bwrap to read."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def add(self, data: bytes) -> str:
        """Makes one; returns its descriptor's number."""
        descriptor = os.memfd_create("source")
        self.descriptors.append(descriptor)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return str(descriptor)

    def __exit__(self, *_: object) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def environment(machine: Machine, path: str) -> dict[str, str]:
    """A program's environment.

    Args:
        machine: From ``preflight``.
        path: Value of ``PYTHONPATH``.
    """
    return {
        "HOME": "/workspace",
        "LC_ALL": "C.UTF-8",
        "MALLOC_ARENA_MAX": "2",  # each of the C library's arenas reserves 64 MiB of address space
        "MKL_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": f"{Path(machine.python).parent}:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": path,
        "PYTHONSAFEPATH": "1",
        "TMPDIR": "/tmp",
        "TZ": "UTC",
    }


def bwrap(
    machine: Machine, options: Sequence[str], program: Sequence[str], sources: Sources, kept: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Starts a sandbox.

    Args:
        machine: From ``preflight``.
        options: What this one has beyond the rest: where programs may write, and with which rights.
        program: Process 1 and its arguments.
        sources: What the options refer to; takes more.
        kept: Descriptors that process 1 gets.

    Raises:
        OSError: It did not start.
    """
    words = _command(machine, options, program, sources)
    with machine.executable() as (executable, descriptors, variables):
        return subprocess.Popen(
            words,
            executable=executable,
            env=variables,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[*kept, *descriptors, *sources.descriptors],
            start_new_session=True,
            user=machine.user,
            group=machine.user,
            extra_groups=[] if machine.user else None,
        )


def _command(machine: Machine, options: Sequence[str], program: Sequence[str], sources: Sources) -> list[str]:
    words = ["bwrap", "--unshare-all", "--as-pid-1", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"]
    for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if Path(path).is_symlink():
            words += ("--symlink", str(Path(path).readlink()), path)
        elif Path(path).is_dir():
            words += ("--ro-bind", path, path)
    for path in ("/etc/alternatives", "/etc/ld.so.cache"):
        words += ("--ro-bind-try", path, path)
    for path in machine.hidden:
        words += ("--tmpfs", path, "--remount-ro", path)
    # What stands for /dev/zero reads the same, but no memory that escapes the count can be mapped from it.
    words += ("--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero")
    for name in _MODULES:
        words += ("--file", sources.add((_HERE / name).read_bytes()), f"{LIBRARY}/agent_gym/sandbox/{name}")
    words += ("--file", sources.add(b"agent:x:1000:1000::/workspace:/bin/sh\n"), "/etc/passwd")
    words += ("--file", sources.add(b"127.0.0.1 localhost\n"), "/etc/hosts")
    return [*words, *options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", *program]


def end(process: subprocess.Popen[bytes], channels: Sequence[socket.socket], owner: int) -> str:
    """Hangs up, waits, and kills what has not ended by then. Returns what bwrap and process 1 wrote to their error stream.

    In a fork of the process that started it, only forgets it.
    """
    for channel in channels:
        if os.getpid() == owner:
            with contextlib.suppress(OSError):  # already hung up at the other end
                channel.shutdown(socket.SHUT_RDWR)
        channel.close()
    if os.getpid() != owner:
        return ""
    if not _ends(process):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stderr is not None
    with process.stderr as stream:
        os.set_blocking(stream.fileno(), False)
        return (stream.read(2000) or b"").decode(errors="replace").strip()


def _ends(process: subprocess.Popen[bytes]) -> bool:
    try:
        ended = os.pidfd_open(process.pid)
    except OSError:  # no descriptor is free: look now and then
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PARTING_S)
        return process.returncode is not None
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    ready = poll.poll(_PARTING_S * 1000)
    os.close(ended)
    return bool(ready)
