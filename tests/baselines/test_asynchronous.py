"""Asynchronous learners: every step is learned from once, with what the policy thought when it chose; users find all of SB3 in place."""

import copy
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy.stats import chisquare  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor  # noqa: E402

from agent_gym.baselines.sb3 import AsyncMaskablePPO, AsyncPPO, CandidatePolicy  # noqa: E402
from agent_gym.core.seeding import derive  # noqa: E402
from agent_gym.errors import ConfigurationError, InfrastructureError  # noqa: E402
from agent_gym.runner import AgentVecEnv, AsyncPool  # noqa: E402

GAMMA, LAMBDA, N_STEPS = 0.9, 0.8, 40
torch.set_num_threads(1)


class Diary(gymnasium.Env[Any, Any]):
    """Whose observation says where it stands: environment, life (of the worker), episode, step. Some episodes end, some are cut short,
    and some steps raise.
    """

    observation_space = gymnasium.spaces.Box(0.0, 1e3, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, number: int, lives: list[int], faulty: bool, mean_s: float = 0.002) -> None:
        lives[number] += 1
        self.number, self.life, self.faulty, self.mean_s = number, lives[number], faulty, mean_s
        self.episode, self.at = -1, 0
        self.rng = derive("diary", number, self.life)
        self.asked: list[str] = []

    def seen(self, **change: int) -> Any:
        at = {"number": self.number, "life": self.life, "episode": self.episode, "at": self.at, **change}
        return np.array(list(at.values()), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # noqa: ARG002
        super().reset(seed=seed)
        self.episode, self.at = self.episode + 1, 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:  # noqa: ARG002
        time.sleep(self.rng.exponential(self.mean_s * (10 if self.number == 0 else 1)))
        self.at += 1
        if self.faulty and self.number == 1 and self.episode == 3 and self.at == 2 and self.life < 4:
            raise RuntimeError("a fault")
        ended = self.at == 4
        return self.seen(), reward_of(self.at), ended and self.episode % 2 == 0, ended and self.episode % 2 == 1, {}

    def ask(self, what: str) -> str:
        self.asked.append(what)
        return f"{what} {self.number}"


def reward_of(at: int) -> float:
    return at / 4


def diaries(count: int = 3, faulty: bool = False, **pool: Any) -> AgentVecEnv:
    lives = [0] * count

    def maker(number: int) -> Callable[[], gymnasium.Env[Any, Any]]:
        return lambda: Diary(number, lives, faulty)

    return AgentVecEnv([maker(number) for number in range(count)], **pool)


def learner(envs: Any, n_steps: int = N_STEPS, **keywords: Any) -> Any:
    settings = {"n_steps": n_steps, "batch_size": 60, "n_epochs": 2, "gamma": GAMMA, "gae_lambda": LAMBDA, "learning_rate": 1e-2}
    return AsyncPPO("MlpPolicy", envs, **{**settings, "seed": 0, "device": "cpu", **keywords})


class Rollouts(BaseCallback):
    """Keeps every rollout as it was before anything was learned from it, and the policy that it was given to."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: list[Any] = []
        self.policies: list[Any] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        names = ("observations", "actions", "rewards", "values", "log_probs", "advantages", "returns", "episode_starts")
        buffer: Any = self.model.rollout_buffer  # type: ignore[attr-defined]
        self.buffers.append({name: getattr(buffer, name).copy() for name in names})
        self.policies.append(copy.deepcopy(self.model.policy))

    @property
    def flat(self) -> list[tuple[Any, dict[str, Any]]]:
        """The steps of every rollout, column after column, with the policy at its end."""
        flat = [{name: part.swapaxes(0, 1).reshape(-1, *part.shape[2:]) for name, part in buffer.items()} for buffer in self.buffers]
        return list(zip(self.policies, flat, strict=True))


@pytest.fixture(scope="module")
def rollouts() -> Rollouts:
    """Some rollouts of three environments, one of which is ten times slower and one of which fails now and then."""
    kept, envs = Rollouts(), diaries(faulty=True)
    learner(envs).learn(1200, callback=kept)
    envs.close()
    return kept


def test_every_step_is_learned_from_once_and_in_order(rollouts: Rollouts) -> None:
    places: dict[int, list[tuple[int, ...]]] = {0: [], 1: [], 2: []}
    for _, steps in rollouts.flat:
        numbers = steps["observations"][:, 0].astype(int).tolist()
        assert numbers == sorted(numbers)  # one environment's after another's
        for number, *place in steps["observations"].astype(int).tolist():
            places[number].append(tuple(place))
    for number, learned in places.items():
        assert learned == list(itertools.islice(whole(number), len(learned)))
    assert len(places[2]) > 2 * len(places[0]) > 0  # who is quick has more to learn from


def whole(number: int) -> Iterator[tuple[int, int, int]]:
    """Where an environment stands, step by step, for ever: lives 1 to 3 of the faulty one end in the second step of episode 3."""
    for life in itertools.count(1):
        mortal = number == 1 and life < 4
        for step in range(13) if mortal else itertools.count():
            yield (life, step // 4, step % 4)


def test_advantages_are_what_they_are_by_hand(rollouts: Rollouts) -> None:
    kinds: Counter[str] = Counter()
    for policy, steps in rollouts.flat:
        rows = steps["observations"].astype(int)
        advantage = 0.0
        for t in reversed(range(len(rows))):
            number, life, episode, at = rows[t].tolist()
            kind = how_it_goes_on(rows, t)
            after = np.array([number, life, episode, at + 1], np.float32)
            with torch.no_grad():
                ahead = 0.0 if kind == "end" else float(policy.predict_values(torch.as_tensor(after)[None]))
            if kind in ("next", "next column"):
                ahead = float(steps["values"][t + 1])
            delta = reward_of(at + 1) + GAMMA * ahead - float(steps["values"][t])
            advantage = delta + (GAMMA * LAMBDA * advantage if kind == "next" else 0.0)
            np.testing.assert_allclose(steps["advantages"][t], advantage, atol=1e-4)
            np.testing.assert_allclose(steps["returns"][t], advantage + steps["values"][t], atol=1e-4)
            kinds[kind] += 1
    assert kinds.keys() == {"next", "next column", "end", "limit", "fault", "cut"}


def how_it_goes_on(rows: Any, t: int) -> str:
    number, life, episode, at = rows[t].tolist()
    if at == 3:
        return "limit" if episode % 2 else "end"
    following = rows[t + 1].tolist() if t + 1 < len(rows) else None
    if following == [number, life, episode, at + 1]:
        return "next column" if (t + 1) % N_STEPS == 0 else "next"
    return "fault" if following is not None and following[0] == number else "cut"


def test_what_was_carried_over_keeps_the_probability_that_it_was_chosen_with(rollouts: Rollouts) -> None:
    lags = []
    for version, buffer in enumerate(rollouts.buffers):
        observations = torch.as_tensor(buffer["observations"]).flatten(0, 1)
        actions = torch.as_tensor(buffer["actions"]).flatten()
        told = np.full((version + 1, len(actions)), np.nan)
        for earlier in range(version + 1):
            with torch.no_grad():
                told[earlier] = rollouts.policies[earlier].evaluate_actions(observations, actions)[1].numpy()
        fits = np.isclose(told, buffer["log_probs"].flatten(), atol=1e-5)
        assert fits.any(axis=0).all()
        lags += [int(np.argmax(fits[::-1, n])) for n in range(fits.shape[1])]
    assert lags.count(0) >= 115 / 120 * len(lags)  # all but what was under way at the last rollout's end, or came too late for it
    assert max(lags) >= 1


class Family(gymnasium.Env[Any, Any]):
    """Episodes of two families, drawn alike; one takes ten times as long as the other. Shows which it is, and whether it begins."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # noqa: ARG002
        super().reset(seed=seed)
        self.slow = bool(self.np_random.random() < 0.5)
        return np.array([self.slow, True], np.float32), {}

    def step(self, action: Any) -> Any:  # noqa: ARG002
        time.sleep(0.01 if self.slow else 0.001)
        return np.array([self.slow, False], np.float32), 0.0, bool(self.np_random.random() < 0.5), False, {}


def test_tasks_are_learned_from_as_often_as_they_are_drawn() -> None:
    kept, envs = Rollouts(), AgentVecEnv(Family, 12)
    learner(envs, n_steps=8, batch_size=48).learn(1500, callback=kept)
    envs.close()
    begun: Counter[bool] = Counter()
    for _, steps in kept.flat:
        begun.update(steps["observations"][steps["observations"][:, 1] == 1, 0].astype(bool).tolist())
    assert begun.total() > 500
    assert chisquare([begun[True], begun[False]]).pvalue > 1e-3


class Watching(BaseCallback):
    """Calls into the environments amid the training, and stops it at last."""

    def __init__(self, stop_at: int) -> None:
        super().__init__()
        self.stop_at, self.steps, self.episodes = stop_at, 0, 0
        self.said: list[str] = []

    def _on_step(self) -> bool:
        self.steps += len(self.locals["infos"])
        assert self.num_timesteps == self.steps
        assert len(self.locals["dones"]) == len(self.locals["rewards"]) == len(self.locals["env_ids"]) == self.training_env.num_envs
        self.episodes += sum(self.locals["dones"])
        if self.steps == 30:
            self.said = self.training_env.env_method("ask", "who")
            self.training_env.set_attr("mean_s", 0.0)
        return self.steps < self.stop_at


def test_callbacks_see_whole_turns_may_call_environments_and_may_stop(tmp_path: Path) -> None:
    envs = diaries()
    model = learner(envs)
    watching = Watching(90)
    model.learn(10_000, callback=[watching, CheckpointCallback(10, str(tmp_path))])
    assert watching.said == ["who 0", "who 1", "who 2"]
    assert envs.get_attr("mean_s") == [0.0] * 3
    assert model.num_timesteps == 90
    assert watching.episodes > 10
    assert (tmp_path / "rl_model_30_steps.zip").exists()
    kept = Rollouts()
    model.learn(60, callback=kept, reset_num_timesteps=False)
    assert model.num_timesteps >= 150
    envs.close()


def test_whoever_used_the_environments_in_between_does_no_harm() -> None:
    envs = diaries()
    model = learner(envs)
    model.learn(60)
    evaluate_policy(model, envs, n_eval_episodes=4, warn=False)
    kept = Rollouts()
    model.learn(120, callback=kept, reset_num_timesteps=False)
    envs.close()
    for _, steps in kept.flat:
        for t in range(1, len(steps["rewards"])):
            went_on = steps["observations"][t, 3] == steps["observations"][t - 1, 3] + 1
            assert went_on or steps["episode_starts"][t] == 1


@pytest.mark.parametrize("how", ["id", "pool", "vec_env"])
def test_environments_are_given_as_id_pool_or_vec_env(how: str, tmp_path: Path) -> None:
    processes: Any = AgentVecEnv
    made: dict[str, Callable[[], Any]] = {
        "id": lambda: "CartPole-v1",
        "pool": lambda: AsyncPool("CartPole-v1", 2),
        "vec_env": lambda: make_vec_env("CartPole-v1", 2, seed=0, vec_env_cls=processes, vec_env_kwargs={"backend": "process"}),
    }
    model = learner(made[how](), n_steps=32, batch_size=32, n_envs=2)
    model.learn(128)
    assert model.num_timesteps >= 128
    assert bool(model.ep_info_buffer) == (how != "pool")  # whose environments have no Monitor
    weights = copy.deepcopy(model.policy.state_dict())
    model.save(tmp_path / "model.zip")
    again = AsyncPPO.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    assert all(torch.equal(part, weights[name]) for name, part in again.policy.state_dict().items())
    assert again.num_timesteps == model.num_timesteps
    again.learn(64, reset_num_timesteps=False)
    assert again.num_timesteps >= model.num_timesteps + 64
    other = AgentVecEnv("CartPole-v1", 2)
    again.set_env(other)
    again.learn(64)
    assert 64 <= again.num_timesteps < 128
    other.close()
    envs = model.get_env()
    assert envs is not None
    envs.close()
    assert AsyncPPO.load(tmp_path / "model.zip", device="cpu").predict(np.zeros(4, np.float32))[0] in (0, 1)


def test_masks_are_kept_to() -> None:
    model = AsyncMaskablePPO(CandidatePolicy, "agent_gym:AgentBase/ToolTask-v0", n_envs=2, n_steps=16, batch_size=16, device="cpu")

    class Masks(Rollouts):
        def _on_rollout_end(self) -> None:
            buffer = self.model.rollout_buffer  # type: ignore[attr-defined]
            assert (buffer.action_masks == buffer.observations["action_mask"]).all()
            assert np.take_along_axis(buffer.action_masks, buffer.actions.astype(int), axis=2).all()
            self.buffers.append(buffer)

    masks = Masks()
    model.learn(64, callback=masks)
    assert masks.buffers
    envs = model.get_env()
    assert envs is not None
    envs.close()
    with pytest.raises(ConfigurationError, match="offer no action_masks"):
        AsyncMaskablePPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16, device="cpu").learn(16)


