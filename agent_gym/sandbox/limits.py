"""What one run inside the sandbox may use.

Every field is enforced, and ``tests/sandbox/test_limits.py`` shows each of them bite. The time limits are generous on purpose:
a busy machine must not turn a right answer into a wrong one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

__all__ = ["Limits", "check_files"]

_PAGE = 4096
_MIB = 1 << 20

# A field's smallest and largest value; the largest keep a slip of the pen from asking for a machine's worth of memory.
_RANGES: dict[str, tuple[float, float]] = {
    "cpu_s": (0.1, 3600),
    "wall_s": (0.1, 3600),
    "memory_mib": (32, 65536),
    "processes": (1, 4096),
    "open_files": (16, 4096),
    "file_mib": (1, 1024),
    "workspace_mib": (1, 1024),
    "workspace_files": (1, 100_000),
    "tmp_mib": (1, 1024),
    "output_kib": (1, 16384),
    "flood_mib": (1, 1024),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one run, or of one ``CandidateProcess`` over its whole life.

    Raises:
        TypeError: A value is not a number, or not a whole one where that was expected.
        ValueError: A value is outside its range.
    """

    cpu_s: float = 10.0
    """CPU time of the whole process tree, seconds, in [0.1, 3600]. Ends the run with reason ``cpu``.

    Processes that live for less than 20 ms under a parent that ignores ``SIGCHLD`` may go uncounted; ``wall_s`` bounds them.
    """

    wall_s: float = 30.0
    """Elapsed time, seconds, in [0.1, 3600]. Ends the run with reason ``wall``."""

    memory_mib: int = 512
    """Private memory of each process, and resident memory of all together, MiB, in [32, 65536].

    One process gets a failed allocation (``MemoryError``); the tree as a whole ends with reason ``memory``, noticed within some 20 ms.
    Not counted: the kernel's own memory, such as the buffers of pipes and sockets, which only ``processes`` and ``open_files`` bound.
    Memory that is shared without a file (``MAP_SHARED | MAP_ANONYMOUS``) is refused.
    """

    processes: int = 64
    """Processes and threads alive at once, in [1, 4096]. One more fails with ``EAGAIN``."""

    open_files: int = 256
    """Open descriptors of each process, in [16, 4096]."""

    file_mib: int = 16
    """Largest single file, MiB, in [1, 1024]. Writing past it fails with ``EFBIG``."""

    workspace_mib: int = 64
    """All the workspace's files together, MiB, in [1, 1024]. Writing past it fails with ``ENOSPC``."""

    workspace_files: int = 4096
    """Files and directories in the workspace, and in ``/tmp``, in [1, 100000]. Ends the run with reason ``files``."""

    tmp_mib: int = 64
    """Size of ``/tmp``, and of ``/dev/shm``, MiB each, in [1, 1024]. Both are empty at the start of every run."""

    output_kib: int = 64
    """What is kept of stdout, and of stderr, KiB each, in [1, 16384]: three quarters from the start, one from the end."""

    flood_mib: int = 16
    """What may be printed in all, MiB, in [1, 1024]. Ends the run with reason ``output``."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            low, high = _RANGES[field.name]
            whole = field.type == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                raise TypeError(f"Limits.{field.name}: got {value!r}, expected {'a whole number' if whole else 'a number'}")
            if not (math.isfinite(value) and low <= value <= high):
                raise ValueError(f"Limits.{field.name}: got {value!r}, expected a value in [{low}, {high}]")


def check_files(files: Mapping[str, bytes], limits: Limits) -> None:
    """Whether files fit into a workspace.

    Raises:
        ValueError: A path is not a plain relative one, a file's name is a directory's too, or they are too many or too large.
    """
    directories: set[str] = set()
    for path in files:
        parts = path.split("/")
        if any(part in ("", ".", "..") or len(part.encode(errors="replace")) > 255 or "\0" in part for part in parts) or len(path) > 1024:
            raise ValueError(f"path: got {path!r}, expected a relative one such as 'src/main.py', at most 1024 characters long")
        if not path.isprintable():
            raise ValueError(f"path: got {path!r}, expected printable characters")
        directories.update("/".join(parts[:i]) for i in range(1, len(parts)))
    if both := sorted(directories & files.keys()):
        raise ValueError(f"path {both[0]!r}: a file and a directory cannot have the same name")
    if len(files) + len(directories) > limits.workspace_files:
        raise ValueError(f"the workspace would hold {len(files) + len(directories)} files, at most {limits.workspace_files} are allowed")
    pages = sum(-(-len(data) // _PAGE) for data in files.values())  # what they take up inside
    if pages * _PAGE > limits.workspace_mib * _MIB:
        raise ValueError(f"the workspace would hold {pages * _PAGE / _MIB:.1f} MiB, at most {limits.workspace_mib} MiB are allowed")
