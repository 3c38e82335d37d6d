# ruff: noqa: PTH123, PTH208
"""Process 1 of a warm sandbox: a Python with its modules loaded, which forks into an episode, which forks into programs.

The zygote itself waits for descriptors: each is a socket on which one episode is served, and ends the one before. It never reads a byte
that has to do with an episode, so nothing of one can reach the next through it. An episode is a fork in new namespaces of processes,
mounts, IPC and network, and is process 1 there; on its socket it takes descriptors too, each the channel of one run, with what the program
prints to. When the zygote kills an episode, the kernel kills everything in it; when the host hangs up, all of it ends.

A system's Python runs this file: 3.9 or newer.
"""

from __future__ import annotations

import sys

_AT_START = frozenset(sys.modules)

import atexit  # noqa: E402
import gc  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import types  # noqa: E402

from agent_gym.sandbox.inside import kernel, running  # noqa: E402
from agent_gym.sandbox.inside.files import put, unpack_files  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LIBRARY = "/run/lib"
_PROGRAM = "/run/program/main.py"
_TICK_S = 0.05
# What programs import most, in memory before they ask. One that brings a module of such a name itself gets its own.
_PRELOADED = (
    "bisect collections copy dataclasses datetime decimal fractions functools heapq io itertools json math operator random re "
    "statistics string textwrap typing traceback agent_gym.sandbox.inside.candidate agent_gym.sandbox.inside.grader"
)


def main() -> None:
    """Serves episodes until the host hangs up.

    Raises:
        Become: In a child that is to be a program.
    """
    control = int(sys.argv[1])
    with open(f"{_LIBRARY}/filter", "rb") as file:
        filter_ = file.read()
    for name in _PRELOADED.split():
        __import__(name)
    running.ignore_signals()
    running.OURS = 2
    kernel.hide()
    gc.freeze()  # no collection touches, and so copies, what all share
    episode = 0
    while True:
        descriptors = receive(control)
        if episode:
            os.kill(episode, signal.SIGKILL)
            os.waitpid(episode, 0)
        if not descriptors:
            os._exit(0)
        episode = kernel.clone_into_namespaces()
        if episode == 0:
            os.close(control)
            Episode(descriptors[0], lambda: kernel.give_up_privileges(filter_)).serve()
        os.close(descriptors[0])


def receive(channel: int) -> list[int]:
    """Waits for descriptors; an empty list when the host has hung up."""
    with socket.socket(fileno=channel) as open_socket:
        _, descriptors, _, _ = socket.recv_fds(open_socket, 1, 4)
        open_socket.detach()
    return descriptors


class Episode:
    """Process 1 of an episode's namespaces.

    Args:
        channel: Where runs come from.
        armed: Gives up all privileges.
    """

    def __init__(self, channel: int, armed: Callable[[], None]) -> None:
        self._channel = channel
        self._armed = armed
        self._mounted: set[str] = set()
        self._watch: running.Watch | None = None
        self._fate = ""
        kernel.mount_proc()
        os.write(channel, b"r")

    def serve(self) -> None:
        """Does one run after the other.

        Raises:
            Become: In a child that is to be a program.
        """
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        while True:
            while self._watch and not poll.poll(_TICK_S * 1000):
                self._look_after(self._watch)
            descriptors = receive(self._channel)
            if not descriptors:
                os._exit(0)
            channel, *given = descriptors
            job = running.Job(channel)
            self._prepare(job)
            outputs = [given[index] if index >= 0 else -1 for index in job.descriptors]
            fate, self._fate = self._fate, ""
            self._watch = running.run(job, channel, outputs, self._arm, fate)
            os.close(channel)

    def _arm(self) -> None:
        self._armed()
        kernel.show()

    def _look_after(self, watch: running.Watch) -> None:
        """Holds what lives on between two runs to the limits of the run that left it there, elapsed time aside."""
        running.reap(os.WNOHANG)
        self._fate = watch.excess(timed=False)
        if self._fate:
            running.kill_all()
            running.reap(0)
        if self._fate or not running.processes():
            self._watch = None

    def _prepare(self, job: running.Job) -> None:
        """Sees to the file systems: as they are for a run beside others, else new and empty."""
        sizes = {"/workspace": job.size, "/tmp": job.tmp, "/dev/shm": job.tmp}
        if job.live:
            for path, size in sizes.items():
                kernel.resize(path, size)
            for name in job.removed:
                put(name, None)
            for name, data in zip(job.files[::2], job.files[1::2]):  # noqa: B905 - zip(strict=) is newer than Python 3.9
                put(name, data)
        else:
            running.kill_all()
            running.reap(0)
            for path, size in sizes.items():
                self._renew(path, size)
            unpack_files(job.files)
            try:
                with open("/proc/sys/kernel/ns_last_pid", "w") as file:
                    file.write("1")  # so that equal runs are equal in their process ids too
            except OSError:
                pass  # a kernel without CONFIG_CHECKPOINT_RESTORE
        if job.program:
            directory = os.path.dirname(_PROGRAM)  # noqa: PTH120
            self._renew(directory, len(job.program) + 8192)
            with open(_PROGRAM, "wb") as program:
                program.write(job.program)
            kernel.seal(directory)
        if job.loopback:
            kernel.loopback_up()

    def _renew(self, path: str, size: int) -> None:
        kernel.renew(path, size, path in self._mounted)
        self._mounted.add(path)


