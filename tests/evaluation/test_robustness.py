"""robustness: the same tasks, plain and perturbed; what a policy loses is told apart from what it would have lost anyway."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import agent_gym  # noqa: F401 - registers the ids
from agent_gym.core import Decision, Policy, ToolCall
from agent_gym.core.perturbation import KINDS
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation import bootstrap_paired, evaluate, robustness
from agent_gym.policies import load
from agent_gym.trajectories import TrajectoryStore

TOOL = "AgentBase/ToolTask-v0"
LIBRARY: dict[str, Any] = {"env_kwargs": {"worlds": ["library"], "split": "transfer"}, "split": "transfer"}


class _ByHeart(Policy):
    """The oracle where names are as it knows them; else it gives up."""

    interface = "text"
    name = "by-heart"

    def __init__(self) -> None:
        self._oracle = load("oracle", gym.make(TOOL, interface="text", disable_env_checker=True, **LIBRARY["env_kwargs"]))

    def reset(self, episode_ids: Sequence[str]) -> None:
        self._oracle.reset(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        decisions = self._oracle.act(batch)
        at_sea = ["conventions" in observation["data"] for _, observation in batch]
        return [Decision(ToolCall("finish")) if lost else one for one, lost in zip(decisions, at_sea, strict=True)]


def test_what_a_policy_loses(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    got = robustness(_ByHeart(), TOOL, KINDS, episodes=12, seed=3, store=tmp_path, progress=lambda *done: told.append(done), **LIBRARY)
    assert {key: value for key, value in got.items() if key != "robustness"} == evaluate(_ByHeart(), TOOL, episodes=12, seed=3, **LIBRARY)
    assert got["success_rate"] == 1.0
    for kind in ("wording", "state"):
        assert got["robustness"][kind] | {"success_ci95": None} == {
            "strength": "mild",
            "episodes": 12,
            "success_rate": 1.0,
            "success_ci95": None,
            "infra_errors": 0,
            "drop": 0.0,
            "drop_ci95": [0.0, 0.0],
            "ratio": 1.0,
        }
    lost = got["robustness"]["interface"]
    assert (lost["success_rate"], lost["drop"], lost["drop_ci95"], lost["ratio"]) == (0.0, 1.0, [1.0, 1.0], 0.0)
    assert told == [(number, 48) for number in range(1, 49)]
    rows = TrajectoryStore(tmp_path).episodes()
    assert len({row["run_id"] for row in rows}) == 4
    plays = {run: sorted((row["task_id"], row["seed"]) for row in rows if row["run_id"] == run) for run in {row["run_id"] for row in rows}}
    assert len({str(play) for play in plays.values()}) == 1


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ConfigurationError, match="kind of perturbation 'colour'; known: interface, state, wording"):
        robustness(_ByHeart(), TOOL, ["colour"])


def test_a_policy_that_never_succeeds_has_no_ratio() -> None:
    got = robustness(load("noop", gym.make(TOOL)), TOOL, ["state"], "strong", episodes=4, **LIBRARY)["robustness"]["state"]
    assert (got["drop"], got["ratio"], got["strength"]) == (0.0, None, "strong")


def test_the_paired_interval_is_narrower_than_chance_and_holds_the_truth() -> None:
    low, high = bootstrap_paired([1.0] * 30 + [0.0] * 70, seed=1)
    assert low < 0.3 < high
    assert high - low == pytest.approx(2 * 1.96 * (0.3 * 0.7 / 100) ** 0.5, rel=0.1)
    assert bootstrap_paired([0.25]) == (0.25, 0.25)
    with pytest.raises(ValueError, match="at least one"):
        bootstrap_paired([])
    with pytest.raises(ValueError, match="resamples"):
        bootstrap_paired([0.0], resamples=10)
