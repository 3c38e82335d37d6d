"""Calling functions that nobody trusts: the program runs in a fresh sandbox, the caller gets plain values or a typed error.

The program shares its process with the code that answers, so it can forge any answer it likes. A forged answer is a value like any other:
whoever holds the expected one compares it outside the sandbox, and it never goes in.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agent_gym.errors import AgentGymError, InfrastructureError
from agent_gym.sandbox.bubblewrap import LIBRARY
from agent_gym.sandbox.codec import MAX_BYTES, MESSAGE_DEPTH, CodecError, dumps, loads
from agent_gym.sandbox.frames import FrameError, frame, read_frame
from agent_gym.sandbox.jail import Job, OneShot, Place
from agent_gym.sandbox.limits import Limits, check_files
from agent_gym.sandbox.preflight import preflight

__all__ = ["CandidateError", "CandidateProcess", "Peer", "PeerError", "Reply", "printable"]

CandidateFault = Literal["not_loaded", "raised", "unsendable", "timeout", "died"]


class CandidateError(AgentGymError):
    """The candidate gave no value. Its own failure, never ours.

    Args:
        kind: ``not_loaded``: the program's top level raised; ``raised``: the function did; ``unsendable``: the value is not made of
            exact builtins, or too large; ``timeout``: a time limit; ``died``: the process ended, hit another limit, or talked nonsense.
        message: What happened.
        exception: The name of the exception's type, for ``not_loaded`` and ``raised``.
    """

    def __init__(self, kind: CandidateFault, message: str, exception: str = "") -> None:
        message, exception = printable(message), printable(exception)
        super().__init__(f"{kind}: {exception + ': ' if exception else ''}{message}")
        self.kind = kind
        self.message = message
        self.exception = exception

    def __reduce__(self) -> tuple[type[CandidateError], tuple[CandidateFault, str, str]]:
        return type(self), (self.kind, self.message, self.exception)


def printable(text: str) -> str:
    """The text, with lone surrogates spelled out: what comes from inside must not break whoever writes it down as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


class PeerError(AgentGymError):
    """A program inside ended, or broke the protocol.

    Args:
        timed_out: Whether a time limit did it.
        message: What happened.
    """

    def __init__(self, timed_out: bool, message: str) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Reply(NamedTuple):
    """What a call came to."""

    value: Any
    args: tuple[Any, ...]
    """The arguments as the function left them."""
    kwargs: dict[str, Any]


class Peer:
    """One of our programs in a fresh sandbox, exchanging messages with this process over a socket of its own.

    Args:
        module: A file of ``inside/``, without its ending.
        files: The workspace, which the program's imports are looked up in.
        limits: Of its whole life.
        place: Where; without one, in a sandbox of its own.

    Raises:
        SandboxUnavailable: This machine cannot isolate code.
        InfrastructureError: The sandbox did not start.
    """

    def __init__(self, module: str, files: Mapping[str, bytes], limits: Limits, place: Place | None = None) -> None:
        check_files(files, limits)
        argv = (f"{LIBRARY}/agent_gym/sandbox/inside/{module}.py",)
        job = Job(argv=argv, script=True, limits=limits, files=files, path=f"{LIBRARY}:/workspace")
        place = place or OneShot(preflight())
        self._owner = os.getpid()
        try:
            self._socket, theirs = socket.socketpair()
        except OSError as error:
            raise InfrastructureError(f"the sandbox could not be started: {error}") from error
        try:
            with theirs:
                self._exchange = place.start(job, (-1, -1, theirs.fileno()))
        except BaseException:
            self._socket.close()
            raise

    def send(self, message: object) -> None:
        """Sends one message.

        Raises:
            CodecError: It holds something that may not travel; nothing was sent.
            PeerError: The program has ended, or reads nothing.
        """
        data = frame(dumps(message, max_depth=MESSAGE_DEPTH))
        self._socket.settimeout(self._left(self._exchange.deadline))
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._ended(error) from None

    def receive(self, timeout_s: float | None = None) -> Any:
        """Waits for one message.

        Args:
            timeout_s: How long; without one, as long as the program may live.

        Raises:
            PeerError: None came, or what came is no message. The program is dead then.
        """
        deadline = self._exchange.deadline if timeout_s is None else min(time.monotonic() + timeout_s, self._exchange.deadline)

        def read(size: int) -> bytes:
            self._socket.settimeout(self._left(deadline))
            return self._socket.recv(size)

        try:
            return loads(read_frame(read, MAX_BYTES), max_depth=MESSAGE_DEPTH)
        except (OSError, EOFError, FrameError, CodecError) as error:
            raise self._ended(error) from None

    def close(self) -> None:
        """Ends the program; again is nothing."""
        self._socket.close()
        self._exchange.close()

    def _left(self, deadline: float) -> float:
        if os.getpid() != self._owner:
            raise InfrastructureError("this sandboxed process belongs to the process that started it, not to a fork of it")
        return max(0.001, deadline - time.monotonic())

    def _ended(self, error: Exception) -> PeerError:
        """Kills the program, and finds out what became of it."""
        self._exchange.stop()
        self._socket.close()
        report = self._exchange.report()
        if report.reason in ("wall", "cpu") or isinstance(error, TimeoutError):
            return PeerError(True, f"it took too long ({report.reason if report.reason != 'stopped' else 'the call'})")
        if report.reason == "stopped":
            return PeerError(False, f"it sent what is no answer ({error})")
        status = report.status
        how = f"exit code {os.WEXITSTATUS(status)}" if os.WIFEXITED(status) else f"signal {os.WTERMSIG(status)}"
        return PeerError(False, f"it ended ({how}, reason {report.reason})")


