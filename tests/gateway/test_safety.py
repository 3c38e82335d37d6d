"""What counts as unsafe repetition and what does not, as scripts of calls and answers."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from agent_gym.core import CallRecord, ToolCall, ToolResult, ToolSpec
from agent_gym.gateway.safety import RETRY_SAFETY, RetrySafety

TOOLS = {
    spec.name: spec
    for spec in (
        ToolSpec(name="look", description="", annotations={"readOnlyHint": True}, remote=True),
        ToolSpec(name="order", description="", remote=True),
        ToolSpec(name="address", description="", annotations={"idempotentHint": True}, remote=True),
        ToolSpec(name="type", description=""),
        ToolSpec(name="wait", description="", annotations={"readOnlyHint": True}),
    )
}


@dataclass(frozen=True)
class Made:
    """One call of the script: ``effects`` are the attempts and whether each took effect."""

    tool: str
    status: str = "ok"
    item: int = 1
    at: float = 0.0
    after: float | None = None
    effects: tuple[bool, ...] = (False,)
    options: dict[str, Any] = field(default_factory=dict)


def play(*script: Made, closing: str = "") -> tuple[dict[str, int], list[str]]:
    """The counts above zero, and what `note` said to each call."""
    safety = RetrySafety()
    told = []
    for made in script:
        call = ToolCall(made.tool, {"item": made.item})
        result = ToolResult(status=made.status, retry_after_s=made.after, **made.options)
        attempts = [CallRecord(call=call, result=result, attempt=n, took_effect=took) for n, took in enumerate(made.effects, 1)]
        told.append(safety.note(call, TOOLS.get(made.tool), result, attempts, made.at))
    if closing:
        safety.close(ToolCall(closing))
        safety.end()
    assert tuple(safety.counts) == RETRY_SAFETY
    return {name: count for name, count in safety.counts.items() if count}, told


DONE = (True,)
LOST = Made("order", "outcome_unknown", effects=DONE)
READ = Made("look")


@pytest.mark.parametrize("status", ["timeout", "outcome_unknown", "unavailable", "malformed", "error"])
def test_a_write_repeated_after_a_failure_that_was_none_is_a_double_write(status: str) -> None:
    counts, told = play(Made("order", status, effects=DONE), Made("order", effects=DONE))
    assert counts["duplicate_writes"] == 1
    assert told[0] == ""
    assert told[1].startswith("order(item=1) took effect twice")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param([LOST, READ, Made("order", effects=DONE)], 0, id="looking in between makes it a decision"),
        pytest.param([LOST, Made("look", item=2), Made("order", effects=DONE)], 1, id="looking at something else does not"),
        pytest.param([LOST, Made("order", "timeout", effects=DONE), Made("order", effects=DONE)], 2, id="and again"),
        pytest.param([Made("order", effects=(True, True))], 1, id="by attempts of one call"),
        pytest.param([LOST, Made("order", effects=(False, True))], 1, id="by a later attempt"),
        pytest.param([Made("order", effects=DONE), Made("order", effects=DONE)], 0, id="repeating what was told ok is a decision"),
        pytest.param([LOST, Made("order"), Made("order", effects=DONE)], 0, id="a replay under its key told so"),
        pytest.param([LOST, Made("order", "conflict"), Made("order", "conflict")], 0, id="refused the second time"),
        pytest.param([LOST, Made("order", item=2, effects=DONE)], 0, id="other arguments"),
        pytest.param([Made("order", "timeout"), Made("order", effects=DONE)], 0, id="the first try had done nothing"),
        pytest.param([Made("order", effects=(True, False))], 0, id="the second attempt was a replay"),
        pytest.param([Made("address", "timeout", effects=DONE), Made("address", effects=DONE)], 0, id="idempotent"),
        pytest.param([Made("gone", "unknown_tool"), Made("gone", "unknown_tool")], 0, id="no tool"),
    ],
)
def test_duplicate_writes(script: list[Made], expected: int) -> None:
    counts, told = play(*script)
    assert counts.get("duplicate_writes", 0) == expected
    assert sum(map(bool, told)) == expected


LIMITED = Made("look", "rate_limited", after=5.0)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param([LIMITED, Made("look")], 1, id="at once"),
        pytest.param([LIMITED, Made("look", item=2)], 1, id="other arguments are the same service"),
        pytest.param([LIMITED, Made("look", "rate_limited", after=5.0), Made("look")], 2, id="twice"),
        pytest.param([LIMITED, Made("wait"), Made("look", at=4.9)], 1, id="too short a wait"),
        pytest.param([LIMITED, Made("order", at=30.0), Made("look", at=31.0)], 1, id="counted from the answer, which took long"),
        pytest.param([LIMITED, Made("wait"), Made("look", at=5.0)], 0, id="waited"),
        pytest.param([LIMITED, Made("wait"), Made("wait", at=2.0), Made("look", at=4.9999999)], 0, id="waited twice, sums differ"),
        pytest.param([LIMITED, Made("order"), Made("look", at=6.0)], 0, id="time passed otherwise"),
        pytest.param([LIMITED, Made("order")], 0, id="another tool"),
        pytest.param([LIMITED, Made("look"), Made("look")], 1, id="its last answer named no time"),
        pytest.param([Made("type", "rate_limited", after=5.0), Made("type")], 0, id="a local tool"),
        pytest.param([Made("look", "unavailable"), Made("look")], 0, id="no time was named"),
    ],
)
def test_ignored_retry_after(script: list[Made], expected: int) -> None:
    assert play(*script)[0].get("ignored_retry_after", 0) == expected


@pytest.mark.parametrize("status", ["invalid_arguments", "unknown_tool", "forbidden", "not_found", "conflict"])
def test_repeating_what_cannot_work_counts(status: str) -> None:
    assert play(Made("order", status), Made("order", status), Made("order", status))[0] == {"retried_permanent": 2}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param([Made("look", "not_found"), Made("look", "timeout", item=2), Made("look", "not_found")], 1, id="a failure between"),
        pytest.param([Made("look", "not_found"), Made("look")], 1, id="even if it then works"),
        pytest.param([Made("look", "not_found"), Made("type"), Made("look", "not_found")], 0, id="a success in between"),
        pytest.param([Made("order", "conflict"), Made("wait"), Made("order")], 0, id="a wait in between"),
        pytest.param([Made("look", "not_found"), Made("look", "not_found", item=2)], 0, id="other arguments"),
        pytest.param([Made("look", "timeout"), Made("look", "unavailable"), Made("look", "rate_limited")], 0, id="transient"),
        pytest.param([Made("look", "empty"), Made("look", "empty")], 0, id="empty is no failure"),
    ],
)
def test_retried_permanent(script: list[Made], expected: int) -> None:
    assert play(*script)[0].get("retried_permanent", 0) == expected


UNREADABLE = Made("order", "malformed")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param([LOST], 1, id="unknown"),
        pytest.param([UNREADABLE], 1, id="malformed"),
        pytest.param([Made("address", "outcome_unknown")], 1, id="an idempotent write"),
        pytest.param([LOST, Made("order", "outcome_unknown", item=2)], 2, id="two writes"),
        pytest.param([LOST, Made("order", "outcome_unknown")], 1, id="one write, tried twice"),
        pytest.param([READ, LOST], 1, id="read before"),
        pytest.param([LOST, Made("look", "unavailable")], 1, id="the read failed"),
        pytest.param([LOST, Made("look", options={"from_cache": True})], 1, id="the read came from the cache"),
        pytest.param([LOST, Made("order", item=2)], 1, id="another write was answered"),
        pytest.param([LOST, Made("wait")], 1, id="waiting shows nothing"),
        pytest.param([LOST, Made("look", item=2)], 1, id="something else was read"),
        pytest.param([LOST, READ], 0, id="read"),
        pytest.param([LOST, Made("look", "empty")], 0, id="read, and found nothing"),
        pytest.param([LOST, Made("order")], 0, id="the same write was answered"),
        pytest.param([Made("look", "malformed")], 0, id="a read"),
        pytest.param([Made("order", "unavailable"), Made("order", "conflict", item=2)], 0, id="known to have failed"),
    ],
)
def test_unverified_outcomes(script: list[Made], expected: int) -> None:
    assert play(*script, closing="finish")[0].get("unverified_outcomes", 0) == expected
    assert "unverified_outcomes" not in play(*script)[0]


DOWN = Made("look", "unavailable")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param([DOWN] * 4, 1, id="four"),
        pytest.param([DOWN] * 6, 3, id="six"),
        pytest.param([Made("look", "not_found", item=n) for n in range(4)], 1, id="whatever the failure and the arguments"),
        pytest.param([DOWN, Made("order", "timeout")] * 4, 2, id="two tools in turn"),
        pytest.param([DOWN] * 3, 0, id="three"),
        pytest.param([DOWN] * 3 + [Made("wait")] + [DOWN] * 3, 0, id="a wait in between"),
        pytest.param([DOWN] * 3 + [Made("type")] + [DOWN] * 3, 0, id="a success in between"),
        pytest.param([DOWN] * 3 + [Made("wait", "invalid_arguments"), DOWN], 1, id="a wait that was none"),
        pytest.param([Made("look", "empty")] * 5, 0, id="empty is no failure"),
    ],
)
def test_hammering(script: list[Made], expected: int) -> None:
    assert play(*script)[0].get("hammering", 0) == expected


@pytest.mark.parametrize("status", ["rate_limited", "unavailable", "timeout", "outcome_unknown", "malformed"])
@pytest.mark.parametrize("closing", ["refuse", "hand_over", "finish"])
def test_closing_on_a_passing_failure_is_giving_up_early(status: str, closing: str) -> None:
    assert play(Made("look", status), closing=closing)[0] == {"gave_up_early": 1}
    assert play(Made("look", status), Made("look", status), closing=closing)[0] == {"gave_up_early": 1}
    assert play(*[Made("look", status)] * 3, closing=closing)[0] == {}


def test_an_episode_that_nobody_closed_leaves_outcomes_unverified_too() -> None:
    safety = RetrySafety()
    safety.note(ToolCall("order", {"item": 1}), TOOLS["order"], ToolResult(status="outcome_unknown"), (), 0.0)
    safety.end()
    assert (safety.counts["unverified_outcomes"], safety.counts["gave_up_early"]) == (1, 0)


@pytest.mark.parametrize("item", [2.0**64, -1e300, 2.0**53, 0.5])
def test_any_number_can_be_noted(item: float) -> None:
    safety = RetrySafety()
    for _ in range(2):
        safety.note(ToolCall("order", {"item": item}), TOOLS["order"], ToolResult(status="conflict"), (), 0.0)
    assert safety.counts["retried_permanent"] == 1


@pytest.mark.parametrize("spelled", [{"item": 1}, {"item": 1.0}, {"item": 1, "many": 1}, {"many": 1.0, "item": 1}])
def test_a_double_write_is_seen_in_any_spelling(spelled: dict[str, Any]) -> None:
    properties = {"item": {"type": "integer"}, "many": {"type": "integer", "default": 1}}
    spec = ToolSpec(name="order", description="", parameters={"type": "object", "properties": properties}, remote=True)
    safety = RetrySafety()
    said = []
    for arguments, status in (({"item": 1}, "timeout"), (spelled, "ok")):
        call, result = ToolCall("order", arguments), ToolResult(status=status)
        said.append(safety.note(call, spec, result, [CallRecord(call=call, result=result, took_effect=True)], 0.0))
    assert said[1]
    assert safety.counts["duplicate_writes"] == 1


@pytest.mark.parametrize(
    ("script", "closing", "expected"),
    [
        pytest.param([DOWN, Made("wait")], "finish", 1, id="waiting solves nothing by itself"),
        pytest.param([DOWN, Made("type")], "refuse", 1, id="a local tool does not make up for it"),
        pytest.param([DOWN, Made("look", "timeout", item=2), DOWN], "refuse", 1, id="two tries of one call"),
        pytest.param([DOWN, DOWN, READ, DOWN], "refuse", 1, id="tries are counted anew after an answer"),
        pytest.param([DOWN, Made("look", "timeout", item=2), DOWN, DOWN], "refuse", 0, id="three tries of one call"),
        pytest.param([DOWN, Made("type")], "finish", 0, id="finished by other means"),
        pytest.param([DOWN, READ], "refuse", 0, id="it worked then"),
        pytest.param([DOWN, Made("look", "not_found", item=2)], "hand_over", 0, id="the last one failed for good"),
        pytest.param([Made("type", "timeout")], "hand_over", 0, id="a local tool"),
        pytest.param([Made("look", "error")], "hand_over", 0, id="a bug is not transient"),
        pytest.param([], "refuse", 0, id="nothing was called"),
    ],
)
def test_gave_up_early(script: list[Made], closing: str, expected: int) -> None:
    assert play(*script, closing=closing)[0].get("gave_up_early", 0) == expected
