"""One ``bwrap`` process: namespaces, a read-only system, empty file systems in memory, a call filter, and ``inside/guard.py`` as process 1.

The host talks to process 1 alone, over one socket: a job goes in, a report comes out. No file of the host's is writable inside, and no
path made inside is ever opened on the host: the workspace travels as bytes. When the host hangs up, process 1 kills everything
and ends; when the process group is killed, the kernel does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import socket
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox.frames import FrameError, frame, pack, read_frame, unpack
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.machine import Machine

__all__ = ["LIBRARY", "PROGRAM", "Jail", "Job", "Reason", "Report"]

Reason = Literal["exit", "wall", "cpu", "memory", "files", "output", "interrupted"]
"""Why a run ended: by itself, at one of the limits, or because it was told to."""

LIBRARY = "/run/lib"
"""Where this package's own modules are, inside."""
PROGRAM = "/run/main.py"
"""Where the program to run is, inside."""

_GRACE_S = 20.0  # for starting, reading and writing the workspace, beyond the run's own wall limit
_PARTING_S = 5.0  # to end by itself; killed at once, process 1 would be an orphan that nobody may be there to reap
_HERE = Path(__file__).parent
_MODULES = ("codec.py", "frames.py", "inside/guard.py", "inside/channel.py", "inside/candidate.py", "inside/grader.py")
_MIB = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """What to run."""

    argv: Sequence[str]
    limits: Limits
    files: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    stdin: bytes = b""
    program: bytes = b""
    """Lies at ``PROGRAM``."""
    kept: Limits | None = None
    """Bounds what comes back of the workspace, together with ``limits``."""
    path: str = "/workspace"
    """Value of ``PYTHONPATH``."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What process 1 says at the end."""

    reason: str
    status: int
    """As waitpid(2) gives it."""
    wall_s: float
    cpu_s: float
    files: dict[str, bytes]
    left_out: tuple[tuple[str, str], ...]


class Jail:
    """A running sandbox process.

    Args:
        machine: From ``preflight``.
        job: What to run.
        stdout: Descriptor for the program's output; without one it is thrown away.
        stderr: The same for its errors.
        calls: A socket that becomes the program's descriptor 3.

    Raises:
        InfrastructureError: It did not start.
    """

    def __init__(self, machine: Machine, job: Job, *, stdout: int = -1, stderr: int = -1, calls: socket.socket | None = None) -> None:
        self._longest = job.limits.workspace_mib * _MIB + job.limits.workspace_files * 2048 + _MIB
        self.deadline = time.monotonic() + job.limits.wall_s + _GRACE_S
        self._owner = os.getpid()
        given = [stdout, stderr, *([calls.fileno()] if calls else [])]
        try:
            self.channel, theirs = socket.socketpair()
            try:
                self._process = _start(machine, job, theirs, given)
            except BaseException:
                self.channel.close()
                raise
            finally:
                theirs.close()
        except OSError as error:
            raise InfrastructureError(f"the sandbox could not be started: {error}") from error
        self._end = weakref.finalize(self, _end, self._process, self.channel, self._owner)
        try:
            self.channel.settimeout(_GRACE_S)
            self.channel.sendall(frame(_job(machine, job, given)))
        except OSError as error:
            raise self._failure(f"it did not take the job ({error})") from error

    def stop(self) -> None:
        """Tells process 1 to kill the program and report; from any thread, but not from a fork of the process that started it."""
        if os.getpid() != self._owner:
            return
        with contextlib.suppress(OSError):  # it has ended
            self.channel.shutdown(socket.SHUT_WR)

    def report(self) -> Report:
        """Waits for the end and returns the report.

        Raises:
            InfrastructureError: Process 1 did not report in time, or at all. Nothing that the program does leads here.
        """

        def read(size: int) -> bytes:
            self.channel.settimeout(max(0.001, self.deadline - time.monotonic()))
            return self.channel.recv(size)

        try:
            [outcome], left_out, contents = unpack(read_frame(read, self._longest))
        except (OSError, EOFError, FrameError) as error:
            raise self._failure(f"no report ({error or type(error).__name__})") from error
        self.close()
        reason, status, wall_s, cpu_s = outcome.decode().split()
        names = [item.decode() for item in left_out]
        return Report(
            reason=reason,
            status=int(status),
            wall_s=float(wall_s),
            cpu_s=float(cpu_s),
            files={path.decode(): data for path, data in sorted(zip(contents[::2], contents[1::2], strict=True))},
            left_out=tuple(zip(names[::2], names[1::2], strict=True)),
        )

    def close(self) -> None:
        """Ends everything inside; again is nothing."""
        self._end()

    def _failure(self, what: str) -> InfrastructureError:
        """Ends it, and says what it wrote to its own error stream."""
        return InfrastructureError(f"the sandbox failed: {what}; it said: {self._end() or 'nothing'}")


