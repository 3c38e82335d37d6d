"""A thread that calls which may block run on, so that a deadline can leave them behind."""

import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Abandoned", "Interrupted", "Worker"]

_Replies = queue.SimpleQueue[tuple[Any, BaseException | None]]
_Jobs = deque[tuple[Callable[[], Any], _Replies] | None]


class Interrupted(Exception):
    """The call had to be interrupted, and stopped.

    Attributes:
        value: What it returned even so, or None.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Abandoned(Exception):
    """The call did not come back in time, not even after it was interrupted."""


class Worker:
    """Runs one function at a time on a thread of its own.

    A function that ignores its interruption is abandoned: the thread is left to itself (it is a daemon, holds nothing of ours and
    ends if the function ever does), and the worker refuses further work.

    The thread waits for a bell, an eventfd, which is rung without the interpreter's lock. A queue's lock would be released with it,
    and the thread wake up only to wait again: half of what a hand-over costs.
    """

    def __init__(self) -> None:
        self._jobs: _Jobs
        self._bell: int  # the thread's own, which closes it
        self._thread: threading.Thread
        self._pid = 0  # of the process that the thread is in; 0 without one
        self._replies: _Replies | None = None
        self.abandoned = False

    def run(self, function: Callable[[], Any], timeout: float, interrupt: Callable[[], None], grace: float) -> Any:
        """Runs ``function`` and waits for it.

        Args:
            function: What to run.
            timeout: Seconds until ``interrupt`` is called, 0 or more.
            interrupt: Asks the function to stop, from this thread.
            grace: Seconds it then has to do so, 0 or more.

        Returns:
            What the function returned.

        Raises:
            Interrupted: It had to be interrupted, and stopped.
            Abandoned: It had to be interrupted and did not stop, now or earlier.
            Exception: Whatever the function raised.
        """
        if self.abandoned:
            raise Abandoned
        if self._pid != os.getpid():  # a forked child has the object, but not the thread
            self._start()
        replies, self._replies = self._replies or queue.SimpleQueue(), None
        self._give((function, replies))
        try:
            value, error = replies.get(True, timeout)
        except queue.Empty:
            interrupt()
            try:
                value, _ = replies.get(True, grace)
            except queue.Empty:
                self.abandoned = True
                self._give(None)
                self._pid = 0
                raise Abandoned from None
            raise Interrupted(value) from None
        self._replies = replies  # empty again; one that a call may still answer to is never used for another
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Ends the thread, if there is one; closing twice is fine."""
        if self._pid == os.getpid():
            self._give(None)
            self._thread.join()
        elif self._pid:
            os.close(self._bell)
        self._pid = 0

    def _start(self) -> None:
        self.close()  # what a forked child has of its parent's
        self._jobs, self._bell = deque(), os.eventfd(0)
        self._thread = threading.Thread(target=_work, args=(self._jobs, self._bell), name="agent-gym-call", daemon=True)
        self._thread.start()
        self._pid = os.getpid()

    def _give(self, job: tuple[Callable[[], Any], _Replies] | None) -> None:
        self._jobs.append(job)
        os.eventfd_write(self._bell, 1)


def _work(jobs: _Jobs, bell: int) -> None:
    while True:
        if not jobs:
            os.read(bell, 8)  # unlike eventfd_read it goes on after a signal
            continue
        if (job := jobs.popleft()) is None:
            break
        function, replies = job
        try:
            replies.put((function(), None))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
            replies.put((None, error))
    os.close(bell)
