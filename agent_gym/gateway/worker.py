"""A thread that calls which may block run on, so that a deadline can leave them behind."""

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Abandoned", "Interrupted", "Worker"]

_Replies = queue.SimpleQueue[tuple[Any, BaseException | None]]


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

    A function that ignores its interruption is abandoned: the thread is left to itself (it is a daemon and holds nothing of
    ours), and the worker refuses further work.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], _Replies] | None] = queue.SimpleQueue()
        self._replies: _Replies | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        self.abandoned = False

    def run(self, function: Callable[[], Any], timeout: float, interrupt: Callable[[], None], grace: float) -> Any:
        """Runs ``function`` and waits for it.

        Args:
            function: What to run.
            timeout: Seconds until ``interrupt`` is called, above 0.
            interrupt: Asks the function to stop, from this thread.
            grace: Seconds it then has to do so.

        Returns:
            What the function returned.

        Raises:
            Interrupted: It had to be interrupted, and stopped.
            Abandoned: It had to be interrupted and did not stop, now or earlier.
            Exception: Whatever the function raised.
        """
        if self.abandoned:
            raise Abandoned
        if self._pid != os.getpid():  # not started, or in a forked child, which has the object but not the thread
            self._start()
        replies, self._replies = self._replies or queue.SimpleQueue(), None
        self._jobs.put((function, replies))
        try:
            value, error = replies.get(True, timeout)
        except queue.Empty:
            interrupt()
            try:
                value, _ = replies.get(True, grace)
            except queue.Empty:
                self.abandoned = True
                raise Abandoned from None
            raise Interrupted(value) from None
        self._replies = replies  # empty again; one that a call may still answer to is never used for another
        if error is not None:
            raise error
        return value

    def _start(self) -> None:
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, args=(self._jobs,), name="agent-gym-call", daemon=True)
        self._thread.start()
        self._pid = os.getpid()

    def close(self) -> None:
        """Lets the thread end."""
        self._jobs.put(None)
        if self._thread is not None and not self.abandoned:
            self._thread.join()
        self._thread, self._pid = None, 0

    @staticmethod
    def _work(jobs: queue.SimpleQueue[Any]) -> None:
        while (job := jobs.get()) is not None:
            function, replies = job
            try:
                replies.put((function(), None))
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                replies.put((None, error))
