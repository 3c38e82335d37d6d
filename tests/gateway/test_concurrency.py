"""How many calls of a remote tool are under way at once: fewer while it is rate limited or slow, more again afterwards."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import Change, Observation, Session, ToolCall, ToolResult, ToolSpec, Verdict
from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.gateway import Boundary, Concurrency, ConcurrencyReport, FaultPlan, Gateway, Resilience, concurrency_report

FIND = ToolSpec(name="find", description="find", annotations={"readOnlyHint": True}, remote=True, may_block=False)
LOOK = ToolSpec(name="look", description="look", annotations={"readOnlyHint": True}, may_block=False)
OK, BUSY = ToolResult(status="ok"), ToolResult(status="rate_limited", retry_after_s=1.0)


class Service(Session):
    """Answers so many callers at a time, and turns the others away."""

    room = 100
    meet: Callable[[], Any] | None = None
    """What a call does before it is over."""
    lock = threading.Lock()
    inside = most_inside = turned_away = 0

    def __init__(self) -> None:
        self.tools = (FIND, LOOK)

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - nothing here takes time
        cls = type(self)
        with cls.lock:
            cls.inside += 1
            cls.most_inside = max(cls.most_inside, cls.inside)
            crowded = cls.inside > cls.room
            cls.turned_away += crowded
        if cls.meet is not None:
            cls.meet()
        with cls.lock:
            cls.inside -= 1
        return BUSY if crowded else OK

    def observe(self) -> Observation:
        return Observation("")

    def verdict(self, closing: ToolCall) -> Verdict:
        raise NotImplementedError

    def digest(self) -> str:
        return ""

    def changes(self) -> list[Change]:
        return []


def report_of(service: type[Session], tool: str = "find") -> ConcurrencyReport | None:
    return concurrency_report().get(f"{service.__module__}.{service.__qualname__}/{tool}")


def called(service: type[Session], name: str = "find", **resilience: Any) -> ToolResult:
    gateway = Gateway(service(), boundary=Boundary(resilience=Resilience(cache=False, **resilience)))
    result = gateway.call(ToolCall(name), 1).result
    gateway.close()
    return result


def called_at_once(service: type[Session], times: int, **resilience: Any) -> list[ToolResult]:
    results: list[ToolResult] = []
    threads = [threading.Thread(target=lambda: results.append(called(service, **resilience))) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def carry(limit: Concurrency, status: str = "ok", seconds: float = 0.001, times: int = 1) -> Concurrency:
    """Calls, each begun as soon as there is room for it."""
    entered: deque[int] = deque()
    for _ in range(times):
        while (one := limit.enter(0.0)) is not None:
            entered.append(one)
        limit.leave(entered.popleft(), status, seconds)
    while entered:
        limit.leave(entered.popleft(), "", 0.0)
    return limit


def test_a_call_that_is_turned_away_halves_the_limit_and_a_round_of_others_raises_it_by_one() -> None:
    limit = carry(Concurrency(8), "rate_limited")
    assert (limit.report.limit, limit.report.cuts, limit.report.most) == (4, 1, 8)
    assert carry(limit, times=5).report.limit == 5
    assert carry(limit, times=100).report.limit == 8
    assert carry(limit, "error", times=100).report.limit == 8
    for _ in range(10):
        carry(limit, "rate_limited")
    assert limit.report.limit == 1
    assert limit.enter(0.0) is not None


def test_calls_that_were_begun_before_a_cut_bring_about_no_other() -> None:
    limit = Concurrency(8)
    entered = [limit.enter(0.0) for _ in range(8)]
    for one in entered:
        assert one is not None
        limit.leave(one, "rate_limited", 0.001)
    assert (limit.report.limit, limit.report.cuts) == (4, 1)


@pytest.mark.parametrize(
    ("calls", "cuts"),
    [
        ([("ok", 0.02, 64), ("ok", 0.5, 32)], 1),
        ([("ok", 0.02, 64), ("ok", 0.05, 320)], 0),
        ([("ok", 0.001, 64), ("ok", 0.04, 320)], 0),  # too little to matter
        ([("ok", 0.02, 64), ("error", 0.5, 320)], 0),
        ([("timeout", 1.0, 1)], 1),
        ([("timeout", 0.0001, 10)], 0),  # of a tool that hangs: it was not even asked
    ],
)
def test_a_tool_that_slows_down_gets_fewer_calls(calls: list[tuple[str, float, int]], cuts: int) -> None:
    limit = Concurrency(16)
    for status, seconds, times in calls:
        carry(limit, status, seconds, times)
    assert limit.report.cuts == cuts


@given(
    most=st.integers(1, 6),
    moves=st.lists(st.tuples(st.booleans(), st.sampled_from(["ok", "rate_limited", "timeout", ""]), st.floats(0.0, 2.0)), max_size=60),
)
def test_the_limit_stays_within_its_bounds_and_is_kept(most: int, moves: list[tuple[bool, str, float]]) -> None:
    limit, under_way = Concurrency(most), deque[int]()
    for comes, status, seconds in moves:
        if comes:
            room = len(under_way) < limit.report.limit
            entered = limit.enter(0.0)
            assert (entered is not None) == room
            if entered is not None:
                under_way.append(entered)
        elif under_way:
            limit.leave(under_way.popleft(), status, seconds)
        assert 1 <= limit.report.limit <= most


def test_environments_of_one_process_share_a_limit_and_those_that_are_turned_away_come_again() -> None:
    class Crowded(Service):
        room = 2

    together = threading.Barrier(4, action=lambda: setattr(Crowded, "meet", None))
    Crowded.meet = lambda *_: together.wait(60)
    results = called_at_once(Crowded, 4, concurrency=4)
    assert [result.status for result in results] == ["ok"] * 4
    assert sorted(result.attempts for result in results) == [1, 1, 2, 2]
    assert Crowded.turned_away == 2
    report = report_of(Crowded)
    assert report is not None
    assert (report.most, report.cuts) == (4, 1)


def test_calls_wait_for_their_turn_and_are_counted() -> None:
    class Single(Service):
        pass

    def until_the_others_wait(*_: Any) -> None:
        while (report := report_of(Single)) is not None and report.waits < 5:
            time.sleep(0.001)

    Single.meet = until_the_others_wait
    assert [result.status for result in called_at_once(Single, 6, concurrency=1)] == ["ok"] * 6
    report = report_of(Single)
    assert report is not None
    assert (Single.most_inside, report.limit, report.waits, report.cuts) == (1, 1, 5, 0)
    assert report.waited_s > 0.0


def test_what_fails_gives_its_place_back_and_whoever_waits_too_long_is_told() -> None:
    class Failing(Service):
        def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:
            if type(self).inside == 0:
                type(self).inside = 1
                raise InfrastructureError("planted")
            return super().call(call, deadline, key)

    with pytest.raises(InfrastructureError):
        called(Failing, concurrency=1)
    assert called(Failing, concurrency=1).status == "ok"
    shared = Concurrency.of(Failing, "find", 1)
    assert shared.enter(0.0) is not None
    result = called(Failing, concurrency=1, longest_wait_s=0.0)
    assert (result.status, result.content) == ("rate_limited", "too many calls of find are under way")


def test_neither_local_tools_nor_faults_that_are_injected_nor_tools_without_a_limit_are_counted() -> None:
    class Quiet(Service):
        pass

    called(Quiet, "look")
    called(Quiet, concurrency=None)
    assert report_of(Quiet) is None
    assert report_of(Quiet, "look") is None
    gateway = Gateway(Quiet(), boundary=Boundary(faults=FaultPlan(rate=1.0, kinds=("rate_limit",)), resilience=Resilience(cache=False)))
    assert gateway.call(ToolCall("find"), 1).attempts[0].result.status == "rate_limited"
    report = report_of(Quiet)
    assert report is None or report.cuts == 0


@pytest.mark.parametrize("value", [0, -1, 1.5, "8", True])
def test_a_limit_that_is_none_is_refused(value: Any) -> None:
    assert Resilience.of({"concurrency": None}).concurrency is None
    assert Resilience.of({"concurrency": 8}).concurrency == 8
    with pytest.raises(ConfigurationError, match="concurrency must be at least 1, or null"):
        Resilience.of({"concurrency": value})
