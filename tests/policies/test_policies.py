"""Every policy name loads and acts; what it does in an episode does not depend on the batch it is in."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import agent_gym  # noqa: F401 - registers the ids
from agent_gym.core.policy import Policy
from agent_gym.core.seeding import derive_seed
from agent_gym.errors import ConfigurationError
from agent_gym.policies import POLICIES, load
from agent_gym.policies.per_episode import PerEpisode

ENV_ID = "AgentBase/ToolTask-v0"


@pytest.fixture(scope="module")
def envs() -> Iterator[dict[str, list[gymnasium.Env[Any, Any]]]]:
    made = {interface: [gymnasium.make(ENV_ID, interface=interface, split="test") for _ in range(3)] for interface in ("array", "text")}
    yield made
    for env in [*made["array"], *made["text"]]:
        env.close()


def play(policy: Policy, envs: list[gymnasium.Env[Any, Any]], numbers: list[int]) -> dict[int, tuple[list[str], dict[str, Any]]]:
    """Plays the episodes of these numbers side by side; the calls made and the last info of each."""
    live = {}
    played: dict[int, tuple[list[str], dict[str, Any]]] = {}
    policy.reset([f"episode-{number}" for number in numbers])
    for number, env in zip(numbers, envs, strict=False):
        observation, _ = env.reset(seed=derive_seed("play", number))
        live[number] = (env, observation)
        played[number] = ([], {})
    while live:
        decisions = policy.act([(f"episode-{number}", observation) for number, (_, observation) in live.items()])
        for (number, (env, _)), decision in zip(list(live.items()), decisions, strict=True):
            observation, _, terminated, truncated, info = env.step(decision.action)
            played[number][0].append(str(env.get_wrapper_attr("last_record").call))
            played[number] = (played[number][0], info)
            live[number] = (env, observation)
            if terminated or truncated:
                del live[number]
    return played


@pytest.mark.parametrize("name", POLICIES)
def test_acts_alike_alone_and_in_a_batch(name: str, envs: dict[str, list[gymnasium.Env[Any, Any]]]) -> None:
    probe = envs["array"][0]
    policy = load(name, probe, seed=3)
    assert policy.name == name
    ours = envs[policy.interface]
    together = play(policy, ours, [0, 1, 2])
    for number in (2, 0, 1):
        assert play(load(name, probe, seed=3), ours, [number])[number] == together[number]
    if name != "refuse-always":  # it tries reasons that not every world knows
        assert all(not info["invalid_action"] for _, info in together.values())


def test_what_the_scripted_ones_do(envs: dict[str, list[gymnasium.Env[Any, Any]]]) -> None:
    text = envs["text"]
    for calls, info in play(load("oracle", text[0]), text, [0, 1, 2]).values():
        assert info["success"]
        assert len(calls) > 1
    for calls, info in play(load("noop", text[0]), text, [0, 1, 2]).values():
        assert calls == ["finish()"]
        assert not info["success"]
    for calls, info in play(load("refuse-always", text[0]), text, [0, 1, 2]).values():
        assert all(call.startswith(("refuse", "hand_over")) for call in calls)
        assert not info["success"]
    for calls, info in play(load("finish-early", text[0]), text, [0, 1, 2]).values():
        assert calls[-1] == "finish()"
        assert len(calls) > 1
        assert not info["success"]
    for calls, info in play(load("first-candidate", text[0]), envs["array"], [0, 1, 2]).values():
        assert len(set(calls)) > 1
        assert not info["success"]
    for calls, info in play(load("spam", text[0]), text, [0, 1, 2]).values():
        assert not info["success"]
        assert not any(call.startswith(("finish", "refuse", "hand_over")) for call in calls)
        assert len({call.partition("(")[0] for call in calls}) > 1


def test_random_differs_by_seed_and_by_episode(envs: dict[str, list[gymnasium.Env[Any, Any]]]) -> None:
    def calls(seed: int, number: int) -> list[str]:
        return play(load("random", envs["array"][0], seed=seed), envs["array"], [number])[number][0]

    assert calls(0, 0) == calls(0, 0)
    assert len({tuple(calls(seed, 0)) for seed in range(4)}) > 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("orakel", "known: .*oracle"),
        ("nowhere.zip", "no saved model"),
        ("agent_gym.nowhere:Policy", "names nothing"),
        ("agent_gym.core.task:Task", "no agent_gym Policy"),
        ("agent_gym.registry:VERSION", "no agent_gym Policy"),
    ],
)
def test_what_is_no_policy_is_named(name: str, said: str, envs: dict[str, list[gymnasium.Env[Any, Any]]]) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load(name, envs["array"][0])


def test_a_damaged_file_is_named(tmp_path: Path, envs: dict[str, list[gymnasium.Env[Any, Any]]]) -> None:
    damaged = tmp_path / "model.zip"
    damaged.write_bytes(b"no zip at all")
    with pytest.raises(ConfigurationError, match="damaged"):
        load(str(damaged), envs["array"][0])
    with zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("agent_gym.json", json.dumps({"steps": 3}))
    with pytest.raises(ConfigurationError, match="damaged"):
        load(str(damaged), envs["array"][0])


def test_an_import_string_is_called_with_env_and_seed(envs: dict[str, list[gymnasium.Env[Any, Any]]]) -> None:
    assert load("agent_gym.policies.choosing:RandomPolicy", envs["array"][0], seed=1).name == "random"


def test_what_is_kept_of_episodes_is_bounded() -> None:
    kept = PerEpisode(lambda episode_id: [episode_id], limit=2)
    first = kept["a"]
    assert kept["a"] is first
    assert kept["b"] == ["b"]
    assert kept["a"] is first
    assert kept["c"] == ["c"]  # and "b", longest unasked for, goes
    assert kept["a"] is first
    kept.forget(["a", "unknown"])
    assert kept["a"] is not first
