"""Watches that every episode starts clean, by comparing it with one that a brand-new environment starts."""

from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.agent_env import AgentEnv
from agent_gym.errors import ConfigurationError, StateLeak
from agent_gym.interface import Interface

__all__ = ["CleanStart"]


class CleanStart(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Stops a run in which a reset has left something behind, so that no policy learns the leftovers.

    Every so many resets it builds fresh instances of the environment, starts the same episode in each, and compares what the running
    one shows: the first observation, the state's digest, and the session's probes. For the last of them every cache is emptied first.
    In a pool the error is no fault to recover from: `recv` raises it.

    Args:
        env: An environment of this package with an interface, or wrappers around one.
        every: Resets between two comparisons, from 1.
        instances: Fresh instances in a comparison, from 1.

    Raises:
        ConfigurationError: The environment is none of this package's, or a number does not fit.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], every: int = 500, instances: int = 3) -> None:
        RecordConstructorArgs.__init__(self, every=every, instances=instances)
        super().__init__(env)
        if not isinstance(env.unwrapped, Interface):
            raise ConfigurationError(f"CleanStart goes around an environment of agent_gym, not {type(env.unwrapped).__name__}")
        if every < 1 or instances < 1:
            raise ConfigurationError(f"every and instances must be at least 1, got {every} and {instances}")
        self._every, self._instances = every, instances
        self._resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment, and compares when it is time.

        Raises:
            StateLeak: The episode does not start as it does in a fresh instance; says of which task, and what differs.
        """
        result = super().reset(seed=seed, options=options)
        self._resets += 1
        if self._resets % self._every == 0:
            self._compare()
        return result

    def _compare(self) -> None:
        interface = self.env.unwrapped
        assert isinstance(interface, Interface)
        if interface.rebuild is None:
            raise ConfigurationError("CleanStart needs an environment that gymnasium.make has made")
        running = _rich(interface)
        start = {**running.get_state(), "kind": "prefix", "calls": []}
        seen = _shown(running)
        for number in range(self._instances):
            fresh = interface.rebuild()
            try:
                other = _rich(fresh)
                if number == self._instances - 1:
                    other.clear_caches()
                other.set_state(start)
                difference = _difference(_shown(other), seen)
            finally:
                fresh.close()
            if difference:
                raise StateLeak(f"task {running.task.id!r}, after {self._resets} resets: {difference}")


def _rich(interface: Interface) -> AgentEnv:
    env = interface.rich.unwrapped
    assert isinstance(env, AgentEnv)
    return env


def _shown(env: AgentEnv) -> dict[str, Any]:
    record = env.last_record
    return {
        "observation": {"text": record.observation.text, "data": record.observation.data},
        "digest": record.digest,
        "probes": env.session.probes(),
    }


def _difference(fresh: Any, used: Any, where: str = "") -> str:
    """Where two JSON values differ first, and how; empty if they do not."""
    if isinstance(fresh, Mapping) and isinstance(used, Mapping):
        for key in {**fresh, **used}:
            if found := _difference(fresh.get(key), used.get(key), f"{where}.{key}" if where else str(key)):
                return found
        return ""
    if type(fresh) is type(used) and fresh == used:
        return ""
    if isinstance(fresh, str) and isinstance(used, str):
        lines = zip([*fresh.splitlines(), ""], [*used.splitlines(), ""], strict=False)
        fresh, used = next((pair for pair in lines if pair[0] != pair[1]), (fresh, used))
    return f"{where} is {str(used)[:200]!r}, in a fresh instance {str(fresh)[:200]!r}"
