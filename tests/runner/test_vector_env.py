"""`AgentVectorEnv` does what Gymnasium's vector environments do, and one environment's fault is one row's matter."""

import multiprocessing
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TransformObservation
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import agent_gym
from agent_gym.errors import InfrastructureError, ResetNeeded
from agent_gym.runner import AgentVectorEnv
from agent_gym.testing import CHECKS, Maker
from tests.runner.oddities import BREAK, CUT, DIE, END, HANG, RAISE, STEP, Oddity

MODES = list(AutoresetMode)
SEEDS = [11, 12, 13]
CASES = {"CartPole-v1": {}, "agent_gym:AgentBase/ToolTask-v0": {}, "minigrid:MiniGrid-Empty-5x5-v0": {"max_steps": 9}}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    Oddity.resets_to_fail = 0
    Oddity.released.clear()
    yield
    Oddity.released.set()


def odd(mode: AutoresetMode = AutoresetMode.NEXT_STEP, backend: str = "thread", **pool: Any) -> AgentVectorEnv:
    return AgentVectorEnv(Oddity, 3, autoreset_mode=mode, backend=backend, **pool)


def same(one: Any, other: Any) -> None:
    """Equal in every value, type and dtype."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, tuple) or (isinstance(one, np.ndarray) and one.dtype == object):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize(
    ("id", "mode", "backend"),
    [
        *((name, mode, "thread") for name in CASES for mode in MODES),
        ("agent_gym:AgentBase/ToolTask-v0", AutoresetMode.SAME_STEP, "process"),
    ],
)
def test_step_by_step_it_gives_what_gymnasium_gives(id: str, mode: AutoresetMode, backend: str) -> None:
    make = Maker(id, CASES[id])
    theirs = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    ours = AgentVectorEnv(make, 3, autoreset_mode=mode, backend=backend)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata == theirs.metadata
    same(ours.reset(seed=SEEDS), theirs.reset(seed=SEEDS))  # type: ignore[arg-type]
    ours.action_space.seed(5)
    ends = 0
    for _ in range(60):
        actions = ours.action_space.sample()
        got, expected = ours.step(actions), theirs.step(actions)
        same(got, expected)
        done = got[2] | got[3]
        ends += int(done.sum())
        if mode is AutoresetMode.DISABLED and done.any():
            same(ours.reset(options={"reset_mask": done}), theirs.reset(options={"reset_mask": done.copy()}))
    assert ends > 2
    ours.close()
    theirs.close()


@pytest.mark.parametrize("check", ["determinism", "spaces", "close", *(name for name in CHECKS if "vec" in name and "async" not in name)])
@pytest.mark.parametrize("id", ["CartPole-v1", "minigrid:MiniGrid-Empty-5x5-v0"])
def test_environments_that_are_not_ours_hold_the_conformance_suite(id: str, check: str) -> None:
    CHECKS[check](Maker(id, CASES[id]))


def test_make_vec_gives_ours_and_gymnasium_gives_its_own() -> None:
    ours = agent_gym.make_vec(
        "agent_gym:AgentBase/ToolTask-v0", 2, split="test", autoreset_mode="SameStep", vector_kwargs={"step_timeout_s": 5}
    )
    theirs = gymnasium.make_vec("agent_gym:AgentBase/ToolTask-v0", 2)
    assert isinstance(ours, AgentVectorEnv)
    assert not isinstance(theirs, AgentVectorEnv)
    _, infos = ours.reset(seed=3)
    assert all("/test/" in task_id for task_id in infos["task_id"])
    assert "ToolTask" in repr(ours)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_gymnasiums_episode_statistics_work_around_it(mode: AutoresetMode) -> None:
    envs = RecordEpisodeStatistics(odd(mode))
    envs.reset(seed=0)
    for actions in ([STEP] * 3, [STEP, STEP, END]):
        *_, infos = envs.step(np.array(actions))
    assert infos["_episode"].tolist() == [False, False, True]
    assert infos["episode"]["l"][2] == 2
    assert infos["episode"]["r"][2] == 2.0
    mask = np.array([True, False, False])
    envs.reset(options={"reset_mask": mask})
    assert envs.episode_lengths.tolist()[:2] == [0, 2]
    envs.close()


def test_one_number_as_seed_is_spread_and_gives_the_same_again() -> None:
    envs = odd()
    first, again, next_seed = (envs.reset(seed=seed)[0][:, 0].tolist() for seed in (0, 0, 1))
    assert first == again
    assert len({*first, *next_seed}) == 6
    assert envs.np_random_seed == 1
    envs.close()


def test_options_reach_the_environments_and_stay_as_they_are() -> None:
    envs = odd()
    observations, _ = envs.reset(seed=0)
    mask = np.array([False, True, False])
    options = {"reset_mask": mask, "level": 3}
    again, infos = envs.reset(seed=[None, 5, None], options=options)
    assert options == {"reset_mask": mask, "level": 3}
    assert infos["options"]["level"].tolist() == [0, 3, 0]
    assert (again[[0, 2]] == observations[[0, 2]]).all()
    assert again[1, 0] != observations[1, 0]
    envs.close()


@pytest.mark.parametrize(
    ("mask", "error"),
    [([True, False, False], TypeError), (np.ones(3), TypeError), (np.ones(2, bool), ValueError), (np.zeros(3, bool), ValueError)],
)
def test_a_mask_that_does_not_fit_is_refused(mask: Any, error: type[Exception]) -> None:
    envs = odd()
    envs.reset()
    with pytest.raises(error, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})
    envs.step(np.zeros(3, int))
    envs.close()


def test_misuse_is_named() -> None:
    envs = odd(AutoresetMode.DISABLED)
    with pytest.raises(ResetNeeded, match="reset all"):
        envs.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ResetNeeded, match="reset all"):
        envs.step([STEP] * 3)
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()
    envs.reset_async()
    with pytest.raises(AlreadyPendingCallError):
        envs.step_async([STEP] * 3)
    envs.reset_wait()
    with pytest.raises(ValueError, match="one seed for each"):
        envs.reset(seed=[1, 2])
    envs.step([STEP, END, STEP])
    with pytest.raises(ResetNeeded, match=r"\[1\]"):
        envs.step([STEP] * 3)
    envs.close()
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.reset()


def test_a_timeout_of_the_caller_loses_nothing() -> None:
    envs = odd()
    first, _ = envs.reset(seed=0)
    envs.step_async([HANG, STEP, STEP])
    with pytest.raises(multiprocessing.TimeoutError):
        envs.step_wait(timeout=0.05)
    Oddity.released.set()
    observations, rewards, *_ = envs.step_wait()
    assert (observations[:, 0] == first[:, 0]).all()
    assert rewards.tolist() == [1.0, 1.0, 1.0]
    envs.close()


def test_attributes_and_methods_of_the_environments() -> None:
    envs = odd()
    envs.set_attr("colour", ["red", "green", "blue"])
    assert envs.get_attr("colour") == ("red", "green", "blue")
    envs.set_attr("colour", "white")
    assert envs.call("colour") == ("white",) * 3
    assert [mask.sum() for mask in envs.call("action_masks")] == [3, 3, 3]
    with pytest.raises(ValueError, match="one value for each"):
        envs.set_attr("colour", ["red"])
    with pytest.raises(AttributeError):
        envs.get_attr("shape")
    assert envs.reset(seed=0)[0].shape == (3, 2)
    envs.close()


def test_render_gives_every_environments_picture() -> None:
    envs = AgentVectorEnv(Oddity, 2, env_kwargs={"render_mode": "rgb_array"})
    assert envs.render_mode == "rgb_array"
    assert [picture.shape for picture in envs.render()] == [(4, 4, 3)] * 2
    envs.close()


def test_text_observations_and_tool_calls() -> None:
    envs = agent_gym.make_vec("agent_gym:AgentBase/ToolTask-v0", 2, interface="text")
    observations, _ = envs.reset(seed=0)
    assert all(isinstance(text, str) and text for text in observations["text"])
    observations, _, _, _, infos = envs.step(["finish()", {"name": "no_such_tool", "arguments": {}}])
    assert envs.observation_space.contains(observations)
    assert infos["invalid_action"].tolist() == [False, True]
    envs.close()


def test_infos_that_fit_into_no_common_array_are_objects() -> None:
    envs = odd()
    envs.reset(seed=0)
    envs.step([STEP, END, STEP])
    *_, infos = envs.step([STEP] * 3)
    assert infos["_ragged"].tolist() == [True, False, True]
    *_, infos = envs.step([STEP] * 3)
    assert list(infos["mixed"]) == ["odd", "odd", "odd"]
    assert [len(value) for value in infos["ragged"]] == [3, 1, 3]
    *_, infos = envs.step([END, STEP, STEP])
    envs.step([STEP] * 3)
    *_, infos = envs.step([STEP] * 3)
    assert list(infos["mixed"]) == ["odd", 4, 6]
    envs.close()


class Telling(Oddity):
    """Its first info has one value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        observation, _ = super().reset(seed=seed, options=options)
        return observation, self._value if self._value == [] else {"told": self._value}


