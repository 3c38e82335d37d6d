"""Phrasebooks read back what they wrote; scripts are pure functions of what was observed."""

from typing import Any

import pytest

from agent_gym.core import ToolCall
from agent_gym.core.seeding import derive
from agent_gym.world import Phrasebook, Route, Script, next_call
from agent_gym.world.scripts import as_far_as_it_goes

BOOK = Phrasebook(
    frames={"train": ("{who} Paint {thing} {colour}.", "Paint {thing} {colour}, please. {who}"), "held_out": ("Make {thing} {colour}!",)},
    routes={
        "number": Route((), ("door {number}",)),
        "name": Route(("I am {name}.", "This is {name}?"), ("my door", "the door of mine")),
    },
    slots={"number": r"^\d+$", "name": r"[^\s.?]+", "colour": "red|dark red"},
)


@pytest.mark.parametrize("split", ["train", "transfer", "validation", "test"])
@pytest.mark.parametrize(("route", "slots"), [("number", {"number": "12"}), ("name", {"name": "Zoë-O'Brien"})])
def test_what_is_written_is_read_back(split: str, route: str, slots: dict[str, str]) -> None:
    for number in range(20):
        goal, used = BOOK.write(derive("t", number), split, route, {**slots, "colour": "dark red", "unused": "x"})
        assert BOOK.read(goal) == used
        assert goal.startswith("Make") == (split in ("validation", "test"))
        assert used.items() <= {**slots, "colour": "dark red"}.items()
        assert goal == " ".join(goal.split())
        assert all(value in goal for value in used.values())


def test_other_words_are_not_read() -> None:
    assert BOOK.read("Paint the sky red.") is None


def script() -> Script:
    found = yield ToolCall("find", {"name": "a"})
    yield ToolCall("read", {"key": found["key"]})
    yield ToolCall("finish")


def seen(tool: str, arguments: dict[str, Any], status: str, result: object) -> dict[str, Any]:
    return {"data": {"last": {"tool": tool, "arguments": arguments, "status": status, "result": result}}}


def test_a_script_goes_on_from_whatever_was_observed() -> None:
    start: dict[str, Any] = {"data": {"last": None}}
    find, read = ToolCall("find", {"name": "a"}), ToolCall("read", {"key": "k"})
    found = seen("find", {"name": "a"}, "ok", {"key": "k"})
    assert next_call(script(), [start]) == find
    assert next_call(script(), [start, seen("find", {"name": "a"}, "unavailable", "try again")]) == find
    assert next_call(script(), [start, seen("read", {"key": "k"}, "ok", {}), seen("", {}, "invalid_arguments", "?")]) == find
    assert next_call(script(), [start, found]) == read
    assert next_call(script(), [start, seen("read", {"key": "k"}, "ok", {}), found]) == ToolCall("finish")
    assert next_call(script(), [start, found, seen("read", {"key": "k"}, "empty", {})]) == ToolCall("finish")


def test_a_script_ends_where_it_needs_what_it_was_refused() -> None:
    start: dict[str, Any] = {"data": {"last": None}}
    refused = seen("find", {"name": "a"}, "not_found", "nobody is called a")
    assert next_call(as_far_as_it_goes(script()), [start]) == ToolCall("find", {"name": "a"})
    assert next_call(as_far_as_it_goes(script()), [start, refused]) == ToolCall("finish")
