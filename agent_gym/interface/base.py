"""What both interfaces share: an environment of its own around the rich one, whose extras stay reachable."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

from agent_gym.agent_env import AgentEnv
from agent_gym.core.action import ToolCall
from agent_gym.core.observation import Observation
from agent_gym.core.record import StepRecord
from agent_gym.core.task import Task, TaskSet
from agent_gym.core.tool import ToolSpec
from agent_gym.core.verdict import Ending
from agent_gym.errors import ConfigurationError

__all__ = ["Interface", "offering"]


class Interface(gymnasium.Env[Any, Any]):
    """An environment around ``wrappers(AgentEnv)``.

    It is no ``gymnasium.Wrapper``, so that ``check_env(gym.make(id).unwrapped)`` checks it and not something beneath it.

    Args:
        rich: The environment inside, an `AgentEnv` or wrappers around one.

    Attributes:
        rich: The same.
        rebuild: Set by the factory: makes an equal, fresh environment; lets an environment be pickled in mid-episode.
    """

    metadata: dict[str, Any] = AgentEnv.metadata

    def __init__(self, rich: gymnasium.Env[Any, Any]) -> None:
        if not isinstance(rich.unwrapped, AgentEnv):
            raise TypeError(f"an Interface goes around an AgentEnv, not {type(rich.unwrapped).__name__}")
        self.rich = rich
        self._records = offering(rich, "last_record")
        self.rebuild: Callable[[], Interface] | None = None
        self.render_mode = rich.render_mode

    @property
    def _inner(self) -> AgentEnv:
        env = self.rich.unwrapped
        assert isinstance(env, AgentEnv)
        return env

    def render(self) -> Any:
        """What the environment inside renders."""
        return self.rich.render()

    def close(self) -> None:
        """Closes the environment inside; closing twice is fine."""
        self.rich.close()
        super().close()

    @property
    def tasks(self) -> TaskSet:
        """The tasks that episodes are drawn from, of every split."""
        return self._inner.tasks

    @property
    def task(self) -> Task:
        """The episode's task."""
        return self._inner.task

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called in this episode."""
        return self._inner.tools

    @property
    def observation(self) -> Observation:
        """The newest rich observation."""
        return self._inner.observation

    @property
    def view(self) -> str:
        """The part of the observation's text that is neither the goal nor the last result; empty where there is none."""
        return self._inner.view

    @property
    def last_record(self) -> StepRecord:
        """All about the last step, with the reward as it is here."""
        record: StepRecord = self._records.last_record
        return record

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """What a perfect agent would do next, given the rich observations since the reset."""
        return self._inner.ask(observations)

    def careful_oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """The same for an agent whose tools can fail."""
        return self._inner.ask(observations, careful=True)

    @property
    def faulty(self) -> bool:
        """Whether tools fail on purpose."""
        return self._inner.faulty

    def interrupt(self) -> None:
        """Stops whatever a step on another thread is waiting for."""
        self._inner.interrupt()

    def get_state(self) -> dict[str, Any]:
        """The episode's state as JSON values, with what each wrapper inside keeps."""
        return {**self._inner.get_state(), "wrappers": [_kept(wrapper) for wrapper in self._wrappers()]}

    def set_state(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Goes back to a state of `get_state`; gives the observation and info there.

        Raises:
            ConfigurationError: It is no such state, or one of an environment with other wrappers.
        """
        wrappers, kept = list(self._wrappers()), state.get("wrappers", [])
        if len(wrappers) != len(kept):
            raise ConfigurationError(f"a state of an environment with {len(kept)} wrappers inside; there are {len(wrappers)}")
        for wrapper, value in zip(wrappers, kept, strict=True):
            if isinstance(wrapper, TimeLimit):
                wrapper._elapsed_steps = value
            elif value is not None:
                wrapper.load_state(value)
        observation, info = self._inner.set_state(state)
        for wrapper in reversed(wrappers):  # as reset and step show it: each wrapper in turn, from the inside
            if callable(getattr(type(wrapper), "observation", None)):
                observation = wrapper.observation(observation)
        record = self.last_record  # wrappers inside may reward otherwise
        info |= {"reward_parts": dict(record.reward_parts), "reward_valid": record.reward_valid, "gaps": list(record.gaps)}
        return observation, info

    def full_reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """`reset`, after every cache has been emptied."""
        self._inner.close()
        self._inner.clear_caches()
        return self.reset(seed=seed, options=options)

    @staticmethod
    def _with_ending(info: dict[str, Any], truncated: bool) -> dict[str, Any]:
        """The info; a truncation that a wrapper inside made, without an ending, counts as the step limit."""
        if truncated and not info["ending"]:
            info |= {"ending": "step_limit", "success": False, "is_success": False}
        return info

    def _wrappers(self) -> Iterator[Any]:
        """The wrappers inside, outermost first."""
        env = self.rich
        while isinstance(env, gymnasium.Wrapper):
            yield env
            env = env.env

    def __reduce__(self) -> tuple[Any, ...]:
        if self.rebuild is None:
            raise TypeError("only an environment made by gymnasium.make can be pickled")
        running = self._inner.running and self.last_record.ending is not Ending.INFRA_ERROR
        kept = {"spec": self.spec, "np_random": self._np_random, "np_random_seed": self._np_random_seed}
        return _restore, (self.rebuild, self.get_state() if running else None, kept)


def _restore(rebuild: Callable[[], Interface], state: Mapping[str, Any] | None, kept: Mapping[str, Any]) -> Interface:
    env = rebuild()
    env.spec = kept["spec"]
    env._np_random, env._np_random_seed = kept["np_random"], kept["np_random_seed"]
    if state is not None:
        env.set_state(state)
    return env


def _kept(wrapper: Any) -> Any:
    """What a wrapper keeps between steps: what it says itself, and what Gymnasium's own ``TimeLimit`` counts."""
    if isinstance(wrapper, TimeLimit):
        return wrapper._elapsed_steps
    return wrapper.save_state() if hasattr(type(wrapper), "save_state") else None


def offering(env: gymnasium.Env[Any, Any], name: str) -> Any:
    """The outermost wrapper or environment that offers something; finding it at every step would cost as much as using it."""
    while name not in dir(type(env)) and isinstance(env, gymnasium.Wrapper):
        env = env.env
    return env
