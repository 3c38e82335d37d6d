"""StepDeadline: a step that hangs ends its episode, and the next one is as good as new."""

import pickle
import threading
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.errors import ConfigurationError, ResetNeeded
from agent_gym.factory import make
from agent_gym.runner import AsyncPool
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory, StepDeadline

_DEADLINE = {"seconds": 0.3, "grace": 0.2}


def small(place: str, interface: str = "text") -> Any:
    if place == "inside":
        wrappers = [["agent_gym.wrappers:StepDeadline", _DEADLINE]]
        return make(env="agent_gym.testing:SmallTask", interface=interface, defects=True, rich_wrappers=wrappers)
    return StepDeadline(make(env="agent_gym.testing:SmallTask", interface=interface, defects=True), **_DEADLINE)


@pytest.mark.parametrize("place", ["inside", "outside"])
@pytest.mark.parametrize("tool", ["sleep_for_ever", "sleep_deaf"])
def test_a_step_that_hangs_ends_its_episode_and_the_next_is_played_as_ever(place: str, tool: str, tmp_path: Path) -> None:
    plain, env = small("outside").env, RecordTrajectory(small(place), str(tmp_path))
    plain.reset(seed=1)
    env.reset(seed=1)
    env.step("look(1)")
    shown, reward, terminated, truncated, info = env.step(f"{tool}()")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["ending"], info["success"], info["is_success"]) == ("deadline", False, False)
    assert env.observation_space.contains(shown)
    with pytest.raises(ResetNeeded):
        env.step("look(1)")
    again, expected = env.reset(), plain.reset()
    assert again == expected  # the second episode of the same root, in a session that nobody has touched
    assert env.step("look(2)")[:4] == plain.step("look(2)")[:4]
    env.close()
    first, _ = TrajectoryStore(tmp_path).sql("SELECT end_reason, success FROM episodes ORDER BY episode_index")
    assert (first["end_reason"], first["success"]) == ("deadline", False)


class Foreign(gym.Env[Any, Any]):
    """Nobody's environment: action 1 waits for an interruption, 2 does not even do that."""

    observation_space = gym.spaces.Discrete(10)
    action_space = gym.spaces.Discrete(3)
    made = 0

    def __init__(self, **_: Any) -> None:
        type(self).made += 1
        self._stop = threading.Event()

    def interrupt(self) -> None:
        self._stop.set()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        super().reset(seed=seed)
        self._stop.clear()
        return int(self.np_random.integers(10)), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action:
            (self._stop if action == 1 else threading.Event()).wait()
        return 5, 1.0, False, False, {}


def test_any_environment_with_interrupt_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gym.registry, "Foreign-v0", gym.envs.registration.EnvSpec("Foreign-v0", entry_point=Foreign))
    env = StepDeadline(gym.make("Foreign-v0", disable_env_checker=True), **_DEADLINE)
    first, _ = env.reset(seed=4)
    assert env.step(1) == (5, 1.0, False, True, {"ending": "deadline", "success": False, "is_success": False})
    before = Foreign.made
    second, _ = env.reset()
    assert env.step(2) == (second, 0.0, False, True, {"ending": "deadline", "success": False, "is_success": False})
    third, _ = env.reset()
    assert Foreign.made == before + 1
    assert env.step(0)[:2] == (5, 1.0)
    plain = Foreign()
    assert [first, second, third] == [plain.reset(seed=seed)[0] for seed in (4, None, None)]
    env.close()


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"interrupt\(\); CartPoleEnv has none"):
        StepDeadline(gym.make("CartPole-v1"), 1.0)
    with pytest.raises(ConfigurationError, match=r"Foreign made by gymnasium\.make"):
        StepDeadline(Foreign(), 1.0)
    with pytest.raises(ConfigurationError, match="inside NormalizeReturn, not around it: it would not see how the episode ends"):
        StepDeadline(make(env="agent_gym.testing:SmallTask", rich_wrappers=[["agent_gym.wrappers:NormalizeReturn", {}]]), 1.0)
    with pytest.raises(ConfigurationError, match="finite and above 0, got inf and"):
        StepDeadline(make(env="agent_gym.testing:SmallTask", interface="text"), seconds=float("inf"))
    with pytest.raises(ConfigurationError, match="above 0, got 0 and"):
        StepDeadline(make(env="agent_gym.testing:SmallTask"), 0)


def test_quick_steps_pass_untouched_and_a_copy_goes_on() -> None:
    env = pickle.loads(pickle.dumps(small("inside")))
    plain = small("outside").env
    assert env.reset(seed=2) == plain.reset(seed=2)
    assert env.step("look(3)") == plain.step("look(3)")


def test_in_a_pool_the_others_go_on() -> None:
    with AsyncPool(lambda: small("outside"), 2) as pool:
        pool.async_reset()
        pool.recv(2)
        pool.send(["sleep_deaf()", "look(1)"], [0, 1])
        rows = {row.env_id: row for row in pool.recv(2)}
        assert (rows[0].info["ending"], rows[0].fault) == ("deadline", "")
        assert not rows[1].done


@pytest.mark.usefixtures("needs_sandbox")
def test_a_program_that_hangs_is_stopped() -> None:
    env = StepDeadline(gym.make("agent_gym:AgentBase/CodeTask-v0", interface="text", disable_env_checker=True), seconds=1.5)
    env.reset(seed=0)
    env.step({"name": "write_file", "arguments": {"path": "loop.py", "content": "while True: pass"}})
    *_, truncated, info = env.step({"name": "run_python", "arguments": {"path": "loop.py"}})
    assert (truncated, info["ending"]) == (True, "deadline")
    env.reset(seed=1)
    env.step({"name": "write_file", "arguments": {"path": "good.py", "content": "print(6 * 7)"}})
    shown, *_, info = env.step({"name": "run_python", "arguments": {"path": "good.py"}})
    assert info["status"] == "ok"
    assert "42" in shown["text"]
    env.close()


@pytest.mark.parametrize("place", ["inside", "outside"])
def test_after_a_step_that_hangs_one_can_go_back_to_a_state(place: str) -> None:
    env: Any = small(place)
    env.reset(seed=1)
    before, *_ = env.step("look(1)")
    state = env.get_wrapper_attr("get_state")()
    env.step("look(2)")
    assert env.step("sleep_deaf()")[4]["ending"] == "deadline"
    assert env.get_wrapper_attr("set_state")(state)[0] == before
    shown, _, _, truncated, info = env.step("sleep_deaf()")  # what is left of it is the state that was gone back to
    assert (shown, truncated, info["task_id"], info["ending"]) == (before, True, env.unwrapped.task.id, "deadline")
    env.close()


def test_a_copy_ends_its_own_episode() -> None:
    env = small("outside")
    env.reset(seed=1)
    other = pickle.loads(pickle.dumps(env))
    assert other.step("sleep_deaf()")[4]["ending"] == "deadline"
    assert other.unwrapped.last_record.ending == "deadline"
    assert env.unwrapped.last_record.ending is None
    for each in (env, other):
        each.close()
