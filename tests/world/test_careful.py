"""The careful way to follow a script, one habit at a time: what it calls next follows from what was observed, and from nothing else."""

from collections.abc import Sequence
from typing import Any

import pytest

from agent_gym.core import ToolCall
from agent_gym.world import Script, careful_call

VERIFIED_BY = {"paint": "read", "grow": "read_all"}
WAITS = (5, 60, 300)
FIND, READ = ToolCall("find", {"name": "a"}), ToolCall("read", {"key": "k"})
PAINT = ToolCall("paint", {"key": "k", "colour": "red"})
FOUND = (FIND, "ok", {"keys": ["j", "k"]})
BLUE: dict[str, Any] = {"key": "k", "colour": "blue", "notes": ["a", "b"]}
RED = {**BLUE, "colour": "red"}

Event = tuple[ToolCall, str, Any] | tuple[ToolCall, str, Any, float]


def script() -> Script:
    found = yield FIND
    key = "k" if "k" in found["keys"] else ""
    yield ToolCall("read", {"key": key})
    yield ToolCall("paint", {"key": key, "colour": "red"})
    yield ToolCall("finish")


def observed(events: Sequence[Event]) -> list[dict[str, Any]]:
    observations: list[dict[str, Any]] = [{"data": {"last": None}}]
    for call, status, result, *after in events:
        last = {"tool": call.name, "arguments": call.arguments, "status": status, "result": result}
        observations.append({"data": {"last": {**last, "retry_after_s": after[0]} if after else last}})
    return observations


def after(*events: Event, waits: Sequence[float] = WAITS) -> ToolCall:
    return careful_call(script(), observed(events), VERIFIED_BY, waits)


def wait(seconds: int) -> ToolCall:
    return ToolCall("wait", {"seconds": seconds})


def waited(seconds: int) -> Event:
    return (wait(seconds), "ok", "")


LOOKED: Event = (READ, "ok", BLUE)
BEFORE = (FOUND, LOOKED)


def test_without_faults_it_looks_once_at_what_it_wrote() -> None:
    assert after() == FIND
    assert after(FOUND) == READ
    assert after(*BEFORE) == PAINT
    assert after(*BEFORE, (PAINT, "ok", {})) == READ
    assert after(*BEFORE, (PAINT, "ok", {}), (READ, "ok", RED)) == ToolCall("finish")


@pytest.mark.parametrize("status", ["unavailable", "rate_limited", "timeout", "malformed", "error"])
def test_a_read_that_failed_is_made_again(status: str) -> None:
    assert after((FIND, status, "no")) == FIND
    assert after((FIND, status, "no"), waits=()) == FIND


@pytest.mark.parametrize(
    ("after_s", "so_far", "expected"),
    [
        (3, (), wait(5)),
        (5, (), wait(5)),
        (5.5, (), wait(60)),
        (240, (), wait(300)),
        (400, (), wait(300)),
        (400, (300,), wait(300)),
        (400, (300, 300), FIND),
        (20, (5,), wait(60)),
        (20, (60,), FIND),
        (0, (), FIND),
    ],
)
def test_it_waits_for_as_long_as_it_was_told(after_s: float, so_far: Sequence[int], expected: ToolCall) -> None:
    events: list[Event] = [(FIND, "unavailable", "no", after_s), *map(waited, so_far)]
    assert after(*events) == expected
    assert after(events[0], waits=()) == FIND


def test_too_many_failures_in_a_row_make_it_wait_longer_each_time() -> None:
    failed: Event = (FIND, "unavailable", "no")
    assert after(failed, failed) == FIND
    assert after(failed, failed, failed) == wait(5)
    assert after(*[failed] * 3, waited(5)) == FIND
    assert after(*[failed] * 3, waited(5), failed) == FIND
    assert after(*[failed] * 3, waited(5), *[failed] * 3) == wait(60)
    assert after(*[failed] * 3, waited(5), FOUND, (READ, "timeout", "no")) == READ


@pytest.mark.parametrize("status", ["ok", "outcome_unknown", "malformed", "timeout", "error"])
def test_a_write_that_may_have_happened_is_looked_after_whatever_it_said(status: str) -> None:
    wrote: Event = (PAINT, status, "?")
    assert after(*BEFORE, wrote) == READ
    assert after(*BEFORE, wrote, (READ, "timeout", "no")) == READ
    assert after(*BEFORE, wrote, (READ, "ok", RED)).name == "finish"
    assert after(*BEFORE, wrote, LOOKED) == READ  # that look may have been a stale one
    assert after(*BEFORE, wrote, LOOKED, LOOKED) == PAINT
    assert after(*BEFORE, wrote, LOOKED, LOOKED, (PAINT, "ok", "")) == READ
    assert after(*BEFORE, wrote, LOOKED, LOOKED, (PAINT, "ok", ""), LOOKED, (READ, "ok", RED)).name == "finish"
    assert after(*BEFORE, wrote, (READ, "ok", RED), LOOKED).name == "finish"  # what was seen once is not unseen


