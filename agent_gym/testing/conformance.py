"""The conformance suite: what every environment of this package holds, as checks that anyone can run on their own.

::

    from agent_gym.testing import CHECKS, Maker

    @pytest.mark.parametrize("check", CHECKS)
    def test_conformance(check):
        CHECKS[check](Maker("agent_gym:AgentBase/ToolTask-v0", interface="text"))

A check raises `ConformanceError` (or the error of the checker it runs) and says what differs. It closes what it made.
"""

import json
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from agent_gym.core.difference import difference
from agent_gym.runner.adapters import AgentVectorEnv
from agent_gym.runner.adapters.lockstep import batch

__all__ = ["CHECKS", "ConformanceError", "Maker", "Step", "rollout"]

_SEED = 7
_STEPS = 24


class ConformanceError(AssertionError):
    """An environment does not hold what is promised of it."""


@dataclass(frozen=True)
class Maker:
    """Makes the environment under test; picklable, so that worker processes can make it too.

    Attributes:
        id: The id for ``gymnasium.make``, with ``module:`` in front where its module is not imported.
        keywords: Keywords for it.
    """

    id: str
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **more: Any) -> gym.Env[Any, Any]:
        """An environment."""
        return gym.make(self.id, **{"disable_env_checker": True, **self.keywords, **more})


@dataclass(frozen=True)
class Step:
    """One step of a rollout; the reset is the first."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    _FIELDS: ClassVar[tuple[str, ...]] = ("observation", "reward", "terminated", "truncated", "info")

    def difference(self, other: "Step") -> str:
        """Where two steps differ first, or empty."""
        return next((where for name in self._FIELDS if (where := _difference(getattr(self, name), getattr(other, name), name))), "")


def rollout(env: gym.Env[Any, Any], steps: int = _STEPS, seed: int | None = _SEED) -> Iterator[Step]:
    """Plays sampled actions, resetting after every end.

    Args:
        env: The environment.
        steps: Steps, resets not counted.
        seed: Seed of the first reset and of the actions; None goes on without a reset.
    """
    if seed is not None:
        env.action_space.seed(seed)
        observation, info = env.reset(seed=seed)
        yield Step(observation, 0.0, False, False, info)
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(_sample(env))
        yield Step(observation, float(reward), terminated, truncated, info)
        if terminated or truncated:
            observation, info = env.reset()
            yield Step(observation, 0.0, False, False, info)


def check_gymnasium(make: Maker) -> None:
    """Gymnasium's own checker, every warning an error."""
    with closing(make()) as env, warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def check_stable_baselines3(make: Maker) -> None:
    """Stable-Baselines3's checker, every warning an error; for environments with arrays only."""
    from stable_baselines3.common.env_checker import check_env as sb3_check_env

    with closing(make()) as env, warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_check_env(env.unwrapped, warn=True)


def check_determinism(make: Maker) -> None:
    """Equal seeds and actions give equal observations, rewards, endings and infos, in a used environment as in a new one."""
    with closing(make()) as one, closing(make()) as other:
        first = list(rollout(one))
        _expect_equal(first, list(rollout(other)), "a second instance")
        _expect_equal(first, list(rollout(one)), "the same instance, used")


def check_seeds_matter(make: Maker) -> None:
    """Different seeds give different episodes."""
    with closing(make()) as env:
        first = [env.reset(seed=seed)[1]["task_id"] for seed in range(20)]
        if len(set(first)) < 2:
            raise ConformanceError(f"twenty seeds, one task: {first[0]!r}")


def check_spaces(make: Maker) -> None:
    """Every observation lies in its space, every sampled action too."""
    with closing(make()) as env:
        for number, step in enumerate(rollout(env)):
            if not env.observation_space.contains(step.observation):
                raise ConformanceError(f"step {number}: the observation is outside {env.observation_space}")
        if not all(env.action_space.contains(env.action_space.sample()) for _ in range(50)):
            raise ConformanceError(f"{env.action_space} does not contain its own samples")


def check_state(make: Maker) -> None:
    """``get_state → 5 steps → set_state → the same 5 steps`` gives the same; the state survives JSON and a fresh instance."""
    with closing(make()) as env, closing(make()) as fresh:
        list(rollout(env, steps=3))
        state = json.loads(json.dumps(env.get_wrapper_attr("get_state")()))
        actions = [_sample(env) for _ in range(5)]
        after = _play(env, actions)
        env.get_wrapper_attr("set_state")(state)
        _expect_equal(after, _play(env, actions), "after set_state")
        fresh.reset(seed=_SEED + 1)
        fresh.get_wrapper_attr("set_state")(state)
        _expect_equal(after, _play(fresh, actions), "after set_state in another instance")