def settle(argv: list[str]) -> tuple[types.ModuleType, set[str]]:
    """Makes this process look as if Python had just been started on a script.

    Returns:
        A module to run it in, and the names of all other modules that are loaded.
    """
    path = os.environ["PYTHONPATH"].split(":")
    sys.path[:] = path + [entry for entry in sys.path if entry != _LIBRARY]
    sys.argv[:] = argv
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.executable, "-s", *argv]
    theirs = {entry.partition(".")[0] for entry in os.listdir("/workspace")}
    for name in set(sys.modules) - _AT_START:
        top = name.partition(".")[0]
        if top in theirs or (top == "agent_gym" and _LIBRARY not in path):
            del sys.modules[name]
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        old = getattr(sys, name)
        stream = open(descriptor, mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        stream.buffer.raw.name = f"<{name}>"  # type: ignore[attr-defined]
        stream.reconfigure(line_buffering=descriptor == 2)  # type: ignore[attr-defined]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    loaded = set(sys.modules) - {"__main__"}
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__file__=argv[0], __builtins__=__builtins__, __cached__=None, __annotations__={})
    sys.modules["__main__"] = main_module
    return main_module, loaded


def exit_status(error: SystemExit) -> int:
    """What the interpreter makes of it."""
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def finish(status: int, loaded: set[str]) -> None:
    """Ends as the interpreter does, but leaves it to the kernel to take down what was there before the program: a third of the time.

    Args:
        status: The exit status; the negative of a signal that ends it.
        loaded: Names of modules that were there.
    """
    leave, kill, streams = os._exit, os.kill, (sys.stdout, sys.stderr)
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    for name in [name for name in sys.modules if name not in loaded]:  # open files are flushed so, and what has a __del__ hears of it
        module = sys.modules[name]
        if not str(getattr(module, "__file__", sys.prefix)).startswith(sys.prefix):
            module.__dict__.clear()
    gc.collect()
    for stream in streams:
        try:
            if not stream.closed:
                stream.flush()
        except (OSError, ValueError) as error:
            print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr)
            status = 120
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        kill(os.getpid(), -status)
    leave(status)


if __name__ == "__main__":
    try:
        main()
    except running.Become as program:
        argv_ = program.argv
    # Only a child that is to be a program gets here. Its script runs on this level: there is no frame of ours below it.
    module_, loaded_ = settle(argv_)
    status_ = 0
    try:
        with open(argv_[0], "rb") as file_:
            code_ = compile(file_.read(), argv_[0], "exec", dont_inherit=True)
        exec(code_, module_.__dict__)
    except SystemExit as exit_:
        status_ = exit_status(exit_)
    except BaseException as error_:  # noqa: BLE001 - the interpreter itself does so
        trace_ = error_.__traceback__ and error_.__traceback__.tb_next
        sys.excepthook(type(error_), error_.with_traceback(trace_), trace_)
        status_ = -signal.SIGINT if isinstance(error_, KeyboardInterrupt) else 1
    finish(status_, loaded_)
