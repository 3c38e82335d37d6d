"""StateLeakCheck: an environment in which a reset leaves something behind stops the run, which says what."""

import itertools
import os
import pickle
import random  # noqa: TID251 - a leak is planted in it
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from agent_gym.core import Observation, Session, Task
from agent_gym.envs.code_task import CodeTask
from agent_gym.errors import ConfigurationError, StateLeakError
from agent_gym.factory import make
from agent_gym.registry import IDS, OUTSIDE
from agent_gym.runner import AsyncPool
from agent_gym.testing import CHECKS, Maker, SmallTask
from agent_gym.testing.leaky import LEAKY, Leaky
from agent_gym.wrappers import StateLeakCheck

_EVERYWHERE: list[str] = []


class Lamps(SmallTask):
    """Something of each episode stays: in the view, in the state, in what the session holds, or in a cache of the process."""

    others: ClassVar[int] = 0

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
@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if env_id not in OUTSIDE])
def test_our_environments_start_clean(env_id: str, interface: str, request: Any) -> None:
    if "Code" in env_id:
        request.getfixturevalue("needs_sandbox")
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


class Pole(CartPoleEnv):
    """Nobody's environment but Gymnasium's, with a fault in its reset."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self._fault, self._pushed = fault, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        if self._fault == "random":
            random.seed(3)
        elif self._fault == "numpy.random":
            np.random.standard_normal()
        elif self._fault == "cwd":
            os.chdir(tempfile.gettempdir())
        elif self._fault == "signals.SIGUSR1":
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        elif self._fault == "observation":
            observation = observation + np.float32(self._pushed)
        self._pushed += 1.0
        return observation, info


def pole(fault: str, **arguments: Any) -> StateLeakCheck:
    spec = gym.envs.registration.EnvSpec("Pole-v0", lambda **keywords: Pole(**keywords), kwargs={"fault": fault})
    return StateLeakCheck(gym.make(spec), every=2, sample=2, **arguments)


@pytest.fixture
def _process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does to the process is undone."""
    states, handler = (random.getstate(), np.random.get_state()), signal.getsignal(signal.SIGUSR1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    monkeypatch.chdir(tmp_path)
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    signal.signal(signal.SIGUSR1, handler)


@pytest.mark.usefixtures("_process")
@pytest.mark.parametrize("fault", ["random", "numpy.random", "cwd", "signals.SIGUSR1", "observation"])
def test_any_environment_that_can_be_built_again_is_watched(fault: str) -> None:
    watched = pole(fault)
    watched.reset(seed=1)
    while not watched.step(0)[2]:
        pass
    with pytest.raises(StateLeakError, match=f"after 2 resets: {fault}") as caught:
        watched.reset()
    assert [channel for channel, *_ in caught.value.leaks] == [fault]
    assert pickle.loads(pickle.dumps(caught.value)).leaks == caught.value.leaks


def test_a_healthy_one_plays_on_as_without_the_check() -> None:
    plain: Any = Pole()
    with closing(pole("")) as watched, closing(plain):
        for number in range(6):
            seed = 1 if number == 0 else None
            assert (watched.reset(seed=seed)[0] == plain.reset(seed=seed)[0]).all()
            for action in (0, 1, 1, 0):
                assert (watched.step(action)[0] == plain.step(action)[0]).all()


@pytest.mark.usefixtures("_process")
def test_a_leak_can_be_recorded_and_play_goes_on() -> None:
    watched = pole("observation", on_leak="record")
    assert "leaks" not in watched.reset(seed=1)[1]
    for _ in range(2):
        leaks = watched.reset()[1].get("leaks", [])
        assert [leak["channel"] for leak in leaks] == ["observation"]
        assert leaks[0]["value"] != leaks[0]["fresh"]
        assert "leaks" not in watched.reset()[1]


@pytest.mark.usefixtures("_process")
def test_what_others_do_in_the_process_is_not_blamed_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, opened = threading.Event(), []

    def busy() -> None:
        for number in itertools.count():
            if stop.wait(0.002):
                return
            tempfile.mkdtemp()
            np.random.random()
            opened.append(os.open(os.devnull, os.O_RDONLY))
            os.environ["AGENT_GYM_OTHERS"] = str(number)
            Lamps.others += 1

    monkeypatch.setenv("AGENT_GYM_OTHERS", "")
    with closing(StateLeakCheck(env("none"), every=2, sample=1)) as watched:
        somebody = threading.Thread(target=busy)
        somebody.start()
        try:
            for _ in range(4):
                watched.reset(seed=0)
        finally:
            stop.set()
            somebody.join()
            for fd in opened:
                os.close(fd)


@pytest.mark.parametrize("check", ["gymnasium", "determinism", "state", "pickle", "spec", "close", "sync_vector", "agent_vector_process"])
@pytest.mark.parametrize("inside", [True, False])
def test_an_environment_with_it_holds_the_conformance_suite(inside: bool, check: str) -> None:
    arguments: dict[str, Any] = {"every": 5, "sample": 1}
    if inside:
        keywords = {"interface": "text", "rich_wrappers": [["agent_gym.wrappers:StateLeakCheck", arguments]]}
        CHECKS[check](Maker("agent_gym:AgentBase/ToolTask-v0", keywords))
    else:
        with closing(StateLeakCheck(gym.make("agent_gym:AgentBase/ToolTask-v0", disable_env_checker=True), **arguments)) as env:
            spec = env.spec
        CHECKS[check](Maker(spec))  # type: ignore[arg-type]  # gymnasium.make takes a spec as well as an id


@pytest.mark.parametrize(("changing", "arguments"), [("ContextBudget", {}), ("RestrictActions", {"deny": ["look"]})])
def test_what_wrappers_do_to_the_tools_is_no_leak(changing: str, arguments: dict[str, Any]) -> None:
    pair = [[f"agent_gym.wrappers:{changing}", arguments], ["agent_gym.wrappers:StateLeakCheck", {"every": 1, "sample": 1}]]
    for wrappers in (pair, pair[::-1]):
        env = make(env="agent_gym.testing:SmallTask", interface="text", rich_wrappers=wrappers)
        env.reset(seed=0)
        env.step("recall(step=0)")
        env.reset()
        env.close()
