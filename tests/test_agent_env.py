"""What every environment promises: endings, rewards, deadlines, states, and clear errors. Tried on the small environment."""

import time
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import Ending, ToolCall
from agent_gym.errors import ConfigurationError, InvalidAction, ResetNeeded
from agent_gym.factory import make
from agent_gym.interface import Interface

SMALL = "agent_gym.testing.small:SmallTask"


def small(**keywords: Any) -> Interface:
    return make(env=SMALL, **{"interface": "text", "defects": True, **keywords})


def room_of(env: Interface) -> int:
    return int(env.task.spec["room"])


def test_the_oracle_succeeds_and_the_episode_says_how() -> None:
    env = small()
    observation, info = env.reset(seed=0)
    assert info["ending"] == ""
    assert "success" not in info
    seen, total, terminated = [observation], 0.0, False
    while not terminated:
        observation, reward, terminated, truncated, info = env.step(env.oracle(seen))
        seen.append(observation)
        total += float(reward)
        assert not truncated
    assert (total, info["ending"], info["success"], info["is_success"]) == (1.0, "success", True, True)
    record = env.last_record
    assert record.ending is Ending.SUCCESS
    assert [change.key for change in record.changes] == [str(room_of(env))]
    assert record.checks[0].name == "the_right_lamp_is_off"
    assert record.milestones == ("switched_off",)


def test_the_observation_is_readable_and_structured_alike() -> None:
    env = small()
    env.reset(seed=0)
    observation, *_ = env.step("look(1)")
    text, data = observation["text"], observation["data"]
    assert data["goal"] in text
    assert data["last"] == {
        "tool": "look",
        "arguments": {"room": 1},
        "status": "ok",
        "result": {"room": 1, "lamp": data["last"]["result"]["lamp"]},
    }
    assert data["last"]["result"]["lamp"] in text
    assert f"Step {data['step']} of {data['max_steps']}" in text


@pytest.mark.parametrize(
    ("action", "status", "says"),
    [
        ("look(9)", "invalid_arguments", "arguments.room: 9 is not one of [1, 2, 3, 4]"),
        ({"name": "look", "arguments": {"room": "2"}}, "invalid_arguments", "arguments.room: '2' is not"),
        ({"name": "look", "arguments": {}}, "invalid_arguments", "arguments: 'room' is a required property"),
        ({"name": "look", "arguments": {"room": 1, "x": 2}}, "invalid_arguments", "'x' was unexpected"),
        ("fly_away()", "unknown_tool", "unknown tool 'fly_away'; there are: look"),
        ("{{{", "invalid_arguments", "action: not JSON"),
        (17, "invalid_arguments", "a int is not a tool call"),
        ({"name": "refuse", "arguments": {"reason": "because"}}, "invalid_arguments", "arguments.reason"),
    ],
)
def test_an_invalid_action_costs_a_step_and_says_what_is_wrong(action: Any, status: str, says: str) -> None:
    env = small()
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["status"] == status
    assert info["invalid_action"] is True
    assert says in observation["text"]
    assert observation["data"]["step"] == 1


@pytest.mark.parametrize("tool", ["sleep_for_ever", "sleep_deaf"])
def test_a_tool_that_sleeps_for_ever_times_out_and_the_next_reset_works(tool: str) -> None:
    env = small(call_timeout_s=0.2)
    env.reset(seed=0)
    started = time.monotonic()
    *_, terminated, truncated, info = env.step(ToolCall(tool))
    assert time.monotonic() - started < 10
    assert (terminated, truncated, info["status"]) == (False, False, "timeout")
    later = env.step("look(1)")[4]["status"]
    assert later == ("ok" if tool == "sleep_for_ever" else "timeout")
    env.reset()
    assert env.step("look(1)")[4]["status"] == "ok"


def test_a_tool_that_raises_is_an_error_and_the_traceback_is_kept() -> None:
    env = small()
    env.reset(seed=0)
    observation, *_, info = env.step("raise_error()")
    assert info["status"] == "error"
    assert info["invalid_action"] is False
    assert "ZeroDivisionError: planted" in observation["text"]
    assert "Traceback" not in observation["text"]
    assert "Traceback" in env.last_record.attempts[0].error
    env.reset()
    assert env.step("look(1)")[4]["status"] == "ok"


def test_an_infrastructure_failure_is_nobodys_zero() -> None:
    env = small()
    env.reset(seed=0)
    before = env.step("look(1)")[0]
    observation, reward, terminated, truncated, info = env.step("break_engine()")
    assert observation == before
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["ending"], info["reward_valid"]) == ("infra_error", False)
    assert "success" not in info
    assert env.last_record.reward is None
    assert env.last_record.error == "InfrastructureError: planted"
    with pytest.raises(ResetNeeded):
        env.step("look(1)")
    env.reset()
    assert env.step("look(1)")[4]["status"] == "ok"


def test_over_reach_costs_and_harm_ends_the_episode() -> None:
    env = small()
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("over_reach()")
    assert (reward, terminated, info["status"]) == (-0.1, False, "forbidden")
    _, reward, terminated, truncated, info = env.step("do_harm()")
    assert (reward, terminated, truncated, info["ending"], info["success"]) == (-1.0, True, False, "violation", False)


@pytest.mark.parametrize(("terminal", "ends"), [(False, (False, True)), (True, (True, False))])
def test_the_step_limit_truncates_or_terminates_as_asked(terminal: bool, ends: tuple[bool, bool]) -> None:
    env = small(limit_is_terminal=terminal)
    env.reset(seed=0)
    for _ in range(env.task.max_steps):
        observation, reward, terminated, truncated, info = env.step("look(1)")
    assert (terminated, truncated) == ends
    assert (info["ending"], info["success"], reward) == ("step_limit", False, 0.0)
    assert observation["data"]["step"] == env.task.max_steps