@pytest.mark.parametrize("values", [(2**70, 1), (1, 2**63), ({"a": 1}, None), (None, {"a": 1}), ({"a": {"b": 1}}, 2)])
def test_infos_of_any_values_side_by_side_stay_what_they_are(values: tuple[Any, Any]) -> None:
    envs = AgentVectorEnv([lambda value=value: Telling(value) for value in values], 2)
    assert tuple(envs.reset()[1]["told"]) == values
    envs.close()


def test_an_info_that_is_no_dict_and_an_observation_that_does_not_fit_are_named() -> None:
    envs = AgentVectorEnv([Oddity, lambda: Telling([])], 2, max_restarts=0)
    assert "info must be a dict, got []" in envs.reset()[1]["fault"][1]
    envs.close()
    envs = AgentVectorEnv([Oddity, lambda: TransformObservation(Oddity(), lambda _: np.zeros(5), None)], 2)
    with pytest.raises(ValueError, match=r"observations of envs \[1\] are not in Box"):
        envs.reset()
    envs.close()


def test_calls_keep_the_place_of_an_environment_that_was_given_up() -> None:
    envs = AgentVectorEnv(Oddity, 3, max_restarts=0, env_kwargs={"render_mode": "rgb_array"})
    envs.reset()
    envs.step([STEP, RAISE, STEP])
    envs.set_attr("colour", ["red", "green", "blue"])
    assert envs.get_attr("colour") == ("red", None, "blue")
    assert [picture is None for picture in envs.render()] == [False, True, False]
    envs.close()