@pytest.mark.parametrize("status", ["unavailable", "rate_limited"])
def test_a_write_that_did_not_happen_is_made_again_at_once(status: str) -> None:
    assert after(*BEFORE, (PAINT, status, "no")) == PAINT
    assert after(*BEFORE, (PAINT, status, "no", 60.0)) == wait(60)


def test_a_conflict_with_its_own_write_is_no_reason_to_write_again() -> None:
    events: list[Event] = [*BEFORE, (PAINT, "outcome_unknown", "?"), LOOKED, LOOKED, (PAINT, "conflict", "it is red")]
    for _ in range(4):
        assert after(*events) == READ
        events.append(LOOKED)
    assert after(*events, (READ, "ok", RED)).name == "finish"


def test_a_refusal_is_believed_once_two_looks_show_that_no_earlier_try_is_the_reason() -> None:
    refused: Event = (PAINT, "conflict", "there is no red")
    assert after(*BEFORE, refused) == READ
    assert after(*BEFORE, refused, LOOKED) == READ
    assert after(*BEFORE, refused, LOOKED, LOOKED).name == "finish"  # this script has nothing else to try


def test_a_write_that_never_happens_is_handed_over() -> None:
    round_: list[Event] = [(PAINT, "ok", "?"), LOOKED, LOOKED]
    assert after(*BEFORE, *round_ * 5) == PAINT
    assert after(*BEFORE, *round_ * 6).name == "hand_over"


@pytest.mark.parametrize(
    ("before", "later", "done"),
    [
        (BLUE, {**BLUE, "notes": ["a"]}, False),
        ({**BLUE, "notes": ["a"]}, BLUE, False),
        (BLUE, {key: BLUE[key] for key in ("key", "colour")}, False),
        (BLUE, {**BLUE, "notes": ["a", "c"]}, True),
        (BLUE, {**RED, "notes": ["a"]}, True),
    ],
)
def test_a_missing_part_is_no_change(before: object, later: object, done: bool) -> None:
    call = after(FOUND, (READ, "ok", before), (PAINT, "ok", ""), (READ, "ok", later))
    assert (call.name == "finish") == done


def test_what_is_missing_is_asked_for_again() -> None:
    half: Event = (FIND, "ok", {"keys": ["j"]})
    assert after(half) == FIND
    assert after(half, half) == FIND
    assert after(half, FOUND) == READ
    assert after(half, FOUND, half) == READ  # the fuller of two answers stays
    assert after(half, FOUND, (FIND, "ok", {"keys": ["m", "n", "o"]})) == FIND  # but another answer is another answer


def test_the_newest_and_least_often_asked_source_is_asked_first() -> None:
    def chain() -> Script:
        yield ToolCall("a")
        yield ToolCall("b")
        yield ToolCall("c")
        yield ToolCall("read", {"key": ""})

    events: list[Event] = [(ToolCall("a"), "ok", {"rows": []}), (ToolCall("b"), "empty", {"rows": []}), (ToolCall("c"), "ok", {"key": "k"})]
    asked = []
    for _ in range(5):
        asked.append(careful_call(chain(), observed(events), {}, ()))
        events.append((asked[-1], "ok", {"rows": []}))
    assert [call.name for call in asked] == ["b", "a", "b", "a", "b"]  # an answer without a list lacks nothing


def test_a_write_that_does_not_name_its_record_is_verified_by_the_one_last_read() -> None:
    def growing() -> Script:
        yield ToolCall("read_all", {"owner": "o"})
        yield ToolCall("grow", {"line": 3})

    read, grow = ToolCall("read_all", {"owner": "o"}), ToolCall("grow", {"line": 3})
    events: list[Event] = [(read, "ok", {"total": 1, "lines": []}), (grow, "ok", "")]
    assert careful_call(growing(), observed(events), VERIFIED_BY) == read
    grown: Event = (read, "ok", {"total": 2, "lines": []})
    assert careful_call(growing(), observed([*events, grown]), VERIFIED_BY).name == "finish"


def test_a_write_with_nothing_read_before_is_believed() -> None:
    def rash() -> Script:
        yield PAINT

    assert careful_call(rash(), observed([(PAINT, "outcome_unknown", "?")]), VERIFIED_BY) == PAINT
    assert careful_call(rash(), observed([(PAINT, "ok", "")]), VERIFIED_BY).name == "finish"


def test_steps_of_others_do_not_confuse_it() -> None:
    odd: list[Event] = [(ToolCall("", {}), "invalid_arguments", "?"), (ToolCall("nonsense", {}), "unknown_tool", "?")]
    assert after(*odd, FOUND, *odd, LOOKED) == PAINT
    assert after(LOOKED, *odd, FOUND) == PAINT
    badly: Event = (ToolCall("wait", {"seconds": "long"}), "invalid_arguments", "?")
    assert after((FIND, "rate_limited", "no", 5.0), badly) == wait(5)
