"""Checks of spaces, determinism and clean starts: each fails on a planted defect and says where; our environments pass."""

from pathlib import Path

import pytest

from agent_gym.core.verdict import Check
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation.checks import check_clean_start, check_determinism, check_spaces
from agent_gym.registry import IDS, OUTSIDE

PLANTED = '''
import functools, gymnasium, os
import numpy as np
from agent_gym import factory
from agent_gym.core import Observation
from agent_gym.testing import SmallTask

class Hashed(SmallTask):
    """Shows the members of a set in the order in which they come."""
    def open(self, *args):
        session = super().open(*args)
        observe = session.observe
        session.observe = lambda: Observation(" ".join({"one", "two", "three", "four", "five"}), observe().data)
        return session

class Told(SmallTask):
    """Tells what process it is in."""
    def _public(self):
        observation, info = super()._public()
        return observation, {**info, "pid": os.getpid()}

class TooLong(SmallTask):
    """Shows more than its space holds."""
    def _public(self):
        observation, info = super()._public()
        return {**observation, "text": "x" * 40_000}, info

def make(change, **keywords):
    env = factory.make(env="agent_gym.testing:SmallTask", **keywords)
    return change(env) if keywords["interface"] == "array" else env

def changed(env, change):
    reset = env.reset
    def again(**keywords):
        observation, info = reset(**keywords)
        return {**observation, **change(observation)}, info
    env.reset = again
    return env

def unmasked(env):
    env.action_masks = lambda: np.ones(env.action_space.n, bool)
    return env

CHANGES = {
    "Unmasked": unmasked,
    "Doubled": lambda env: changed(env, lambda shown: {"text": shown["text"].astype(np.float64)}),
    "Unbounded": lambda env: changed(env, lambda shown: {"data": shown["data"] + 5}),
    "Lacking": lambda env: changed(env, lambda shown: {"more": 1}),
}
for kind in (Hashed, Told, TooLong):
    gymnasium.register(f"{kind.__name__}-v0", "agent_gym.factory:make", kwargs={"env": f"planted_promises:{kind.__name__}"})
for name, change in CHANGES.items():
    gymnasium.register(f"{name}-v0", functools.partial(make, change))
for name in ("ClassAttribute", "Clock", "Cookie", "TemplateCache"):
    gymnasium.register(f"{name}-v0", "agent_gym.factory:make", kwargs={"env": f"agent_gym.testing.leaky:{name}"})
gymnasium.register("Small-v0", "agent_gym.factory:make", kwargs={"env": "agent_gym.testing:SmallTask"})
'''


@pytest.fixture(autouse=True)
def _planted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "planted"
    folder.mkdir(exist_ok=True)
    Path(folder, "planted_promises.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def _sandbox(request: pytest.FixtureRequest) -> None:
    if "CodeTask" in request.node.name:
        request.getfixturevalue("needs_sandbox")


def failed(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.detail for check in checks if not check.passed}


@pytest.mark.parametrize(
    ("planted", "name", "says"),
    [
        ("TooLong", "observations_are_in_their_space_text", "step 0: observation.text is outside Unicode"),
        ("Unmasked", "actions_are_valid_array", "which is not masked out, is invalid"),
        ("Doubled", "observations_are_in_their_space_array", "observation.text is float64["),
        ("Unbounded", "observations_are_in_their_space_array", "observation.data holds "),
        ("Lacking", "observations_are_in_their_space_array", "observation has ['action_mask', 'candidates', 'data', 'more', 'text'], not"),
    ],
)
def test_what_is_not_as_the_spaces_say_is_found(planted: str, name: str, says: str) -> None:
    assert failed(check_spaces("planted_promises:Small-v0", episodes=2)) == {}
    found = failed(check_spaces(f"planted_promises:{planted}-v0", episodes=4))
    assert list(found) == [name]
    assert says in found[name]


@pytest.mark.slow
def test_what_differs_between_processes_is_found() -> None:
    hashed = failed(check_determinism("planted_promises:Hashed-v0", episodes=2))
    assert set(hashed) - {"the_same_observation_array"} == {"the_same_observation_text"}
    assert "step 0: observation.text is " in hashed["the_same_observation_text"]
    told = failed(check_determinism("planted_promises:Told-v0", episodes=2))
    assert set(told) == {"the_same_info_array", "the_same_info_text"}
    assert "episode 0, lamps/switch/train/" in told["the_same_info_text"]
    assert "step 0: info.pid is " in told["the_same_info_text"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "channel"),
    [
        ("ClassAttribute", "globals.agent_gym.testing.leaky.ClassAttribute.episodes"),
        ("Clock", "probes.clock"),
        ("Cookie", "probes.browser.cookies"),
        ("TemplateCache", "caches.observation.text"),
    ],
)
def test_what_does_not_start_clean_among_others_is_found(planted: str, channel: str) -> None:
    found = failed(check_clean_start(f"planted_promises:{planted}-v0", envs=5, sample=2, episodes=1))
    assert channel in ".".join(found)
    assert next(iter(found.values())).startswith("in 2 of 2; retail/")


@pytest.mark.slow
@pytest.mark.usefixtures("_sandbox")
@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if env_id not in OUTSIDE])
def test_our_environments_keep_their_promises(env_id: str) -> None:
    name = f"agent_gym:{env_id}"
    assert failed(check_spaces(name, episodes=4)) == {}
    assert failed(check_determinism(name, episodes=2)) == {}
    assert failed(check_clean_start(name, envs=6, sample=3, episodes=1)) == {}


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="sample must be in 1 to envs"):
        check_clean_start("planted_promises:Small-v0", envs=3, sample=4)
