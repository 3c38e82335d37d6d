"""`AgentVecEnv` does what Stable-Baselines3's own vector environments do, learns with its algorithms, and survives faults."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gymnasium.wrappers import TimeAwareObservation, TimeLimit  # noqa: E402
from sb3_contrib import MaskablePPO  # noqa: E402
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.utils import check_for_correct_spaces  # noqa: E402
from stable_baselines3.common.vec_env import VecNormalize  # noqa: E402

from agent_gym.errors import ConfigurationError, InfrastructureError, MissingExtra  # noqa: E402
from agent_gym.runner import AgentVecEnv, adapters  # noqa: E402
from tests.runner.oddities import BREAK, DIE, END, HANG, RAISE, STEP, Oddity  # noqa: E402

torch.set_num_threads(1)
TOOL_TASK = "agent_gym:AgentBase/ToolTask-v0"
BACKENDS = ["thread", "process"]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    Oddity.resets_to_fail = 0
    Oddity.released.clear()
    yield
    Oddity.released.set()


def vec(id: Any, count: int = 3, backend: str = "thread", seed: int | None = 0, **keywords: Any) -> Any:
    return make_vec_env(id, count, seed=seed, vec_env_cls=AgentVecEnv, vec_env_kwargs={"backend": backend}, **keywords)  # type: ignore[arg-type]


def plain(info: dict[str, Any]) -> dict[str, Any]:
    """Without the wall-clock time that SB3's Monitor adds."""
    return {**info, "episode": {**info["episode"], "t": 0}} if "episode" in info else info


@pytest.mark.parametrize(("id", "backend"), [("CartPole-v1", "thread"), (TOOL_TASK, "thread"), ("CartPole-v1", "process")])
def test_step_by_step_it_gives_what_dummy_vec_env_gives(id: str, backend: str) -> None:
    ours, theirs = vec(id, backend=backend), make_vec_env(id, 3, seed=0)
    assert ours.observation_space == theirs.observation_space
    np.testing.assert_equal(ours.reset(), theirs.reset())
    np.testing.assert_equal(ours.reset_infos, theirs.reset_infos)
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(60):
        if id == TOOL_TASK:
            masks = get_action_masks(theirs)
            np.testing.assert_equal(get_action_masks(ours), masks)
            actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        else:
            actions = rng.integers(0, 2, 3)
        got, expected = ours.step(actions), theirs.step(actions)
        for one, other in zip(got[:3], expected[:3], strict=True):
            np.testing.assert_equal(one, other)
        assert got[1].dtype == np.float32
        np.testing.assert_equal([plain(info) for info in got[3]], [plain(info) for info in expected[3]])
        np.testing.assert_equal(ours.reset_infos, theirs.reset_infos)
        ends += int(got[2].sum())
    assert ends > 2
    ours.close()
    theirs.close()


def test_ppo_learns_on_it() -> None:
    envs = vec("CartPole-v1", backend="process")
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(400)
    assert model.num_timesteps >= 400
    assert len(model.ep_info_buffer or ()) > 3
    check_for_correct_spaces(envs, model.observation_space, model.action_space)
    envs.close()


