"""What this machine can do, part by part, each with the one command that mends it."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Set as AbstractSet

import psutil

from agent_gym.errors import SandboxUnavailable
from agent_gym.sandbox.cgroup import delegated
from agent_gym.sandbox.machine import find_machine
from agent_gym.sandbox.preflight import available

__all__ = ["Part", "look_at_system"]

_STARTS = frozenset({"platform", "architecture", "bubblewrap", "python", "user_namespaces", "proc", "start"})
"""Probes that fail before anything runs inside."""
_LIMITS = frozenset({"no_new_privileges", "capabilities", "processes", "memory", "network", "files", "own_processes"})
"""Probes of what is set and must hold."""
_MEMORY_GIB = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """One thing that was looked at."""

    name: str
    works: bool | None
    """None: could not be tried, because a part above it lacks."""
    found: str
    remedy: str = ""
    """What to do where it lacks."""
    needed: bool = True
    """Whether something of this package fails without it; otherwise it is only weaker or slower."""


def look_at_system() -> list[Part]:
    """Tries each part of what the sandbox is made of, in the order in which one needs the other, and then cores and memory."""
    one_shot = available()
    warm = one_shot or available(warm=True)
    try:
        bwrap: SandboxUnavailable | str = str(find_machine().bwrap)
    except SandboxUnavailable as error:
        bwrap = error
    cores, memory = len(os.sched_getaffinity(0)), psutil.virtual_memory()
    group = delegated()
    return [
        _part("bwrap", bwrap if isinstance(bwrap, SandboxUnavailable) else None, {"platform", "architecture", "bubblewrap"}, str(bwrap)),
        _part("user namespaces", one_shot, {"user_namespaces", "proc", "start", "python"}, "processes, mounts, network, IPC of their own"),
        _part("seccomp", one_shot, {"system_calls"}, "the call filter holds"),
        _part(
            "limits",
            one_shot,
            {"no_new_privileges", "capabilities", "processes", "memory", "network", "files", "own_processes"},
            "all hold",
        ),
        _part("warm sandbox", warm, {warm.probe} if warm and not one_shot else set(), "namespaces inside namespaces"),
        Part(
            name="cgroup",
            works=group is not None,
            found=str(group) if group else "none was handed on; limits are kept without",
            remedy="" if group else "systemd-run --user --scope --property=Delegate=yes COMMAND",
            needed=False,
        ),
        Part(name="cores", works=True, found=f"{cores} of {os.cpu_count()}, {platform.machine()}"),
        Part(
            name="memory",
            works=memory.available >> 30 >= _MEMORY_GIB,
            found=f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free",
            remedy="" if memory.available >> 30 >= _MEMORY_GIB else f"free {_MEMORY_GIB} GiB, or lower `Limits.memory_mib`",
            needed=False,
        ),
    ]


def _part(name: str, error: SandboxUnavailable | None, probes: AbstractSet[str], found: str) -> Part:
    """A part, told from the one probe that failed: the probes come in order, so what stands before it works."""
    if error is None:
        return Part(name=name, works=True, found=found)
    if error.probe in probes:
        return Part(name=name, works=False, found=error.detail.splitlines()[-1][:200] if error.detail else "", remedy=error.remedy)
    if name == "user namespaces" and error.probe not in _STARTS:
        return Part(name=name, works=True, found=found)
    return Part(name=name, works=None, found="not tried: see above")
