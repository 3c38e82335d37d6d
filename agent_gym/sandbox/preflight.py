"""The self-test: isolates a small program here and looks at what it could do. Once a process where it holds, some 100 ms."""

from __future__ import annotations

import functools
import json

from agent_gym.errors import InfrastructureError, SandboxUnavailable
from agent_gym.sandbox.bubblewrap import PROGRAM
from agent_gym.sandbox.execution import Run
from agent_gym.sandbox.jail import Job, OneShot
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.machine import Machine, find_machine
from agent_gym.sandbox.warm import Box

__all__ = ["available", "preflight", "self_test"]

# What process 1's or bwrap's last words tell about the machine → probe, remedy.
_HINTS = (
    (
        ("clone:", "capset:", "bounding set:"),
        "nested_namespaces",
        "allow namespaces inside namespaces: in Docker `--security-opt seccomp=unconfined`, elsewhere `sysctl user.max_pid_namespaces`",
    ),
    (
        ("mount proc", "mount /proc", "Mount too revealing"),
        "proc",
        "let containers mount /proc: `--security-opt systempaths=unconfined` in Docker",
    ),
    (
        ("setting up uid map", "loopback: Failed", "No permissions to create", "Creating new namespace failed", "Operation not permitted"),
        "user_namespaces",
        "allow unprivileged user namespaces: on Ubuntu 24.04 `sysctl kernel.apparmor_restrict_unprivileged_userns=0` (or give bwrap an "
        "AppArmor profile), elsewhere `sysctl kernel.unprivileged_userns_clone=1` or `user.max_user_namespaces=15000`, in Docker "
        "`--security-opt seccomp=unconfined`",
    ),
    (("No module named",), "python", "install your system's complete python3 package"),
)

_PROBE = """
import json, os
status = {words[0]: words[1] for words in map(str.split, open("/proc/self/status")) if len(words) > 1}
children = []
try:
    for _ in range(12):
        pid = os.fork()
        if pid == 0:
            os.read(os.pipe()[0], 1)
        children.append(pid)
except OSError:
    pass
try:
    os.memfd_create("probe")
    filtered = False
except OSError:
    filtered = True
try:
    data = bytearray(1 << 30)
    capped = False
except MemoryError:
    capped = True
print(json.dumps({
    "no_new_privileges": status["NoNewPrivs:"] == "1",
    "capabilities": int(status["CapEff:"], 16) == 0 and int(status["CapPrm:"], 16) == 0,
    "system_calls": status["Seccomp:"] == "2" and filtered,
    "processes": len(children) < 8,
    "memory": capped,
    "network": os.listdir("/sys/class/net") == ["lo"] if os.path.isdir("/sys/class/net") else len(open("/proc/net/dev").readlines()) == 3,
    "files": not any(map(os.path.exists, ("/root", "/home", "/etc/shadow", "/var"))),
    "own_processes": all(int(name) < 20 for name in os.listdir("/proc") if name.isdigit()),
}))
"""


def preflight(warm: bool = False) -> Machine:
    """What the sandbox is made of here, once it has been seen to hold.

    Args:
        warm: Whether it is to be a warm one.

    Raises:
        SandboxUnavailable: It does not; names the probe, what it saw and the remedy.
    """
    error = available(warm)
    if error:
        raise SandboxUnavailable(error.probe, error.detail, error.remedy)
    return find_machine()


def available(warm: bool = False) -> SandboxUnavailable | None:
    """Why the sandbox cannot run here; None when it can. What may be for a moment only, such as too many open files, is tried again."""
    try:
        return self_test(warm)
    except _Unexplained as error:
        return SandboxUnavailable("start", str(error), "run `bwrap --unshare-all --ro-bind / / true` and mend what it reports")


class _Unexplained(Exception):
    """A failure that says nothing about the machine."""


@functools.cache
def self_test(warm: bool = False) -> SandboxUnavailable | None:
    """Isolates the probe program, once a process.

    Raises:
        _Unexplained: It failed for no known reason; not remembered.
    """
    try:
        machine = find_machine()
        limits = Limits(processes=8, memory_mib=256)
        job = Job(argv=(PROGRAM,), script=True, limits=limits, program=_PROBE.encode())
        box = Box(machine) if warm else None
        try:
            result, _ = Run(box or OneShot(machine), job).wait()
        finally:
            if box:
                box.close()
    except SandboxUnavailable as error:
        return error
    except InfrastructureError as error:
        return _explain(str(error))
    if not result.ok:
        return _explain(f"{result.reason}, exit code {result.exit_code}: {result.stderr[-500:].decode(errors='replace')}")
    for probe, holds in json.loads(result.stdout).items():
        if not holds:
            return SandboxUnavailable(
                probe, "a limit that was set does not hold", "use a kernel of 5.14 or newer; or report this as a defect"
            )
    return None


def _explain(said: str) -> SandboxUnavailable:
    for signs, probe, remedy in _HINTS:
        if any(sign in said for sign in signs):
            return SandboxUnavailable(probe, said, remedy)
    raise _Unexplained(said)
