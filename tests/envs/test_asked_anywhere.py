"""The oracle has an answer wherever somebody got to: it can take over, and DAgger can ask it about what a policy did."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import agent_gym  # noqa: F401 - registers the ids


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["AgentBase/ToolTask-v0", "AgentBase/WebTask-v0"])
def test_the_oracle_can_be_asked_wherever_somebody_got_to(env_id: str) -> None:
    rng = np.random.default_rng(0)
    env = gymnasium.make(env_id, interface="array", disable_env_checker=True)
    inner: Any = env.unwrapped
    families = env.get_wrapper_attr("tasks").select("train").by_family
    asked = 0
    for task_id in (ids[at] for ids in families.values() for at in range(3)):
        env.reset(seed=0, options={"task_id": task_id})
        rich, done, follows = [inner.observation.to_dict()], False, rng.random()
        while not done:
            wanted = inner.oracle(rich)
            asked += 1
            offered = [at for at, call in enumerate(inner.candidates) if call.name not in ("finish", "refuse", "hand_over")]
            followed = [at for at in offered if inner.candidates[at] == wanted and rng.random() < follows]
            _, _, terminated, truncated, _ = env.step(followed[0] if followed else int(rng.choice(offered)))
            rich.append(inner.observation.to_dict())
            done = terminated or truncated
    assert asked > 5 * len(families)
