"""PerturbTasks: a share of the episodes is perturbed, always the same ones, and the record says how."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import agent_gym
from agent_gym.errors import ConfigurationError
from agent_gym.factory import make
from agent_gym.testing import CHECKS, Maker
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory


def made(interface: str = "text", **arguments: Any) -> Any:
    wrappers = [["agent_gym.wrappers:PerturbTasks", arguments]]
    return make(env="agent_gym.envs.tool_task:ToolTask", interface=interface, rich_wrappers=wrappers, split="test")


def perturbations(env: Any, resets: int) -> list[Any]:
    found = []
    for number in range(resets):
        env.reset(seed=4 if number == 0 else None)
        found.append(env.last_record.options.get("perturbation"))
    return found


def test_a_share_of_the_episodes_is_perturbed() -> None:
    first = perturbations(made(share=0.3, kinds=["wording", "state"], strength="strong"), 60)
    assert first == perturbations(made(share=0.3, kinds=["wording", "state"], strength="strong"), 60)
    some = [one for one in first if one is not None]
    assert 8 <= len(some) <= 30
    assert len({one.pop("seed") for one in some}) == len(some)
    assert all(one == {"wording": True, "interface": False, "state": True, "strength": "strong"} for one in some)
    assert perturbations(made(share=0.0), 5) == [None] * 5
    assert None not in perturbations(made(share=1, kinds=("interface",)), 5)


def test_the_tasks_are_those_that_would_have_come_anyway() -> None:
    plain, perturbed = made(share=0), made(share=1)
    for seed in (3, None, None):
        plain.reset(seed=seed)
        perturbed.reset(seed=seed)
        assert plain.task.id == perturbed.task.id
        assert plain.task.goal != perturbed.task.goal


def test_what_a_reset_says_itself_stands() -> None:
    env = made(share=1)
    wanted = {"wording": False, "interface": True, "state": False, "strength": "mild", "seed": 1}
    env.reset(seed=0, options={"perturbation": wanted})
    assert env.last_record.options["perturbation"] == wanted


@pytest.mark.parametrize("interface", ["text", "array"])
def test_it_goes_on_from_a_state(interface: str) -> None:
    env, other = made(interface, share=0.5), made(interface, share=0.5)
    env.reset(seed=2)
    env.reset()
    other.set_state(env.get_state())
    assert other.observation.to_dict() == env.observation.to_dict()
    for _ in range(6):
        assert str(env.reset()[0]) == str(other.reset()[0])
        assert env.last_record.options == other.last_record.options


def test_the_record_says_how(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    run = store.open_run(policy="oracle", env_id="AgentBase/ToolTask-v0", seed=0)
    inside = made(share=1, kinds=["interface"])
    env = RecordTrajectory(inside, run, source="oracle", policy_id="oracle")
    env.reset(seed=0)
    seen, ended = [inside.observation.to_dict()], False
    while not ended:
        shown, _, terminated, truncated, _ = env.step(inside.oracle(seen))
        seen.append(shown)
        ended = terminated or truncated
    env.close()
    store.seal(run.run_id)
    (row,) = TrajectoryStore(tmp_path).episodes()
    assert row["success"] is True
    assert '"interface":true' in str(row["reset_options"]).replace(" ", "")


def test_it_survives_a_spec_and_vector_environments() -> None:
    wrappers = [["agent_gym.wrappers:PerturbTasks", {"share": 0.5, "kinds": ["wording", "interface"]}]]
    env = gym.make("agent_gym:AgentBase/ToolTask-v0", rich_wrappers=wrappers, disable_env_checker=True)
    assert env.spec is not None
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()), disable_env_checker=True)
    assert str(env.reset(seed=1)[0]) == str(again.reset(seed=1)[0])
    vector = agent_gym.make_vec("AgentBase/ToolTask-v0", 2, rich_wrappers=wrappers)
    observations, _ = vector.reset(seed=1)
    assert observations["action_mask"].any(axis=1).all()
    vector.close()


@pytest.mark.parametrize("env_id", ["AgentBase/ToolTask-v0", "AgentBase/WebTask-v0", "AgentBase/CodeTask-v0"])
@pytest.mark.parametrize("check", ["determinism", "state", "pickle"])
def test_it_holds_the_conformance_suite(env_id: str, check: str, request: pytest.FixtureRequest) -> None:
    if "CodeTask" in env_id:
        request.getfixturevalue("needs_sandbox")
    arguments = {"share": 0.5, "kinds": ["wording", "interface", "state"], "strength": "strong"}
    CHECKS[check](Maker(f"agent_gym:{env_id}", {"rich_wrappers": [["agent_gym.wrappers:PerturbTasks", arguments]]}))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [({"share": 2}, "share"), ({"kinds": ["colour"]}, "colour"), ({"kinds": "wording"}, "kinds"), ({"strength": "brutal"}, "brutal")],
)
def test_what_does_not_fit_is_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        made(**arguments)
