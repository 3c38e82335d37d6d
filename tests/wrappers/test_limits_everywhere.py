"""The wrappers that limit an episode: alone and together, in every domain, they leave an environment as conforming as it was."""

from typing import Any

import gymnasium as gym
import pytest

from agent_gym.bench.wrappers import WRAPPERS
from agent_gym.core.verdict import Ending
from agent_gym.runner import AsyncPool
from agent_gym.testing import CHECKS, Maker

LIMITS: dict[str, dict[str, Any]] = {
    "RestrictActions": {"level": "level2"},
    "StepDeadline": {"seconds": 60},
    "ContextBudget": {"tokens": 1_500},
    "LoopGuard": {},
    "EpisodeBudget": {"steps": 7, "tokens": 40_000},
}
"""Innermost first."""

TOGETHER = [[f"agent_gym.wrappers:{name}", keywords] for name, keywords in LIMITS.items()]
ALONE = ("determinism", "spaces", "state", "pickle", "spec", "close", "misuse")


@pytest.mark.parametrize("name", LIMITS)
def test_alone(name: str) -> None:
    make = Maker("agent_gym:AgentBase/ToolTask-v0", {"interface": "text", "rich_wrappers": [[f"agent_gym.wrappers:{name}", LIMITS[name]]]})
    for check in ALONE:
        CHECKS[check](make)


@pytest.mark.parametrize("interface", ["array", "text"])
@pytest.mark.parametrize("check", [*ALONE, "gymnasium", "sync_vector", "async_vector_fork_shared", "agent_vector_thread"])
def test_together(check: str, interface: str) -> None:
    CHECKS[check](Maker("agent_gym:AgentBase/ToolTask-v0", {"interface": interface, "rich_wrappers": TOGETHER}))


@pytest.mark.parametrize("env_id", ["AgentBase/WebTask-v0", "AgentBase/CodeTask-v0"])
def test_together_in_other_domains(env_id: str, request: pytest.FixtureRequest) -> None:
    if "CodeTask" in env_id:
        request.getfixturevalue("needs_sandbox")
    for check in ("determinism", "spaces", "state", "spec"):
        CHECKS[check](Maker(f"agent_gym:{env_id}", {"interface": "text", "rich_wrappers": TOGETHER}))


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_in_a_pool(backend: str) -> None:
    endings = set()
    with AsyncPool(Maker("agent_gym:AgentBase/ToolTask-v0", {"interface": "array", "rich_wrappers": TOGETHER}), 2, backend=backend) as pool:
        pool.async_reset()
        pool.recv(2)
        for _ in range(7):
            pool.send([0, 1], [0, 1])
            for row in (batch := pool.recv(2)):
                assert not row.fault
            if ended := [row for row in batch if row.done]:
                endings |= {row.info["ending"] for row in ended}
                pool.async_reset([row.env_id for row in ended])
                pool.recv(len(ended))
    assert endings
    assert endings <= set(Ending) - {Ending.INFRA_ERROR, Ending.STEP_LIMIT}


@pytest.mark.parametrize("name", WRAPPERS)
def test_what_the_bench_measures_can_be_made(name: str) -> None:
    wrapper, keywords = WRAPPERS[name]
    wrappers = [[f"agent_gym.wrappers:{wrapper}", keywords]]
    env = gym.make("agent_gym:AgentBase/ToolTask-v0", interface="text", disable_env_checker=True, rich_wrappers=wrappers)
    env.reset(seed=0)
    assert not env.step("undo()")[2]
    env.close()