class _Sources:
    """Bytes as in-memory files, for bwrap to read."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def add(self, data: bytes) -> str:
        descriptor = os.memfd_create("source")
        self.descriptors.append(descriptor)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return str(descriptor)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def _start(machine: Machine, job: Job, channel: socket.socket, given: Sequence[int]) -> subprocess.Popen[bytes]:
    sources = _Sources()
    try:
        with machine.executable() as (executable, descriptors, environment):
            return subprocess.Popen(
                _command(machine, job, sources, channel.fileno()),
                executable=executable,
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[channel.fileno(), *(d for d in given if d >= 0), *descriptors, *sources.descriptors],
                start_new_session=True,
                user=machine.user,
                group=machine.user,
                extra_groups=[] if machine.user else None,
            )
    finally:
        sources.close()


def _end(process: subprocess.Popen[bytes], channel: socket.socket, owner: int) -> str:
    """Hangs up, waits, and kills what has not ended by then. Returns what bwrap and process 1 wrote to their error stream.

    In a fork of the process that started it, only forgets it.
    """
    if os.getpid() != owner:
        channel.close()
        return ""
    with contextlib.suppress(OSError):  # already hung up at the other end
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()
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


def _job(machine: Machine, job: Job, descriptors: Sequence[int]) -> bytes:
    limits, kept = job.limits, job.kept or job.limits
    environment = {
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
        "PYTHONPATH": job.path,
        "PYTHONSAFEPATH": "1",
        "TMPDIR": "/tmp",
        "TZ": "UTC",
    }
    numbers = (
        limits.cpu_s,
        limits.wall_s,
        limits.memory_mib * _MIB,
        limits.processes,
        limits.open_files,
        limits.file_mib * _MIB,
        limits.workspace_files,
        min(limits.workspace_mib, kept.workspace_mib) * _MIB,
        min(limits.workspace_files, kept.workspace_files),
    )
    return pack(
        [
            [os.fsencode(word) for word in job.argv],
            [f"{name}={value}".encode() for name, value in environment.items()],
            [str(number).encode() for number in numbers],
            [" ".join(map(str, descriptors)).encode(), job.stdin],
            [part for path, data in job.files.items() for part in (path.encode(), data)],
        ]
    )


def _command(machine: Machine, job: Job, sources: _Sources, channel: int) -> list[str]:
    limits = job.limits
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
    for path, size in (("/workspace", limits.workspace_mib), ("/tmp", limits.tmp_mib), ("/dev/shm", limits.tmp_mib)):
        words += ("--size", str(size * _MIB), "--tmpfs", path)
    for name in _MODULES:
        words += ("--file", sources.add((_HERE / name).read_bytes()), f"{LIBRARY}/agent_gym/sandbox/{name}")
    words += ("--file", sources.add(job.program), PROGRAM)
    words += ("--file", sources.add(b"agent:x:1000:1000::/workspace:/bin/sh\n"), "/etc/passwd")
    words += ("--file", sources.add(b"127.0.0.1 localhost\n"), "/etc/hosts")
    words += ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")
    words += ("--seccomp", sources.add(machine.filter), "--setenv", "PYTHONPATH", LIBRARY, "--setenv", "LC_ALL", "C.UTF-8")
    return [*words, machine.python, "-s", "-S", "-B", f"{LIBRARY}/agent_gym/sandbox/inside/guard.py", str(channel)]
