"""RestrictActions: what is not permitted is neither offered nor run, through either door."""

from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core.closing import CLOSING
from agent_gym.errors import ConfigurationError
from agent_gym.factory import make
from agent_gym.testing import SmallTask
from agent_gym.wrappers import RestrictActions


def small(*restrictions: dict[str, Any], **keywords: Any) -> Any:
    wrappers = [["agent_gym.wrappers:RestrictActions", one] for one in restrictions]
    return make(env="agent_gym.testing:SmallTask", interface="text", rich_wrappers=wrappers, **keywords)


@pytest.mark.parametrize(
    ("restrictions", "left"),
    [
        ([{"level": "level1"}], ["look"]),
        ([{"allow": ["switch_off"]}], ["switch_off"]),
        ([{"deny": ["switch_off"]}], ["look"]),
        ([{"allow": ["look", "switch_off"]}, {"deny": ["look"]}], ["switch_off"]),
        ([{"level": "level1"}, {"level": "level3"}], ["look"]),
        ([{"allow": ["look"]}, {"allow": ["switch_off"]}], []),
    ],
)
def test_what_is_restricted_is_neither_offered_nor_run(restrictions: list[dict[str, Any]], left: list[str]) -> None:
    env = small(*restrictions)
    assert [spec.name for spec in env.action_space.tools] == [*left, *CLOSING]
    shown, _ = env.reset(seed=0)
    assert [spec.name for spec in env.tools] == [*left, *CLOSING]
    for tool in ("look", "switch_off"):
        *_, info = env.step(f"{tool}(room=1)")
        assert info["status"] == ("ok" if tool in left else "forbidden")
        assert (f"{tool}(" in shown["text"].rpartition("Tools: ")[2]) == (tool in left)
    assert env.last_record.observation.data["view"]["off"] == ([1] if "switch_off" in left else [])


def test_it_holds_in_every_episode_and_in_a_state_taken_up() -> None:
    env, other = small({"deny": ["look"]}), small({"deny": ["look"]})
    for _ in range(2):
        env.reset()
        assert env.step("look(room=1)")[4]["status"] == "forbidden"
    other.set_state(env.get_state())
    assert other.step("look(room=2)")[4]["status"] == "forbidden"


def test_what_the_environment_does_not_permit_stays_so() -> None:
    env = small({"level": "level3", "deny": ["look"]}, permissions="level1")
    env.reset(seed=0)
    assert [spec.name for spec in env.tools] == [*CLOSING]
    assert "not permitted to the agent at level1" in env.step("switch_off(room=1)")[0]["text"]


def test_through_pages_too() -> None:
    denied: dict[str, Any] = {"rich_wrappers": [["agent_gym.wrappers:RestrictActions", {"deny": ["click"]}]]}
    env = gym.make("agent_gym:AgentBase/WebTask-v0", interface="text", disable_env_checker=True, **denied)
    env.reset(seed=0)
    assert "click" not in [spec.name for spec in env.get_wrapper_attr("tools")]
    assert env.step({"name": "click", "arguments": {"bid": "1"}})[4]["status"] == "forbidden"
    env.close()
    denied["rich_wrappers"][0][1]["deny"] = ["clikc"]
    with pytest.raises(ConfigurationError, match="unknown tool 'clikc'"):
        gym.make("agent_gym:AgentBase/WebTask-v0", interface="text", disable_env_checker=True, **denied)


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({}, "needs a level"),
        ({"level": "level9"}, "level of permissions 'level9'"),
        ({"allow": ["lok"]}, "unknown tool 'lok'; known: look, switch_off"),
        ({"deny": ["finish"]}, "unknown tool 'finish'"),
        ({"deny": "look"}, "a list of tools' names is needed, got 'look'"),
    ],
)
def test_what_does_not_fit_is_said(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        RestrictActions(SmallTask(), **keywords)