def check_pickle(make: Maker) -> None:
    """A pickled copy goes on as the original does."""
    with closing(make()) as env:
        list(rollout(env, steps=3))
        with closing(pickle.loads(pickle.dumps(env))) as copy:
            actions = [_sample(env) for _ in range(5)]
            _expect_equal(_play(env, actions), _play(copy, actions), "the pickled copy")


def check_spec(make: Maker) -> None:
    """The spec survives JSON, and what it makes plays the same."""
    with closing(make()) as env:
        if env.spec is None:
            raise ConformanceError("the environment has no spec")
        spec = EnvSpec.from_json(env.spec.to_json())
        with closing(gym.make(spec)) as again:
            _expect_equal(list(rollout(env)), list(rollout(again)), "made from its spec")


def check_close(make: Maker) -> None:
    """Closing twice is fine, before a reset as after one."""
    unused, used = make(), make()
    used.reset(seed=_SEED)
    for env in (unused, unused, used, used):
        env.close()


def check_misuse(make: Maker) -> None:
    """A step without a reset, and one after the end, raises ``gymnasium.error.ResetNeeded``."""
    with closing(make()) as env:
        _expect_reset_needed(env, "before any reset")
        env.reset(seed=_SEED)
        for _ in range(10_000):
            _, _, terminated, truncated, _ = env.step(_sample(env))
            if terminated or truncated:
                return _expect_reset_needed(env, "after the end")
        raise ConformanceError("an episode did not end within 10,000 steps")


def check_sync_vector(make: Maker) -> None:
    """`SyncVectorEnv` gives what single environments give."""
    _check_vector(make, SyncVectorEnv([make, make], autoreset_mode=AutoresetMode.NEXT_STEP))


def _async(context: Literal["fork", "spawn"], shared_memory: bool) -> Callable[[Maker], None]:
    def check(make: Maker) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
            _check_vector(make, AsyncVectorEnv([make, make], shared_memory=shared_memory, context=context))

    check.__doc__ = f"`AsyncVectorEnv` ({context}, shared memory {'on' if shared_memory else 'off'}) gives what single environments give."
    return check


def _agent_vector(backend: str) -> Callable[[Maker], None]:
    def check(make: Maker) -> None:
        _check_vector(make, AgentVectorEnv(make, 2, backend=backend))

    check.__doc__ = f"`AgentVectorEnv` on the {backend} backend gives what single environments give."
    return check


def _agent_vec_env(backend: str) -> Callable[[Maker], None]:
    def check(make: Maker) -> None:
        from agent_gym.runner.adapters import AgentVecEnv

        _check_vec_env(make, AgentVecEnv([make, make], backend=backend))

    check.__doc__ = f"`AgentVecEnv` on the {backend} backend gives Stable-Baselines3 what single environments give."
    return check


def _check_vector(make: Maker, vector: VectorEnv[Any, Any, Any]) -> None:
    """Compares a vector environment that resets at the next step with environments that are stepped by hand."""
    with closing(vector), closing(make()) as one, closing(make()) as other:
        singles = (one, other)
        observations, _ = vector.reset(seed=[_SEED, _SEED + 1])  # type: ignore[arg-type]
        done, ended = [False, False], 0
        for i, env in enumerate(singles):
            env.action_space.seed(_SEED + i)
            _expect_same(_alone(env, env.reset(seed=_SEED + i)[0]), _row(observations, i), f"reset of slot {i}")
        for number in range(_STEPS):
            actions = [_sample(env) for env in singles]
            batch = np.array(actions) if isinstance(one.action_space, gym.spaces.Discrete) else tuple(actions)
            observations, rewards, terminated, truncated, _ = vector.step(batch)
            for i, env in enumerate(singles):
                where = f"step {number} of slot {i}"
                if done[i]:
                    expected, values = env.reset()[0], (0.0, False, False)
                else:
                    expected, reward, *ends, _ = env.step(actions[i])
                    values = (float(reward), *ends)  # type: ignore[assignment]
                _expect_same(_alone(env, expected), _row(observations, i), where)
                _expect_same(list(values), [float(rewards[i]), bool(terminated[i]), bool(truncated[i])], where)
                done[i] = values[1] or values[2]
                ended += done[i]
        _expect_ends(ended)


