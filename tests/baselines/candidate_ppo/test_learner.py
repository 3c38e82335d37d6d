"""Training: the same from a checkpoint as in one go, nothing too old, nothing lost, and errors that say what to try."""

import dataclasses
import itertools
import json
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from agent_gym.agent_env import AgentEnv  # noqa: E402
from agent_gym.baselines.candidate_ppo import CandidatePPOConfig, CandidatePPOPolicy, train  # noqa: E402
from agent_gym.baselines.candidate_ppo.collector import Collector, Step  # noqa: E402
from agent_gym.baselines.candidate_ppo.features import INTERFACE  # noqa: E402
from agent_gym.baselines.candidate_ppo.learner import Learner  # noqa: E402
from agent_gym.baselines.candidate_ppo.network import Scorer, collate, relative_entropy  # noqa: E402
from agent_gym.baselines.candidate_ppo.sampler import TaskSampler  # noqa: E402
from agent_gym.baselines.candidate_ppo.saved import read, write  # noqa: E402
from agent_gym.errors import ConfigurationError, InfrastructureError  # noqa: E402
from agent_gym.evaluation import evaluate  # noqa: E402
from agent_gym.policies import load  # noqa: E402
from agent_gym.policies.loading import MODEL_CARD  # noqa: E402
from agent_gym.runner import AsyncPool, Batch, Row  # noqa: E402
from agent_gym.testing.small import SmallTask  # noqa: E402
from agent_gym.trajectories import TrajectoryStore  # noqa: E402

ENV_ID = "SmallLamps-v0"
TINY: dict[str, Any] = {
    "env_id": ENV_ID,
    "n_envs": 4,
    "n_steps": 8,
    "batch_size": 16,
    "epochs": 2,
    "width": 16,
    "embedding": 8,
    "bc": 0,
    "eval_episodes": 0,
    "eval_split": "test",
    "checkpoint_every": 64,
}


class Uneven(SmallTask):
    """Lamps of which one takes its time, and one breaks what looks at it."""

    made: ClassVar[list[str]] = []
    """The steps that came through, of all environments."""

    def step(self, action: Any) -> Any:
        """Waits where the first room is looked at, and breaks where the last is."""
        call = getattr(action, "arguments", {})
        if call.get("room") == 1:
            time.sleep(0.01)
        if call.get("room") == 4 and getattr(action, "name", "") == "look":
            raise InfrastructureError("planted")
        self.made.append(str(action))
        return super().step(action)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    for name, env in ((ENV_ID, "agent_gym.testing.small:SmallTask"), ("UnevenLamps-v0", f"{__name__}:Uneven")):
        spec = gymnasium.envs.registration.EnvSpec(name, "agent_gym.factory:make", kwargs={"env": env})
        monkeypatch.setitem(gymnasium.registry, name, spec)


def collected(config: CandidatePPOConfig, network: Scorer) -> tuple[list[Step], list[Row]]:
    """A rollout, and the rows that it was made of."""
    sampler = TaskSampler(SmallTask().tasks.select("train"), floor=1.0, seed=0)
    rows: list[Row] = []

    class Seen(AsyncPool):
        def recv(self, *given: Any, **named: Any) -> Batch:
            came = super().recv(*given, **named)
            rows.extend(came)
            return came

    with Seen(ENV_ID, 4, env_kwargs={"interface": INTERFACE}) as pool:
        collector = Collector(pool, config, sampler)
        collector.restart()
        return collector.collect(network), rows


def digest(folder: Path) -> Any:
    card, tensors = read(folder / "checkpoint.zip")
    kept = {name: card[name] for name in ("learner", "collector", "sampler", "steps")}
    weights = {name: part.numpy().tobytes() for name, part in tensors["network"].items()}
    moments = [part["exp_avg"].numpy().tobytes() for part in tensors["optimizer"]["state"].values()]
    return kept, weights, moments, tensors["prior"] is None


