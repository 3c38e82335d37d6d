"""A thread that calls which may block run on, so that a deadline can leave them behind."""

import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Abandoned", "Interrupted", "Worker"]


class Interrupted(Exception):
    """The call had to be interrupted, and stopped."""


class Abandoned(Exception):
    """The call did not come back in time, not even after it was interrupted."""


class Worker:
    """Runs one function at a time on a thread of its own.

    A function that ignores its interruption is abandoned: the thread is left to itself (it is a daemon and holds nothing of
    ours), and the worker refuses further work.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[tuple[Any, BaseException | None]]] | None]
        self._jobs = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self.abandoned = False

    def run(self, function: Callable[[], Any], timeout: float, interrupt: Callable[[], None], grace: float) -> Any:
        """Runs ``function`` and waits for it.

        Args:
            function: What to run.
            timeout: Seconds until ``interrupt`` is called.
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
        if self._thread is None or not self._thread.is_alive():  # a forked child has the object, but not the thread
            self._jobs = queue.SimpleQueue()
            self._thread = threading.Thread(target=self._work, args=(self._jobs,), name="agent-gym-call", daemon=True)
            self._thread.start()
        replies: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._jobs.put((function, replies))
        try:
            value, error = replies.get(timeout=max(0.0, timeout))
        except queue.Empty:
            interrupt()
            try:
                replies.get(timeout=grace)
            except queue.Empty:
                self.abandoned = True
                raise Abandoned from None
            raise Interrupted from None
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Lets the thread end."""
        self._jobs.put(None)
        if self._thread is not None and not self.abandoned:
            self._thread.join()
        self._thread = None

    @staticmethod
    def _work(jobs: queue.SimpleQueue[Any]) -> None:
        while (job := jobs.get()) is not None:
            function, replies = job
            try:
                replies.put((function(), None))
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                replies.put((None, error))
