"""Grading one function by a task's own test code, with neither of the two running in this process.

Two sandboxes: one holds the program, one the test with the expected values. They share nothing; every call passes through here as plain
data. What the program prints, exits with or returns cannot make a verdict: only the other sandbox does, and only a test that ran to its
end after at least one call, with no call lost, passes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

from agent_gym.sandbox.calls import CandidateError, CandidateProcess, Peer, PeerError, printable
from agent_gym.sandbox.codec import CodecError
from agent_gym.sandbox.jail import Place
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.pool import SandboxPool

__all__ = ["Graded", "grade_with_check"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Graded:
    """A verdict."""

    passed: bool
    detail: str
    """Why not; may quote the test, so it is not for the agent's eyes."""
    calls: int
    """How often the test called the function."""
    wall_s: float


def grade_with_check(
    program: str | bytes,
    prompt_prelude: str,
    test: str,
    entry_point: str,
    limits: Limits | None = None,
    pool: SandboxPool | None = None,
    *,
    isolate_calls: bool = False,
) -> Graded:
    """Whether a program passes a test that defines ``check(candidate)``, as HumanEval's do.

    Args:
        program: The whole program to grade; bytes are decoded as Python decodes a source file.
        prompt_prelude: Code whose names the test may use, such as the task's prompt.
        test: Defines ``check``, which raises when it is not satisfied.
        entry_point: The function's name in the program.
        limits: Of each sandbox; the elapsed time holds for the whole.
        pool: Where they come from; without one they are started anew.
        isolate_calls: Whether each call is made in a process of its own, so that nothing can be remembered from one to the next.

    Raises:
        SandboxUnavailable: This machine cannot isolate code.
        InfrastructureError: A sandbox itself failed.
    """
    limits = limits or Limits()
    started = time.monotonic()

    @contextlib.contextmanager
    def candidates() -> Iterator[CandidateProcess]:
        with _place(pool) as place, CandidateProcess(program, limits=limits, place=place) as candidate:
            yield candidate

    with contextlib.ExitStack() as stack:
        one = None if isolate_calls else stack.enter_context(candidates())
        grader = stack.enter_context(contextlib.closing(Peer("grader", {}, limits, stack.enter_context(_place(pool)))))
        judge = _Judge(candidates if one is None else lambda: contextlib.nullcontext(one), grader, entry_point)
        try:
            passed, detail = judge.verdict(("check", prompt_prelude, test, entry_point), started + limits.wall_s)
        except CandidateError as error:
            passed, detail = False, f"the program gave no value: {error}"
        except PeerError as error:
            passed, detail = False, f"the test gave no verdict: {error}"
        except CodecError as error:
            passed, detail = False, f"the test is too large: {error}"
    if passed and not judge.calls:
        passed, detail = False, "the test never called the function"
    return Graded(passed=passed, detail=printable(detail), calls=judge.calls, wall_s=time.monotonic() - started)


def _place(pool: SandboxPool | None) -> contextlib.AbstractContextManager[Place | None]:
    return pool.lease() if pool else contextlib.nullcontext()


class _Judge:
    """Carries calls from the one sandbox to the other until there is a verdict."""

    def __init__(
        self, candidates: Callable[[], contextlib.AbstractContextManager[CandidateProcess]], grader: Peer, entry_point: str
    ) -> None:
        self._candidates = candidates
        self._grader = grader
        self._entry_point = entry_point
        self.calls = 0

    def verdict(self, question: object, deadline: float) -> tuple[bool, str]:
        self._grader.send(question)
        while True:
            message = self._grader.receive(deadline - time.monotonic())
            kind = message[0] if type(message) is tuple and message else None
            if kind == "verdict" and list(map(type, message)) == [str, bool, str]:
                return message[1], message[2]
            if kind != "call" or list(map(type, message)) != [str, tuple, dict]:
                raise PeerError(False, "it sent what is no call and no verdict")
            self.calls += 1
            self._grader.send(self._answer(message[1], message[2], deadline - time.monotonic()))

    def _answer(self, args: tuple[Any, ...], kwargs: dict[str, Any], timeout_s: float) -> tuple[Any, ...]:
        try:
            with self._candidates() as candidate:
                return ("value", *candidate.call(self._entry_point, args, kwargs, timeout_s=timeout_s))
        except CandidateError as error:
            if error.kind != "raised":
                raise
            return ("raised", error.exception, error.message)  # the test may expect it
