"""Policies on threads of their own: each fetches a batch when it is free, and gives back its decisions or what was raised."""

import math
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agent_gym.core.policy import Decision, Policy
from agent_gym.errors import PolicyError
from agent_gym.runner.batcher import Batcher

__all__ = ["Acted", "Asked", "Desk", "Device"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """An observation that waits for a policy.

    Attributes:
        episode_id: The episode.
        observation: What the policy is shown.
        new: Whether the episode is new to it.
        about: Whatever the asker wants back with the decision.
    """

    episode_id: str
    observation: Any
    new: bool
    about: T


@dataclass(frozen=True, slots=True)
class Acted(Generic[T]):
    """What came of a batch.

    Attributes:
        device: The device's number.
        asked: The batch.
        decisions: One for each; anything at all if ``error`` is set.
        version: The policy's, before it acted.
        error: What the policy raised.
    """

    device: int
    asked: list[Asked[T]]
    decisions: Any
    version: int
    error: BaseException | None


class Desk(Generic[T]):
    """Where policies fetch their batches. Any thread may call any method.

    Args:
        batcher: Says what goes when; looked at and changed under ``lock`` only.

    Attributes:
        batcher: The same.
        lock: Held while anything is changed.
        busy: Since when each device that acts does so, in seconds of `time.monotonic`; a copy is safe to look at.
    """

    def __init__(self, batcher: Batcher[Asked[T]]) -> None:
        self.batcher, self.lock = batcher, threading.RLock()
        self.busy: dict[int, float] = {}
        self._changed = threading.Condition(self.lock)
        self._free, self._open, self._more, self._ended = 0, False, True, False

    def put(self, asked: Iterable[tuple[Asked[T], int | None]], more: bool) -> None:
        """Lets something wait, or nothing, each for one device or for any; says whether anything else can come without what waits."""
        now = time.monotonic()
        with self._changed:
            for one, device in asked:
                self.batcher.add(one, now, device)
            self._more, self._open = more, True
            if len(self.batcher):
                self._changed.notify_all()

    def close(self) -> None:
        """Has nobody fetch anything until `put` is called again."""
        with self.lock:
            self._open = False

    def end(self) -> None:
        """Has everybody go who wants to fetch something."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def fetch(self, device: int) -> list[Asked[T]] | None:
        """Waits for a device's next batch; None at the end."""
        with self._changed:
            self._free += 1
            try:
                while not self._ended:
                    now, due = time.monotonic(), math.inf
                    if self._open:
                        more = self._more or self._free < self.batcher.devices
                        if batch := self.batcher.take(device, now, self._free, more):
                            self.busy[device] = now
                            return batch
                        due = self.batcher.due([device])
                    self._changed.wait(None if due == math.inf else due - now)
                return None
            finally:
                self._free -= 1

    def done(self, device: int, size: int, seconds: float) -> None:
        """Takes in that a device has acted on so many observations, in so many seconds."""
        with self.lock:
            self.batcher.times.add(size, seconds)
            del self.busy[device]


class Device(Generic[T]):
    """Runs one policy.

    A thread cannot be killed: one that hangs is left alone, and what it comes back with is dropped.

    Args:
        number: Its number.
        policy: The policy.
        desk: Where it fetches batches.
        results: Where what came of them goes; then ``wake`` is called.
        wake: Says so.

    Attributes:
        policy: The policy.
        memory: Whether the policy remembers episodes, so that each has to stay here: whether it does anything at ``reset``.
    """

    def __init__(
        self, number: int, policy: Policy, desk: Desk[T], results: "queue.SimpleQueue[Acted[T]]", wake: Callable[[], None]
    ) -> None:
        self.policy = policy
        self.memory = type(policy).reset is not Policy.reset
        self._number, self._desk, self._results, self._wake = number, desk, results, wake
        self._thread = threading.Thread(target=self._work, name=f"agent-gym-policy-{number}", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        policy = self.policy
        while (batch := self._desk.fetch(self._number)) is not None:
            version, decisions, error, started = 0, None, None, time.perf_counter()
            try:
                version = policy.version
                if new := [one.episode_id for one in batch if one.new]:
                    policy.reset(new)
                decisions = policy.act([(one.episode_id, one.observation) for one in batch])
            except BaseException as raised:  # noqa: BLE001 - a policy may raise anything, and all of it goes to whoever waits
                error = raised
            self._desk.done(self._number, len(batch), time.perf_counter() - started)
            self._results.put(Acted(self._number, batch, decisions, version, error))
            del batch, decisions, error  # nothing is kept while it waits
            self._wake()

    def decisions(self, acted: Acted[T]) -> list[Decision]:
        """The decisions of a batch.

        Raises:
            PolicyError: The policy raised, or did not give one decision for each observation.
        """
        name, size = self.policy.name, len(acted.asked)
        if acted.error is not None:
            what = "".join(traceback.format_exception_only(acted.error)).strip()
            raise PolicyError(f"policy {name!r} raised in a batch of {size}: {what}") from acted.error
        if not isinstance(acted.decisions, Sequence) or not all(isinstance(one, Decision) for one in acted.decisions):
            raise PolicyError(f"policy {name!r}: act() must give a list of Decisions, got {acted.decisions!r:.200}")
        if len(acted.decisions) != size:
            given = len(acted.decisions)
            raise PolicyError(f"policy {name!r} gave {given} decisions for a batch of {size}; act() must give one a pair, in order")
        return list(acted.decisions)

    def late(self, timeout_s: float) -> PolicyError:
        """The error for a policy that is not back after so many seconds, with where it is."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        where = "".join(traceback.format_stack(frame)) if frame is not None else "  its end, just now\n"
        return PolicyError(f"policy {self.policy.name!r} did not decide within {timeout_s:g} s; it is at:\n{where}")