def test_maskable_ppo_learns_on_it_without_a_round_trip_for_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = vec(TOOL_TASK)
    asked: list[Any] = []
    call = envs.pool.call

    def counted(name: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(name)
        return call(name, *args, **kwargs)

    monkeypatch.setattr(envs.pool, "call", counted)
    assert is_masking_supported(envs)
    model = MaskablePPO(
        "MultiInputPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu", policy_kwargs={"net_arch": [8]}
    )
    model.learn(300)
    assert model.num_timesteps >= 300
    assert "action_masks" not in asked
    envs.close()


def test_vec_normalize_goes_around_it() -> None:
    envs = VecNormalize(vec("CartPole-v1"))
    observations = envs.reset()
    assert isinstance(observations, np.ndarray)
    for _ in range(40):
        *_, infos = envs.step(np.ones(3, int))
    assert infos
    envs.close()


def test_with_an_id_it_needs_no_list() -> None:
    envs = AgentVecEnv(TOOL_TASK, 2, env_kwargs={"split": "test"})
    envs.reset()
    assert all("/test/" in info["task_id"] for info in envs.reset_infos)
    envs.close()
    with pytest.raises(ConfigurationError, match="num_envs"):
        AgentVecEnv(TOOL_TASK)
    with pytest.raises(ConfigurationError, match="num_envs"):
        AgentVecEnv([Oddity], 2)


def test_each_function_of_the_list_makes_its_own_environment(tmp_path: Path) -> None:
    envs = vec("CartPole-v1", 2, "process", monitor_dir=str(tmp_path))
    envs.reset()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.monitor.csv", "1.monitor.csv"]
    envs.close()


def limited() -> gymnasium.Env[Any, Any]:
    return TimeLimit(Oddity(), 2)


def test_a_truncation_is_told_from_a_termination() -> None:
    envs = AgentVecEnv([limited] * 3)
    envs.seed(0)
    first: Any = envs.reset()
    envs.step(np.array([STEP, STEP, STEP]))
    observations, rewards, dones, infos = envs.step(np.array([STEP, END, STEP]))
    assert dones.tolist() == [True] * 3
    assert [info["TimeLimit.truncated"] for info in infos] == [True, False, True]
    assert [info["terminal_observation"].tolist() for info in infos] == [[number, 2] for number in first[:, 0]]
    assert rewards.tolist() == [1.0] * 3
    assert np.asarray(observations)[:, 1].tolist() == [0] * 3
    envs.close()


def test_seeds_and_options_are_for_the_next_reset_only() -> None:
    envs = AgentVecEnv(Oddity, 2)
    assert list(envs.seed(5)) == [5, 6]
    envs.set_options({"level": 2})
    first: Any = envs.reset()
    assert [info["options"] for info in envs.reset_infos] == [{"level": 2}] * 2
    again: Any = envs.reset()
    assert [info["options"] for info in envs.reset_infos] == [{}, {}]
    envs.seed(5)
    envs.set_options([{"level": 1}, {}])
    assert (np.asarray(envs.reset()) == first).all()
    assert (again != first).any()
    assert [info["options"] for info in envs.reset_infos] == [{"level": 1}, {}]
    envs.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_attributes_methods_and_wrappers_of_the_environments(backend: str) -> None:
    envs = vec(Oddity, backend=backend)
    envs.set_attr("colour", "red", indices=[0, 2])
    assert envs.get_attr("colour") == ["red", "grey", "red"]
    assert envs.get_attr("colour", indices=1) == ["grey"]
    assert envs.has_attr("colour")
    assert not envs.has_attr("shape")
    with pytest.raises(AttributeError):
        envs.get_attr("shape")
    assert envs.env_is_wrapped(Monitor) == [True] * 3
    assert envs.env_is_wrapped(TimeAwareObservation, indices=[1]) == [False]
    assert envs.env_is_wrapped(gymnasium.Wrapper) == [True] * 3
    assert envs.env_method("get_episode_rewards", indices=0) == [[]]
    assert get_action_masks(envs).shape == (3, 7)
    envs.close()
    envs.close()


def test_masks_are_asked_for_anew_after_a_call_that_may_change_them() -> None:
    envs = AgentVecEnv(TOOL_TASK, 2)
    envs.seed(0)
    envs.reset()
    before = get_action_masks(envs)
    envs.env_method("reset", seed=100, indices=0)
    after = get_action_masks(envs)
    assert (after[1] == before[1]).all()
    assert (after[0] == envs.env_method("action_masks", indices=0)[0]).all()
    envs.close()


def test_images_are_tiled() -> None:
    envs = vec(Oddity, env_kwargs={"render_mode": "rgb_array"})
    assert envs.render().shape == (8, 8, 3)
    envs.close()
    envs = AgentVecEnv(Oddity, 2)
    with pytest.warns(UserWarning, match="rgb_array"):
        assert list(envs.get_images()) == [None, None]
    envs.close()


def test_too_few_actions_are_refused_before_anything_is_sent() -> None:
    envs = AgentVecEnv(Oddity, 2)
    envs.reset()
    with pytest.raises(ValueError, match="one action for each"):
        envs.step(np.zeros(1, int))
    assert np.asarray(envs.step(np.zeros(2, int))[0])[:, 1].tolist() == [1, 1]
    envs.close()


def test_a_reset_drops_a_step_under_way() -> None:
    envs = AgentVecEnv(Oddity, 2)
    envs.reset()
    envs.step_async(np.zeros(2, int))
    assert np.asarray(envs.reset())[:, 1].tolist() == [0, 0]
    envs.close()


@pytest.mark.parametrize(("backend", "how"), [("thread", RAISE), ("thread", HANG), ("process", RAISE), ("process", HANG), ("process", DIE)])
def test_a_fault_is_one_truncated_episode(backend: str, how: int) -> None:
    envs = AgentVecEnv([Oddity] * 3, backend=backend, step_timeout_s=1.0)
    first: Any = envs.reset()
    envs.step(np.array([STEP] * 3))
    observations, rewards, dones, infos = envs.step(np.array([STEP, how, STEP]))
    assert dones.tolist() == [False, True, False]
    assert rewards.tolist() == [1.0, 0.0, 1.0]
    assert infos[1]["TimeLimit.truncated"] is True
    assert infos[1]["terminal_observation"].tolist() == [first[1, 0], 1]
    assert infos[1]["fault"]
    assert np.asarray(observations)[:, 1].tolist() == [2, 0, 2]
    assert get_action_masks(envs).shape == (3, 7)
    observations, rewards, dones, _ = envs.step(np.array([STEP] * 3))
    assert rewards.tolist() == [1.0] * 3
    assert not dones.any()
    envs.close()


def test_training_goes_on_through_faults() -> None:
    envs = AgentVecEnv([Oddity] * 3, max_restarts=50)  # most actions of a new policy end the episode or raise
    envs.action_space = gymnasium.spaces.Discrete(4)  # but none of them hangs
    model = PPO("MlpPolicy", envs, n_steps=8, batch_size=24, n_epochs=1, seed=0, device="cpu")
    model.learn(48)
    assert envs.pool.stats().restarts > 0
    envs.close()


def test_an_environment_that_cannot_be_reset_ends_its_episodes_until_it_can() -> None:
    envs = AgentVecEnv([Oddity] * 3)
    envs.reset()
    *_, dones, infos = envs.step(np.array([STEP, BREAK, STEP]))
    last = infos[1]["terminal_observation"]
    assert dones.tolist() == [False, True, False]
    assert infos[1]["TimeLimit.truncated"] is False
    observations, rewards, dones, infos = envs.step(np.array([STEP] * 3))
    assert dones.tolist() == [False, True, False], "no transition leads from one episode into another"
    assert (infos[1]["TimeLimit.truncated"], rewards[1]) == (True, 0.0)
    assert infos[1]["terminal_observation"].tolist() == last.tolist()
    assert np.asarray(observations)[1, 1] == 0
    _, rewards, dones, infos = envs.step(np.array([STEP] * 3))
    assert not dones.any()
    assert rewards[[0, 2]].tolist() == [1.0, 1.0]
    envs.close()


def broken() -> gymnasium.Env[Any, Any]:
    raise OSError("planted in the constructor")


def test_an_environment_that_never_comes_up_does_not_stop_the_others() -> None:
    envs = AgentVecEnv([Oddity, broken, Oddity], max_restarts=1)
    assert np.asarray(envs.reset()).shape == (3, 2)
    assert is_masking_supported(envs)
    for steps in (1, 2):
        observations, rewards, dones, infos = envs.step(np.array([STEP] * 3))
        assert np.asarray(observations)[[0, 2], 1].tolist() == [steps] * 2
        assert rewards.tolist() == [1.0, 0.0, 1.0]
        assert dones.tolist() == [False, True, False]
        assert "planted in the constructor" in infos[1]["fault"]
        assert get_action_masks(envs).shape == (3, 7)
    envs.close()


def test_when_no_environment_at_all_can_be_reset_that_is_said() -> None:
    envs = AgentVecEnv(Oddity, 2)
    Oddity.resets_to_fail = 1000
    with pytest.raises(InfrastructureError, match="planted in reset"):
        envs.reset()
    envs.close()


def test_without_stable_baselines3_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agent_gym.runner.adapters.sb3")
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", None)
    with pytest.raises(MissingExtra, match=r"agent-gym\[train\]"):
        _ = adapters.AgentVecEnv
