"""Sandboxes of both kinds, so that what is promised is seen of each."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Protocol

import pytest

from agent_gym.sandbox import CandidateProcess, Graded, Limits, Sandbox, SandboxPool, grade_with_check


class Make(Protocol):
    """Opens a sandbox that is closed when the test ends."""

    def __call__(self, files: Mapping[str, bytes] | None = None, *, limits: Limits | None = None, loopback: bool = False) -> Sandbox: ...


Start = Callable[..., CandidateProcess]
Grade = Callable[..., Graded]


@pytest.fixture(scope="session")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(2) as pool:
        yield pool


@pytest.fixture(params=["warm", "one-shot"])
def warm(request: pytest.FixtureRequest, needs_sandbox: None) -> bool:  # noqa: ARG001
    return bool(request.param == "warm")


@pytest.fixture
def make(warm: bool, pool: SandboxPool) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(files: Mapping[str, bytes] | None = None, *, limits: Limits | None = None, loopback: bool = False) -> Sandbox:
            opened = pool.acquire(files, limits=limits, loopback=loopback) if warm else Sandbox(files, limits=limits)
            return stack.enter_context(opened)

        yield make


@pytest.fixture
def start(warm: bool, pool: SandboxPool) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *args, **keywords: CandidateProcess(*args, **keywords, place=stack.enter_context(pool.lease()) if warm else None)


@pytest.fixture
def grade(warm: bool, pool: SandboxPool) -> Grade:
    return partial(grade_with_check, pool=pool if warm else None)
