"""What a worker does, in whatever kind of place it runs: makes an environment and answers asks about it."""

import copy
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from agent_gym.errors import ConfigurationError, InfrastructureError, StateLeakError
from agent_gym.runner.messages import Answer, Ask

__all__ = ["Factory", "Worker", "interrupt"]

Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Factory:
    """Makes the environment; picklable if what it holds is.

    Attributes:
        env: An id for ``gymnasium.make``, a spec, or a function that returns an environment.
        keywords: Keywords for it.
    """

    env: str | EnvSpec | Callable[..., Env]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, env: str | EnvSpec | Callable[..., Env], keywords: Mapping[str, Any] | None = None) -> "Factory":
        """A factory; an id that is registered here becomes its spec, since it may not be registered where the worker is."""
        known = gymnasium.registry.get(env, env) if isinstance(env, str) else env
        return cls(known, dict(keywords or {}))

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules that it needs, worth importing once for all workers: that of the function, or of an environment of ours."""
        env: Any = self.env
        if isinstance(env, str):
            env = gymnasium.registry.get(env.removeprefix("agent_gym:"))
        if isinstance(env, EnvSpec):
            module = str(env.kwargs.get("env", "")).partition(":")[0]
            return ("agent_gym.factory", module) if module.startswith("agent_gym.") else ()
        module = getattr(env, "__module__", None) or "__main__"
        return () if module == "__main__" else (module,)

    def __call__(self) -> Env:
        """A new environment.

        Raises:
            ConfigurationError: The function returned something else.
            Exception: Whatever the constructor raises.
        """
        if isinstance(self.env, str | EnvSpec):  # Gymnasium's checker is for those who write environments, and costs at each step
            return gymnasium.make(self.env, **{"disable_env_checker": True, **self.keywords})
        made: Any = self.env(**self.keywords)
        if not isinstance(made, gymnasium.Env):
            raise ConfigurationError(f"env must make a gymnasium.Env; it returned {type(made).__name__}")
        return made


class Worker:
    """Holds one environment and answers asks, one after another; nothing but the end of its thread or process stops it.

    Args:
        slot: The slot.
        own: Makes a copy of what the environment hands out, or not: an environment may fill the same array again at its next step,
            and where no pickle lies between, who holds the old observation would see it change.
        before_reset: Called with the seed of each reset that has one.
    """

    def __init__(
        self, slot: int, own: Callable[[Any], Any] = lambda value: value, before_reset: Callable[[int], None] | None = None
    ) -> None:
        self.slot = slot
        self.env: Env | None = None
        self.closed = False
        self._own, self._before_reset = own, before_reset
        self._masks: Callable[[], Any] | None = None
        self._note: Callable[..., Any] | None = None

    def handle(self, ask: Ask) -> Answer:
        """Does what is asked. Whatever the environment raises becomes the answer's ``error``."""
        start = time.perf_counter()
        value, error, fatal = None, "", False
        try:
            value = getattr(self, f"_{ask.kind}")(ask.payload)
        except BaseException as raised:  # noqa: BLE001 - an environment may raise anything, and all of it goes to the pool
            error = "".join(traceback.format_exception(raised))
            fatal = isinstance(raised, StateLeakError)
            value = raised if ask.kind == "call" else None
        return Answer(ask.id, self.slot, ask.kind, value, error, fatal, time.perf_counter() - start)

    def _make(self, factory: Callable[[], Env]) -> dict[str, Any]:
        env = self.env = factory()
        self._masks = env.get_wrapper_attr("action_masks") if env.has_wrapper_attr("action_masks") else None
        self._note = env.get_wrapper_attr("note") if env.has_wrapper_attr("note") else None
        known = {
            "observation_space": env.observation_space,
            "action_space": env.action_space,
            "spec": env.spec,
            "metadata": env.metadata,
            "render_mode": env.render_mode,
        }
        return copy.deepcopy(known)  # a space carries its generator: the user's is not the environment's

    def _reset(self, payload: tuple[int | None, dict[str, Any] | None]) -> tuple[Any, dict[str, Any], Any]:
        seed, options = payload
        if seed is not None and self._before_reset is not None:
            self._before_reset(seed)
        observation, info = self._made.reset(seed=seed, options=options)
        return self._own(observation), self._own(_dict(info)), self._mask()

    def _step(self, payload: tuple[Any, Mapping[str, Any] | None]) -> tuple[Any, float, bool, bool, dict[str, Any], Any]:
        action, notes = payload
        if notes and self._note is not None:
            self._note(**notes)
        observation, reward, terminated, truncated, info = self._made.step(action)
        done = bool(terminated) or bool(truncated)
        mask = None if done else self._mask()
        return self._own(observation), float(reward), bool(terminated), bool(truncated), self._own(_dict(info)), mask

    def _call(self, payload: tuple[str | Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> Any:
        name, args, keywords = payload
        if not isinstance(name, str):
            return self._own(name(self._made, *args, **keywords))
        found = self._made.get_wrapper_attr(name)
        return self._own(found(*args, **keywords) if callable(found) else found)

    def _close(self, _: Any) -> None:
        self.closed = True
        if self.env is not None:
            self.env.close()

    @property
    def _made(self) -> Env:
        if self.env is None:
            raise InfrastructureError("this worker has no environment: its constructor failed")
        return self.env

    def _mask(self) -> Any:
        return None if self._masks is None else np.array(self._masks(), dtype=np.bool_)


def _dict(info: Any) -> dict[str, Any]:
    if not isinstance(info, dict):
        raise TypeError(f"an environment's info must be a dict, got {info!r}")
    return info


def interrupt(env: Env) -> None:
    """Asks an environment that hangs to stop, from another thread: its own ``interrupt``, or that of its session, where there is one."""
    if env.has_wrapper_attr("interrupt"):
        env.get_wrapper_attr("interrupt")()
        return
    base: Any = env.unwrapped
    base = base.rich.unwrapped if hasattr(base, "rich") else base  # beneath an interface
    if hasattr(base, "session"):
        base.session.interrupt()
