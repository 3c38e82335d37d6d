"""``check reward`` and ``check truncation``: every registered id passes, and each planted defect is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_gym.errors import ConfigurationError
from agent_gym.evaluation.checks import check_reward, check_truncation
from agent_gym.registry import IDS, OUTSIDE
from agent_gym.testing import MisjudgingTask
from tests.cli.test_cli import run

MISJUDGING = {"env": "agent_gym.testing:MisjudgingTask"}
ID = "AgentBase/ToolTask-v0"


@pytest.fixture(autouse=True)
def _sandbox(request: pytest.FixtureRequest) -> None:
    if "CodeTask" in request.node.name:
        request.getfixturevalue("needs_sandbox")


def failed(checks: Any) -> list[str]:
    return [f"{check.name}: {check.detail}" for check in checks if not check.passed]


@pytest.mark.parametrize("check", [check_reward, check_truncation])
@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if env_id not in OUTSIDE])
def test_every_registered_id_passes(env_id: str, check: Any) -> None:
    checks = check(env_id, episodes=3)
    assert failed(checks) == []
    assert len(checks) > 5


def test_a_healthy_environment_passes_with_shaping_and_in_other_splits() -> None:
    assert failed(check_reward(ID, env_kwargs=MISJUDGING)) == []
    assert failed(check_truncation(ID, env_kwargs=MISJUDGING)) == []
    assert failed(check_reward(ID, split="test", episodes=3, env_kwargs={**MISJUDGING, "shaping": "milestones", "gamma": 0.9})) == []


REWARD = {
    "sign_flipped": "parts_have_the_right_sign: oracle on .*: outcome is -1, below 0",
    "violation_pays": "a_violation_costs: spam on .*: the step of the violation was given 1",
    "everybody_is_paid": "success_pays_and_nothing_else_does: .* ended as failure, outcome 1",
    "parts_do_not_sum": "parts_sum_to_the_reward: .*: the reward is 1.5, its parts .* sum to 1",
    "record_disagrees": "the_record_says_the_same: .* in the record .*1.0",
    "shaping_stays": "shaping_cancels_out: .*, discounted sums of shaping: oracle 0.9",
}
TRUNCATION = {
    "limit_terminates": "the_step_limit_truncates: .* ending 'step_limit', terminated True, truncated False",
    "finish_truncates": "closing_terminates: .* finish\\(\\) ended it as 'failure', and not terminated",
    "final_forgotten": "the_final_observation_is_real: after step 8 the observation is of step 0",
}


def test_every_defect_that_can_be_planted_is_looked_for() -> None:
    assert set(MisjudgingTask.DEFECTS) == {*REWARD, *TRUNCATION}


@pytest.mark.parametrize(
    ("check", "defect", "said"),
    [
        *((check_reward, defect, said) for defect, said in REWARD.items()),
        *((check_truncation, defect, said) for defect, said in TRUNCATION.items()),
    ],
)
def test_a_planted_defect_is_named(check: Any, defect: str, said: str) -> None:
    found = failed(check(ID, env_kwargs={**MISJUDGING, "defect": defect}))
    with pytest.raises(AssertionError, match=f"(?s){said}"):
        raise AssertionError("\n".join(found))


@pytest.mark.parametrize("defect", ["limit_terminates", "final_forgotten"])
def test_what_a_learner_would_compute_from_it_is_wrong(defect: str) -> None:
    found = failed(check_truncation(ID, env_kwargs={**MISJUDGING, "defect": defect}))
    assert sum(said.startswith("the_bootstrapped_value_is_right") for said in found) == 2


def test_what_does_not_fit_is_misuse() -> None:
    with pytest.raises(ConfigurationError, match="episodes must be at least 1"):
        check_reward(ID, episodes=0)
    with pytest.raises(ConfigurationError, match="unknown split"):
        check_truncation(ID, split="nowhere")


@pytest.mark.slow
def test_the_command_says_so_by_its_exit_status(tmp_path: Path) -> None:
    planted = ["--set", f"env={MISJUDGING['env']}", "--episodes", "2"]
    for name, defect in (("reward", "sign_flipped"), ("truncation", "limit_terminates")):
        assert run("check", name, ID, *planted, cwd=tmp_path).returncode == 0
        done = run("check", name, ID, *planted, "--set", f"defect={defect}", "--json", cwd=tmp_path)
        told = json.loads(done.stdout)
        assert (done.returncode, told["passed"]) == (1, False)
        assert {"name", "passed", "detail"} == set(told["checks"][0])
        assert run("check", name, "AgentBase/Nothing-v0", cwd=tmp_path).returncode == 2
        assert run("check", name, ID, "--split", "nowhere", cwd=tmp_path).returncode == 2
        assert run("check", name, "CartPole-v1", cwd=tmp_path).returncode == 2
