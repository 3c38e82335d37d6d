"""What a verdict rests on."""

import pytest

from agent_gym.core import Change, ToolCall
from agent_gym.world.grading import fits, same, stray_changes


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (25, 25, True),
        (25, 25.0, False),
        (25, "25", False),
        (1, True, False),
        (None, 0, False),
        ({"a": [1, "x"]}, {"a": [1, "x"]}, True),
        ({"a": [1]}, {"a": [1.0]}, False),
        ([1, 2], [2, 1], False),
    ],
)
def test_comparison_is_typed(one: object, other: object, equal: bool) -> None:
    assert same(one, other) is equal
    assert same(other, one) is equal


def test_a_star_stands_for_calls_that_write() -> None:
    pattern = {"tool": "*", "arguments": {"order_id": "W1"}}
    call = ToolCall("cancel", {"order_id": "W1", "reason": "x"})
    assert fits(pattern, call, writes=True)
    assert not fits(pattern, call, writes=False)
    assert not fits(pattern, ToolCall("cancel", {"order_id": "W2"}), writes=True)
    assert not fits({"tool": "read", "arguments": {"n": 1}}, ToolCall("read", {"n": True}), writes=False)


def test_a_star_with_a_status_stands_for_every_call_that_was_answered_so() -> None:
    pattern = {"tool": "*", "arguments": {"user_id": "U1"}, "status": "forbidden"}
    call = ToolCall("list_orders", {"user_id": "U1"})
    assert fits(pattern, call, writes=False, status="forbidden")
    assert fits(pattern, ToolCall("close_account", {"user_id": "U1"}), writes=True, status="forbidden")
    assert not fits(pattern, call, writes=False)
    assert not fits(pattern, call, writes=False, status="not_found")
    assert not fits(pattern, ToolCall("list_orders", {"user_id": "U2"}), writes=False, status="forbidden")


def test_any_of_several_patterns() -> None:
    pattern = {"any_of": [{"tool": "read", "arguments": {"n": 1}}, {"tool": "*", "arguments": {}, "status": "conflict"}]}
    assert fits(pattern, ToolCall("read", {"n": 1}), writes=False)
    assert fits(pattern, ToolCall("cancel", {}), writes=True, status="conflict")
    assert not fits(pattern, ToolCall("read", {"n": 2}), writes=False)
    assert not fits({"any_of": []}, ToolCall("read", {"n": 1}), writes=False)


def test_every_change_must_be_allowed_by_row_and_column() -> None:
    row = {"order_id": "W1", "status": "open", "city": "Lyon"}
    changed = Change("orders", "W1", row, {**row, "status": "done"})
    allowed = [{"table": "orders", "where": {"order_id": "W1"}, "columns": ["status"]}]
    assert stray_changes([changed], allowed) == []
    more = Change("orders", "W1", row, {**row, "status": "done", "city": "Porto"})
    other = Change("orders", "W2", {**row, "order_id": "W2"}, {**row, "order_id": "W2", "status": "done"})
    new = Change("orders", "W1", None, row)
    gone = Change("orders", "W1", row, None)
    assert stray_changes([more, other, new, gone], allowed) == [more, other, new, gone]
    assert stray_changes([new], [{"table": "orders", "where": {"city": "Lyon"}, "new": True}]) == []
