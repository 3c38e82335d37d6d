"""Workers as processes: right for environments that compute, leak, or have to be killed.

Nothing here waits for one worker, and there is no thread: one selector watches the sockets of all workers, and that of the nursery, which
forks them and buries them (see `agent_gym.runner.backends.nursery`).
"""

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_gym.errors import InfrastructureError
from agent_gym.runner.backends import Backend
from agent_gym.runner.backends.channel import Channel
from agent_gym.runner.backends.serving import decode_answer, encode_ask
from agent_gym.runner.messages import Answer, Ask, Usage
from agent_gym.runner.usage import measure

__all__ = ["ProcessBackend"]

_NURSERY = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a.pop(); from agent_gym.runner.backends.nursery import main; main(*a)"
)
_CLOSE = Ask(-1, "close", None)
_PATIENCE_S = 5.0
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class _Worker:
    def __init__(self, number: int, slot: int, channel: Channel) -> None:
        self.number, self.slot, self.channel = number, slot, channel
        self.ask = _CLOSE
        self.pid = 0
        self.watched = False


class ProcessBackend(Backend):
    """One process a slot, with a session, a temporary folder and a log file of its own: ``env-N/log.txt`` in ``workdir``.

    Args:
        num_envs: Slots.
        workdir: Where the folders go; by default a temporary folder that is removed at the end, with the log files.
    """

    def __init__(self, num_envs: int, workdir: str | Path | None = None) -> None:  # noqa: ARG002 - every backend is made so
        self._owned = workdir is None
        self._workdir = Path(tempfile.mkdtemp(prefix="agent-gym-pool-")) if workdir is None else Path(workdir).absolute()
        self._workdir.mkdir(parents=True, exist_ok=True)
        self._owner = os.getpid()
        self._workers: dict[int, _Worker] = {}
        self._last = 0
        self._selector = selectors.DefaultSelector()
        self._bell: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._bell_lock = threading.Lock()
        self._selector.register(self._bell, _READ, self._bell)
        self._nursery: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._orders: deque[tuple[bytes, socket.socket | None]] = deque()  # for the nursery, each with the worker's end of its socket
        self._closed = False

    def spawn(self, slot: int, ask: Ask) -> None:
        """Has a worker forked.

        Raises:
            InfrastructureError: The nursery cannot be started, or the system allows no further socket.
        """
        self._last += 1
        if self._control is None:
            self._control = self._start_nursery(getattr(ask.payload, "modules", ()))
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise InfrastructureError(f"no socket for a worker: {error}") from error
        ours.setblocking(False)
        worker = self._workers[slot] = _Worker(self._last, slot, Channel(ours))
        self._tell({"spawn": worker.number, "slot": slot}, theirs)
        self._watch(worker, _READ)
        self.send(slot, ask)

    def send(self, slot: int, ask: Ask) -> None:
        """Writes the ask to the worker's socket.

        Raises:
            TypeError: It holds something that cannot be pickled.
        """
        message = encode_ask(ask)
        worker = self._workers.get(slot)
        if worker is not None:
            worker.ask = ask
            if not worker.channel.send(message):
                self._watch(worker, _READ | _WRITE)

    def receive(self, timeout_s: float | None) -> list[Answer]:
        """What the sockets hold."""
        answers: list[Answer] = []
        events = self._selector.select(timeout_s)
        news = False
        for key, mask in events:
            if isinstance(key.data, int):
                os.eventfd_read(key.data)
                continue
            if key.data is None:
                news = bool(mask & _READ)  # last, so that an answer comes before its worker's death
                self._pass_on()
                continue
            worker: _Worker = key.data
            if mask & _WRITE and worker.channel.flush():
                self._watch(worker, _READ)
            if mask & _READ:
                answers += self._read(worker)
        return answers + self._hear() if news else answers

    def wake(self) -> None:
        """Makes a descriptor readable that the selector watches too."""
        with self._bell_lock:  # else the number could be another file's by now
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)

    def kill(self, slot: int) -> None:
        """Has the worker killed, with its session and all that it started."""
        if (worker := self._workers.pop(slot, None)) is not None:
            self._hang_up(worker)

    def received(self, slot: int) -> int:
        """How many bytes of the worker's next answer are here."""
        worker = self._workers.get(slot)
        return worker.channel.received if worker is not None else 0

    def usages(self) -> Mapping[int, Usage]:
        """What each worker and all that it started use."""
        pids = {worker.pid: slot for slot, worker in list(self._workers.items()) if worker.pid}
        return {pids[pid]: usage for pid, usage in measure(pids).items()}

    def close(self, timeout_s: float) -> None:
        """Lets the workers close their environments; then the nursery kills what is left and ends."""
        if self._closed or os.getpid() != self._owner:  # a fork of the pool's process has no say
            return
        self._closed = True
        until = time.monotonic() + timeout_s
        with contextlib.suppress(InfrastructureError):
            waiting = set(self._workers)
            for slot in waiting:
                self.send(slot, _CLOSE)
            while waiting and (left := until - time.monotonic()) > 0:
                waiting -= {answer.slot for answer in self.receive(left) if answer.kind in ("close", "died")}
        for worker in self._workers.values():
            self._unwatch(worker)
            worker.channel.close()
        self._workers.clear()
        self._dismiss()
        self._selector.close()
        with self._bell_lock:
            if self._bell is not None:
                os.close(self._bell)
            self._bell = None
        if self._owned:
            shutil.rmtree(self._workdir, ignore_errors=True)

    def _read(self, worker: _Worker) -> list[Answer]:
        answers = [decode_answer(message, worker.slot, worker.ask) for message in worker.channel.receive()]
        if not worker.channel.open:  # what became of it, the nursery will tell
            self._unwatch(worker)
            self._tell({"kill": worker.number})
        return answers

    def _hear(self) -> list[Answer]:
        """What the nursery reports."""
        answers: list[Answer] = []
        assert self._control is not None
        while True:
            try:
                packet = self._control.recv(1 << 16)
            except BlockingIOError:
                return answers
            except OSError:
                packet = b""
            if not packet:
                return answers + self._orphaned()
            news = json.loads(packet)
            number = news.get("born", news.get("gone"))
            worker = next((worker for worker in self._workers.values() if worker.number == number), None)
            if worker is None:
                continue  # it was killed on purpose
            if "born" in news:
                worker.pid = news["pid"]
            else:
                answers += self._died(worker, f"the worker's process {news['how']}")

    def _died(self, worker: _Worker, how: str) -> list[Answer]:
        answers = []
        while worker.channel.open and (messages := worker.channel.receive()):  # what it said last
            answers += [decode_answer(message, worker.slot, worker.ask) for message in messages]
        del self._workers[worker.slot]
        self._unwatch(worker)
        worker.channel.close()
        return [*answers, Answer(worker.ask.id, worker.slot, "died", None, how)]

    def _orphaned(self) -> list[Answer]:
        """The nursery is dead, and so, by the kernel's doing, are the workers."""
        self._dismiss()
        log = self._workdir / "nursery.txt"
        text = log.read_text(errors="replace")[-2000:].strip() if log.exists() else ""
        answers: list[Answer] = []
        for worker in list(self._workers.values()):
            if worker.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(worker.pid, signal.SIGKILL)
            answers += self._died(worker, f"the process that workers are forked from died {text}".strip())
        return answers

    def _hang_up(self, worker: _Worker) -> None:
        self._unwatch(worker)
        worker.channel.close()
        self._tell({"kill": worker.number})

    def _watch(self, worker: _Worker, events: int) -> None:
        (self._selector.modify if worker.watched else self._selector.register)(worker.channel, events, worker)
        worker.watched = True

    def _unwatch(self, worker: _Worker) -> None:
        if worker.watched:
            self._selector.unregister(worker.channel)
        worker.watched = False

    def _tell(self, order: Mapping[str, int], end: socket.socket | None = None) -> None:
        if self._control is not None:  # else with the nursery died all workers
            self._orders.append((json.dumps(order).encode(), end))
            self._pass_on()

    def _pass_on(self) -> None:
        """Gives the nursery the orders that its socket has room for: while it imports, it does not listen."""
        assert self._control is not None
        with contextlib.suppress(OSError):  # full, or it is dead: `_hear` will find the end of its socket
            while self._orders:
                order, end = self._orders[0]
                socket.send_fds(self._control, [order], [] if end is None else [end.fileno()])
                if end is not None:
                    end.close()
                self._orders.popleft()
        self._selector.modify(self._control, _READ | _WRITE if self._orders else _READ, None)

    def _start_nursery(self, preload: Sequence[str]) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        arguments = json.dumps([theirs.fileno(), self._owner, str(self._workdir), self._owned, list(preload), list(map(str, sys.path))])
        try:
            with theirs, (self._workdir / "nursery.txt").open("ab") as log:
                self._nursery = subprocess.Popen(
                    [sys.executable, "-c", _NURSERY, arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C is the user's business, not the workers'
                )
        except OSError as error:
            ours.close()
            raise InfrastructureError(f"the process that workers are forked from cannot be started: {error}") from error
        ours.setblocking(False)
        self._selector.register(ours, _READ, None)
        return ours

    def _dismiss(self) -> None:
        """Hangs up on the nursery, which then kills what is left, and waits for its end."""
        if self._control is not None:
            self._selector.unregister(self._control)
            with contextlib.suppress(OSError):  # its end is closed already
                self._control.shutdown(socket.SHUT_RDWR)  # a fork of this process may hold the socket too
            self._control.close()
            self._control = None
            for _, end in self._orders:
                if end is not None:
                    end.close()
            self._orders.clear()
        if self._nursery is not None:
            try:
                self._nursery.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._nursery.kill()
                self._nursery.wait()
            self._nursery = None
