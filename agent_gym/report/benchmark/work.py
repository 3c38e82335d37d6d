"""Runs the command lines of a plan, some side by side, and keeps each one's answer, so that nothing answered is ever run twice.

In the benchmark's folder::

    answers/ENV/POLICY-seedN/STEP.json   what became of a command: see `Record`
    answers/ENV/POLICY-seedN/STEP.log    its stderr
    train/ENV/POLICY-seedN/              the folder of a training
    store/                               the trajectory store with every episode
    lock                                 held by whoever works here, and by the commands under way
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_gym.errors import AgentGymError
from agent_gym.report.benchmark.plan import TRAIN, Chain, Command, Plan
from agent_gym.report.figures import visible
from agent_gym.report.kit import write

__all__ = ["Event", "FolderBusy", "Record", "answers", "work"]

_LAST_LINES = 8
_GRACE_S = 10.0


class FolderBusy(AgentGymError):
    """Another benchmark works in the folder, or commands of one that was killed are still under way."""


@dataclass(frozen=True)
class Record:
    """What became of a command.

    Attributes:
        key: See `Chain.key`; where it is another one now, the record counts for nothing.
        status: ``begun``, ``done`` or ``failed``.
        attempts: How often it was begun. Trainings go on where they were broken off.
        wall_s: Wall-clock seconds, of all attempts that ended in our presence.
        cpu_s: User and system seconds of it and its children, likewise.
        jobs: How many commands ran side by side.
        answer: The JSON object it printed.
        error: The last lines of its stderr, if it failed.
    """

    key: dict[str, Any]
    status: str = "begun"
    attempts: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    jobs: int = 1
    answer: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Event:
    """How far the work is.

    Attributes:
        done: Commands that have been dealt with, those answered before included.
        total: All of them.
        running: Those under way, as ``ENV/POLICY-seedN STEP``.
        ended: The one that has just ended, with its status and seconds; empty where one begins.
    """

    done: int
    total: int
    running: tuple[str, ...]
    ended: str = ""


def answers(chain: Chain, folder: Path) -> list[Record | None]:
    """The records of a chain's commands, as far as they hold; None for one that was never begun, or whose training is not done."""
    found: list[Record | None] = []
    for number, command in enumerate(chain.commands):
        record = _read(_file(folder, chain, command))
        trained = number == 0 or chain.commands[0].step != TRAIN or (found[0] is not None and found[0].status == "done")
        found.append(record if trained and record is not None and record.key == chain.key(number) else None)
    return found


def work(plan: Plan, folder: Path, *, jobs: int, say: Callable[[Event], None] = lambda _: None) -> None:
    """Runs what has no answer yet. A command that fails is left at that; what needs its model is not run, everything else is.

    Args:
        plan: What is to be run.
        folder: The benchmark's folder.
        jobs: Commands side by side, from 1.
        say: Is told how things stand at the start, and of each command's beginning and end; never by two threads at once.

    Raises:
        FolderBusy: Somebody else works there.
        KeyboardInterrupt: It was broken off; no command is left running, and another call goes on from there.
    """
    with _locked(folder) as lock, ThreadPoolExecutor(jobs) as pool:
        worker = _Worker(plan, folder, jobs, say, lock)
        futures = [pool.submit(worker.run, chain) for chain in plan.chains]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            worker.stop()
            raise


class _Stopped(Exception):
    """Everything is being broken off."""


