"""An episode's workspace, and running programs in it.

The workspace is a dict of paths and bytes in this process's memory. It is sent into empty file systems before each run and read back after
it: so a snapshot is a copy of a dict, nothing is left behind on a disk, and nothing but the files' contents survives a run. Empty
directories, permissions, links and times do not. Only where something is left running on purpose do the file systems stay as they are.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import MappingProxyType
from typing import TypedDict

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox.bubblewrap import PROGRAM
from agent_gym.sandbox.cgroup import delegated
from agent_gym.sandbox.execution import ExecResult, Run
from agent_gym.sandbox.jail import Job, OneShot, Place
from agent_gym.sandbox.limits import Limits, check_files
from agent_gym.sandbox.machine import find_machine
from agent_gym.sandbox.preflight import preflight
from agent_gym.sandbox.warm import Box

__all__ = ["Changes", "Sandbox"]

_MIB = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changes:
    """Paths that differ between two states of a workspace, sorted."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


class _About(TypedDict):
    """What every job of a workspace says."""

    limits: Limits
    kept: Limits
    files: Mapping[str, bytes]
    removed: Sequence[str]
    live: bool
    stdin: bytes
    background: bool
    loopback: bool


class Sandbox:
    """One episode's files, and isolated execution over them.

    Made by ``SandboxPool.acquire``, it has a warm sandbox for its runs. Made by itself it starts a new one for each run, which is slower
    and otherwise the same, but for ``background``, which it lacks, and the loopback, which is always up.

    Not for several runs at once; ``interrupt`` and ``close`` may come from any thread.

    Args:
        files: What the workspace holds at first: relative POSIX paths and contents.
        limits: Of the workspace, and of each run that brings none of its own.
        loopback: Whether 127.0.0.1 works inside.
        lease: Where a warm sandbox is got from, and given back to.

    Raises:
        SandboxUnavailable: This machine cannot isolate code.
        ValueError: A path or the total size does not fit.
    """

    def __init__(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        limits: Limits | None = None,
        loopback: bool = False,
        lease: Callable[[], AbstractContextManager[Place]] | None = None,
    ) -> None:
        self._lease = lease or (lambda: nullcontext(OneShot(preflight())))
        self._warm = lease is not None
        if not self._warm:
            preflight()
        self._loopback = loopback
        self._leased = ExitStack()
        self._place: Place | None = None
        self._live: dict[str, bytes] | None = None  # what was in the workspace when something was left running there
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

    @property
    def capabilities(self) -> Mapping[str, str | bool | int | None]:
        """What it is made of: ``kind`` (``warm`` or ``one-shot``), ``bwrap``, ``python``, ``user`` (the uid outside), ``loopback``, and
        ``cgroup`` (the delegated group that bounds it, None where there is none).
        """
        machine = find_machine()
        return {
            "kind": "warm" if self._warm else "one-shot",
            "bwrap": str(machine.bwrap),
            "python": machine.python,
            "user": os.geteuid() if machine.user is None else machine.user,
            "loopback": self._loopback or not self._warm,
            "cgroup": str(delegated()) if self._warm and delegated() else None,
        }

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

    def run_python(
        self, source: str | bytes, *arguments: str, stdin: bytes = b"", limits: Limits | None = None, background: bool = False
    ) -> ExecResult:
        """Runs a Python program in the workspace, whose modules it can import; bytes are decoded as Python decodes a file. See ``run``."""
        program = source.encode(errors="surrogatepass") if isinstance(source, str) else source
        return self._run(Job(argv=(PROGRAM, *arguments), script=True, program=program, **self._about(stdin, limits, background)))

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", limits: Limits | None = None, background: bool = False) -> ExecResult:
        """Runs a command in the workspace and waits for it.

        Args:
            argv: The command and its arguments; looked up in ``/usr/bin``.
            stdin: What it reads; at most ``tmp_mib``.
            limits: Instead of the sandbox's own.
            background: Whether what it leaves running, and what earlier runs left, lives on when it ends by itself. Then the limits of
                this run hold on, elapsed time aside; what such processes write into the workspace is seen after the next run, and what
                they print is lost (``EPIPE``). Without it, all is killed.

        Raises:
            InfrastructureError: The sandbox itself failed, or was closed; never because of what the program did.
            ValueError: A word of the command holds a NUL or a lone surrogate, there is none, or stdin or the workspace is too large for
                ``limits``; or ``background`` was asked of a sandbox that is not warm.
        """
        if not argv:
            raise ValueError("argv: got no words, expected a command")
        return self._run(Job(argv=argv, **self._about(stdin, limits, background)))

    def reset(self, files: Mapping[str, bytes] | None = None) -> None:
        """Begins another episode, which nothing of this one reaches: whatever runs is killed, and only these files are there.

        Raises:
            ValueError: See ``write_file``.
            InfrastructureError: It is closed, or the warm sandbox failed; the next run gets another.
        """
        check_files(files or {}, self.limits)
        with self._lock:
            self._check_free()
            self._files = dict(files or {})
            self._live = None
            if isinstance(self._place, Box):
                try:
                    self._place.reset()
                except InfrastructureError:
                    self._give_back()
                    raise

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
        """Ends a run in progress, gives the warm sandbox back and forgets the files; again is nothing."""
        self._closed = True
        self.interrupt()
        with self._lock:
            if not self._run_now:  # else the run's end does it
                self._give_back()
        self._files = {}

    def _about(self, stdin: bytes, limits: Limits | None, background: bool) -> _About:
        if background and not self._warm:
            raise ValueError("background: got True, which needs a warm sandbox, from SandboxPool.acquire")
        files, removed = self._files, list[str]()
        if self._live is not None:
            files = {path: data for path, data in files.items() if self._live.get(path) != data}
            removed = sorted(self._live.keys() - self._files.keys())
        return {
            "limits": limits or self.limits,
            "kept": self.limits,
            "files": files,
            "removed": removed,
            "live": self._live is not None,
            "stdin": stdin,
            "background": background,
            "loopback": self._loopback,
        }

    def _run(self, job: Job) -> ExecResult:
        if any("\0" in word for word in job.argv):
            raise ValueError(f"argv: got {job.argv!r}, expected words without NUL characters")
        if len(job.stdin) > job.limits.tmp_mib * _MIB:
            raise ValueError(f"stdin: got {len(job.stdin)} bytes, at most {job.limits.tmp_mib} MiB are allowed")
        check_files(self._files, job.limits)
        with self._lock:
            self._check_free()
            if self._place is None:
                self._place = self._leased.enter_context(self._lease())
            try:
                self._run_now = Run(self._place, job)
            except InfrastructureError:
                self._give_back()
                raise
        try:
            result, report = self._run_now.wait()
        except BaseException:
            self._give_back()
            raise
        finally:
            with self._lock:
                self._run_now = None
                if self._closed:
                    self._give_back()
        # Which characters can be printed depends on the Python, so this one decides.
        odd = [path for path in report.files if not path.isprintable()]
        left_out = (*result.left_out, *((ascii(path)[1:-1][:200], "name") for path in odd))
        if not self._closed:
            self._files = {path: data for path, data in report.files.items() if path.isprintable()}
            self._live = dict(self._files) if report.lives else None
        return dataclasses.replace(result, left_out=left_out[:16])

    def _check_free(self) -> None:
        if self._closed:
            raise InfrastructureError("this sandbox is closed")
        if self._run_now:
            raise InfrastructureError("this sandbox is running something already")

    def _give_back(self) -> None:
        self._place = self._live = None
        self._leased.close()