@pytest.mark.filterwarnings("ignore:no episode of")
@pytest.mark.parametrize("bc", [0, 4])
def test_from_a_checkpoint_it_learns_the_same_as_in_one_go(bc: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CandidatePPOConfig(**{**TINY, "bc": bc, "bc_epochs": 1}, lag_max=0, steps=192)
    train(config, tmp_path / "whole", progress=False)
    update, calls = Learner.update, iter(range(100))

    def killed(*given: Any) -> Any:
        if next(calls) == 3:  # between two checkpoints
            raise KeyboardInterrupt
        return update(*given)

    with monkeypatch.context() as patched:
        patched.setattr(Learner, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "parts", progress=False)
    assert read(tmp_path / "parts" / "checkpoint.zip")[0]["steps"] == 64
    result = train(config, tmp_path / "parts", resume=True, progress=False)
    assert result.steps == 192
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    other = train(dataclasses.replace(config, seed=1), tmp_path / "other", progress=False)
    assert other.steps == 192
    assert digest(tmp_path / "other")[1] != digest(tmp_path / "whole")[1]


@pytest.mark.parametrize("lag_max", [0, 1])
def test_no_step_is_older_than_allowed_and_none_is_lost(lag_max: int) -> None:
    config = CandidatePPOConfig(**{**TINY, "env_id": "UnevenLamps-v0"}, lag_max=lag_max)
    net = Scorer(16, 8)
    selection = SmallTask().tasks.select("train")
    sampler = TaskSampler(selection, floor=1.0, seed=0)
    with AsyncPool("UnevenLamps-v0", 4, env_kwargs={"interface": INTERFACE}, max_restarts=10**6) as pool:
        collector = Collector(pool, config, sampler)
        Uneven.made.clear()
        collector.restart()
        lags, sizes = [], []
        for _ in range(6):
            rollout = collector.collect(net)
            lags += [collector.version - step.version for step in rollout]
            sizes.append(len(rollout))
            assert rollout[-1].last
            assert all(step.last for step in rollout if step.ahead is not None)
            collector.version += 1
    # Those that broke are not learned from, and at most one of each environment is yet to come.
    assert 0 <= len(Uneven.made) - sum(sizes) <= (4 if lag_max else 0)
    assert 0 <= min(lags) <= max(lags) <= lag_max
    assert min(sizes) >= 32
    if lag_max == 0:
        assert set(sizes) == {32}


def test_a_truncated_episode_ends_with_the_value_of_where_it_stood_and_a_terminated_one_with_none() -> None:
    config = CandidatePPOConfig(**{**TINY, "n_steps": 128}, lag_max=0)
    rollout, rows = collected(config, Scorer(16, 8))
    ended = [row for row in rows if row.kind == "step" and row.done]
    truncated = [row for row in ended if row.truncated and not row.terminated]
    assert 0 < len(truncated) < len(ended)
    assert all(any(step.ahead is row.observation for step in rollout) for row in truncated)
    learner = Learner(config)
    values, _, _ = learner._before(rollout, False)
    following = learner._following(rollout, values)
    terminated = [at for at, step in enumerate(rollout) if step.last and step.ahead is None]
    assert len(terminated) == len(ended) - len(truncated)
    assert (following[terminated] == 0).all()
    for at, step in enumerate(rollout):
        if not step.last:
            assert following[at] == values[at + 1]
        elif step.ahead is not None:
            assert following[at] == pytest.approx(learner.network(collate([step.ahead])).values.item(), abs=1e-5)


def test_what_was_cloned_holds_it_back_until_it_is_let_go() -> None:
    config = CandidatePPOConfig(**{**TINY, "bc": 1, "epochs": 10}, steps=128, learning_rate=0.01, bc_kl_until=0.5)
    rollout, _ = collected(config, Learner(config).network)
    batch = collate([step.observation for step in rollout])

    def went(pull: float) -> float:
        learner = Learner(dataclasses.replace(config, bc_kl=pull))
        before = learner.network(batch).log_probs.detach()
        learner.keep_prior()
        learner.update(rollout, 0)
        now = learner.network(batch).log_probs.detach()
        return float(relative_entropy(now, before, batch.owner, len(rollout)).mean())

    assert 0 < went(5.0) < went(0.5) < went(0.0)
    learner = Learner(dataclasses.replace(config, bc_kl=5.0))
    learner.keep_prior()
    assert "policy/kl_to_bc" in learner.update(rollout, 0)
    learner.steps = 64
    assert "policy/kl_to_bc" not in learner.update(rollout, 1)


@pytest.mark.slow
def test_it_learns_and_what_it_saves_acts(tmp_path: Path) -> None:
    cloning = {"bc": 40, "bc_epochs": 12, "bc_batch_size": 16, "bc_learning_rate": 3e-3, "width": 32}
    measuring = {"eval_episodes": 20, "eval_every": 128}
    config = CandidatePPOConfig(**{**TINY, **cloning, **measuring}, dagger=6, dagger_rounds=2, steps=128)
    run = TrajectoryStore(tmp_path / "store").open_run(policy=config.algo, env_id=ENV_ID)
    result = train(config, tmp_path / "run", store=run, progress=False)
    assert result.curve[0]["steps"] == 0
    assert max(point["success_rate"] for point in result.curve) > 0.8
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["imitation"]["dagger"] == 6
    assert summary["newest"]["lag/max"] <= 1
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    policy = load(str(result.model), gymnasium.make(ENV_ID))
    assert isinstance(policy, CandidatePPOPolicy)
    assert evaluate(policy, ENV_ID, episodes=20)["success_rate"] > 0.8
    episodes = TrajectoryStore(tmp_path / "store").episodes(run_id=run.run_id)
    assert Counter(row["source"] for row in episodes)["oracle"] == 40
    assert Counter(row["policy_version_start"] is None for row in episodes if row["source"] == "policy")[True] >= 6  # DAgger's


def test_saved_policies_act_alike_alone_and_in_a_batch() -> None:
    env = gymnasium.make(ENV_ID, interface=INTERFACE, disable_env_checker=True)
    seen = [(str(seed), env.reset(seed=seed)[0]) for seed in range(5)]
    for deterministic in (True, False):
        policy = CandidatePPOPolicy(Scorer(16, 8), deterministic=deterministic, seed=1)
        together = [decision.action for decision in policy.act(seen)]
        policy.reset([name for name, _ in seen])
        assert [policy.act([pair])[0].action for pair in seen] == together


@pytest.mark.slow
def test_a_damaged_checkpoint_or_one_of_other_features_says_what_to_do(tmp_path: Path) -> None:
    config = CandidatePPOConfig(**TINY, steps=0)
    result = train(config, tmp_path, progress=False)
    whole = result.model.read_bytes()
    card, tensors = read(result.model)
    result.model.write_bytes(whole[:-100])
    with pytest.raises(ConfigurationError, match=r"damaged one.*train again"):
        CandidatePPOPolicy.load(result.model)
    middle = len(whole) // 2
    result.model.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    with pytest.raises(ConfigurationError, match=r"damaged one.*train again"):
        CandidatePPOPolicy.load(result.model)
    write(result.model, {**card, "schema": "0:1:2:3:4"}, tensors)
    with pytest.raises(ConfigurationError, match=r"features '0:1:2:3:4'.*train again"):
        CandidatePPOPolicy.load(result.model)
    write(result.model, {**card, "config": {**card["config"], "width": 32}}, tensors)
    with pytest.raises(ConfigurationError, match="do not fit"):
        CandidatePPOPolicy.load(result.model)
    with zipfile.ZipFile(result.model, "w") as archive:
        archive.writestr("something", "else")
    with pytest.raises(ConfigurationError, match="no model of CandidatePPO"):
        CandidatePPOPolicy.load(result.model)
    write(result.model, {"config": card["config"]}, {"network": {}})
    small = bytearray(result.model.read_bytes())
    told: Counter[str] = Counter()
    for at, mask in itertools.product(range(len(small)), (1, 255)):
        small[at] ^= mask
        result.model.write_bytes(small)
        small[at] ^= mask
        try:
            read(result.model)
        except ConfigurationError:
            told["refused"] += 1
        else:
            told["whole"] += 1  # a date, or the like
    assert told["refused"] > told["whole"]
    for strange in ("[]", "null", "\udcff"):
        with zipfile.ZipFile(result.model, "w") as archive:
            archive.writestr(MODEL_CARD, strange.encode("utf-8", "surrogateescape"))
            archive.writestr("tensors.pt", b"")
        with pytest.raises(ConfigurationError, match="no model of CandidatePPO"):
            CandidatePPOPolicy.load(result.model)
    write(tmp_path / "checkpoint.zip", card, tensors)
    with pytest.raises(ConfigurationError, match="no checkpoint to go on from"):
        train(config, tmp_path, resume=True, progress=False)


class Priceless(SmallTask):
    """Lamps that are worth no number."""

    def step(self, action: Any) -> Any:
        """Gives what is no number."""
        observation, _, *rest = super().step(action)
        return observation, float("nan"), *rest


def test_a_loss_that_is_no_number_stops_the_training_and_keeps_what_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gymnasium.envs.registration.EnvSpec("Priceless-v0", "agent_gym.factory:make", kwargs={"env": f"{__name__}:Priceless"})
    monkeypatch.setitem(gymnasium.registry, "Priceless-v0", spec)
    with pytest.raises(ConfigurationError, match=r"the loss is nan.*learning_rate \(now 0.001\)"):
        train(CandidatePPOConfig(**{**TINY, "env_id": "Priceless-v0"}, steps=64), tmp_path, progress=False)
    _, tensors = read(tmp_path / "checkpoint.zip")
    assert all(torch.isfinite(weights).all() for weights in tensors["network"].values())


class Unsolvable(SmallTask):
    """Lamps nobody can switch off for good."""

    def step(self, action: Any) -> Any:
        """Whatever was done was wrong."""
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 0.0, terminated, truncated, {**info, "success": False if info["ending"] else None}


def test_a_family_without_one_success_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gymnasium.envs.registration.EnvSpec("Unsolvable-v0", "agent_gym.factory:make", kwargs={"env": f"{__name__}:Unsolvable"})
    monkeypatch.setitem(gymnasium.registry, "Unsolvable-v0", spec)
    with pytest.warns(UserWarning, match=r"no episode of lamps/switch succeeded.*more demonstrations"):
        train(CandidatePPOConfig(**{**TINY, "env_id": "Unsolvable-v0", "n_steps": 64}, steps=512), tmp_path, progress=False)
    assert json.loads((tmp_path / "summary.json").read_text())["never_solved"] == ["lamps/switch"]


@pytest.mark.parametrize("difficulty", [None, (0.0, 1.0)])
def test_families_are_drawn_where_there_is_something_to_learn(difficulty: tuple[float, float] | None) -> None:
    selection = gymnasium.make("AgentBase/ToolTask-v0").get_wrapper_attr("tasks").select("train", ["cancel", "exchange"], difficulty)
    sampler = TaskSampler(selection, floor=0.2, seed=0)
    cancel, exchange = selection.by_family
    for _ in range(200):
        sampler.update(cancel, True)
        sampler.update(exchange, True)
        sampler.update(exchange, False)
    drawn = [sampler.draw().startswith(exchange) for _ in range(300)]
    assert 0.7 < np.mean(drawn) < 0.99
    again = TaskSampler(selection, floor=0.2, seed=5)
    again.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
    assert [again.draw() for _ in range(20)] == [sampler.draw() for _ in range(20)]


def test_bad_settings_are_named() -> None:
    with pytest.raises(ConfigurationError, match="lag_max must be within"):
        CandidatePPOConfig(lag_max=-1)
    with pytest.raises(ConfigurationError, match=r"lag_max must be a whole number, got 1\.5"):
        CandidatePPOConfig(lag_max=1.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="gamma must be within"):
        CandidatePPOConfig(gamma=1.5)
    with pytest.raises(ConfigurationError, match="unknown algo 'ppo'"):
        CandidatePPOConfig(algo="ppo")
    assert issubclass(Uneven, AgentEnv)
