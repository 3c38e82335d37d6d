"""What is run in a sandbox, how the host speaks of it with process 1, and the sandbox of its own: one ``bwrap`` for one run.

A job goes in over a socket, a report comes out. No file of the host's is writable inside, and no path made inside is ever opened on the
host: the workspace travels as bytes. When the host hangs up, process 1 kills everything; when that is killed, the kernel does.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import os
import socket
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox.bubblewrap import LIBRARY, PROGRAM, Sources, bwrap, end, environment
from agent_gym.sandbox.frames import frame, pack, read_frame, unpack
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.machine import Machine

__all__ = ["Exchange", "Jail", "Job", "OneShot", "Place", "Reason", "Report", "packed"]

Reason = Literal["exit", "wall", "cpu", "memory", "files", "output", "interrupted"]
"""Why a run ended: by itself, at one of the limits, or because it was told to."""

_GRACE_S = 20.0  # for starting, reading and writing the workspace, beyond the run's own wall limit
_MIB = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """What to run."""

    argv: Sequence[str]
    limits: Limits
    script: bool = False
    """``argv`` is a Python script and its arguments, not a command."""
    files: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    stdin: bytes = b""
    program: bytes = b""
    """Lies at ``PROGRAM``."""
    kept: Limits | None = None
    """Bounds what comes back of the workspace, together with ``limits``."""
    path: str = "/workspace"
    """Value of ``PYTHONPATH``."""
    background: bool = False
    """What the program leaves running lives on. A warm sandbox only, like the rest."""
    live: bool = False
    """Something does live on: ``files`` are those that the host changed since, and ``removed`` those that it took away."""
    removed: Sequence[str] = ()
    loopback: bool = False
    """127.0.0.1 is up. In a sandbox of its own it always is."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What process 1 says at the end."""

    reason: str
    status: int
    """As waitpid(2) gives it."""
    wall_s: float
    cpu_s: float
    lives: bool
    """Something was left running and lives on."""
    fate: str
    """The limit at which what had been left running was killed before this run; empty if it was not."""
    files: dict[str, bytes]
    left_out: tuple[tuple[str, str], ...]


class Exchange(abc.ABC):
    """One run: its job on the way in, its report on the way out.

    Args:
        channel: The socket to process 1.
        job: What to run.
    """

    def __init__(self, channel: socket.socket, job: Job) -> None:
        self.channel = channel
        self.deadline = time.monotonic() + job.limits.wall_s + _GRACE_S
        self._longest = job.limits.workspace_mib * _MIB + job.limits.workspace_files * 2048 + _MIB
        self._owner = os.getpid()

    def send(self, data: bytes) -> None:
        """Sends the job.

        Raises:
            InfrastructureError: Nobody takes it.
        """
        try:
            self.channel.settimeout(_GRACE_S)
            self.channel.sendall(frame(data))
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
            reason, status, wall_s, cpu_s, lives, *fate = outcome.decode().split()
            names = [item.decode() for item in left_out]
            report = Report(
                reason=reason,
                status=int(status),
                wall_s=float(wall_s),
                cpu_s=float(cpu_s),
                lives=lives == "1",
                fate="".join(fate),
                files={path.decode(): data for path, data in sorted(zip(contents[::2], contents[1::2], strict=True))},
                left_out=tuple(zip(names[::2], names[1::2], strict=True)),
            )
        except (OSError, EOFError, ValueError) as error:
            raise self._failure(f"no report ({error or type(error).__name__})") from error
        self.close()
        return report

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the run; again is nothing."""

    @abc.abstractmethod
    def _end_all(self) -> str:
        """Ends the sandbox and returns what it wrote to its own error stream."""

    def _failure(self, what: str) -> InfrastructureError:
        return InfrastructureError(f"the sandbox failed: {what}; it said: {self._end_all() or 'nothing'}")


class Place(Protocol):
    """Where jobs are run."""

    def start(self, job: Job, descriptors: Sequence[int]) -> Exchange:
        """Starts one.

        Args:
            job: What to run.
            descriptors: For the program's descriptors from 1 on; -1 where it may speak to nobody.

        Raises:
            InfrastructureError: It did not start.
        """


class OneShot:
    """A new ``bwrap`` for each job: the slow way that the warm one is compared with.

    Args:
        machine: From ``preflight``.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def start(self, job: Job, descriptors: Sequence[int]) -> Exchange:
        """See `Place`."""
        return Jail(self._machine, job, descriptors)


class Jail(Exchange):
    """A sandbox of its own for one job.

    Args:
        machine: From ``preflight``.
        job: What to run.
        descriptors: See `Place.start`.

    Raises:
        InfrastructureError: It did not start.
    """

    def __init__(self, machine: Machine, job: Job, descriptors: Sequence[int]) -> None:
        try:
            channel, theirs = socket.socketpair()
            super().__init__(channel, job)
            try:
                with theirs:
                    process = _start(machine, job, theirs.fileno(), descriptors)
            except BaseException:
                channel.close()
                raise
        except OSError as error:
            raise InfrastructureError(f"the sandbox could not be started: {error}") from error
        self._end = weakref.finalize(self, end, process, (channel,), self._owner)
        self.send(packed(machine, job, descriptors))

    def close(self) -> None:
        """Ends everything inside; again is nothing."""
        self._end()

    def _end_all(self) -> str:
        return self._end() or ""


def _start(machine: Machine, job: Job, channel: int, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    limits = job.limits
    with Sources() as sources:
        words = ["--seccomp", sources.add(machine.filter), "--file", sources.add(job.program), PROGRAM]
        for path, size in (("/workspace", limits.workspace_mib), ("/tmp", limits.tmp_mib), ("/dev/shm", limits.tmp_mib)):
            words += ("--size", str(size * _MIB), "--tmpfs", path)
        for name, value in (("PYTHONPATH", LIBRARY), ("LC_ALL", "C.UTF-8")):
            words += ("--setenv", name, value)
        program = [machine.python, "-s", "-S", "-B", f"{LIBRARY}/agent_gym/sandbox/inside/guard.py", str(channel)]
        return bwrap(machine, words, program, sources, [channel, *(d for d in descriptors if d >= 0)])


def packed(machine: Machine, job: Job, descriptors: Sequence[int]) -> bytes:
    """The job as process 1 reads it.

    Args:
        machine: Where it will run.
        job: What to run.
        descriptors: The program's, as process 1 knows them.
    """
    limits, kept = job.limits, job.kept or job.limits
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
        limits.workspace_mib * _MIB,
        limits.tmp_mib * _MIB,
    )
    traits = [name for name in ("script", "background", "live", "loopback") if getattr(job, name)]
    return pack(
        [
            [os.fsencode(word) for word in job.argv],
            [f"{name}={value}".encode() for name, value in environment(machine, job.path).items()],
            [str(number).encode() for number in numbers],
            [" ".join(map(str, descriptors)).encode(), job.stdin, job.program, " ".join(traits).encode()],
            [part for path, data in job.files.items() for part in (path.encode(), data)],
            [path.encode() for path in job.removed],
        ]
    )