def test_continuous_actions_stay_within_bounds() -> None:
    model = learner("Pendulum-v1", n_steps=32, batch_size=32, n_envs=2, use_sde=True)
    model.learn(64)
    assert np.isfinite(model.rollout_buffer.log_probs).all()
    envs = model.get_env()
    assert envs is not None
    envs.close()


class Doomed(Diary):
    """Fails at every step."""

    def step(self, action: Any) -> Any:  # noqa: ARG002
        raise RuntimeError("no use")


class Worthless(Diary):
    """Goes well, but says of every reward that it is unknown."""

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "reward_valid": False}


def test_who_is_given_up_holds_nobody_up_and_none_left_is_an_error() -> None:
    envs = AgentVecEnv([partial(kind, 1, [0, 0], False) for kind in (Diary, Doomed, Diary)], max_restarts=0)
    model = learner(envs)
    model.learn(60)
    assert envs.pool.states[1] == "retired"
    envs.close()
    envs = AgentVecEnv([partial(Doomed, 1, [0, 0], False)] * 2, max_restarts=0)
    with pytest.raises(InfrastructureError, match="no environment could be reset"):
        learner(envs, batch_size=20).learn(60)
    envs.close()
    envs = AgentVecEnv([partial(Worthless, 1, [0, 0], False)] * 2)
    with pytest.raises(InfrastructureError, match="no valid reward"):
        learner(envs, batch_size=20).learn(60)
    envs.close()


def test_what_does_not_fit_is_named() -> None:
    dummy = DummyVecEnv([lambda: gymnasium.make("CartPole-v1")])
    envs = AgentVecEnv("CartPole-v1", 2)
    for given in (dummy, gymnasium.make("CartPole-v1"), VecMonitor(envs), 3):
        with pytest.raises(ConfigurationError, match="takes an environment's id or maker, an AsyncPool or an AgentVecEnv"):
            AsyncPPO("MlpPolicy", given)
    with pytest.raises(ConfigurationError, match="n_envs is 3, but 2"):
        AsyncPPO("MlpPolicy", envs, n_envs=3)
    envs.close()
    with AsyncPool("CartPole-v1", 1, tasks=["a"]) as pool, pytest.raises(ConfigurationError, match="must have no tasks"):
        AsyncPPO("MlpPolicy", pool)
