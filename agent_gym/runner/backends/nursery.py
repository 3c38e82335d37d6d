"""The process from which a pool's workers are forked, and which sees to it that none of them, nor what they started, outlives the pool.

It is started afresh, imports what workers need, and has one thread: so forks are cheap and safe, and the user's script is not imported
again (it needs no ``if __name__ == "__main__"``). When its socket to the pool's process ends, however that process died, it kills every
worker. Each worker is the leader of a session of its own. What a worker leaves behind becomes a child of the nursery (it is their
subreaper, prctl(2)), and is killed too. If the nursery itself is killed, the kernel kills the workers (PR_SET_PDEATHSIG), but what they
started in sessions of its own lives on. A daemon that left its worker's session without ever starting a program is not known to be
that worker's, and dies with the next worker that does.

Messages are JSON, one a packet. To the nursery: ``{"spawn": worker, "slot": n}`` with the worker's end of a socket pair, and
``{"kill": worker}``. From it: ``{"born": worker, "pid": pid}`` and ``{"gone": worker, "how": text}``.
"""

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import psutil

from agent_gym.runner.backends.channel import Channel
from agent_gym.runner.backends.serving import serve

__all__ = ["main"]

_TAG = "AGENT_GYM_WORKER"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LOG_TAIL = 2_000


class _Child:
    def __init__(self, worker: int, slot: int, folder: Path) -> None:
        self.worker, self.slot = worker, slot
        self.log = folder / "log.txt"
        self.temporary = folder / f"tmp-{worker}"


class _Nursery:
    def __init__(self, control: socket.socket, parent: int, workdir: str, owned: bool) -> None:
        self._control, self._parent, self._workdir, self._owned = control, parent, Path(workdir), owned
        self._children: dict[int, _Child] = {}
        self._news: list[bytes] = []
        self._wake, wake = os.pipe()
        for descriptor in (self._wake, wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that it wakes select
        self._wakes = (self._wake, wake)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def run(self) -> None:
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._wake):
            poll.register(descriptor, select.POLLIN)
        # A peer that died with something unread resets the socket instead of closing it.
        try:
            with contextlib.suppress(ConnectionError):
                while os.getppid() == self._parent:
                    ready = [descriptor for descriptor, _ in poll.poll(50 if self._news else 1000)]
                    if self._wake in ready:
                        os.read(self._wake, 4096)
                    self._reap()
                    if self._control.fileno() in ready and not self._obey():
                        break
                    self._report()
        finally:
            self._end()

    def _obey(self) -> bool:
        """Carries out one order; False if there is nobody left to give any."""
        packet, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        if not packet:
            return False
        order = json.loads(packet)
        if "spawn" in order:
            self._spawn(order["spawn"], order["slot"], descriptors)
        elif (pid := next((pid for pid, child in self._children.items() if child.worker == order["kill"]), 0)) != 0:
            _kill_group(pid)
            _wait_for(pid)
            self._reap()
        return True

    def _spawn(self, worker: int, slot: int, descriptors: list[int]) -> None:
        child = _Child(worker, slot, self._workdir / f"env-{slot}")
        try:
            if not descriptors:  # there is no room for another here
                raise OSError("too many open files")
            child.temporary.mkdir(parents=True, exist_ok=True)
            if (pid := os.fork()) == 0:
                self._be(child, descriptors[0])
        except OSError as error:
            self._news.append(json.dumps({"gone": worker, "how": f"could not be started: {error}"}).encode())
        else:
            self._children[pid] = child
            self._news.append(json.dumps({"born": worker, "pid": pid}).encode())
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _be(self, child: _Child, descriptor: int) -> NoReturn:
        """What a fork does instead of going on."""
        status = 1
        try:
            nursery = os.getppid()
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != nursery:  # it died before it could be noticed
                os._exit(1)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for inherited in self._wakes:
                os.close(inherited)
            self._control.close()
            log = os.open(child.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # what is printed is in the log at once
            faulthandler.enable()
            os.environ["TMPDIR"] = tempfile.tempdir = str(child.temporary)
            os.environ[_TAG] = str(child.worker)
            serve(child.slot, Channel(socket.socket(fileno=descriptor)))
            status = 0
        except BaseException:  # noqa: BLE001 - a fork must never go on as a second nursery
            sys.excepthook(*sys.exc_info())
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        """Buries what is dead: with a worker its group, what it left behind, and its temporary files."""
        gone = False
        while self._any_child() and (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            child = self._children.pop(dead.si_pid, None)
            if child is not None:  # while it is unburied nobody else can have its number
                _kill_group(dead.si_pid)
            os.waitpid(dead.si_pid, 0)
            if child is not None:
                gone = True
                how = f"exited with code {dead.si_status}" if dead.si_code == os.CLD_EXITED else f"was killed by {_name(dead.si_status)}"
                shutil.rmtree(child.temporary, ignore_errors=True)
                self._news.append(json.dumps({"gone": child.worker, "how": f"{how}{_tail(child.log)}"}).encode())
        if gone:
            self._sweep()

    @staticmethod
    def _any_child() -> bool:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _sweep(self) -> None:
        """Kills what dead workers have left behind: children of the nursery that belong to no living worker."""
        alive = {str(child.worker) for child in self._children.values()}
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            left = [found for found in psutil.Process().children() if found.pid not in self._children and not self._belongs(found, alive)]
            if not left:
                return
            for found in left:
                with contextlib.suppress(psutil.Error):
                    found.kill()
            time.sleep(0.001)
            for found in left:  # once it is buried, its own children come next
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(found.pid, os.WNOHANG)

    def _belongs(self, found: psutil.Process, alive: set[str]) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            return os.getsid(found.pid) in self._children or found.environ().get(_TAG) in alive
        return False

    def _report(self) -> None:
        try:
            while self._news:
                self._control.send(self._news[0], socket.MSG_DONTWAIT)
                del self._news[0]
        except BlockingIOError:  # later
            pass
        except OSError:  # there is nobody to tell, as the next order will show
            self._news.clear()

    def _end(self) -> None:
        for pid in self._children:
            _kill_group(pid)
        self._children.clear()
        self._sweep()
        if self._owned:
            shutil.rmtree(self._workdir, ignore_errors=True)
        for folder in self._workdir.glob("env-*/tmp-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has no group yet, or is dead
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _wait_for(pid: int) -> None:
    """Waits until a killed process is dead; not for ever, since one that the kernel holds cannot die yet."""
    until = time.monotonic() + 1.0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < until:
        time.sleep(0.001)


def _name(number: int) -> str:
    """A signal's name; real-time signals have none."""
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")


def _tail(log: Path) -> str:
    text = ""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_TAIL))
        text = file.read(_LOG_TAIL).decode(errors="replace").strip()
    return f"; the end of {log}:\n{text}" if text else ""


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main(descriptor: int, parent: int, workdir: str, owned: bool, preload: list[str]) -> None:
    """Serves a pool until its process hangs up."""
    for module in preload:
        with contextlib.suppress(Exception):  # the worker will fail on it, and tell
            importlib.import_module(module)
    _Nursery(socket.socket(fileno=descriptor), parent, workdir, owned).run()