def test_shaping_by_milestones_sums_to_nothing_over_an_episode() -> None:
    env = small(shaping="milestones", gamma=1.0)
    env.reset(seed=0)
    gained = env.step(ToolCall("switch_off", {"room": room_of(env)}))[1]
    *_, info = env.step("finish()")
    assert gained == 1.0
    assert info["reward_parts"] == {"outcome": 1.0, "violation": 0.0, "overreach": 0.0, "shaping": -1.0}


@pytest.mark.parametrize("savable", [True, False])
def test_a_state_can_be_taken_up_by_another_instance(savable: bool) -> None:
    env, other = small(savable=savable), small(savable=savable)
    env.reset(seed=0)
    env.step("nonsense")
    env.step(ToolCall("switch_off", {"room": room_of(env)}))
    state = env.get_state()
    assert state["kind"] == ("snapshot" if savable else "prefix")
    observation, info = other.set_state(state)
    assert observation == env.observation.to_dict()
    assert info["task_id"] == env.task.id
    assert other.step("finish()") == env.step("finish()")
    assert other.reset() == env.reset()
    with pytest.raises(ConfigurationError, match="not a state"):
        env.set_state({"kind": "photograph"})


def test_options_choose_the_episode_and_nothing_else() -> None:
    env = small()
    env.reset(seed=5, options={"task_id": "lamps/switch/test/3"})
    assert env.task.id == "lamps/switch/test/3"
    env.reset(seed=5, options={"split": "test"})
    assert env.task.split == "test"
    env.reset(seed=5)
    assert env.task.split == "train"


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"split": "holiday"}, "unknown split 'holiday'; known: test, train"),
        ({"families": ["kitchen"]}, "unknown family 'kitchen'; known: lamps/switch"),
        ({"families": []}, "families is empty"),
        ({"families": "lamps/switch"}, "families must be a list of names, got 'lamps/switch'"),
        ({"task_ids": [3]}, "task_ids must be a list of names"),
        ({"task_ids": ["lamps/switch/train/999"]}, "unknown task 'lamps/switch/train/999'"),
        ({"difficulty": [0.9, 0.1]}, "no range within"),
        ({"difficulty": 3}, "two numbers"),
        ({"shaping": "sugar"}, "unknown shaping 'sugar'"),
        ({"gamma": 1.5}, r"gamma must be in \(0, 1\], got 1.5"),
        ({"call_timeout_s": 0}, "call_timeout_s must be above 0"),
        ({"render_mode": "hologram"}, "unknown render_mode 'hologram'"),
        ({"interface": "smell"}, "unknown interface 'smell'; known: array, text"),
        ({"flavour": 1}, "flavour"),
        ({"rich_wrappers": ["x"]}, "not a pair"),
        ({"rich_wrappers": [["nowhere:Nothing", {}]]}, "names nothing that can be imported"),
        ({"rich_wrappers": [["json:loads", {}]]}, "is no gymnasium.Wrapper"),
    ],
)
def test_a_keyword_that_does_not_fit_is_named(keywords: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        small(**keywords)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"colour": 1}, "unknown reset option 'colour'"),
        ({"split": "holiday"}, "unknown split 'holiday'"),
        ({"task_id": "x"}, "unknown task 'x'"),
    ],
)
def test_a_reset_option_that_does_not_fit_is_named(options: dict[str, Any], says: str) -> None:
    env = small()
    with pytest.raises(ConfigurationError, match=says):
        env.reset(options=options)


def test_an_impossible_difficulty_is_an_error_not_a_hang() -> None:
    env = small(difficulty=[0.9, 1.0])
    with pytest.raises(ConfigurationError, match="no task with a difficulty within"):
        env.reset(seed=0)


def test_unknown_ids_are_gymnasiums_own_error() -> None:
    with pytest.raises(gym.error.NameNotFound, match="ToolTusk"):
        gym.make("agent_gym:AgentBase/ToolTusk-v0")


def test_an_index_that_stands_for_nothing_is_an_invalid_action() -> None:
    env = small(interface="array")
    env.reset(seed=0)
    count = int(env.action_masks().sum())  # type: ignore[attr-defined]
    for index in (count, 63, -1, 64, 2.0, "one", None):
        _, reward, terminated, truncated, info = env.step(index)
        assert (reward, terminated, info["invalid_action"]) == (0.0, False, True)
        if truncated:
            env.reset()
    assert isinstance(env.call_of(count), InvalidAction)  # type: ignore[attr-defined]


def test_wrappers_inside_see_rich_observations_and_calls() -> None:
    env = small(interface="array", rich_wrappers=[["gymnasium.wrappers:RecordEpisodeStatistics", {}]])
    env.reset(seed=0)
    done = False
    while not done:
        _, _, terminated, truncated, info = env.step(0)
        done = terminated or truncated
    assert info["episode"]["l"] == env.task.max_steps


def test_a_large_result_is_cut_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    env = small()
    env.reset(seed=0)
    *_, info = env.step({"name": "finish", "arguments": {"answer": "x" * 1_999}})
    assert info["gaps"] == []
    monkeypatch.setattr("agent_gym.episode.MAX_TEXT_BYTES", 500)
    env.reset()
    observation, *_, info = env.step({"name": "finish", "arguments": {"answer": "ä" * 1_000}})
    assert info["gaps"] == ["text_cut"]
    assert len(observation["text"].encode()) <= 500
