"""Every tool of every registered environment, called with whatever its schema lets through and with what it does not."""

from typing import Any

import gymnasium as gym
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from agent_gym.core import STATUSES, ToolCall, ToolSpec
from agent_gym.registry import IDS, OUTSIDE

_ENVS: dict[str, Any] = {}


def _env(env_id: str) -> Any:
    if env_id not in _ENVS:
        extra: dict[str, Any] = {"retries": "agent", "faults": 0.2} if "ToolTask" in env_id else {}
        _ENVS[env_id] = gym.make(f"agent_gym:{env_id}", interface="text", disable_env_checker=True, **extra).unwrapped
        _ENVS[env_id].reset(seed=0)
    return _ENVS[env_id]


def _tools() -> list[Any]:
    return [
        pytest.param(env_id, spec, id=f"{env_id.partition('/')[2]}-{spec.name}")
        for env_id in IDS
        if env_id not in OUTSIDE
        for spec in _env(env_id).tools
    ]


def _schema(spec: ToolSpec) -> dict[str, Any]:
    """Its parameters without our own keywords; short texts, since it is the shapes that matter."""
    plain: dict[str, Any] = orjson.loads(orjson.dumps(spec.parameters))
    for schema in plain["properties"].values():
        schema.pop("x-entity", None)
        schema.pop("x-find", None)
        if "maxLength" in schema:
            schema["maxLength"] = min(60, schema["maxLength"])
    return plain


@pytest.mark.parametrize(("env_id", "spec"), _tools())
def test_no_arguments_make_a_step_raise(env_id: str, spec: ToolSpec, needs_sandbox: None) -> None:  # noqa: ARG001
    env = _env(env_id)
    examples = 5 if "Code" in env_id else 40

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(from_schema(_schema(spec)), st.booleans())
    def check(arguments: dict[str, Any], bent: bool) -> None:
        if bent:
            arguments = {**arguments, next(iter(spec.parameters["properties"]), "more"): [arguments]}
        observation, reward, terminated, truncated, info = env.step(ToolCall(spec.name, arguments))
        assert info["status"] in STATUSES
        assert reward <= 0
        assert info["ending"] != "infra_error"
        assert env.observation_space.contains(observation)
        if terminated or truncated:
            env.reset()

    check()
