# ruff: noqa: SIM105, PTH123, PTH208 (pathlib and contextlib would double the time that a sandbox of its own takes to start)
"""One run of one program, seen from process 1: started under limits, watched, ended, and told as a report.

Trusted; never runs the agent's code itself. As process 1 of its namespace no signal from inside can touch it, and it is undumpable before
a program starts, so that neither its memory nor its descriptors can be opened through ``/proc``. A program gets its own ends of the output
pipes; the channel to the host stays here. The host closing its writing half of the channel means: stop now, and still report.

A system's Python runs this file, so it keeps to what Python 3.9 knows, and imports little: ``guard.py`` starts anew for every run.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal itself builds enums, slowly
import os
import resource
import select
import time

from agent_gym.sandbox.frames import frame, pack, read_frame, unpack
from agent_gym.sandbox.inside.files import WORKSPACE, collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OURS", "Become", "Job", "Watch", "ignore_signals", "kill_all", "processes", "reap", "run"]

_TICK_S = 0.02
_MIB = 1 << 20
_TROUBLE = 250  # the descriptor that a child tells trouble on, before it is a program
_CLOCK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
OURS = 1
"""Our own processes, which the kernel counts with the program's. The zygote is one more."""


class Become(Exception):
    """Leaves process 1's code in a child that is to be a Python script from now on: nothing of ours stays on its stack."""

    def __init__(self, argv: list[str]) -> None:
        super().__init__(argv)
        self.argv = argv


class Job:
    """What the host wants to have run: times in seconds, sizes in bytes.

    Args:
        channel: The descriptor to read it from.
    """

    def __init__(self, channel: int) -> None:
        self.argv, environment, numbers, options, self.files, self.removed = unpack(
            read_frame(lambda size: os.read(channel, size), 1 << 32)
        )
        self.environment = dict(item.split(b"=", 1) for item in environment)
        self.cpu_s, self.wall_s = float(numbers[0]), float(numbers[1])
        self.memory, self.processes, self.open_files, self.file, self.count, self.kept, self.kept_count, self.size, self.tmp = map(
            int, numbers[2:]
        )
        descriptors, self.stdin, self.program, traits = options
        self.descriptors = [int(word) for word in descriptors.split()]
        words = traits.split()
        self.script = b"script" in words
        """``argv`` is a Python script and its arguments, not a command."""
        self.background = b"background" in words
        """What the program leaves running lives on."""
        self.live = b"live" in words
        """Something lives on from an earlier run: the workspace is as it is, and ``files`` are what the host changed in it."""
        self.loopback = b"loopback" in words


