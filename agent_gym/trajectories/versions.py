"""Versions of what an episode rests on."""

import functools
import os
import platform
from hashlib import blake2b
from importlib import metadata
from pathlib import Path

from agent_gym.registry import VERSION

__all__ = ["SCHEMA_VERSION", "code_version", "versions"]

SCHEMA_VERSION = 5
"""Of `agent_gym.trajectories.schema`; counts up when a column is added."""
_DIGEST_BYTES = 6


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on, and of this package's code."""
    found = {"agent_gym": VERSION, "code": code_version(), "python": platform.python_version()}
    return found | {package: metadata.version(package) for package in ("gymnasium", "numpy")}


@functools.cache
def code_version() -> str:
    """This package's version and a digest of all its files, environments included: whatever is changed in them changes it."""
    found = blake2b(digest_size=_DIGEST_BYTES)
    for folder, folders, names in os.walk(Path(__file__).parents[1], followlinks=True):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in sorted(names):
            found.update(name.encode())
            found.update((Path(folder) / name).read_bytes())
    return f"{VERSION}+{found.hexdigest()}"
