"""RichWrapper: where it may stand, how it ends an episode, and what of it travels with a state."""

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.wrappers import TimeLimit

from agent_gym.core.verdict import Ending
from agent_gym.errors import ConfigurationError, ResetNeeded
from agent_gym.factory import make
from agent_gym.testing import SmallTask
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory, RichWrapper
from agent_gym.wrappers.rich import Result


class Patience(RichWrapper):
    """Ends an episode after so many steps, and counts them in the text."""

    not_around = {"RecordTrajectory": "it would not see the ending"}  # noqa: RUF012

    def __init__(self, env: gym.Env[Any, Any], steps: int, ending: str = "failure") -> None:
        super().__init__(env, steps=steps, ending=ending)
        self._steps, self._ending, self._made = steps, Ending(ending), 0

    def observation(self, observation: Any) -> Any:
        return self.with_text(observation, f"{observation['text']}\nMade: {self._made}")

    def save_state(self) -> int:
        return self._made

    def load_state(self, state: int) -> None:
        self._made = state

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        self._made = 0
        return super().reset(**keywords)

    def step(self, action: Any) -> Result:
        self._made += 1
        result = super().step(action)
        return self.conclude(result, self._ending, "patience is over") if self._made >= self._steps else result


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def patient(steps: int, ending: str = "failure", interface: str = "text", **keywords: Any) -> Any:
    wrappers = [["gymnasium.wrappers:TimeLimit", {"max_episode_steps": 7}], [f"{__name__}:Patience", {"steps": steps, "ending": ending}]]
    return make(env="agent_gym.testing:SmallTask", interface=interface, rich_wrappers=wrappers, **keywords)


@pytest.mark.parametrize(("ending", "terminates"), [("failure", True), ("budget", False), ("deadline", False)])
def test_an_episode_that_is_ended_from_outside_is_over_for_everybody(ending: str, terminates: bool, tmp_path: Path) -> None:
    env = RecordTrajectory(patient(2, ending, shaping="milestones", gamma=0.5), str(tmp_path))
    env.reset(seed=0)
    room = env.env.task.spec["room"]  # type: ignore[attr-defined]
    env.step(f"switch_off({room})")
    _, reward, terminated, truncated, info = env.step("look(1)")
    assert (terminated, truncated) == (terminates, not terminates)
    assert (info["ending"], info["success"], info["is_success"]) == (ending, False, False)
    assert reward == pytest.approx(-1.0 if terminates else -0.5)  # Φ was 1; γΦ′ is 0 where the episode terminates, else 0.5
    assert info["reward_parts"]["shaping"] == pytest.approx(reward)
    record = env.env.last_record  # type: ignore[attr-defined]
    assert (record.ending, record.success) == (ending, False)
    assert [(check.name, check.passed, check.detail) for check in record.checks] == [(ending, False, "patience is over")]
    assert [change.key for change in record.changes] == [str(room)]
    with pytest.raises(ResetNeeded):
        env.step("look(1)")
    env.close()
    assert TrajectoryStore(tmp_path).sql("SELECT end_reason, success FROM episodes") == [{"end_reason": ending, "success": False}]


@pytest.mark.parametrize("interface", ["text", "array"])
@pytest.mark.parametrize("ended", [False, True])
def test_what_wrappers_keep_travels_with_a_state(interface: str, ended: bool) -> None:
    env, other = patient(2 + (not ended), interface=interface), patient(2 + (not ended), interface=interface)
    env.reset(seed=3)
    for _ in range(2):
        shown, *_ = env.step(0 if interface == "array" else "look(1)")
    state = json.loads(json.dumps(env.get_state()))
    again, info = other.set_state(state)
    assert [str(part) for part in again.values()] == [str(part) for part in shown.values()]
    assert info["ending"] == ("failure" if ended else "")
    if ended:
        assert other.last_record.checks == env.last_record.checks
        with pytest.raises(ResetNeeded):
            other.step(0)
    else:
        assert other.step(0 if interface == "array" else "look(1)")[2]
    with pytest.raises(ConfigurationError, match="2 wrappers inside; there are 0"):
        make(env="agent_gym.testing:SmallTask", interface=interface).set_state(state)


def test_a_wrong_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Patience goes inside the interface, not around TextInterface"):
        Patience(make(env="agent_gym.testing:SmallTask", interface="text"), 3)
    with pytest.raises(ConfigurationError, match="Patience goes around an AgentEnv, not around"):
        Patience(gym.make("CartPole-v1"), 3)
    with pytest.raises(ConfigurationError, match="inside RecordTrajectory, not around it: it would not see the ending"):
        Patience(TimeLimit(RecordTrajectory(SmallTask(), str(tmp_path)), 5), 3)


def test_only_endings_from_outside_can_be_given() -> None:
    env = SmallTask()
    with pytest.raises(ResetNeeded):
        env.conclude(Ending.BUDGET, "none")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="ending from outside 'success'"):
        env.conclude(Ending.SUCCESS, "well done")
    env.conclude(Ending.BUDGET, "spent")
    with pytest.raises(ResetNeeded):
        env.conclude(Ending.BUDGET, "spent")
