"""Where environments run: the small contract between a pool and its workers.

A backend knows nothing of episodes, tasks or deadlines. It starts a worker, passes asks in and answers out, and can be rid of one.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from agent_gym.errors import unknown
from agent_gym.runner.messages import Answer, Ask, Usage

__all__ = ["BACKENDS", "Backend", "make_backend"]

BACKENDS = {"thread": "agent_gym.runner.backends.thread:ThreadBackend", "process": "agent_gym.runner.backends.process:ProcessBackend"}
"""The backends by name, as import strings."""


class Backend(ABC):
    """Runs one worker a slot. Every method is called from one thread, its user's, and returns at once if not said otherwise."""

    @abstractmethod
    def spawn(self, slot: int, ask: Ask) -> None:
        """Starts a worker for a slot that has none; ``ask``, of kind ``make``, is its first.

        Raises:
            InfrastructureError: Not even the attempt could be made.
        """

    @abstractmethod
    def send(self, slot: int, ask: Ask) -> None:
        """Hands an ask to the slot's worker. To one that is gone it may vanish: then an answer ``died`` comes, or has come.

        Raises:
            TypeError: The payload cannot be passed to the worker; nothing was sent.
        """

    @abstractmethod
    def receive(self, timeout_s: float | None) -> list[Answer]:
        """Waits until there is an answer, and returns all there are.

        A worker that dies by itself is reported once, as an answer of kind ``died``; the slot then has no worker.

        Args:
            timeout_s: Seconds to wait at most; None waits for ever.

        Returns:
            The answers in order of arrival; none after the timeout, or (rarely) before it.
        """

    @abstractmethod
    def wake(self) -> None:
        """Has a `receive` that waits return, or the next one. May be called from any thread, after `close` too."""

    @abstractmethod
    def kill(self, slot: int) -> None:
        """Is rid of the slot's worker, whatever it is doing, and of what it started; it never answers again, or by an ask's id."""

    def received(self, slot: int) -> int:  # noqa: ARG002 - where answers come in one piece
        """How many bytes of the slot's next answer have come so far."""
        return 0

    def usages(self) -> Mapping[int, Usage]:
        """What each slot's environment uses, where that can be told. May be called from any thread."""
        return {}

    @abstractmethod
    def close(self, timeout_s: float) -> None:
        """Closes every environment, in its worker; what has not come to its end within ``timeout_s`` is killed. Closing twice is fine."""


def make_backend(name: str, num_envs: int, workdir: str | Path | None = None) -> Backend:
    """A backend by name.

    Args:
        name: A name of `BACKENDS`.
        num_envs: Slots.
        workdir: Where environments get their temporary and log files; by default a temporary folder that ``close`` removes.

    Raises:
        ConfigurationError: There is no such backend.
    """
    if name not in BACKENDS:
        raise unknown("backend", name, BACKENDS)
    module, _, attribute = BACKENDS[name].partition(":")
    backend: Backend = getattr(importlib.import_module(module), attribute)(num_envs, workdir)
    return backend
