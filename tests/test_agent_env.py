"""What every environment promises: endings, rewards, deadlines, states, and clear errors. Tried on the small environment."""

import dataclasses
import pickle
import time
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import Ending, Observation, Session, Snapshot, Task, ToolCall, ToolResult
from agent_gym.errors import ConfigurationError, InfrastructureError, InvalidAction, ResetNeeded
from agent_gym.factory import make
from agent_gym.gateway import Boundary, Gateway
from agent_gym.interface import Interface
from agent_gym.testing.small import _DEFECTS, SmallTask, _SmallSession

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
        ("look(9)", "invalid_arguments", "arguments.room: 9 is not one of [1,2,3,4]"),
        ({"name": "look", "arguments": {"room": "2"}}, "invalid_arguments", 'arguments.room: "2" is not'),
        ({"name": "look", "arguments": {}}, "invalid_arguments", 'arguments: "room" is a required property'),
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
        ({"gamma": "x"}, "gamma must be in"),
        ({"interface": ["text"]}, "unknown interface"),
        ({"rich_wrappers": 5}, "must be a list of pairs"),
        ({"rich_wrappers": [["gymnasium.wrappers:TimeLimit", {"steps": 1}]]}, "rich_wrappers: gymnasium.wrappers:TimeLimit: "),
        ({"gamma": 1.5}, r"gamma must be in \(0, 1\], got 1.5"),
        ({"call_timeout_s": 0}, "call_timeout_s must be above 0"),
        ({"render_mode": "hologram"}, "unknown render_mode 'hologram'"),
        ({"interface": "smell"}, "unknown interface 'smell'; known: .*array, text"),
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
        ({"task_id": 5}, "must be a task's id, got 5"),
        ({"difficulty": [object(), 1]}, "difficulty"),
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
    for index in (count, 63, -1, 64, 2.0, "one", None, 10**5_000):
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


class _Breaking(_SmallSession):
    """Fails, or gives nonsense, where it is told to."""

    where = ""

    def observe(self) -> Observation:
        if self.where == "observe":
            raise InfrastructureError("planted")
        return super().observe()

    def digest(self) -> str:
        if self.where == "digest":
            raise InfrastructureError("planted")
        return super().digest()

    def call(self, call: ToolCall, deadline: float, key: str = "") -> Any:  # noqa: ARG002 - nothing here is remote
        gives: dict[str, Any] = {
            "set": ToolResult(status="ok", structured={"a": {1, 2}}),
            "surrogate": ToolResult(status="ok", content="bad \udce9"),
            "nothing": None,
        }
        if self.where == "exit":
            raise SystemExit(3)
        if self.where == "socket":
            raise TimeoutError("timed out")
        if self.where == "unprintable":
            raise OSError("bad \udce9")
        return gives[self.where] if self.where in gives else super().call(call, deadline)


class _BreakingTask(SmallTask):
    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - nothing is drawn
        return _Breaking(task, self._tools, snapshot)


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Interface:
    monkeypatch.setattr("agent_gym.factory.load_object", lambda _: _BreakingTask)
    monkeypatch.setattr(_Breaking, "where", "")
    return make(env="planted:Task", interface="text")


@pytest.mark.parametrize(
    ("where", "status"),
    [("set", "malformed"), ("surrogate", "ok"), ("nothing", "malformed"), ("exit", "error"), ("socket", "error"), ("unprintable", "error")],
)
def test_whatever_a_tool_gives_or_raises_is_a_result(breaking: Interface, where: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking.reset(seed=0)
    monkeypatch.setattr(_Breaking, "where", where)
    observation, *_, info = breaking.step("look(1)")
    assert info["status"] == status
    assert breaking.observation_space.contains(observation)
    if status == "error":
        assert "Traceback" in breaking.last_record.attempts[0].error


@pytest.mark.parametrize("where", ["observe", "digest"])
def test_an_engine_that_fails_anywhere_in_a_step_ends_it_as_infra_error(
    breaking: Interface, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking.reset(seed=0)
    monkeypatch.setattr(_Breaking, "where", where)
    *_, truncated, info = breaking.step("look(1)")
    assert (truncated, info["ending"], info["reward_valid"]) == (True, "infra_error", False)
    assert breaking.last_record.attempts[0].call == ToolCall("look", {"room": 1})
    with pytest.raises(ConfigurationError, match="no state to go back to"):
        breaking.get_state()


def test_a_reset_that_fails_leaves_no_half_built_episode(breaking: Interface, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Breaking, "where", "observe")
    with pytest.raises(InfrastructureError):
        breaking.reset(seed=0)
    with pytest.raises(ResetNeeded):
        breaking.step("look(1)")
    monkeypatch.setattr(_Breaking, "where", "")
    assert breaking.reset(seed=0)[1]["status"] == "ok"


def test_a_state_with_a_piece_missing_is_refused_and_changes_nothing() -> None:
    env = small()
    env.reset(seed=0)
    state = env.get_state()
    del state["shown"]
    with pytest.raises(ConfigurationError, match=r"missing \['shown'\]"):
        env.set_state(state)
    assert env.step("look(1)")[4]["status"] == "ok"


def test_a_write_that_times_out_has_an_unknown_outcome() -> None:
    env = small(call_timeout_s=0.1)
    env.reset(seed=0)
    spec = dataclasses.replace(_DEFECTS["sleep_for_ever"], annotations={})
    gateway = Gateway(_SmallSession(env.task, [spec], None), boundary=Boundary(call_timeout_s=0.1))
    assert gateway.call(ToolCall("sleep_for_ever"), 1).result.status == "outcome_unknown"
    gateway.close()


@pytest.mark.parametrize("interface", ["text", "array"])
def test_a_time_limit_inside_goes_back_with_the_state(interface: str) -> None:
    env = small(interface=interface, rich_wrappers=[["gymnasium.wrappers:TimeLimit", {"max_episode_steps": 3}]])
    env.reset(seed=0)
    action = 0 if interface == "array" else "look(1)"
    env.step(action)
    state = env.get_state()
    env.step(action)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.step(action)[3] is True
    env.set_state(state)
    assert env.step(action)[3] is False
    *_, truncated, info = env.step(action)
    assert (truncated, info["ending"], info["success"]) == (True, "step_limit", False)


def test_a_restored_state_tells_what_the_original_told() -> None:
    env = small()
    env.reset(seed=0)
    told = env.step("nonsense")
    observation, info = env.set_state(env.get_state())
    assert (observation, info) == (told[0], told[4])
    with pytest.raises(ConfigurationError, match="another interface"):
        small(interface="array").set_state(env.get_state())
