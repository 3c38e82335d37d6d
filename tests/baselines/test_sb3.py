"""The policy class scores candidates whatever their order, in stock algorithms; cloning and training do what they say."""

import dataclasses
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sb3_contrib import MaskablePPO  # noqa: E402
from stable_baselines3 import A2C, PPO  # noqa: E402

import agent_gym  # noqa: E402, F401 - registers the ids
from agent_gym.baselines.sb3 import CandidatePolicy, SB3Policy, TrainConfig, clone, demonstrate, train  # noqa: E402
from agent_gym.baselines.sb3.saved import read_card  # noqa: E402
from agent_gym.core.action import ToolCall  # noqa: E402
from agent_gym.errors import ConfigurationError, StateLeakError  # noqa: E402
from agent_gym.evaluation import evaluate  # noqa: E402
from agent_gym.factory import make  # noqa: E402
from agent_gym.interface.features import CANDIDATE_SIZE, CANDIDATES  # noqa: E402
from agent_gym.policies import load  # noqa: E402
from agent_gym.trajectories import TrajectoryStore  # noqa: E402

ENV_ID = "AgentBase/ToolTask-v0"
torch.set_num_threads(1)  # two on a busy machine wait for each other, at twenty times the cost
TINY: dict[str, Any] = {"n_envs": 2, "n_steps": 16, "batch_size": 16, "epochs": 1, "width": 16, "bc": 4, "bc_epochs": 1, "threads": 1}


def small() -> gymnasium.Env[Any, Any]:
    return make(env="agent_gym.testing.small:SmallTask", call_timeout_s=0.02)


def tool_task(**keywords: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(ENV_ID, **keywords)


def new_policy(width: int = 32) -> Any:
    env = small()
    torch.manual_seed(0)
    return CandidatePolicy(env.observation_space, env.action_space, lambda _: 1e-3, width=width)


def some_observations(count: int = 5) -> dict[str, Any]:
    space = small().observation_space
    space.seed(0)
    samples = [space.sample() for _ in range(count)]
    observations = {name: torch.as_tensor(np.stack([sample[name] for sample in samples])) for name in samples[0]}
    for row, valid in zip(observations["action_mask"], (1, 3, 17, 40, CANDIDATES), strict=False):
        row[:] = 0
        row[:valid] = 1
    return observations


def probabilities(policy: Any, observations: dict[str, Any]) -> Any:
    return policy.get_distribution(observations).distribution.probs


def test_padding_gets_no_probability_and_no_gradient() -> None:
    policy, observations = new_policy(), some_observations()
    observations["candidates"].requires_grad_()
    valid = observations["action_mask"].bool()
    chosen = probabilities(policy, observations)
    assert (chosen[~valid] == 0).all()
    assert torch.allclose(chosen.sum(1), torch.ones(5))
    values, logprob, entropy = policy.evaluate_actions(observations, torch.zeros(5, dtype=torch.long))
    assert entropy is not None
    (values.sum() + logprob.sum() + entropy.sum()).backward()
    gradient = observations["candidates"].grad.view(5, CANDIDATES, CANDIDATE_SIZE)
    assert (gradient[~valid] == 0).all()
    assert (gradient[valid].abs().sum(1) > 0).sum() > 50
    assert all(torch.isfinite(parameter.grad).all() for parameter in policy.parameters() if parameter.grad is not None)


def test_order_plays_no_part() -> None:
    policy, observations = new_policy(), some_observations()
    order = torch.randperm(CANDIDATES, generator=torch.Generator().manual_seed(1))
    rows = observations["candidates"].view(-1, CANDIDATES, CANDIDATE_SIZE)
    shuffled = {
        **observations,
        "candidates": rows[:, order].reshape(len(rows), -1),
        "action_mask": observations["action_mask"][:, order],
    }
    assert torch.allclose(probabilities(policy, shuffled), probabilities(policy, observations)[:, order], atol=1e-6)
    assert torch.allclose(policy.predict_values(shuffled), policy.predict_values(observations), atol=1e-5)


def test_the_dead_layer_is_gone() -> None:
    policy = new_policy()
    assert not list(policy.action_net.parameters())
    held = {id(parameter) for group in policy.optimizer.param_groups for parameter in group["params"]}
    assert held == {id(parameter) for parameter in policy.parameters()}


@pytest.mark.parametrize("algorithm", [MaskablePPO, PPO, A2C])
def test_stock_algorithms_take_it_and_give_it_back(algorithm: Any, tmp_path: Path) -> None:
    env = tool_task()
    batch = {} if algorithm is A2C else {"batch_size": 32}
    model = algorithm(CandidatePolicy, env, n_steps=64, policy_kwargs={"width": 16}, seed=0, device="cpu", **batch)
    before = {name: weights.clone() for name, weights in model.policy.state_dict().items()}
    model.learn(128)
    assert any(not torch.equal(weights, before[name]) for name, weights in model.policy.state_dict().items())
    model.save(tmp_path / "model.zip")
    again = algorithm.load(tmp_path / "model.zip", device="cpu")
    observations = some_observations()
    assert torch.equal(probabilities(again.policy, observations), probabilities(model.policy, observations))
    policy = load(str(tmp_path / "model.zip"), env)
    assert isinstance(policy, SB3Policy)
    assert policy.version == 128
    assert torch.equal(probabilities(policy.policy, observations), probabilities(model.policy, observations))
    new_policy().save(str(tmp_path / "policy.pt"))
    alone = CandidatePolicy.load(str(tmp_path / "policy.pt"))
    assert torch.equal(probabilities(alone, observations), probabilities(new_policy(), observations))


def test_stock_policies_are_loaded_too(tmp_path: Path) -> None:
    env = tool_task()
    PPO("MultiInputPolicy", env, n_steps=32, batch_size=32, device="cpu").save(tmp_path / "stock.zip")
    observation, _ = env.reset(seed=0)
    assert 0 <= load(str(tmp_path / "stock.zip"), env).act([("a", observation)])[0].action < CANDIDATES


def test_other_spaces_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="array interface"):
        CandidatePolicy(gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2), lambda _: 1e-3)


