# ruff: noqa: B905, SIM105, PTH101, PTH103, PTH118, PTH120, PTH123, PTH208
# (zip(strict=) is newer than Python 3.9; pathlib and contextlib would double the time that this takes to start)
"""Process 1 of the sandbox: unpacks the workspace, runs one program under limits, kills everything, sends the workspace back.

Runs inside, is trusted, and never runs the agent's code itself. As process 1 of its namespace no signal from inside can touch it, and it
makes itself undumpable before the program starts, so that neither its memory nor its descriptors can be opened through ``/proc``. The
program gets its own ends of the output pipes; the channel to the host stays here.

The host closing its writing half of the channel means: stop now, and still report. If the host is gone, the report fails and all ends.

A system's Python runs this file, so it keeps to what Python 3.9 knows, and imports little: it starts anew for every run.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal itself builds enums, slowly
import os
import resource
import select
import stat
import sys
import time

from agent_gym.sandbox.frames import frame, pack, read_frame, unpack

_WORKSPACE = "/workspace"
_TICK_S = 0.02
_MIB = 1 << 20
_LONGEST_PATH = 1024
_WRITTEN_AT = 946684800  # 2000-01-01: no clock reading gets into what an agent sees of its files
_TROUBLE = 250  # the descriptor that a child tells trouble on, before it is a program
_CLOCK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PAGE_KEPT = 4096  # as the host counts


class Bounds:
    """The numbers of ``Limits`` as the host sent them: times in seconds, sizes in bytes."""

    def __init__(self, numbers: list[bytes]) -> None:
        self.cpu_s, self.wall_s = float(numbers[0]), float(numbers[1])
        self.memory, self.processes, self.open_files, self.file, self.files, self.kept, self.kept_files = map(int, numbers[2:])


def main() -> None:
    """Does one job and exits."""
    channel = int(sys.argv[1])
    job = unpack(read_frame(lambda size: os.read(channel, size), 1 << 32))
    argv, environment, numbers, [descriptors, stdin], contents = job
    bounds = Bounds(numbers)
    for signum in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)  # only a handler would let a signal through to process 1
    unpack_files(contents)
    ready, go = os.pipe()
    trouble, trouble_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        try:
            become_program(argv, environment, bounds, [int(d) for d in descriptors.split()], stdin, ready, trouble_in)
        except BaseException as error:  # noqa: BLE001 - told to the host, below
            os.write(_TROUBLE, repr(error).encode())
        os._exit(125)
    for descriptor in (*map(int, descriptors.split()), ready, trouble_in):
        if descriptor >= 0:
            os.close(descriptor)
    hide()
    started = time.monotonic()
    os.close(go)
    seen: dict[tuple[str, bytes], float] = {}
    reason, status = watch(pid, channel, bounds, started, seen)
    wall_s = time.monotonic() - started
    said = os.read(trouble, 1000)
    if said:
        sys.exit(f"the program could not be set up: {said.decode()}")
    cpu_s = max(reaped_cpu_s(), sum(seen.values()))
    contents, left_out = collect(bounds)
    outcome = b"%s %d %.6f %.6f" % (reason.encode(), status, wall_s, cpu_s)
    report = memoryview(frame(pack([[outcome], left_out, contents])))
    try:
        while report:
            report = report[os.write(channel, report) :]
    except OSError:
        pass  # the host has hung up
    os._exit(0)


def unpack_files(contents: list[bytes]) -> None:
    """Writes the workspace: path, bytes, path, bytes, and so on."""
    for path, data in zip(contents[::2], contents[1::2]):
        target = os.path.join(_WORKSPACE.encode(), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb") as file:
            file.write(data)
        os.utime(target, (_WRITTEN_AT, _WRITTEN_AT))


def hide() -> None:
    """Closes ``/proc/1`` to the program (PR_SET_DUMPABLE, prctl(2)). Imported here: it costs while the child sets itself up."""
    import ctypes

    if ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE failed")


def become_program(
    argv: list[bytes], environment: list[bytes], bounds: Bounds, descriptors: list[int], stdin: bytes, ready: int, trouble: int
) -> None:
    """In the child: takes on limits and descriptors, waits for process 1 to be hidden, and turns into the program."""
    os.dup2(trouble, _TROUBLE, inheritable=False)
    os.setsid()
    os.nice(10)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    null = os.open("/dev/null", os.O_RDWR)
    source = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)
    with open(source, "wb", closefd=False) as file:
        file.write(stdin)
    os.lseek(source, 0, os.SEEK_SET)
    os.read(ready, 1)
    wanted = [source, *(null if d < 0 else d for d in descriptors)]
    high = [os.dup2(d, 200 + i, inheritable=False) for i, d in enumerate(wanted)]  # out of each other's way
    for target, d in enumerate(high):
        os.dup2(d, target)
    os.closerange(len(high), _TROUBLE)
    os.chdir(_WORKSPACE)
    os.umask(0o022)
    for signum in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
    cap(bounds)
    variables = dict(item.split(b"=", 1) for item in environment)
    try:
        os.execvpe(argv[0], argv, variables)
    except OSError as error:
        os.write(2, b"%s: %s\n" % (argv[0], os.fsencode(error.strerror or "")))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def cap(bounds: Bounds) -> None:
    """Sets the limits that the kernel keeps for each process, soft and hard alike."""
    seconds = int(bounds.cpu_s) + 2  # a second net: the watch below counts the whole tree
    for name, value in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_DATA, bounds.memory),
        (resource.RLIMIT_AS, max(4 * bounds.memory, 2048 * _MIB)),
        (resource.RLIMIT_FSIZE, bounds.file),
        (resource.RLIMIT_NOFILE, bounds.open_files),
        (resource.RLIMIT_NPROC, bounds.processes + 1),  # process 1 counts too
        (resource.RLIMIT_STACK, 8 * _MIB),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        _, highest = resource.getrlimit(name)
        value = value if highest == resource.RLIM_INFINITY else min(value, highest)
        resource.setrlimit(name, (value, value))


def watch(pid: int, channel: int, bounds: Bounds, started: float, seen: dict[tuple[str, bytes], float]) -> tuple[str, int]:
    """Waits until the program ends or goes too far, then kills every process there is.

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
            reason = excess(bounds, started, seen)
        for gone, how in reap(os.WNOHANG):
            status = how if gone == pid else status
    try:
        os.kill(-1, signal.SIGKILL)  # all but process 1, in one step that no fork can slip through
    except ProcessLookupError:
        pass  # nobody is left
    for gone, how in reap(0):
        status = how if gone == pid else status
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) and reaped_cpu_s() > bounds.cpu_s:
        reason = "cpu"
    return reason, status


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


