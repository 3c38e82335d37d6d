"""All wrappers of rewards together hold the conformance suite, inside an interface as around one, and run in pools."""

from typing import Any

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from agent_gym.errors import ResetNeeded
from agent_gym.factory import make
from agent_gym.policies import load
from agent_gym.registry import IDS, OUTSIDE
from agent_gym.runner import AsyncPool
from agent_gym.testing import CHECKS, Maker
from agent_gym.wrappers import AggregateReward, InjectReward, NormalizeReturn, PotentialShaping

HERE = "tests.wrappers.sources"
SOURCES = {
    "outcome": {"weight": 1.0},
    "violation": {"weight": 2.0},
    "legality": {"weight": 0.1},
    "progress": {"weight": 0.5, "gate": "legal"},
    "repeated_error": {"weight": 0.1},
    "turns": {"weight": 0.2, "range": [2, 10]},
    "calls": {"source": f"{HERE}:calls_made", "weight": 0.01},
    "legal": {"weight": 0.0},
}
STACK: list[tuple[type, dict[str, Any]]] = [
    (InjectReward, {}),
    (AggregateReward, {"sources": SOURCES}),
    (PotentialShaping, {"phi": f"{HERE}:steps_left", "gamma": 0.98}),
    (NormalizeReturn, {"window": 50}),
]
INSIDE = [[f"agent_gym.wrappers:{kind.__name__}", keywords] for kind, keywords in STACK]
CHEAP = ("gymnasium", "determinism", "state", "pickle", "spec", "sync_vector")


def around(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    for kind, keywords in STACK:
        env = kind(env, **keywords)
    return env


def inside(env_id: str, interface: str, wrappers: list[list[Any]] = INSIDE) -> Maker:
    return Maker(f"agent_gym:{env_id}", {"interface": interface, "rich_wrappers": wrappers})


@pytest.fixture(autouse=True)
def _sandbox(request: pytest.FixtureRequest) -> None:
    if "CodeTask" in request.node.name:
        request.getfixturevalue("needs_sandbox")


@pytest.mark.parametrize("check", CHECKS)
def test_inside_the_array_interface(check: str) -> None:
    CHECKS[check](inside("AgentBase/ToolTask-v0", "array"))


@pytest.mark.parametrize("check", [*CHEAP, "agent_vector_process"])
@pytest.mark.parametrize("interface", ["array", "text"])
def test_around_an_interface(check: str, interface: str) -> None:
    spec = around(gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface=interface, disable_env_checker=True)).spec
    assert spec is not None
    CHECKS[check](Maker(spec))  # type: ignore[arg-type]  # gymnasium.make takes a spec as well as an id


@pytest.mark.parametrize("check", CHEAP)
@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if "Tool" not in env_id and env_id not in OUTSIDE])
def test_inside_the_other_domains(env_id: str, check: str) -> None:
    # Returns that were seen before scale those that come, in whatever environment: only a new one does what a new one does.
    CHECKS[check](inside(env_id, "text", INSIDE[:-1] if check == "determinism" else INSIDE))


def test_the_spec_survives_json_and_makes_the_same() -> None:
    env = around(gymnasium.make("agent_gym:AgentBase/ToolTask-v0", disable_env_checker=True))
    assert env.spec is not None
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec == gymnasium.make(env.spec).spec == env.spec
    assert [spec.name for spec in (again.spec or env.spec).additional_wrappers] == [kind.__name__ for kind, _ in STACK]


@pytest.mark.parametrize("place", ["inside", "around"])
@pytest.mark.parametrize("backend", ["thread", "process"])
def test_a_pool_gives_what_one_environment_gives(backend: str, place: str) -> None:
    def made() -> gymnasium.Env[Any, Any]:
        keywords: dict[str, Any] = {"rich_wrappers": INSIDE} if place == "inside" else {}
        env = gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", disable_env_checker=True, **keywords)
        return env if place == "inside" else around(env)

    alone = made()
    observation, _ = alone.reset(seed=3)
    oracle = load("oracle", alone)
    with AsyncPool(made, 2, backend=backend) as pool:
        pool.async_reset(seed=[3, 4])
        pool.recv(2)
        over = False
        while not over:
            ((action),) = (decision.action for decision in oracle.act([("episode", observation)]))
            observation, reward, terminated, truncated, info = alone.step(action)
            pool.send([action], [0])
            (row,) = pool.recv(1).rows
            assert (row.reward, row.info["reward_parts"]) == (reward, info["reward_parts"])
            over = terminated or truncated
    assert info["success"]
    alone.close()


def test_an_episode_that_a_budget_ends_is_judged_and_takes_no_more_signals() -> None:
    judged = {"outcome": 1.0, "calls": {"source": f"{HERE}:calls_made", "weight": 0.1, "at": "end"}}
    budget: list[Any] = ["agent_gym.wrappers:EpisodeBudget", {"steps": 2}]
    env = make(
        env="agent_gym.testing:SmallTask",
        interface="text",
        rich_wrappers=[["agent_gym.wrappers:InjectReward", {}], budget, ["agent_gym.wrappers:AggregateReward", {"sources": judged}]],
    )
    env.reset(seed=0)
    env.step("look(1)")
    _, reward, terminated, truncated, info = env.step("look(2)")
    assert (reward, terminated, truncated, info["ending"]) == (0.2, False, True, "budget")
    assert (env.last_record.ending, env.last_record.reward_parts) == ("budget", info["reward_parts"])
    with pytest.raises(ResetNeeded):
        env.rich.get_wrapper_attr("inject")("human", 1.0)


@pytest.mark.parametrize("inside", [True, False])
def test_a_state_has_the_reward_of_its_last_step(inside: bool) -> None:
    wrappers: list[Any] = [["InjectReward", {}], ["AggregateReward", {"sources": {"part:human": 2.0, "judge": f"{HERE}:nan"}}]]
    rich = [[f"agent_gym.wrappers:{name}", keywords] for name, keywords in wrappers]
    env: Any = make(env="agent_gym.testing:SmallTask", interface="text", rich_wrappers=rich if inside else [])
    if not inside:
        env = AggregateReward(InjectReward(env), **wrappers[1][1])
    env.reset(seed=0)
    (env.rich if inside else env).get_wrapper_attr("inject")("human", 0.5)
    _, reward, _, _, info = env.step("look(1)")
    state = env.get_wrapper_attr("get_state")()
    record = env.get_wrapper_attr("last_record")
    env.step("look(2)")
    again = env.get_wrapper_attr("set_state")(state)[1]
    kept = env.get_wrapper_attr("last_record")
    assert (reward, again["reward_parts"], again["gaps"]) == (1.0, info["reward_parts"], info["gaps"])
    assert (kept.reward, kept.reward_parts, kept.gaps) == (record.reward, record.reward_parts, record.gaps)
