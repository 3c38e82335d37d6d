"""A warm sandbox: one ``bwrap`` with a Python in it that waits, loaded, to fork into an episode, whose runs are forks again.

What goes over its sockets are descriptors: of an episode's own socket to the zygote, of a run's channel and outputs to the episode. On a
run's channel the same is said as to a sandbox of its own. So there is nothing that replies could be mixed up in: each run has a channel of
its own, which a program never holds; and a reset is a new socket for a new episode, with everything of the old one killed.
"""

from __future__ import annotations

import dataclasses
import os
import select
import socket
import subprocess
import weakref
from collections.abc import Sequence
from pathlib import Path

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox.bubblewrap import LIBRARY, Sources, bwrap, end, environment
from agent_gym.sandbox.cgroup import Group, delegated
from agent_gym.sandbox.jail import Exchange, Job, Report, packed
from agent_gym.sandbox.machine import Machine

__all__ = ["Box"]

_READY_S = 30.0
_CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_NET_ADMIN")  # in its own user namespace; no program has them


class Box:
    """One warm sandbox. It starts in the background, and so does every reset; whoever needs it waits.

    Args:
        machine: From ``preflight``.

    Raises:
        InfrastructureError: It did not start.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._owner = os.getpid()
        self._ready = False
        self._parent = delegated()
        self._group: Group | None = None
        self.resets = 0
        try:
            self._control, theirs = socket.socketpair()
            try:
                with theirs:
                    self._process = _start(machine, theirs.fileno())
            except BaseException:
                self._control.close()
                raise
        except OSError as error:
            raise InfrastructureError(f"the sandbox could not be started: {error}") from error
        self._channels = [self._control]
        self._end = weakref.finalize(self, end, self._process, self._channels, self._owner)
        self.reset()

    @property
    def pid(self) -> int:
        """Of bwrap."""
        return self._process.pid

    def reset(self) -> None:
        """Kills the episode with everything in it, and has a new one made. Does not wait.

        Raises:
            InfrastructureError: The sandbox has failed.
        """
        self._check()
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise InfrastructureError(f"the sandbox could not be reset: {error}") from error
        with theirs:
            for old in self._channels[1:]:
                old.close()
            self._channels[1:] = [ours]
            self._pass(self._control, [theirs.fileno()])
        self._ready = False
        self.resets += 1

    def wait(self) -> None:
        """Waits until the new episode is there.

        Raises:
            InfrastructureError: The sandbox has failed.
        """
        self._check()
        episode = self._channels[-1]
        try:
            if not self._ready:
                episode.settimeout(_READY_S)
                self._ready = episode.recv(1) == b"r"
            poll = select.poll()
            poll.register(episode, select.POLLIN)
            if not self._ready or poll.poll(0):
                raise EOFError
            if self._parent and not self._group:  # before any program runs: what it starts is then in it too
                self._group = Group(self._parent, _tree(self.pid))
                weakref.finalize(self, self._group.close)
        except (OSError, EOFError) as error:
            raise self.failure(f"it is gone ({error or 'end of file'})") from error

    def start(self, job: Job, descriptors: Sequence[int]) -> Exchange:
        """Runs a job in the episode; see `Place`."""
        self.wait()
        if self._group:
            try:
                self._group.bound(job.limits)
            except OSError as error:
                raise self.failure(f"its cgroup cannot be bounded ({error})") from error
        return _Turn(self, self._machine, job, descriptors)

    @property
    def out_of_memory(self) -> int:
        """How often the kernel has killed something inside for want of memory, as far as a cgroup tells."""
        return self._group.out_of_memory if self._group else 0

    def begin(self, given: Sequence[int]) -> None:
        """Hands a run's channel and outputs to the episode.

        Raises:
            InfrastructureError: The sandbox has failed.
        """
        self._pass(self._channels[-1], given)

    def close(self) -> str:
        """Ends it; again is nothing. Returns what it wrote to its own error stream."""
        said = self._end() or ""
        if self._group:
            self._group.close()
        return said

    def forget(self) -> None:
        """In a fork of the process that started it: lets go of it, and leaves it alone."""
        self._process.returncode = 0  # not this process's child: nothing to wait for
        if self._process.stderr:
            self._process.stderr.close()
        self._end()

    def failure(self, what: str) -> InfrastructureError:
        """Ends it, and says why."""
        return InfrastructureError(f"the sandbox failed: {what}; it said: {self.close() or 'nothing'}")

    @property
    def alive(self) -> bool:
        """Whether it has not been ended."""
        return self._end.alive

    def _check(self) -> None:
        if os.getpid() != self._owner:
            raise InfrastructureError("this sandbox belongs to the process that started it, not to a fork of it")
        if not self.alive:
            raise InfrastructureError("this sandbox has ended")

    def _pass(self, channel: socket.socket, descriptors: Sequence[int]) -> None:
        try:
            channel.settimeout(_READY_S)
            socket.send_fds(channel, [b"d"], list(descriptors))
        except OSError as error:
            raise self.failure(f"it is gone ({error})") from error


class _Turn(Exchange):
    """One run in a warm sandbox."""

    def __init__(self, box: Box, machine: Machine, job: Job, descriptors: Sequence[int]) -> None:
        self._box = box
        self._out_of_memory = box.out_of_memory
        try:
            channel, theirs = socket.socketpair()
        except OSError as error:
            raise InfrastructureError(f"the run could not be started: {error}") from error
        super().__init__(channel, job)
        given = [d for d in descriptors if d >= 0]
        try:
            with theirs:
                box.begin([theirs.fileno(), *given])
            self.send(packed(machine, job, [given.index(d) if d >= 0 else -1 for d in descriptors]))
        except BaseException:
            channel.close()
            raise

    def report(self) -> Report:
        """See `Exchange.report`."""
        report = super().report()
        killed = report.reason == "exit" and self._box.out_of_memory > self._out_of_memory
        return dataclasses.replace(report, reason="memory") if killed else report

    def close(self) -> None:
        """Ends the run; again is nothing."""
        self.stop()
        self.channel.close()

    def _end_all(self) -> str:
        self.channel.close()
        return self._box.close()


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(below for child in children for below in _tree(int(child)))]


def _start(machine: Machine, channel: int) -> subprocess.Popen[bytes]:
    with Sources() as sources:
        words = [
            "--dir",
            "/workspace",
            "--dir",
            "/tmp",
            "--dir",
            "/run/program",
            "--file",
            sources.add(machine.filter),
            f"{LIBRARY}/filter",
        ]
        for capability in _CAPABILITIES:
            words += ("--cap-add", capability)
        for name, value in environment(machine, LIBRARY).items():
            words += ("--setenv", name, value)
        program = [machine.python, "-s", f"{LIBRARY}/agent_gym/sandbox/inside/zygote.py", str(channel)]
        return bwrap(machine, words, program, sources, [channel])
