"""StateLeakCheck: an environment in which a reset leaves something behind stops the run, which says what."""

import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from agent_gym.core import Observation, Session, Task
from agent_gym.envs.code_task import CodeTask
from agent_gym.errors import ConfigurationError, StateLeakError
from agent_gym.factory import make
from agent_gym.runner import AsyncPool
from agent_gym.testing import SmallTask
from agent_gym.testing.leaky import LEAKY, Leaky
from agent_gym.wrappers import StateLeakCheck

_EVERYWHERE: list[str] = []


class Lamps(SmallTask):
    """Something of each episode stays: in the view, in the state, in what the session holds, or in a cache of the process."""

    def __init__(self, *, leak: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._leak, self._opened = leak, 0

    def open(self, task: Task, seed: int, snapshot: Any = None) -> Session:
        session = super().open(task, seed, snapshot)
        self._opened += 1
        opened = self._opened
        if self._leak == "cache":
            _EVERYWHERE.append(task.id)
            opened = len(_EVERYWHERE)
        if self._leak in ("view", "cache"):
            session.observe = lambda: Observation(f"visits: {min(opened, 3)}")  # type: ignore[method-assign]
        elif self._leak == "state":
            session.digest = lambda: f"after {min(opened, 3)}"  # type: ignore[method-assign]
        elif self._leak == "probe":
            session.probes = lambda: {"files": min(opened, 3)}  # type: ignore[method-assign]
        return session

    def clear_caches(self) -> None:
        super().clear_caches()
        _EVERYWHERE.clear()


def env(leak: str, interface: str = "text") -> Any:
    return make(env=f"{__name__}:Lamps", interface=interface, leak=leak)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


@pytest.mark.parametrize("interface", ["text", "array"])
@pytest.mark.parametrize(
    ("leak", "said"),
    [
        ("view", r"observation.text is 'visits: 3', in a fresh instance 'visits: 1'"),
        ("state", "digest is 'after 3', in a fresh instance 'after 1'"),
        ("probe", "probes.files is '3', in a fresh instance '1'"),
        ("cache", "caches.observation.text is"),
    ],
)
def test_what_a_reset_leaves_behind_stops_the_run_and_is_named(leak: str, said: str, interface: str) -> None:
    _EVERYWHERE.clear()
    watched = StateLeakCheck(env(leak, interface), every=4, sample=2)
    for seed in range(3):
        watched.reset(seed=seed)
    with pytest.raises(StateLeakError, match=f"task 'lamps/switch/train/.*', after 4 resets: {said}"):
        watched.reset()


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_a_run_in_a_pool_is_stopped_too(backend: str) -> None:
    with AsyncPool(lambda: StateLeakCheck(env("view"), every=4, sample=1), 2, backend=backend) as pool:
        for _ in range(3):
            pool.async_reset()
            assert len(pool.recv(2)) == 2
        pool.async_reset()
        for _ in range(2):
            with pytest.raises(StateLeakError, match=r"(?s)env \d.*visits: 3"):
                pool.recv(2)


@pytest.mark.parametrize("interface", ["text", "array"])
@pytest.mark.parametrize("env_id", ["AgentBase/ToolTask-v0", "AgentBase/WebTask-v0"])
def test_our_environments_start_clean(env_id: str, interface: str) -> None:
    watched = StateLeakCheck(gym.make(f"agent_gym:{env_id}", interface=interface, disable_env_checker=True), every=3)
    plain = gym.make(f"agent_gym:{env_id}", interface=interface, disable_env_checker=True)
    for number in range(9):
        seed = 5 if number == 0 else None
        (_, info), (_, same) = watched.reset(seed=seed), plain.reset(seed=seed)
        assert info == same, "the comparison disturbs nothing"
        for _ in range(4):
            action = watched.action_space.sample()
            if watched.step(action)[2]:
                break


@pytest.mark.parametrize("arguments", [{"every": 0}, {"sample": 0}])
def test_numbers_that_do_not_fit_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="must be at least 1"):
        StateLeakCheck(env("none"), **arguments)


def test_what_cannot_be_built_again_or_recorded_so_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="make CartPoleEnv with"):
        StateLeakCheck(CartPoleEnv())
    with pytest.raises(ConfigurationError, match="unknown on_leak 'shout'; known: raise, record"):
        StateLeakCheck(env("none"), on_leak="shout")  # type: ignore[arg-type]


def play(env: Any, steps: int = 4) -> None:
    """Some of the oracle's steps, so that something has happened that a reset could leave."""
    seen = [env.unwrapped.observation.to_dict()]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(env.unwrapped.oracle(seen))
        seen.append(observation)
        if terminated or truncated:
            break


@pytest.mark.slow
@pytest.mark.parametrize("leaky", LEAKY, ids=lambda leaky: leaky.__name__)
def test_each_planted_leak_is_named(leaky: type[Leaky], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: Any) -> None:
    if issubclass(leaky, CodeTask):
        request.getfixturevalue("needs_sandbox")
    monkeypatch.delenv("AGENT_GYM_PLANTED", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = make(env=f"agent_gym.testing.leaky:{leaky.__name__}", interface="text")
    with closing(StateLeakCheck(made, every=3, sample=2)) as watched:
        watched.reset(seed=0)
        play(watched)
        watched.reset()
        play(watched)
        with pytest.raises(StateLeakError) as caught:
            watched.reset()
    assert caught.value.leaks[0][0].startswith(leaky.channel), caught.value
    assert leaky.channel in str(caught.value)


def test_sixteen_leaks_are_planted_one_for_each_channel() -> None:
    assert len({leaky.channel for leaky in LEAKY}) == 16
