"""Warm sandboxes, ready before they are needed.

Nothing here runs on a thread: a sandbox starts, and is reset, by its own processes while the host does something else, and whoever takes it
waits for what is left. A sandbox that failed in any way, or has been reset often, is ended and replaced.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Hashable, Iterator, Mapping

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox.jail import Place
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.preflight import preflight
from agent_gym.sandbox.warm import Box
from agent_gym.sandbox.workspace import Sandbox

__all__ = ["SandboxPool", "default_pool"]

_POOLS: weakref.WeakSet[SandboxPool] = weakref.WeakSet()


class SandboxPool:
    """Warm sandboxes of one process, from any of its threads.

    A fork of the process starts with an empty pool, and the sandboxes that it inherited refuse to work. When the process ends, in whatever
    way, so do its sandboxes.

    Args:
        size: How many are kept while nobody has them, at least. More are made when more are asked for, and as many as were in use at once
            are kept from then on: whoever uses so many will again.
        max_resets: After so many resets a sandbox is replaced.

    Raises:
        ValueError: A number below 1.
    """

    _most: int  # were in use at once

    def __init__(self, size: int = 2, *, max_resets: int = 1000) -> None:
        if size < 1 or max_resets < 1:
            raise ValueError(f"size, max_resets: got {size} and {max_resets}, expected 1 or more")
        self.size = size
        self.max_resets = max_resets
        self.recycled = 0
        """How many were replaced: worn out, or failed."""
        self._begin()
        _POOLS.add(self)

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prewarm(self) -> None:
        """Starts what is missing, and does not wait for it.

        Raises:
            SandboxUnavailable: This machine cannot isolate code.
            InfrastructureError: One did not start.
        """
        machine = preflight(warm=True)
        with self._lock:
            while len(self._idle) < self.size:
                self._idle.append(Box(machine))

    def acquire(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        owner: Hashable = None,
        limits: Limits | None = None,
        loopback: bool = False,
    ) -> Sandbox:
        """An episode: a workspace, and a warm sandbox from the first run in it to its `Sandbox.close`.

        Args:
            files: What the workspace holds at first: relative POSIX paths and contents.
            owner: Whose it is, such as an environment. One owner has one at a time.
            limits: Of the workspace, and of each run that brings none of its own.
            loopback: Whether 127.0.0.1 works inside.

        Raises:
            SandboxUnavailable: This machine cannot isolate code.
            ValueError: A path or the total size does not fit. At the first run: the owner has a sandbox already.
        """
        preflight(warm=True)
        return Sandbox(files, limits=limits, loopback=loopback, lease=functools.partial(self.lease, owner))

    @contextlib.contextmanager
    def lease(self, owner: Hashable = None) -> Iterator[Place]:
        """A warm sandbox with a new episode; afterwards it is reset in the background.

        Raises:
            SandboxUnavailable: This machine cannot isolate code.
            InfrastructureError: None could be started.
            ValueError: The owner has a sandbox already.
        """
        box = self._take(owner)
        try:
            yield box
        finally:
            self._give(box, owner)

    def close(self) -> None:
        """Ends all that nobody has; the pool can be used on."""
        with self._lock:
            idle = list(self._idle)
            self._idle.clear()
        for box in idle:
            box.close()

    def _take(self, owner: Hashable) -> Box:
        machine = preflight(warm=True)
        with self._lock:
            if owner is not None and owner in self._owners:
                raise ValueError(f"owner: {owner!r} has a sandbox already")
            if owner is not None:
                self._owners.add(owner)
        try:
            while True:
                with self._lock:
                    box = self._idle.pop() if self._idle else None
                made = box is None
                box = box or Box(machine)
                self._taken.add(box)
                self._most = max(self._most, len(self._taken))
                try:
                    box.wait()
                except InfrastructureError:
                    self._taken.discard(box)
                    if made:
                        raise
                    self.recycled += 1  # it died while nobody looked: try the next
                else:
                    return box
        except BaseException:
            self._owners.discard(owner)
            raise

    def _give(self, box: Box, owner: Hashable) -> None:
        if box not in self._taken:
            return  # a fork has it from its parent
        self._taken.discard(box)
        self._owners.discard(owner)
        worn = box.resets >= self.max_resets
        if box.alive and not worn and len(self._idle) < max(self.size, self._most):
            with contextlib.suppress(InfrastructureError):
                box.reset()
                with self._lock:
                    self._idle.append(box)
                return
        self.recycled += worn or not box.alive
        box.close()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Box] = []
        self._taken: set[Box] = set()
        self._most = 0
        self._owners: set[Hashable] = set()

    def _forget(self) -> None:
        """In a fork: lets go of what is the parent's, and begins anew."""
        for box in (*self._idle, *self._taken):
            box.forget()
        self._begin()


@functools.cache
def default_pool() -> SandboxPool:
    """The pool that environments share, one a process."""
    return SandboxPool(max(2, len(os.sched_getaffinity(0))))


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool._forget()


os.register_at_fork(after_in_child=_forget_all)