class _Worker:
    """Runs chains from several threads, and can end whatever they have under way."""

    def __init__(self, plan: Plan, folder: Path, jobs: int, say: Callable[[Event], None], lock: int) -> None:
        self._folder, self._jobs, self._say, self._lock_fd = folder, jobs, say, lock
        records = [record for chain in plan.chains for record in answers(chain, folder)]
        self._total = len(records)
        self._done = sum(record is not None and record.status == "done" for record in records)
        self._names: list[str] = []
        self._running: set[int] = set()
        self._stopped = False
        self._lock = threading.Lock()
        say(Event(self._done, self._total, ()))

    def run(self, chain: Chain) -> None:
        """Runs what a chain still lacks."""
        for number, (command, record) in enumerate(zip(chain.commands, answers(chain, self._folder), strict=True)):
            if record is not None and record.status == "done":
                continue
            goes_on = record if command.step == TRAIN else None  # a measurement begins anew
            try:
                done = self._command(chain, command, goes_on or Record(chain.key(number)))
            except _Stopped:
                return
            if command.step == TRAIN and not done:
                self._ended(len(chain.commands) - number - 1)
                return

    def _command(self, chain: Chain, command: Command, record: Record) -> bool:
        file = _file(self._folder, chain, command)
        if command.step == TRAIN and not record.attempts:  # what is there was trained otherwise, and so was what was measured
            shutil.rmtree(self._folder / TRAIN / chain.place, ignore_errors=True)
            for other in chain.commands:
                _file(self._folder, chain, other).unlink(missing_ok=True)
        record = replace(record, status="begun", attempts=record.attempts + 1, jobs=self._jobs, error="")
        _write(file, record)
        name = f"{chain.place} {command.step}"
        self._began(name)
        out, log = file.with_suffix(".out"), file.with_suffix(".log")
        status, wall_s, cpu_s = self._process(command.within(self._folder), out, log)
        record = replace(record, wall_s=record.wall_s + wall_s, cpu_s=record.cpu_s + cpu_s)
        if self._stopped and status:
            _write(file, record)
            out.unlink()
            raise _Stopped
        record = _judged(record, status, out, log)
        _write(file, record)
        out.unlink()
        self._ended(1, name, f"{name}: {record.status}, {wall_s:.0f} s")
        return record.status == "done"

    def _process(self, arguments: Sequence[str], out: Path, log: Path) -> tuple[int, float, float]:
        """Runs a command to its end: its exit status (negative for a signal), its wall-clock and its CPU seconds."""
        with out.open("wb") as stdout, log.open("wb") as stderr, self._lock:
            if self._stopped:
                raise _Stopped
            started = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", "agent_gym.cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,  # a group that can be ended as a whole, and that an interrupt from the terminal does not reach
                pass_fds=[self._lock_fd],
            )
            self._running.add(process.pid)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall_s = time.monotonic() - started
        with self._lock:  # until it is reaped nobody else can have its number
            _signal(process.pid, signal.SIGKILL)  # whatever it may have left
            self._running.discard(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, wall_s, usage.ru_utime + usage.ru_stime

    def stop(self) -> None:
        """Ends what is under way; nothing is begun any more."""
        deadline = time.monotonic() + _GRACE_S
        with self._lock:
            self._stopped = True
            for pid in self._running:
                _signal(pid, signal.SIGTERM)
        while self._running and time.monotonic() < deadline:
            time.sleep(0.05)
        with self._lock:
            for pid in self._running:
                _signal(pid, signal.SIGKILL)

    def _began(self, name: str) -> None:
        with self._lock:
            self._names.append(name)
            self._say(Event(self._done, self._total, tuple(self._names)))

    def _ended(self, count: int, name: str | None = None, told: str = "") -> None:
        with self._lock:
            if name is not None:
                self._names.remove(name)
            self._done += count
            self._say(Event(self._done, self._total, tuple(self._names), told))


def _judged(record: Record, status: int, out: Path, log: Path) -> Record:
    try:
        answer = json.loads(out.read_bytes())
    except ValueError:
        answer = None
    if status == 0 and isinstance(answer, dict):
        return replace(record, status="done", answer=answer)
    lines = visible(log.read_text(encoding="utf-8", errors="replace")).strip().splitlines()[-_LAST_LINES:]
    return replace(record, status="failed", error="\n".join([f"exit status {status}", *lines]))


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, number)


def _file(folder: Path, chain: Chain, command: Command) -> Path:
    return folder / "answers" / chain.place / f"{command.step}.json"


def _read(file: Path) -> Record | None:
    try:
        return Record(**json.loads(file.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):  # half a record, or one of other fields, answers nothing
        return None


def _write(file: Path, record: Record) -> None:
    write(file, json.dumps(asdict(record), indent=1))


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """The folder for oneself. Commands under way hold the lock too, so that what a killed benchmark left is not worked beside."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderBusy(
                f"a benchmark is under way in {str(folder)!r}, or commands of one that was killed; wait for it, or give another --folder"
            ) from error
        yield file.fileno()