class CandidateProcess:
    """A program in a fresh sandbox whose functions can be called.

    Args:
        program: Python source; bytes are decoded as Python decodes a source file. Its ``__name__`` is ``solution``.
        files: Modules it may import: relative paths and contents.
        limits: Of the process's whole life, all calls together; waiting between calls counts as elapsed time.
        place: Where; without one, in a sandbox of its own. See ``SandboxPool.lease``.

    Raises:
        ValueError: A file's path is not a plain relative one, or they are too large.
        SandboxUnavailable: This machine cannot isolate code.
        InfrastructureError: The sandbox did not start.
    """

    def __init__(
        self, program: str | bytes, *, files: Mapping[str, bytes] | None = None, limits: Limits | None = None, place: Place | None = None
    ) -> None:
        self._fault: CandidateError | None = None
        self._loaded = False
        self._peer = Peer("candidate", files or {}, limits or Limits(), place)
        try:
            self._peer.send(("load", program))
        except CodecError as error:
            self._fault = CandidateError("not_loaded", f"the program is too large ({error})")
        except PeerError as error:
            self._fault = CandidateError("died", str(error))

    def __enter__(self) -> CandidateProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(
        self, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, timeout_s: float | None = None
    ) -> Reply:
        """Calls a function of the program, after its top level has run.

        Args:
            name: Of the function; dotted for an attribute.
            args: Values of the codec's types.
            kwargs: The same.
            timeout_s: For this call; without one, what is left of the life.

        Raises:
            CandidateError: No value came back. After ``raised`` and ``unsendable`` it can be called again; otherwise every later call
                raises the same.
            CodecError: An argument may not travel; the candidate saw nothing.
            InfrastructureError: The sandbox itself failed.
        """
        self.wait_loaded(timeout_s=timeout_s)
        answer = self._exchange(("call", name, tuple(args), dict(kwargs or {})), timeout_s)
        if answer[0] == "value" and len(answer) == 4 and type(answer[2]) is tuple and type(answer[3]) is dict:
            return Reply(*answer[1:])
        if answer[0] == "raised" and list(map(type, answer)) == [str, str, str]:
            raise CandidateError("raised", answer[2], answer[1])
        if answer[0] == "unsendable" and list(map(type, answer)) == [str, str]:
            raise CandidateError("unsendable", answer[1])
        raise self._fail("died", "it sent what is no answer")

    def wait_loaded(self, *, timeout_s: float | None = None) -> None:
        """Waits until the program's top level has run.

        Raises:
            CandidateError: It did not end well.
        """
        if self._fault:
            raise self._fault
        if self._loaded:
            return
        answer = self._exchange(None, timeout_s)
        if answer == ("loaded",):
            self._loaded = True
        elif answer[0] == "raised" and list(map(type, answer)) == [str, str, str]:
            self._fault = CandidateError("not_loaded", answer[2], answer[1])
            raise self._fault
        else:
            raise self._fail("died", "it sent what is no answer")

    def close(self) -> None:
        """Ends the process; again is nothing."""
        self._fault = self._fault or CandidateError("died", "it was closed")
        self._peer.close()

    def _exchange(self, message: object, timeout_s: float | None) -> tuple[Any, ...]:
        try:
            if message is not None:
                self._peer.send(message)
            answer = self._peer.receive(timeout_s)
        except PeerError as error:
            raise self._fail("timeout" if error.timed_out else "died", str(error)) from None
        except CodecError:
            raise  # nothing was sent
        except BaseException as error:
            self._fail("died", f"a call was interrupted ({type(error).__name__})")  # else the next call would get this one's answer
            raise
        if type(answer) is not tuple or not answer or type(answer[0]) is not str:
            raise self._fail("died", "it sent what is no answer")
        return answer

    def _fail(self, kind: CandidateFault, message: str) -> CandidateError:
        self._fault = CandidateError(kind, message)
        self._peer.close()
        return self._fault