class Watch:
    """Counts what all processes use from now on, and knows when it is too much."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.started = time.monotonic()
        self._reaped = _reaped_cpu_s()
        self._seen: dict[tuple[str, bytes], float] = {}
        self._before: dict[tuple[str, bytes], float] = {}
        if job.live:
            self._look()
            self._before = dict(self._seen)

    @property
    def wall_s(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    @property
    def cpu_s(self) -> float:
        """As far as has been seen: of those that ended and were waited for, or of each process by itself, whichever is more.

        A child that its parent ignores is counted nowhere else.
        """
        return max(_reaped_cpu_s() - self._reaped, sum(self._seen.values()) - sum(self._before.values()))

    def excess(self, timed: bool = True) -> str:
        """The limit that the whole tree is over, or an empty string.

        Args:
            timed: Whether elapsed time counts.
        """
        job = self.job
        if timed and self.wall_s > job.wall_s:
            return "wall"
        for path in (WORKSPACE, "/tmp", "/dev/shm"):
            space = os.statvfs(path)
            if space.f_files - space.f_ffree > job.count + 1:
                return "files"
        pids, running_s, resident = self._look()
        if max(_reaped_cpu_s() - self._reaped + running_s, self.cpu_s) > job.cpu_s:
            return "cpu"
        if resident > job.memory and sum(map(_share, pids)) > job.memory:
            return "memory"
        return ""

    def _look(self) -> tuple[list[str], float, int]:
        """Ids of the processes, their CPU seconds with those of children they waited for, their resident bytes."""
        cpu_s, resident = 0.0, 0
        pids = processes()
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()  # from field 3 of proc(5) on: the name may hold anything
            except OSError:
                continue  # it ended meanwhile
            key = pid, fields[19]
            cpu_s += sum(map(int, fields[11:15])) / _CLOCK - self._before.get(key, 0.0)
            self._seen[key] = sum(map(int, fields[11:13])) / _CLOCK
            resident += int(fields[21]) * _PAGE
        return pids, cpu_s, resident


def run(
    job: Job,
    channel: int,
    descriptors: list[int],
    armed: Callable[[], None] | None = None,
    fate: str = "",
    hide: Callable[[], None] | None = None,
) -> Watch | None:
    """Does one job and reports on the channel.

    Args:
        job: The job; its files are in place.
        channel: To the host.
        descriptors: The program's from 1 on; -1 stands for ``/dev/null``.
        armed: In the child, the last thing before the program: gives up every privilege. A script then runs in the child itself; without
            it, in a Python of its own.
        fate: Why what lived on from an earlier run was killed since, if it was.
        hide: Makes this process undumpable, before the program starts.

    Returns:
        The watch over what lives on, or None if nothing does.

    Raises:
        Become: In the child alone.
        RuntimeError: The program could not be set up.
    """
    ready, go = os.pipe()
    trouble, trouble_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        try:
            _become_program(job, descriptors, ready, trouble_in, armed)
        except Become:
            raise
        except BaseException as error:  # noqa: BLE001 - told to the host, below
            os.write(_TROUBLE, repr(error).encode())
        os._exit(125)
    for descriptor in (*descriptors, ready, trouble_in):
        if descriptor >= 0:
            os.close(descriptor)
    if hide:
        hide()
    watch = Watch(job)
    os.close(go)
    reason, status = _wait(pid, channel, watch)
    wall_s = watch.wall_s
    said = os.read(trouble, 1000)
    os.close(trouble)
    if said:
        raise RuntimeError(f"the program could not be set up: {said.decode()}")
    lives = job.background and reason == "exit" and bool(processes())
    contents, left_out = collect(job.kept, job.kept_count)
    outcome = f"{reason} {status} {wall_s:.6f} {watch.cpu_s:.6f} {int(lives)} {fate}"
    report = memoryview(frame(pack([[outcome.encode()], left_out, contents])))
    try:
        while report:
            report = report[os.write(channel, report) :]
    except OSError:
        pass  # the host has hung up
    return watch if lives else None


def _become_program(job: Job, descriptors: list[int], ready: int, trouble: int, armed: Callable[[], None] | None) -> None:
    """In the child: takes on limits and descriptors, waits for process 1 to be hidden, and turns into the program."""
    os.dup2(trouble, _TROUBLE, inheritable=False)
    os.setsid()
    os.nice(10)
    null = os.open("/dev/null", os.O_RDWR)
    source = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)
    with open(source, "wb", closefd=False) as stdin:
        stdin.write(job.stdin)
    os.lseek(source, 0, os.SEEK_SET)
    os.read(ready, 1)
    wanted = [source, *(null if d < 0 else d for d in descriptors)]
    high = [os.dup2(d, 200 + i, inheritable=False) for i, d in enumerate(wanted)]  # out of each other's way
    for target, d in enumerate(high):
        os.dup2(d, target)
    os.closerange(len(high), _TROUBLE)
    os.closerange(_TROUBLE + 1, 1024)
    os.chdir(WORKSPACE)
    os.umask(0o022)
    in_process = job.script and armed is not None
    for signum in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(
            signum, signal.SIG_DFL if not in_process else signal.SIG_IGN if signum != signal.SIGINT else signal.default_int_handler
        )
    _cap(job)
    if armed:
        armed()
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if in_process:
        os.close(_TROUBLE)
        os.environ.clear()
        os.environb.update(job.environment)
        raise Become([os.fsdecode(word) for word in job.argv])
    argv = [os.fsencode(_python()), b"-s", *job.argv] if job.script else job.argv
    try:
        os.execvpe(argv[0], argv, job.environment)
    except OSError as error:
        os.write(2, b"%s: %s\n" % (argv[0], os.fsencode(error.strerror or "")))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _python() -> str:
    import sys

    return sys.executable


def _cap(job: Job) -> None:
    """Sets the limits that the kernel keeps for each process, soft and hard alike."""
    seconds = int(job.cpu_s) + 2  # a second net: the watch counts the whole tree
    for name, value in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_DATA, job.memory),
        (resource.RLIMIT_AS, max(4 * job.memory, 2048 * _MIB)),
        (resource.RLIMIT_FSIZE, job.file),
        (resource.RLIMIT_NOFILE, job.open_files),
        (resource.RLIMIT_NPROC, job.processes + OURS),
        (resource.RLIMIT_STACK, 8 * _MIB),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        _, highest = resource.getrlimit(name)
        value = value if highest == resource.RLIM_INFINITY else min(value, highest)
        resource.setrlimit(name, (value, value))


def ignore_signals() -> None:
    """Only a handler would let a signal through to process 1, and Python has two."""
    for signum in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)


def _wait(pid: int, channel: int, watch: Watch) -> tuple[str, int]:
    """Waits until the program ends or goes too far, then kills every process that is not to live on.

    Returns:
        The reason, and the program's wait status.
    """
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(channel, select.POLLIN)
    status = -1
    reason = ""
    while not reason:
        ready = [descriptor for descriptor, _ in poll.poll(_TICK_S * 1000)]
        if ended in ready:
            reason = "exit"
        elif channel in ready:
            reason = "stopped"  # the host closed its writing half
        else:
            reason = watch.excess()
        for gone, how in reap(os.WNOHANG):
            status = how if gone == pid else status
    os.close(ended)
    if reason != "exit" or not watch.job.background:
        kill_all()
        for gone, how in reap(0):
            status = how if gone == pid else status
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) and watch.cpu_s > watch.job.cpu_s:
        reason = "cpu"
    return reason, status


def kill_all() -> None:
    """Kills all but process 1, in one step that no fork can slip through."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nobody is left


def reap(options: int) -> list[tuple[int, int]]:
    """Collects ended children: orphans become process 1's."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append((pid, status))


def processes() -> list[str]:
    """Ids of all processes in the sandbox but this one."""
    return [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def _reaped_cpu_s() -> float:
    """CPU seconds of every process that has ended and been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _share(pid: str) -> int:
    """Bytes of memory that are one process's own, shared pages divided among those that share them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except PermissionError:
        pass  # undumpable, by its own doing: count all it has
    except OSError:
        return 0  # it ended meanwhile
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
