"""One run of one program: started, its output read as it comes, ended, and told as a result."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import selectors
import signal
import time
from typing import cast

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox.jail import Job, Place, Reason, Report

__all__ = ["ExecResult", "Run"]

_CHUNK = 1 << 16
_KIB, _MIB = 1 << 10, 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExecResult:
    """How a run went. A limit that was hit is a result, never an exception."""

    stdout: bytes
    """Its output; where it was cut, a line says how much is missing."""
    stderr: bytes
    stdout_cut: int
    """Bytes of output that were not kept."""
    stderr_cut: int
    reason: Reason
    exit_code: int | None
    """None when a signal ended it."""
    signal: str | None
    """Such as ``SIGSEGV``; None when it ended by itself."""
    wall_s: float
    cpu_s: float
    """Seconds of all its processes, but see ``Limits.cpu_s``; neither time belongs into an observation."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Paths in the workspace that were not kept, and why: ``symbolic link``, ``pipe``, ``too much``, ``name``, …; at most 16."""
    fate: Reason | None = None
    """The limit at which what an earlier run had left running was killed since; None if it was not."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.reason == "exit" and self.exit_code == 0


class Run:
    """A program running in a sandbox.

    Args:
        place: Where.
        job: What to run.

    Raises:
        InfrastructureError: It did not start.
    """

    def __init__(self, place: Place, job: Job) -> None:
        self._limits = job.limits
        ours: list[int] = []
        theirs: list[int] = []
        try:
            for _ in range(2):
                read, write = os.pipe()
                ours.append(read)
                theirs.append(write)
            self._exchange = place.start(job, theirs)
        except BaseException as error:
            for descriptor in ours:
                os.close(descriptor)
            if isinstance(error, OSError):
                raise InfrastructureError(f"the sandbox could not be started: {error}") from error
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        keep = job.limits.output_kib * _KIB
        self._streams = {descriptor: _Kept(keep) for descriptor in ours}

    def interrupt(self) -> None:
        """Ends it soon, from any thread: ``wait`` returns with reason ``interrupted``."""
        self._exchange.stop()

    def wait(self) -> tuple[ExecResult, Report]:
        """Waits for the end.

        Returns:
            The result, and the report with the workspace as the program left it.

        Raises:
            InfrastructureError: The sandbox itself failed; nothing that the program does leads here.
        """
        try:
            flooded = self._pump()
            report = self._exchange.report()
            for descriptor, kept in self._streams.items():  # nobody writes any more: what is left is little
                os.set_blocking(descriptor, False)  # a fork of this process may hold the other end: then there is no end of file
                with contextlib.suppress(BlockingIOError):
                    while data := os.read(descriptor, _CHUNK):
                        kept.add(data)
        except OSError as error:
            raise InfrastructureError(f"the sandbox's output could not be read: {error}") from error
        finally:
            self._exchange.close()
            for descriptor in self._streams:
                os.close(descriptor)
        reason = report.reason
        if reason == "stopped":
            reason = "output" if flooded else "interrupted"
        stdout, stderr = self._streams.values()
        ended = os.WIFEXITED(report.status)
        result = ExecResult(
            stdout=stdout.text(),
            stderr=stderr.text(),
            stdout_cut=stdout.cut,
            stderr_cut=stderr.cut,
            reason=cast("Reason", reason),
            exit_code=os.WEXITSTATUS(report.status) if ended else None,
            signal=None if ended else _signal_name(os.WTERMSIG(report.status)),
            wall_s=report.wall_s,
            cpu_s=report.cpu_s,
            left_out=report.left_out,
            fate=cast("Reason | None", report.fate or None),
        )
        return result, report

    def _pump(self) -> bool:
        """Reads output until process 1 has something to say. Returns whether there was too much."""
        flooded = False
        with selectors.DefaultSelector() as selector:
            selector.register(self._exchange.channel, selectors.EVENT_READ)
            for descriptor in self._streams:
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                ready = [key.fd for key, _ in selector.select(max(0.0, self._exchange.deadline - time.monotonic()))]
                if self._exchange.channel.fileno() in ready:
                    return flooded
                if not ready:
                    raise InfrastructureError("the sandbox did not end its run in time")
                for descriptor in ready:
                    data = os.read(descriptor, _CHUNK)
                    self._streams[descriptor].add(data)
                    if not data:
                        selector.unregister(descriptor)
                if not flooded and sum(kept.total for kept in self._streams.values()) > self._limits.flood_mib * _MIB:
                    flooded = True
                    self._exchange.stop()


class _Kept:
    """The first three quarters and the last quarter of a stream."""

    def __init__(self, keep: int) -> None:
        self._keep_head, self._keep_tail = keep - keep // 4, keep // 4
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._keep_head - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._keep_tail]

    @property
    def cut(self) -> int:
        return self.total - len(self._head) - len(self._tail)

    def text(self) -> bytes:
        gap = b"\n[... %d bytes cut ...]\n" % self.cut if self.cut else b""
        return bytes(self._head + gap + self._tail)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time one
