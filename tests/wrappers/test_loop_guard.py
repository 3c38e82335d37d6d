"""LoopGuard: who goes round in circles is stopped for the right reason, and who works is not."""

import json
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import ToolCall
from agent_gym.errors import ConfigurationError, ResetNeeded
from agent_gym.factory import make


def guarded(env: str, **keywords: Any) -> Any:
    wrappers = [["agent_gym.wrappers:LoopGuard", keywords]]
    return make(env=f"agent_gym.testing:{env}", interface="text", rich_wrappers=wrappers)


def stopped(env: Any, actions: Sequence[Any]) -> tuple[int, str]:
    """After how many of the actions, and which limit; (0, "") if it was not."""
    env.reset(seed=0)
    for number, action in enumerate(actions, 1):
        *_, terminated, truncated, info = env.step(action)
        if terminated:
            assert (info["ending"], info["success"]) == ("failure", False)
            (check,) = env.last_record.checks
            assert not check.passed
            return number, check.detail.removeprefix("loop: ").partition(":")[0]
        assert not truncated
    return 0, ""


def read(*doors: int) -> list[str]:
    """Calls of which only those for the next note bring anything new."""
    return [f"read_note({door})" for door in doors]


_NOTES = read(*range(1, 15))


@pytest.mark.parametrize(
    ("env", "actions", "expected"),
    [
        ("SmallTask", ["look(2)"] + ["look(1)"] * 6, (5, "identical")),
        ("SmallTask", ["switch_off(1)"] * 6, (4, "same_error")),
        ("SmallTask", ["nonsense"] * 6, (3, "same_error")),
        ("SmallTask", ["look(3)"] + ["look(1)", "look(2)"] * 3, (7, "cycle")),  # ping-pong
        ("MemoryTask", [*_NOTES[:9], *read(20, 19, 18) * 3], (18, "cycle")),
        ("MemoryTask", [*_NOTES, *read(*range(1, 12))], (25, "window")),  # no progress: never the same call, never anything new
        ("MemoryTask", [*_NOTES[:4], *read(20, 19, 18, 17, 16, 15, 14, 13)], (12, "revisits")),
        ("SmallTask", ["look(1)", "look(1)", "look(1)", "look(2)", "look(1)", "look(1)", "look(1)"], (0, "")),
        ("SmallTask", ["look(1)", "look(2)"] * 2 + ["look(3)"], (0, "")),
        ("MemoryTask", [*_NOTES, *read(*range(1, 11)), "read_note(15)"], (0, "")),
    ],
)
def test_each_limit_is_reached_and_named(env: str, actions: list[str], expected: tuple[int, str]) -> None:
    assert stopped(guarded(env), actions) == expected


def test_a_limit_can_be_turned_off() -> None:
    assert stopped(guarded("SmallTask", identical=None), ["look(1)"] * 7) == (0, "")


@pytest.mark.parametrize(("budget", "expected"), [(3, (7, "identical")), (20, (0, ""))])
def test_a_declared_polling_tool_is_asked_again_within_its_budget(budget: int, expected: tuple[int, str]) -> None:
    env = guarded("SmallTask", polling=["look"], polling_budget=budget)
    assert stopped(env, ["look(1)"] * 7) == expected


def test_a_state_knows_what_was_done() -> None:
    env, other = guarded("SmallTask"), guarded("SmallTask")
    env.reset(seed=0)
    for _ in range(3):
        env.step("look(1)")
    other.set_state(json.loads(json.dumps(env.get_state())))
    assert other.step("look(1)")[4]["ending"] == "failure"
    again = guarded("SmallTask")
    again.set_state(other.get_state())
    assert again.last_record.checks == other.last_record.checks
    with pytest.raises(ResetNeeded):
        again.step("look(2)")


def test_no_oracle_is_stopped_in_any_family() -> None:
    env: Any = gym.make(
        "agent_gym:AgentBase/ToolTask-v0",
        interface="text",
        disable_env_checker=True,
        rich_wrappers=[["agent_gym.wrappers:LoopGuard", {}]],
    ).unwrapped
    played = 0
    for split in ("train", "transfer"):
        for family in env.tasks.families(split):
            for task_id in list(env.tasks.ids(split, family))[:3]:
                shown, _ = env.reset(seed=0, options={"task_id": task_id})
                seen, info = [shown], {"ending": ""}
                while not info["ending"]:
                    shown, *_, info = env.step(env.oracle(seen))
                    seen.append(shown)
                assert info["ending"] == "success", (task_id, env.last_record.checks)
                played += 1
    assert played > 60
    env.close()


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"identical": 1}, "identical must be at least 2, got 1"),
        ({"revisits": 1.5}, "revisits must be in"),
        ({"polling": ["lok"]}, "unknown tool 'lok'"),
        ({"period": None}, "period must be at least 2, got None"),
        ({"polling": "look"}, "polling must be a list of tools' names, got 'look'"),
        ({"polling_budget": -1}, "polling_budget must be at least 0"),
    ],
)
def test_what_does_not_fit_is_said(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        guarded("SmallTask", **keywords)


def test_actions_of_every_form_are_the_same_call() -> None:
    same = ["look(1)", ToolCall("look", {"room": 1}), '{"name": "look", "arguments": {"room": 1}}', "look(room=1)"]
    assert stopped(guarded("SmallTask"), same) == (4, "identical")
