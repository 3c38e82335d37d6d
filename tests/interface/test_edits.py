"""Edits: small, unique in their text, many kinds of them; and on offer for the texts that were read, as they are now."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import ToolSpec
from agent_gym.interface.candidates import Memory, Toolbox
from agent_gym.interface.edits import KINDS, python_edits

TEXT = '''
def first(items, limit):
    """The first items, at most so many."""
    found = []
    for i in range(len(items)):
        if len(found) < limit and not items[i] is None:
            found.append(items[i])
        elif limit == 0:
            break
    return found[1:]
'''
EDIT = ToolSpec(
    name="edit",
    description="",
    parameters={
        "type": "object",
        "properties": {
            "where": {"type": "string", "x-edit": "path"},
            "old": {"type": "string", "x-edit": "old"},
            "new": {"type": "string", "x-edit": "new"},
            "careful": {"type": "boolean", "x-fill": True},
        },
        "required": ["where", "old", "new"],
    },
)


def made(text: str) -> set[str]:
    return {text.replace(edit.old, edit.new) for edit in python_edits(text)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("< limit", "<= limit"),
        ("< limit", "> limit"),
        ("== 0", "!= 0"),
        (" and ", " or "),
        ("is None", "is not None"),
        ("found[1:]", "found[:1]"),
        ("found[1:]", "found[0:]"),
        ("append", "extend"),
        ("range(len(items))", "range(len(items) + 1)"),
        ("range(len(items))", "range(1, len(items))"),
        ("break", "continue"),
        ("elif", "if"),
        ("len(found)", "sum(found)"),
        ("    return found[1:]", "        return found[1:]"),
        ("if items[i]:", "if not items[i]:"),
        ("max(a, b)", "min(a, b)"),
        ("max(a, b)", "max(b, a)"),
        ("a - b", "b - a"),
        ("a + b", "a - b"),
        ("n += 1", "n -= 1"),
        ("return True", "return False"),
        ("return a", "return b"),
        ('return ""', 'return " "'),
        ("x[i - 1]", "x[i]"),
        ("x[0]", "x[1]"),
    ],
)
def test_the_usual_slips_are_offered_and_each_can_be_undone(old: str, new: str) -> None:
    text = TEXT if old in TEXT else f"def f(a, b, x, i, n, items):\n    if a:\n        {old.removesuffix(':')}\n    return n\n"
    if old.startswith("if"):
        text = f"def f(items, i):\n    {old}\n        return 2\n"
    changed = text.replace(old, new)
    assert changed in made(text)
    assert text in made(changed)


def test_every_edit_is_small_and_replaces_a_text_that_occurs_once() -> None:
    text = TEXT + TEXT.replace("first", "second")
    edits = python_edits(text)
    assert len({(edit.old, edit.new) for edit in edits}) == len(edits) > 30
    assert {edit.kind for edit in edits} <= set(KINDS)
    for edit in edits:
        assert text.count(edit.old) == 1
        assert edit.old != edit.new
        assert edit.words
    docstring = "The first items, at most so many."
    assert all(docstring in changed for changed in made(TEXT))


@given(st.one_of(st.text(max_size=40), st.binary(max_size=40).map(lambda raw: raw.decode("latin-1"))))
def test_what_is_no_python_has_no_edits_and_breaks_nothing(text: str) -> None:
    assert isinstance(python_edits(text), tuple)
    assert python_edits("def f(:\n" + text) == ()


def test_edits_are_the_same_in_every_process() -> None:
    program = f"from agent_gym.interface.edits import python_edits; print(python_edits({TEXT!r}))"
    told = {
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert told == {f"{python_edits(TEXT)}\n"}


def test_what_is_on_offer_follows_the_text() -> None:
    memory = Memory("Mend it.", Toolbox([EDIT]))

    def offered() -> list[dict[str, Any]]:
        return [dict(candidate.call.arguments) for candidate in memory.candidates("edit")[0]]

    def hear(tool: str, arguments: dict[str, Any], status: str, result: Any = None) -> None:
        memory.update({"tool": tool, "arguments": arguments, "status": status, "result": result})

    assert offered() == []
    hear("read", {}, "ok", {"path": "notes.txt", "content": TEXT})
    assert offered() == []
    hear("read", {}, "ok", {"path": "a.py", "content": TEXT})
    expected: list[dict[str, Any]] = [{"where": "a.py", "old": edit.old, "new": edit.new, "careful": True} for edit in python_edits(TEXT)]
    assert offered() == expected
    hear("edit", expected[0], "conflict")
    assert offered() == expected
    hear("edit", expected[0], "ok")
    changed = TEXT.replace(expected[0]["old"], expected[0]["new"])
    assert [(call["old"], call["new"]) for call in offered()] == [(edit.old, edit.new) for edit in python_edits(changed)]
