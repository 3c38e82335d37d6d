"""A delegated cgroup, where there is one: a bound on all the memory and processes of a warm sandbox, the kernel's own memory with it.

Never needed: without one, limits are kept by rlimits, the sizes of file systems and a watch. Only cgroup v2 is used, and only below this
process's own group, where whoever runs it has handed the controllers ``memory`` and ``pids`` on. Format: the kernel's
Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Iterable
from pathlib import Path

from agent_gym.sandbox.limits import Limits

__all__ = ["Group", "delegated"]

_NUMBERS = itertools.count()
_MIB = 1 << 20
_OURS_MIB = 64  # bwrap, zygote, process 1
_OUR_PROCESSES = 8


@functools.cache
def delegated() -> Path | None:
    """The group below which groups with bounds can be made; found out once a process, by making one. None: there is none."""
    group = _own()
    if group is None:
        return None
    wanted = {"memory", "pids"}
    try:
        if not wanted <= set((group / "cgroup.controllers").read_text().split()):
            return None
        if not wanted <= set((group / "cgroup.subtree_control").read_text().split()):
            (group / "cgroup.subtree_control").write_text("+memory +pids")
        probe = group / f"agent-gym-probe-{os.getpid()}"
        probe.mkdir()
        try:
            (probe / "memory.max").write_text("max")
            (probe / "pids.max").write_text("max")
        finally:
            probe.rmdir()
    except OSError:
        return None
    return group


def _own() -> Path | None:
    """This process's group in the tree of version 2."""
    try:
        path = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        mounts = map(str.split, Path("/proc/self/mountinfo").read_text().splitlines())
        mount = next(words[4] for words in mounts if words[words.index("-") + 1] == "cgroup2")
    except (OSError, StopIteration):
        return None
    return Path(mount + path)


class Group:
    """The cgroup of one warm sandbox.

    Args:
        parent: From `delegated`.
        pids: All its processes.

    Raises:
        OSError: It could not be made.
    """

    def __init__(self, parent: Path, pids: Iterable[int]) -> None:
        self.path = parent / f"agent-gym-{os.getpid()}-{next(_NUMBERS)}"
        self.path.mkdir()
        for pid in pids:
            (self.path / "cgroup.procs").write_text(str(pid))

    def bound(self, limits: Limits) -> None:
        """Holds all together to what a run may use.

        Raises:
            OSError: The kernel refuses.
        """
        memory = limits.memory_mib + limits.workspace_mib + 2 * limits.tmp_mib + _OURS_MIB
        (self.path / "memory.max").write_text(str(memory * _MIB))
        (self.path / "pids.max").write_text(str(limits.processes + _OUR_PROCESSES))

    @property
    def out_of_memory(self) -> int:
        """How often the kernel has killed something in it for want of memory."""
        with contextlib.suppress(OSError):
            events = dict(line.split() for line in (self.path / "memory.events").read_text().splitlines())
            return int(events.get("oom_kill", 0))
        return 0

    def close(self) -> None:
        """Kills whoever is left in it, and removes it; again is nothing."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        with contextlib.suppress(OSError):  # the kernel still has one to bury: an empty group costs nothing
            self.path.rmdir()
