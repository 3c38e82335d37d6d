"""Every registered id holds the conformance suite, through both interfaces; the suite itself finds planted defects."""

import json
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.registry import IDS, OUTSIDE
from agent_gym.testing import CHECKS, ConformanceError, Maker
from agent_gym.testing.small import SmallTask

CASES = [
    pytest.param(env_id, interface, check, id=f"{env_id}-{interface}-{check}")
    for env_id in IDS
    if env_id not in OUTSIDE
    for interface in ("array", "text")
    for check in CHECKS
    if (interface, check) != ("text", "stable_baselines3")
]


@pytest.fixture(autouse=True)
def _sandbox(request: pytest.FixtureRequest) -> None:
    if "CodeTask" in request.node.name:
        request.getfixturevalue("needs_sandbox")


@pytest.mark.parametrize(("env_id", "interface", "check"), CASES)
def test_conformance(env_id: str, interface: str, check: str) -> None:
    CHECKS[check](Maker(f"agent_gym:{env_id}", {"interface": interface}))


class _Leftovers(SmallTask):
    """Keeps a count over resets and shows it."""

    seen = 0

    def _public(self) -> tuple[dict[str, Any], dict[str, Any]]:
        type(self).seen += 1
        shown, info = super()._public()
        return {**shown, "text": f"{shown['text']} {self.seen}"}, info


class _Reused(SmallTask):
    """Gives the same data object out again and again."""

    def _public(self) -> tuple[dict[str, Any], dict[str, Any]]:
        shown, info = super()._public()
        self.kept = getattr(self, "kept", shown["data"])
        return {**shown, "data": self.kept}, info


class _Forgetful(SmallTask):
    """Goes back to a state without what had been done."""

    def set_state(self, state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return super().set_state({**state, "session": {"off": [1, 2]}})


class _TooLong(SmallTask):
    """Shows more than its space allows."""

    def _public(self) -> tuple[dict[str, Any], dict[str, Any]]:
        shown, info = super()._public()
        return {**shown, "text": "x" * 20_000}, info


@pytest.mark.parametrize(
    ("defect", "check"),
    [
        (_Leftovers, "determinism"),
        (_Leftovers, "gymnasium"),
        (_Leftovers, "sync_vector"),
        (_Reused, "gymnasium"),
        (_Forgetful, "state"),
        (_Forgetful, "pickle"),
        (_TooLong, "spaces"),
    ],
)
def test_the_suite_finds_a_planted_defect(defect: type, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gym.registry, "Planted-v0", gym.envs.registration.EnvSpec("Planted-v0", entry_point="agent_gym.factory:make"))
    monkeypatch.setattr("agent_gym.factory.load_object", lambda _: defect)
    with pytest.raises((ConformanceError, AssertionError)):
        CHECKS[check](Maker("Planted-v0", {"env": "planted:Defect", "interface": "text"}))


def test_a_state_is_json() -> None:
    env = gym.make("agent_gym:AgentBase/ToolTask-v0")
    env.reset(seed=0)
    state = env.get_wrapper_attr("get_state")()
    assert json.loads(json.dumps(state)) == state