def _check_vec_env(make: Maker, vector: Any) -> None:
    """The same for Stable-Baselines3's kind of vector environment, which resets at once."""
    with closing(vector), closing(make()) as one, closing(make()) as other:
        singles = (one, other)
        vector.seed(_SEED)  # slot i gets the seed + i
        observations = vector.reset()
        for i, env in enumerate(singles):
            env.action_space.seed(_SEED + i)
            expected, info = env.reset(seed=_SEED + i)
            _expect_same([_alone(env, expected), info], [_row(observations, i), vector.reset_infos[i]], f"reset of slot {i}")
        ends = 0
        for number in range(_STEPS):
            if vector.has_attr("action_masks"):
                masks = [env.get_wrapper_attr("action_masks")() for env in singles]
                _expect_same(masks, vector.env_method("action_masks"), f"masks before step {number}")
            actions = [_sample(env) for env in singles]
            observations, rewards, dones, infos = vector.step(actions)
            for i, env in enumerate(singles):
                expected, reward, terminated, truncated, info = env.step(actions[i])
                info = {**info, "TimeLimit.truncated": truncated and not terminated}
                if terminated or truncated:
                    info["terminal_observation"] = expected
                    expected = env.reset()[0]
                values = [_alone(env, expected), float(np.float32(reward)), terminated or truncated, info]
                got = [_row(observations, i), float(rewards[i]), bool(dones[i]), infos[i]]
                _expect_same(values, got, f"step {number} of slot {i}")
                ends += terminated or truncated
        _expect_ends(ends)


CHECKS: dict[str, Callable[[Maker], None]] = {
    "gymnasium": check_gymnasium,
    "stable_baselines3": check_stable_baselines3,
    "determinism": check_determinism,
    "seeds_matter": check_seeds_matter,
    "spaces": check_spaces,
    "state": check_state,
    "pickle": check_pickle,
    "spec": check_spec,
    "close": check_close,
    "misuse": check_misuse,
    "sync_vector": check_sync_vector,
    "async_vector_fork_shared": _async("fork", True),
    "async_vector_fork": _async("fork", False),
    "async_vector_spawn_shared": _async("spawn", True),
    "async_vector_spawn": _async("spawn", False),
    "agent_vector_thread": _agent_vector("thread"),
    "agent_vector_process": _agent_vector("process"),
    "agent_vec_env_thread": _agent_vec_env("thread"),
    "agent_vec_env_process": _agent_vec_env("process"),
}
"""Every check by name. ``stable_baselines3`` is for environments with array observations."""


def _sample(env: gym.Env[Any, Any]) -> Any:
    """A sampled action; one that is not masked out, where the environment has masks."""
    if env.has_wrapper_attr("action_masks"):
        return env.action_space.sample(mask=env.get_wrapper_attr("action_masks")().astype(np.int8))
    return env.action_space.sample()


def _play(env: gym.Env[Any, Any], actions: list[Any]) -> list[Step]:
    steps = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        steps.append(Step(observation, float(reward), terminated, truncated, info))
        if terminated or truncated:
            observation, info = env.reset()
            steps.append(Step(observation, 0.0, False, False, info))
    return steps


def _row(batch: Any, index: int) -> Any:
    return {name: _row(part, index) for name, part in batch.items()} if isinstance(batch, dict) else batch[index]


def _alone(env: gym.Env[Any, Any], observation: Any) -> Any:
    """An observation as it comes out of a batch: a number of a ``Discrete`` space is NumPy's there."""
    return _row(batch(env.observation_space, [observation]), 0)


def _expect_reset_needed(env: gym.Env[Any, Any], when: str) -> None:
    try:
        env.step(env.action_space.sample())
    except gym.error.ResetNeeded:
        return
    raise ConformanceError(f"step() {when} did not raise ResetNeeded")


def _expect_equal(expected: list[Step], got: list[Step], who: str) -> None:
    if len(expected) != len(got):
        raise ConformanceError(f"{who}: {len(got)} steps instead of {len(expected)}")
    for number, (one, other) in enumerate(zip(expected, got, strict=True)):
        if where := one.difference(other):
            raise ConformanceError(f"{who}: step {number} differs at {where}")


def _expect_ends(ends: int) -> None:
    if not ends:
        raise ConformanceError(f"no episode ended within {_STEPS} steps: what follows an end was not checked; give a shorter limit")


def _expect_same(expected: Any, got: Any, where: str) -> None:
    if difference := _difference(expected, got, "value"):
        raise ConformanceError(f"{where}: differs at {difference}")


def _difference(one: Any, other: Any, path: str) -> str:
    found = difference(one, other, path)
    return "" if found is None else f"{found.where} ({found.one!r} and {found.other!r})"
