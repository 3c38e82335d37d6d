"""A policy on a thread of its own: batches go in, decisions or what was raised come out."""

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.core.policy import Decision, Policy
from agent_gym.errors import PolicyError

__all__ = ["Acted", "Device"]


@dataclass(frozen=True, kw_only=True)
class Acted:
    """What came of a batch.

    Attributes:
        device: The device's number.
        decisions: One a pair; anything at all if ``error`` is set.
        version: The policy's, before it acted.
        seconds: How long it took.
        error: What the policy raised.
    """

    device: int
    decisions: Any
    version: int
    seconds: float
    error: BaseException | None = None


class Device:
    """Runs one policy, a batch at a time.

    A thread cannot be killed: one that hangs is left alone, and what it comes back with is dropped.

    Args:
        number: Its number.
        policy: The policy.
        results: Where what came of a batch goes; then `wake` is called.
        wake: Says so.

    Attributes:
        number: Its number.
        policy: The policy.
        memory: Whether the policy remembers episodes, so that each has to stay here: whether it does anything at ``reset``.
        since: When it was given its batch, in seconds of `time.monotonic`.
    """

    def __init__(self, number: int, policy: Policy, results: "queue.SimpleQueue[Acted]", wake: Callable[[], None]) -> None:
        self.number, self.policy = number, policy
        self.memory = type(policy).reset is not Policy.reset
        self.since, self._size = 0.0, 0
        self._jobs: queue.SimpleQueue[tuple[Any, Any] | None] = queue.SimpleQueue()
        arguments = (number, policy, self._jobs, results, wake)  # not this object: it goes when nobody wants it any more
        self._thread = threading.Thread(target=_work, args=arguments, name=f"agent-gym-policy-{number}", daemon=True)
        self._thread.start()

    def act(self, new: Sequence[str], batch: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Hands a batch to the policy, and before it the ids of the episodes that are new."""
        self._size, self.since = len(batch), time.monotonic()
        self._jobs.put((new, batch))

    def take(self, acted: Acted) -> list[Decision]:
        """The decisions of the batch that it was at.

        Raises:
            PolicyError: The policy raised, or did not give one decision a pair.
        """
        size, name = self._size, self.policy.name
        if acted.error is not None:
            what = "".join(traceback.format_exception_only(acted.error)).strip()
            raise PolicyError(f"policy {name!r} raised in a batch of {size}: {what}") from acted.error
        if not isinstance(acted.decisions, Sequence) or not all(isinstance(one, Decision) for one in acted.decisions):
            raise PolicyError(f"policy {name!r}: act() must give a list of Decisions, got {acted.decisions!r:.200}")
        if len(acted.decisions) != size:
            raise PolicyError(
                f"policy {name!r} gave {len(acted.decisions)} decisions for a batch of {size}; act() must give one a pair, in order"
            )
        return list(acted.decisions)

    def late(self, timeout_s: float) -> PolicyError:
        """The error for a policy that is not back after so many seconds, with where it is."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        where = "".join(traceback.format_stack(frame)) if frame is not None else "  it has come back just now\n"
        return PolicyError(
            f"policy {self.policy.name!r} did not decide on a batch of {self._size} within {timeout_s:g} s; it is at:\n{where}"
        )

    def close(self) -> None:
        """Lets the thread end, once it is back."""
        self._jobs.put(None)


def _work(
    number: int,
    policy: Policy,
    jobs: "queue.SimpleQueue[tuple[Any, Any] | None]",
    results: "queue.SimpleQueue[Acted]",
    wake: Callable[[], None],
) -> None:
    while (job := jobs.get()) is not None:
        new, batch = job
        version, decisions, error, started = 0, None, None, time.perf_counter()
        try:
            version = policy.version
            if new:
                policy.reset(new)
            decisions = policy.act(batch)
        except BaseException as raised:  # noqa: BLE001 - a policy may raise anything, and all of it goes to whoever waits
            error = raised
        results.put(Acted(device=number, decisions=decisions, version=version, seconds=time.perf_counter() - started, error=error))
        del job, new, batch, decisions, error  # nothing is kept while it waits
        wake()