def test_saved_policies_act_alike_alone_and_in_a_batch() -> None:
    observations = [{name: part[i].numpy() for name, part in some_observations().items()} for i in range(5)]
    batch = [(str(i), observation) for i, observation in enumerate(observations)]
    for deterministic in (True, False):
        policy = SB3Policy(new_policy(), deterministic=deterministic, seed=1)
        together = [decision.action for decision in policy.act(batch)]
        policy.reset([str(i) for i in range(5)])
        assert [policy.act([pair])[0].action for pair in batch] == together
        assert all(observation["action_mask"][action] for observation, action in zip(observations, together, strict=True))


def test_cloning_learns_what_is_shown() -> None:
    env = tool_task(families=["cancel"])
    shown = demonstrate(env, 60, seed=0, gamma=0.9)
    assert shown.episodes == 60
    assert shown.returns.max() == 1.0
    policy = new_policy()
    first = clone(policy, shown, epochs=1, batch_size=32, learning_rate=3e-3, seed=0)
    last = clone(policy, shown, epochs=10, batch_size=32, learning_rate=3e-3, seed=0)
    assert last["loss"] < 0.5 * first["loss"]
    assert last["accuracy"] > first["accuracy"]
    report = evaluate(SB3Policy(policy), ENV_ID, tasks=["cancel"], episodes=20, split="validation")
    assert report["success_rate"] > 0.5


def test_under_faults_the_careful_oracle_demonstrates() -> None:
    shown = demonstrate(tool_task(retries="agent", faults=0.3), 20, seed=0, gamma=0.9)
    assert 18 <= shown.episodes <= 20
    assert len(shown.actions) == len(shown.returns) == len(shown.observations["text"])
    assert len(shown.actions) > 7 * shown.episodes
    with pytest.raises(ConfigurationError, match="solved none of 2 episodes"):
        demonstrate(tool_task(faults={"rate": 1.0, "kinds": ["outage"]}), 2, seed=0, gamma=0.9)


def test_an_episode_whose_call_is_no_candidate_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    env = small()
    monkeypatch.setattr(type(env.unwrapped), "oracle", lambda *_: ToolCall("look", {"room": 9}))
    with pytest.raises(ConfigurationError, match="solved none of 1 episodes with the calls on offer"):
        demonstrate(env, 1, seed=0, gamma=0.9)


@pytest.mark.slow
def test_training_measures_keeps_and_records(tmp_path: Path) -> None:
    config = TrainConfig(**TINY, steps=64, eval_every=32, eval_episodes=4, checkpoint_every=32)
    run = TrajectoryStore(tmp_path / "store").open_run(policy="maskable-ppo", env_id=ENV_ID)
    result = train(config, tmp_path / "run", store=run, progress=False)
    assert result.steps == 64
    assert [point["steps"] for point in result.curve] == [0, 32, 64]
    assert all(name.startswith(("retail/", "workspace/")) for name in result.curve[0]["by_task_type"])
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    assert TrainConfig.load(tmp_path / "run") == config
    sources = [row["source"] for row in TrajectoryStore(tmp_path / "store").episodes(run_id=run.run_id)]
    assert sources.count("oracle") == 4
    assert "policy" in sources
    with pytest.raises(ConfigurationError, match="already"):
        train(config, tmp_path / "run", progress=False)
    with pytest.raises(ConfigurationError, match="its seed is 0, not 1"):
        train(TrainConfig(**TINY, seed=1, steps=64, eval_every=32, eval_episodes=4, checkpoint_every=32), tmp_path / "run", resume=True)
    again = train(config, tmp_path / "again", progress=False)
    assert [{**point, "seconds": 0} for point in again.curve] == [{**point, "seconds": 0} for point in result.curve]
    first, second = (load(str(folder.model), tool_task()) for folder in (result, again))
    assert isinstance(first, SB3Policy)
    assert isinstance(second, SB3Policy)
    weights = second.policy.state_dict()
    assert all(torch.equal(part, weights[name]) for name, part in first.policy.state_dict().items())


