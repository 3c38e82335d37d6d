"""A limit on the wall-clock time of a step, which holds whatever the step does."""

import copy
import functools
import threading
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.agent_env import AgentEnv
from agent_gym.core.verdict import Ending
from agent_gym.errors import ConfigurationError, ResetNeeded
from agent_gym.gateway.worker import Abandoned, Interrupted, Worker
from agent_gym.wrappers.reward_wrapper import agent_env
from agent_gym.wrappers.rich import UNSEEN, Result, check_order

__all__ = ["StepDeadline"]


class StepDeadline(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Ends an episode as ``deadline``, truncated and no success, when a step takes too long.

    Steps run on a thread. One that is late is interrupted; it may still show what it has. One that does not stop even then is left
    alone on its thread: the episode ends with what was shown before it, and the next reset has an environment that it cannot touch.
    It works around any environment that offers ``interrupt()``, which is called from another thread than ``step``.

    Args:
        env: An environment of this package, or one that offers ``interrupt`` and has a spec, from which it can be built anew.
        seconds: How long a step may take, above 0.
        grace: Seconds that it then has to stop.

    Raises:
        ConfigurationError: The environment offers no ``interrupt``, or cannot be built anew; a number does not fit, or it stands in a
            wrong place.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], seconds: float, grace: float = 0.5) -> None:
        RecordConstructorArgs.__init__(self, seconds=seconds, grace=grace)
        super().__init__(env)
        if not all(isinstance(time, int | float) and 0 < time <= threading.TIMEOUT_MAX for time in (seconds, grace)):
            raise ConfigurationError(f"seconds and grace must be finite and above 0, got {seconds!r} and {grace!r}")
        check_order(env, type(self).__name__, UNSEEN)
        if not env.has_wrapper_attr("interrupt"):
            raise ConfigurationError(f"StepDeadline needs an environment with interrupt(); {type(env.unwrapped).__name__} has none")
        if self._inner is None and env.spec is None:
            raise ConfigurationError(f"StepDeadline needs {type(env.unwrapped).__name__} made by gymnasium.make, to build it anew")
        self._seconds, self._grace = seconds, grace
        self._interrupt = env.get_wrapper_attr("interrupt")
        self._why = f"a step took longer than {seconds:g} s"
        self._worker = Worker()
        self._shown: tuple[Any, dict[str, Any]] = (None, {})

    @property
    def _inner(self) -> AgentEnv | None:
        return agent_env(self.env)  # found anew, since a copy of this has another

    def observation(self, observation: Any) -> Any:
        """The same; an interface calls this after `set_state`, and no step hangs in the state that it went to."""
        self._free()
        self._shown = observation, {}
        return observation

    def set_state(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Goes back to a state of ``get_state``, where this is around an interface; gives the observation and info there."""
        observation, info = self.env.get_wrapper_attr("set_state")(state)
        return self.observation(observation), info

    def _free(self) -> None:
        if self._worker.abandoned:
            self._worker = Worker()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment; one in which a step still hangs is built anew."""
        if self._worker.abandoned:
            self._free()
            if self._inner is None:  # ours has a new session at every reset, and drops the step that hangs
                assert self.env.spec is not None
                hanging, self.env = self.env, gymnasium.make(self.env.spec)
                self.env.unwrapped.np_random = hanging.unwrapped.np_random
                self._interrupt = self.env.get_wrapper_attr("interrupt")
        self._shown = self.env.reset(seed=seed, options=options)
        return self._shown

    def step(self, action: Any) -> Result:
        """Steps the environment, for so long and no longer.

        Raises:
            ResetNeeded: A step hangs in it.
        """
        if self._worker.abandoned:
            raise ResetNeeded("a step hung; call reset()")
        try:
            step = functools.partial(self.env.step, action)
            result: Result = self._worker.run(step, self._seconds, self._interrupt, self._grace)
        except Interrupted as late:
            result = self._overdue(action, late.value)
        except Abandoned:
            result = self._overdue(action, None)
        self._shown = result[0], result[4]
        return result

    def _overdue(self, action: Any, result: Result | None) -> Result:
        """What a step gives that was late; ``result`` is what it gave itself, None if it did not."""
        inner = self._inner
        if result is None:
            observation, info = copy.deepcopy(self._shown)
            ended = inner.abandon(action, self._why) if inner is not None else {}
            return observation, 0.0, False, True, info | _ENDING | ended
        observation, reward, terminated, truncated, info = result
        if terminated or truncated:
            return result
        if inner is not None:
            inner.conclude(Ending.DEADLINE, self._why)
        return observation, reward, False, True, info | _ENDING

    def close(self) -> None:
        """Closes the environment, unless a step still hangs in it; closing twice is fine."""
        hangs = self._worker.abandoned and self._inner is None
        self._worker.close()
        if not hangs:
            super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_worker"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._worker = Worker()


_ENDING = {"ending": Ending.DEADLINE.value, "success": False, "is_success": False}
