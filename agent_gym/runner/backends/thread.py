"""Workers as threads of this process: cheapest, and right for environments that wait more than they compute.

A thread cannot be killed. One that hangs is asked to stop, and abandoned: it is a daemon, its answers are dropped, and if it ever comes
back it closes its environment and ends. What each environment uses cannot be told apart, and they share the temporary folder.
"""

import contextlib
import queue
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.errors import InfrastructureError
from agent_gym.runner.backends import Backend
from agent_gym.runner.messages import Answer, Ask
from agent_gym.runner.worker import Worker, interrupt

__all__ = ["ThreadBackend"]

_CLOSE = Ask(-1, "close", None)


class ThreadBackend(Backend):
    """One thread a slot, with a queue of its own for asks; all answers come through one queue.

    Args:
        num_envs: Slots.
        workdir: Not used.
    """

    def __init__(self, num_envs: int, workdir: str | Path | None = None) -> None:  # noqa: ARG002 - every backend is made so
        self._threads: dict[int, _Thread] = {}
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()  # None only wakes

    def spawn(self, slot: int, ask: Ask) -> None:
        """Starts a thread.

        Raises:
            InfrastructureError: The system allows no further thread.
        """
        try:
            self._threads[slot] = _Thread(slot, ask, self._answers)
        except RuntimeError as error:
            raise InfrastructureError(f"no thread can be started: {error}") from error

    def send(self, slot: int, ask: Ask) -> None:
        """Puts the ask into the thread's queue."""
        self._threads[slot].asks.put(ask)

    def receive(self, timeout_s: float | None) -> list[Answer]:
        """What the threads have answered."""
        answers: list[Answer | None] = []
        try:
            answers.append(self._answers.get(timeout=timeout_s) if timeout_s != 0 else self._answers.get_nowait())
            while True:
                answers.append(self._answers.get_nowait())
        except queue.Empty:
            return [answer for answer in answers if answer is not None]

    def wake(self) -> None:
        """Puts nothing into the queue of answers."""
        self._answers.put(None)

    def kill(self, slot: int) -> None:
        """Leaves the thread to itself, and asks its environment to stop."""
        if (thread := self._threads.pop(slot, None)) is not None:
            thread.leave()

    def close(self, timeout_s: float) -> None:
        """Lets the threads close their environments and end; leaves to itself what does not."""
        threads, self._threads = self._threads, {}
        for thread in threads.values():
            thread.leave()
        end = time.monotonic() + timeout_s
        for thread in threads.values():
            thread.thread.join(max(0.0, end - time.monotonic()))


class _Thread:
    def __init__(self, slot: int, ask: Ask, answers: queue.SimpleQueue[Answer | None]) -> None:
        self.asks: queue.SimpleQueue[Ask] = queue.SimpleQueue()
        self.busy = True
        self._worker = Worker(slot, own=_copied)
        self.asks.put(ask)
        self.thread = threading.Thread(target=self._work, args=(answers,), name=f"agent-gym-env-{slot}", daemon=True)
        self.thread.start()

    def leave(self) -> None:
        """Lets the thread close its environment and end, and asks what it is doing to stop."""
        self.asks.put(_CLOSE)
        if self.busy and self._worker.env is not None:  # on a thread of its own, since nobody knows how long it takes
            threading.Thread(target=self._interrupt, name="agent-gym-interrupt", daemon=True).start()

    def _interrupt(self) -> None:
        env = self._worker.env
        with contextlib.suppress(Exception):  # the environment is given up already; there is nobody to tell
            if env is not None:
                interrupt(env)

    def _work(self, answers: queue.SimpleQueue[Answer | None]) -> None:
        worker = self._worker
        while not worker.closed:
            ask = self.asks.get()
            self.busy = True
            answer = worker.handle(ask)
            self.busy = False
            if ask is not _CLOSE:
                answers.put(answer)
            del answer, ask  # an observation may be large, and it may wait long


def _copied(value: Any) -> Any:
    """A copy of what can be changed in place, as deep as an observation or an info goes; other objects pass as they are."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) is dict:
        return {name: _copied(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_copied(part) for part in value])
    return value