def test_plain_ppo_from_scratch_keeps_its_last_model(tmp_path: Path) -> None:
    result = train(TrainConfig(**{**TINY, "bc": 0}, algo="ppo", steps=32, eval_episodes=0), tmp_path, progress=False)
    assert (result.steps, result.curve) == (32, [])
    policy = load(str(result.model), tool_task())
    assert (policy.name, policy.version) == ("ppo", 32)


@pytest.mark.slow
def test_asynchronous_training_notes_what_only_the_learner_knows_and_goes_on(tmp_path: Path) -> None:
    config = TrainConfig(**{**TINY, "n_steps": 8}, algo="async-maskable-ppo", steps=32, eval_episodes=2, checkpoint_every=16)
    run = TrajectoryStore(tmp_path / "store").open_run(policy=config.algo, env_id=ENV_ID)
    result = train(config, tmp_path / "run", store=run, progress=False)
    assert 32 <= result.steps < 64
    assert [result.curve[0]["steps"], result.curve[-1]["steps"]] == [0, result.steps]
    episodes = TrajectoryStore(tmp_path / "store").episodes(run_id=run.run_id, where="source = 'policy' AND n_turns > 0")
    assert max(row["policy_version_end"] for row in episodes) >= 1
    longer = dataclasses.replace(config, steps=result.steps + 16, backend="process")
    again = train(longer, tmp_path / "run", resume=True, progress=False)
    assert again.steps >= longer.steps
    assert again.curve[: len(result.curve)] == result.curve
    policy = load(str(again.model), tool_task())
    assert policy.name == "async-maskable-ppo"


@pytest.mark.parametrize("algo", ["ppo", "async-ppo"])
def test_a_leak_stops_a_training_and_is_named(algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gymnasium.envs.registration.EnvSpec("Clock-v0", "agent_gym.factory:make", kwargs={"env": "agent_gym.testing.leaky:Clock"})
    monkeypatch.setitem(gymnasium.registry, "Clock-v0", spec)
    monkeypatch.setattr("agent_gym.baselines.sb3.training._LEAK_CHECK_EVERY", 4)
    with pytest.raises(StateLeakError, match=r"task 'retail/.*', after 2 resets: probes\.clock is"):
        train(TrainConfig(**{**TINY, "bc": 0}, env_id="Clock-v0", algo=algo, steps=256, eval_episodes=0), tmp_path, progress=False)


@pytest.mark.slow
def test_a_killed_training_goes_on(tmp_path: Path) -> None:
    settings = {**TINY, "eval_episodes": 2, "eval_every": 32, "checkpoint_every": 32}
    script = f"from agent_gym.baselines.sb3 import *; train(TrainConfig(**{settings!r}, steps=10**6), {str(tmp_path)!r}, progress=False)"
    child = subprocess.Popen([sys.executable, "-c", script])
    checkpoint = tmp_path / "checkpoint.zip"
    deadline = time.monotonic() + 120
    while not (checkpoint.is_file() and read_card(checkpoint)["steps"] >= 64):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.kill()
    child.wait()
    card = read_card(checkpoint)
    result = train(TrainConfig(**settings, steps=card["steps"] + 64), tmp_path, resume=True, progress=False)
    assert result.steps == card["steps"] + 64
    assert result.curve[: len(card["curve"])] == card["curve"]
    assert result.curve[-1]["steps"] == result.steps
    assert result.seconds > card["seconds"]
    assert load(str(result.model), tool_task()).name == "maskable-ppo"


def test_bad_settings_are_named() -> None:
    with pytest.raises(ConfigurationError, match="gamma must be within"):
        TrainConfig(gamma=1.5)
    with pytest.raises(ConfigurationError, match="unknown algo 'dqn'"):
        TrainConfig(algo="dqn")
    with pytest.raises(ConfigurationError, match="unknown backend 'cloud'"):
        TrainConfig(algo="async-ppo", backend="cloud")
    with pytest.raises(ConfigurationError, match="does not divide"):
        TrainConfig(batch_size=500)
    with pytest.raises(ConfigurationError, match="holds no training run"):
        TrainConfig.load("/nowhere")


def test_a_missing_package_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from agent_gym.baselines.sb3 import TrainConfig\n"
        "from agent_gym.errors import MissingExtra\n"
        "try:\n    from agent_gym.baselines.sb3 import train\n"
        "except MissingExtra as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "agent-gym[train]" in said
