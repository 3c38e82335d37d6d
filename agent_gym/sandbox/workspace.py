"""An episode's workspace, and running programs in it.

The workspace is a dict of paths and bytes in this process's memory. It is sent into a fresh sandbox before each run and read back after it:
so a snapshot is a copy of a dict, nothing is left behind on a disk, and nothing but the files' contents survives a run. Empty directories,
permissions, links and times do not.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox.execution import ExecResult, Run
from agent_gym.sandbox.jail import PROGRAM, Job
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.preflight import preflight

__all__ = ["Changes", "Sandbox", "check_files"]

_PAGE = 4096
_MIB = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changes:
    """Paths that differ between two states of a workspace, sorted."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


class Sandbox:
    """One episode's files, and isolated execution over them.

    Not for several runs at once; ``interrupt`` and ``close`` may come from any thread.

    Args:
        files: What the workspace holds at first: relative POSIX paths and contents.
        limits: Of the workspace, and of each run that brings none of its own.

    Raises:
        SandboxUnavailable: This machine cannot isolate code.
        ValueError: A path or the total size does not fit.
    """

    def __init__(self, files: Mapping[str, bytes] | None = None, *, limits: Limits | None = None) -> None:
        self._machine = preflight()
        self.limits = limits or Limits()
        self._files: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._run_now: Run | None = None
        self._closed = False
        self.restore(files or {})

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def files(self) -> Mapping[str, bytes]:
        """The workspace, sorted by path; to look at."""
        return MappingProxyType(dict(sorted(self._files.items())))

    def write_file(self, path: str, data: bytes | str) -> None:
        """Creates or replaces a file; text is written as UTF-8.

        Raises:
            ValueError: The path is no plain relative one, goes through a file or ends at a directory; or the workspace would be too large.
        """
        content = data.encode() if isinstance(data, str) else bytes(memoryview(data))
        check_files({**self._files, path: content}, self.limits)
        self._files[path] = content

    def read_file(self, path: str) -> bytes:
        """A file's contents.

        Raises:
            FileNotFoundError: There is no such file.
        """
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(f"no file {path!r} in the workspace") from None

    def delete_file(self, path: str) -> None:
        """Removes a file.

        Raises:
            FileNotFoundError: There is no such file.
        """
        self.read_file(path)
        del self._files[path]

    def run_python(self, source: str | bytes, *arguments: str, stdin: bytes = b"", limits: Limits | None = None) -> ExecResult:
        """Runs a Python program in the workspace, whose modules it can import; bytes are decoded as Python decodes a file. See ``run``."""
        argv = (self._machine.python, "-s", PROGRAM, *arguments)
        program = source.encode(errors="surrogatepass") if isinstance(source, str) else source
        return self._run(self._job(argv, stdin, limits, program))

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", limits: Limits | None = None) -> ExecResult:
        """Runs a command in the workspace, in a sandbox of its own, and waits for it. What it leaves running is killed.

        Args:
            argv: The command and its arguments; looked up in ``/usr/bin``.
            stdin: What it reads; at most ``tmp_mib``.
            limits: Instead of the sandbox's own.

        Raises:
            InfrastructureError: The sandbox itself failed, or was closed; never because of what the program did.
            ValueError: A word of the command holds a NUL or a lone surrogate, there is none, or stdin or the workspace is too large for
                ``limits``.
        """
        if not argv:
            raise ValueError("argv: got no words, expected a command")
        return self._run(self._job(argv, stdin, limits))

    def interrupt(self) -> None:
        """Ends the run in progress, if there is one: it returns with reason ``interrupted``."""
        with self._lock:
            if self._run_now:
                self._run_now.interrupt()

    def snapshot(self) -> dict[str, bytes]:
        """A copy of the workspace."""
        return dict(self.files)

    def restore(self, snapshot: Mapping[str, bytes]) -> None:
        """Makes the workspace what ``snapshot`` returned.

        Raises:
            ValueError: See ``write_file``.
        """
        check_files(snapshot, self.limits)
        self._files = dict(snapshot)

    def digest(self) -> str:
        """A BLAKE2b hash of all paths and contents, 32 hexadecimal digits."""
        hashed = hashlib.blake2b(digest_size=16)
        for path, data in sorted(self._files.items()):
            for part in (path.encode(), data):
                hashed.update(len(part).to_bytes(8, "big") + part)
        return hashed.hexdigest()

    def changes(self, since: Mapping[str, bytes]) -> Changes:
        """What differs from an earlier snapshot."""
        before, now = set(since), set(self._files)
        return Changes(
            added=tuple(sorted(now - before)),
            changed=tuple(sorted(path for path in now & before if self._files[path] != since[path])),
            removed=tuple(sorted(before - now)),
        )

    def close(self) -> None:
        """Ends a run in progress and forgets the files; again is nothing."""
        self._closed = True
        self.interrupt()
        self._files = {}

    def _job(self, argv: Sequence[str], stdin: bytes, limits: Limits | None, program: bytes = b"") -> Job:
        return Job(argv=argv, limits=limits or self.limits, kept=self.limits, files=self._files, stdin=stdin, program=program)

    def _run(self, job: Job) -> ExecResult:
        if any("\0" in word for word in job.argv):
            raise ValueError(f"argv: got {job.argv!r}, expected words without NUL characters")
        if len(job.stdin) > job.limits.tmp_mib * _MIB:
            raise ValueError(f"stdin: got {len(job.stdin)} bytes, at most {job.limits.tmp_mib} MiB are allowed")
        check_files(job.files, job.limits)
        with self._lock:
            if self._closed:
                raise InfrastructureError("this sandbox is closed")
            if self._run_now:
                raise InfrastructureError("this sandbox is running something already")
            self._run_now = Run(self._machine, job)
        try:
            result, files = self._run_now.wait()
        finally:
            with self._lock:
                self._run_now = None
        # Which characters can be printed depends on the Python, so this one decides.
        odd = [path for path in files if not path.isprintable()]
        left_out = (*result.left_out, *((ascii(path)[1:-1][:200], "name") for path in odd))
        if not self._closed:
            self._files = {path: data for path, data in files.items() if path.isprintable()}
        return dataclasses.replace(result, left_out=left_out[:16])


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
