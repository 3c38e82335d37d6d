"""ContextBudget: a long task is solved by an agent that sees no more than a short text, since it can recall."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ToolCall
from agent_gym.core.observation import cut
from agent_gym.errors import ConfigurationError
from agent_gym.factory import make
from agent_gym.testing import MemoryTask
from agent_gym.wrappers import ContextBudget, EpisodeBudget, RichWrapper

_BUDGET = 2_000


def reader(text: str) -> ToolCall:
    """An agent without a memory: what it does follows from the text alone."""
    if asked := re.search(r"^Next note: (\d+)$", text, re.MULTILINE):
        return ToolCall("read_note", {"door": int(asked[1])})
    asked = re.search(r"^Next door: (\d+)$", text, re.MULTILINE)
    if asked is None:
        return ToolCall("finish")
    door = int(asked[1])
    if told := re.search(rf"Door {door} has the code (\d{{6}})", text):
        return ToolCall("open_door", {"door": door, "code": told[1]})
    if re.search(r"^Tools:.*\brecall\(", text, re.MULTILINE) and "Last call: recall(" not in text:
        line = re.search(rf"^(\d+) read_note\(door={door}\)", text, re.MULTILINE)
        return ToolCall("recall", {"step": int(line[1])} if line else {"query": f"door {door} has the code"})
    return ToolCall("open_door", {"door": door, "code": "000000"})


def play(env: Any) -> tuple[str, list[str]]:
    """The ending, and every text that was shown."""
    shown, _ = env.reset(seed=5)
    texts, ended = [shown["text"]], False
    while not ended:
        shown, _, terminated, truncated, info = env.step(reader(texts[-1]))
        texts.append(shown["text"])
        ended = terminated or truncated
    return info["ending"], texts


class Cut(RichWrapper):
    """Shows every result so far, as much of it as fits: its beginning or its end."""

    def __init__(self, env: Any, keep: str) -> None:
        super().__init__(env, keep=keep)
        self._keep, self._told = keep, [""]

    def observation(self, observation: Any) -> Any:
        last = observation["data"]["last"]
        self._told.append(f"{last['tool']}: {last['result']}" if last else "")
        said, room = "\n".join(self._told), 4 * _BUDGET - len(observation["text"].encode()) - 1
        return self.with_text(observation, f"{cut(said, room) if self._keep == 'first' else said[-room:]}\n{observation['text']}")


def test_fifty_calls_are_made_in_a_context_of_two_thousand_tokens() -> None:
    ending, texts = play(ContextBudget(MemoryTask(), tokens=_BUDGET))
    assert ending == "success"
    assert len(texts) > 70  # fifty calls, a recall for each door, and the finish
    assert max(len(text.encode()) for text in texts) <= 4 * _BUDGET
    assert sum(len(text) for text in texts if "\nLast call: read_note" in text) > 4 * _BUDGET


@pytest.mark.parametrize("keep", ["first", "last"])
def test_a_text_that_is_merely_cut_does_not_do(keep: str) -> None:
    ending, texts = play(Cut(MemoryTask(), keep))
    assert ending == "failure"
    assert max(len(text.encode()) for text in texts) <= 4 * _BUDGET


def test_half_the_context_does_too_by_words_where_lines_are_gone() -> None:
    env = ContextBudget(MemoryTask(), tokens=600)
    ending, texts = play(env)
    assert ending == "success"
    assert max(len(text.encode()) for text in texts) <= 4 * 600
    assert any("Last call: recall(query=" in text for text in texts)
    assert any("are put away" in text for text in texts)


@given(
    st.integers(200, 2_500),
    st.lists(st.sampled_from(["read_note(1)", "note", "recall()", "recall(1)", "nonsense", "x\\ny()"]), max_size=30),
)
@settings(max_examples=30, deadline=None)
def test_no_text_is_over_the_budget(tokens: int, actions: list[str]) -> None:
    env, note = ContextBudget(MemoryTask(), tokens=tokens), 0
    shown, _ = env.reset(seed=1)
    for action in actions:
        note += action == "note"
        shown, *_ = env.step(f"read_note({note})" if action == "note" else action)
        assert len(shown["text"].encode()) <= 4 * tokens
        assert shown["text"].endswith(env.agent_env.tool_line)


def small(**keywords: Any) -> Any:
    wrappers = [["agent_gym.wrappers:ContextBudget", keywords]]
    return make(env="agent_gym.testing:SmallTask", interface="text", rich_wrappers=wrappers)


def test_the_text_has_one_line_for_each_earlier_step_and_recall_names_the_step() -> None:
    env = small()
    first, _ = env.reset(seed=0)
    assert "Earlier steps" not in first["text"]
    env.step("look(1)")
    env.step("nonsense")
    shown, *_ = env.step("look(2)")
    lines = shown["text"].splitlines()
    at = lines.index("Earlier steps (recall(step=…) or recall(query=…) shows them in full):")
    assert re.fullmatch(r'1 look\(room=1\) -> ok: \{"lamp":"\w+","room":1\}', lines[at + 1])
    assert lines[at + 2].startswith("2 (unreadable action) -> invalid_arguments: ")
    assert lines[at + 3 : at + 5] == ["Step 3 of 8.", "Last call: look(room=2)"]
    shown, _, _, _, info = env.step("recall(1)")
    assert info["status"] == "ok"
    result = shown["data"]["last"]["result"]
    assert result.startswith("Step 1: look(room=1)\n> Status: ok\n> Result: {")
    assert result in shown["text"]
    shown, *_ = env.step({"name": "recall", "arguments": {"query": "room 2"}})
    assert shown["data"]["last"]["result"].startswith("Step 3: look(room=2)")
    assert env.step({"name": "recall", "arguments": {"query": "zebra"}})[4]["status"] == "empty"
    assert env.step({"name": "recall", "arguments": {"step": 99}})[4]["status"] == "not_found"
    assert "recall" in [spec.name for spec in env.tools]


def test_a_long_result_is_recalled_in_parts() -> None:
    env = make(
        env="agent_gym.testing:MemoryTask",
        interface="text",
        rich_wrappers=[["agent_gym.wrappers:ContextBudget", {"tokens": 700, "tokenizer": "builtins:len"}]],
    )
    env.reset(seed=0)
    shown, *_ = env.step("read_note(1)")
    assert "(cut; recall(step=1) has all of it, in parts)" in shown["text"]
    whole = shown["data"]["last"]["result"]
    shown, *_ = env.step("recall(step=1)")
    count = int(re.match(r"Step 1, part 1 of (\d+): ", shown["data"]["last"]["result"])[1])  # type: ignore[index]
    parts = [shown["data"]["last"]["result"]]
    parts += [env.step({"name": "recall", "arguments": {"step": 1, "part": n}})[0]["data"]["last"]["result"] for n in range(2, count + 1)]
    assert whole in "".join(part.partition(": ")[2] for part in parts)
    assert env.step({"name": "recall", "arguments": {"step": 1, "part": count + 1}})[4]["status"] == "not_found"


@pytest.mark.parametrize("savable", [True, False])
def test_a_state_keeps_the_history(savable: bool) -> None:
    wrappers = [["agent_gym.wrappers:ContextBudget", {}]]
    env, other = (make(env="agent_gym.testing:SmallTask", interface="text", rich_wrappers=wrappers, savable=savable) for _ in range(2))
    env.reset(seed=0)
    shown = [env.step(action)[0] for action in ("look(3)", "recall(1)", "look(4)")][-1]
    again, _ = other.set_state(json.loads(json.dumps(env.get_state())))
    assert again == shown
    for action in ("recall(3)", "recall(2)", "recall()"):
        assert other.step(action) == env.step(action)


def test_candidates_offer_it() -> None:
    wrappers = [["agent_gym.wrappers:ContextBudget", {}]]
    env: Any = make(env="agent_gym.testing:SmallTask", interface="array", rich_wrappers=wrappers)
    env.reset(seed=0)
    assert ToolCall("recall") in env.candidates
    env.step(env.candidates.index(ToolCall("look", {"room": 1})))
    env.step(env.candidates.index(ToolCall("recall")))
    assert env.last_record.result.content.startswith("Step ")


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ConfigurationError, match="at least 200, got 10"):
        small(tokens=10)
    with pytest.raises(ConfigurationError, match="there is a tool 'recall' already"):
        ContextBudget(ContextBudget(MemoryTask()))
    with pytest.raises(ConfigurationError, match="inside EpisodeBudget, not around it"):
        ContextBudget(EpisodeBudget(MemoryTask(), steps=5))