@pytest.mark.parametrize(
    ("mode", "backend", "how"),
    [*((mode, "thread", how) for mode in MODES for how in (RAISE, HANG)), *((MODES[0], "process", how) for how in (RAISE, HANG, DIE))],
)
def test_a_fault_truncates_one_row_and_nothing_else(mode: AutoresetMode, backend: str, how: int) -> None:
    envs = odd(mode, backend, step_timeout_s=1.0)
    first, _ = envs.reset(seed=0)
    envs.step([STEP] * 3)
    observations, rewards, terminated, truncated, infos = envs.step([STEP, how, STEP])
    final = infos["final_obs"][1] if mode is AutoresetMode.SAME_STEP else observations[1]
    assert final.tolist() == [first[1, 0], 1]
    assert rewards.tolist() == [1.0, 0.0, 1.0]
    assert terminated.tolist() == [False] * 3
    assert truncated.tolist() == [False, True, False]
    told = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert told["_fault"].tolist() == [False, True, False]
    assert told["ending"][1] == "infra_error"
    assert not told["reward_valid"][1]
    assert observations[[0, 2]].tolist() == [[first[0, 0], 2], [first[2, 0], 2]]
    if mode is AutoresetMode.DISABLED:
        observations, _ = envs.reset(options={"reset_mask": truncated})
    elif mode is AutoresetMode.NEXT_STEP:
        observations, rewards, *_ = envs.step([STEP] * 3)
        assert rewards.tolist() == [1.0, 0.0, 1.0]
    assert observations[1, 1] == 0
    observations, rewards, *_ = envs.step([STEP] * 3)
    assert observations[1, 1] == 1
    assert rewards.tolist() == [1.0] * 3
    envs.close()


def test_the_successor_of_a_broken_environment_goes_on_the_same_in_every_run() -> None:
    seen = []
    for _ in range(2):
        envs = odd(AutoresetMode.SAME_STEP)
        envs.reset(seed=0)
        seen.append(
            [envs.step([STEP, RAISE, STEP])[0][1, 0], envs.step([STEP, RAISE, STEP])[0][1, 0], envs.step([STEP, END, STEP])[0][1, 0]]
        )
        envs.close()
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 3


@pytest.mark.parametrize("mode", MODES)
def test_an_environment_that_cannot_be_reset_stays_truncated_until_it_can(mode: AutoresetMode) -> None:
    envs = odd(mode)
    envs.reset(seed=0)
    envs.step([STEP, BREAK, STEP])
    truncations, observations = [], np.zeros((3, 2))
    for _ in range(3):
        if mode is AutoresetMode.DISABLED and (over := envs._lockstep.needs_reset).any():
            envs.reset(options={"reset_mask": over})
        observations, rewards, _, truncated, infos = envs.step([STEP] * 3)
        truncations.append(bool(truncated[1]))
        assert rewards[[0, 2]].tolist() == [1.0, 1.0]
        assert not truncated[[0, 2]].any()
        if truncated[1]:
            told = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
            assert "planted in reset" in told["fault"][1]
    assert truncations[-1] is False
    assert observations[0, 1] == 4
    envs.close()


def broken() -> gymnasium.Env[Any, Any]:
    raise OSError("planted in the constructor")


@pytest.mark.parametrize("mode", MODES)
def test_an_environment_that_never_comes_up_does_not_stop_the_others(mode: AutoresetMode) -> None:
    envs = AgentVectorEnv([Oddity, broken, Oddity], 3, autoreset_mode=mode, max_restarts=1)
    observations, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert "planted in the constructor" in infos["fault"][1]
    for steps in (1, 2):
        observations, rewards, _, truncated, _ = envs.step([STEP] * 3)
        assert observations[[0, 2], 1].tolist() == [steps] * 2
        assert rewards.tolist() == [1.0, 0.0, 1.0]
        assert truncated.tolist() == [False, True, False]
    envs.close()


def test_when_no_environment_at_all_can_be_reset_that_is_said() -> None:
    envs = odd()
    Oddity.resets_to_fail = 1000
    with pytest.raises(InfrastructureError, match="planted in reset"):
        envs.reset()
    envs.close()


def test_infos_can_be_had_as_a_list() -> None:
    envs = DictInfoToList(odd())
    _, infos = envs.reset(seed=0)
    assert [info["steps"] for info in infos] == [0, 0, 0]
    *_, infos = envs.step(np.array([STEP, CUT, STEP]))
    assert [info["steps"] for info in infos] == [1, 1, 1]
    envs.close()