def reaped_cpu_s() -> float:
    """CPU seconds of every process that has ended and been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def excess(bounds: Bounds, started: float, seen: dict[tuple[str, bytes], float]) -> str:
    """The limit that the whole tree is over, or an empty string.

    Args:
        bounds: The limits.
        started: When the program did.
        seen: Process and its start → its own CPU seconds when last looked at: a child that its parent ignores is counted nowhere else.
    """
    if time.monotonic() - started > bounds.wall_s:
        return "wall"
    for path in (_WORKSPACE, "/tmp", "/dev/shm"):
        space = os.statvfs(path)
        if space.f_files - space.f_ffree > bounds.files + 1:
            return "files"
    cpu_s = reaped_cpu_s()
    resident = 0
    pids = processes()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()  # from field 3 of proc(5) on: the name may hold anything
        except OSError:
            continue  # it ended meanwhile
        cpu_s += sum(map(int, fields[11:15])) / _CLOCK
        seen[pid, fields[19]] = sum(map(int, fields[11:13])) / _CLOCK
        resident += int(fields[21]) * _PAGE
    if max(cpu_s, sum(seen.values())) > bounds.cpu_s:
        return "cpu"
    if resident > bounds.memory and sum(map(share, pids)) > bounds.memory:
        return "memory"
    return ""


def share(pid: str) -> int:
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


def collect(bounds: Bounds) -> tuple[list[bytes], list[bytes]]:
    """Reads the workspace back once nothing runs any more.

    Only regular files under UTF-8 names are taken, up to the workspace's size and number, counted as the host counts them;
    links are not followed, pipes and sockets not opened.

    Returns:
        Path, bytes, path, bytes, …; and what was left out: path, reason, path, reason, …
    """
    contents: list[bytes] = []
    left_out: list[bytes] = []
    pages, places = bounds.kept // _PAGE_KEPT, bounds.kept_files
    counted = {b""}  # directories that hold a file that is kept
    pending = [_WORKSPACE.encode()]
    while pending:
        directory = pending.pop()
        os.chmod(directory, 0o700)
        with os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                path = entry.path[len(_WORKSPACE) + 1 :]
                details = entry.stat(follow_symlinks=False)
                kind = stat.S_IFMT(details.st_mode)
                if len(path) > _LONGEST_PATH or not is_utf8(path):
                    why = b"name"
                elif kind == stat.S_IFDIR:
                    pending.append(entry.path)
                    continue
                elif kind != stat.S_IFREG:
                    why = {stat.S_IFLNK: b"symbolic link", stat.S_IFIFO: b"pipe", stat.S_IFSOCK: b"socket"}.get(kind, b"special file")
                elif -(-details.st_size // _PAGE_KEPT) > pages or len(set(parents(path)) - counted) >= places:
                    why = b"too much"
                else:
                    os.chmod(entry.path, 0o600)
                    with open(entry.path, "rb") as file:
                        data = file.read()
                    pages -= -(-len(data) // _PAGE_KEPT)
                    places -= 1 + len(set(parents(path)) - counted)
                    counted.update(parents(path))
                    contents += (path, data)
                    continue
                if len(left_out) < 32:
                    left_out += (ascii(path)[2:-1].encode()[:200], why)
    return contents, left_out


def parents(path: bytes) -> list[bytes]:
    """The directories that a path leads through."""
    parts = path.split(b"/")
    return [b"/".join(parts[:i]) for i in range(1, len(parts))]


def is_utf8(path: bytes) -> bool:
    """Whether the name is text."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


if __name__ == "__main__":
    main()
