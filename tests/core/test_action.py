"""However a policy writes an action, it is read as the same tool call, or refused with a word on where it went wrong."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import ToolCall, ToolSpec, parse_action
from agent_gym.errors import InvalidAction

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3),
    max_leaves=8,
)
CLICK = ToolSpec(
    name="click",
    description="",
    parameters={"type": "object", "properties": {"element": {"type": "string"}, "button": {"type": "string"}}},
)


NESTED: list[Any] = []
for _ in range(200):
    NESTED = [NESTED]


class Hostile(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002 - dict's own signature
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "action",
    [
        ToolCall("click", {"element": "12", "button": "left"}),
        {"name": "click", "arguments": {"element": "12", "button": "left"}},
        {"name": "click", "arguments": '{"element": "12", "button": "left"}'},
        '{"name": "click", "arguments": {"element": "12", "button": "left"}}',
        "click('12', 'left')",
        "click('12', button='left')",
        ' click(element="12", button="left") ',
    ],
)
def test_every_way_of_writing_a_call_is_read(action: Any) -> None:
    assert parse_action(action, [CLICK]) == ToolCall("click", {"element": "12", "button": "left"})


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (None, "a NoneType is not a tool call"),
        (3.5, "a float is not a tool call"),
        ({}, "action.name: missing"),
        ({"name": 3}, "action.name: int is not a string"),
        ({"name": "click", "arguments": [1]}, "action.arguments: list is not an object"),
        ({"name": "click", "arguments": "{"}, "action.arguments: not JSON"),
        ({"name": "click", "args": {}}, "unexpected key 'args'"),
        ('{"name": "click"', "action: not JSON"),
        ("", "cannot be read as a call"),
        ("click", "neither a JSON object nor one call"),
        ("click('12'", "cannot be read as a call"),
        ("click(1, 2, 3)", "3 positional arguments, click takes 2"),
        ("click('1', element='2')", "arguments.element: given twice"),
        ("click(**{'a': 1})", "name each argument"),
        ("click(__import__('os'))", "cannot be read as a call"),
        ("os.system('ls')", "neither a JSON object nor one call"),
        ("click(" + "(" * 5_000 + ")", "cannot be read as a call"),
        ("x" * 100_001, "100001 characters"),
        ("{" + "x" * 1_000_000, "1000001 characters"),
        ({"name": "x" * 65}, "action.name: 65 characters"),
        ({"name": "click", "arguments": {"element": NESTED}}, "nested deeper than 64"),
        (Hostile({"name": "click"}), "a Hostile that cannot be read: ZeroDivisionError"),
        ({"name": "click", "k" * 1_000: 1}, "unexpected key"),
        ({"name": "click", "arguments": {"element": object()}}, "not plain JSON"),
        ({"name": "click", "arguments": {"element": 10**30}}, "not plain JSON"),
        ({"name": "click", "arguments": {"element": "\ud800"}}, "not plain JSON"),
    ],
)
def test_what_cannot_be_read_says_where(action: Any, message: str) -> None:
    with pytest.raises(InvalidAction, match=message.replace("(", r"\(").replace(")", r"\)")):
        parse_action(action, [CLICK])


@given(st.from_regex(r"[A-Za-z_]{1,10}", fullmatch=True), st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), JSON))
def test_a_call_survives_being_written_down(name: str, arguments: dict[str, Any]) -> None:
    try:
        call = parse_action({"name": name, "arguments": arguments})
    except InvalidAction:
        return  # an integer beyond 64 bits
    assert parse_action(call.to_dict()) == call
    assert hash(parse_action(call)) == hash(call)


@given(st.text() | JSON | st.binary())
def test_no_action_at_all_breaks_the_reader(action: Any) -> None:
    try:
        call = parse_action(action, [CLICK])
    except InvalidAction:
        return
    assert isinstance(call, ToolCall)


def test_a_call_shares_nothing_with_what_it_was_read_from() -> None:
    arguments = {"element": ["12"]}
    call = parse_action({"name": "click", "arguments": arguments})
    arguments["element"].append("13")
    assert call.arguments == {"element": ["12"]}
