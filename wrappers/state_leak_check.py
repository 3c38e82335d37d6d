"""Watches that every episode starts clean, by comparing it with one that a brand-new environment starts."""

import copy
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from agent_gym.agent_env import AgentEnv
from agent_gym.core.difference import difference
from agent_gym.core.leftovers import Leak, Settings, changed, left_behind, modules_of, settings
from agent_gym.errors import ConfigurationError, StateLeakError, unknown
from agent_gym.interface import Interface

__all__ = ["StateLeakCheck"]

_MOST_ACTIONS, _MOST_S = 200, 5.0
"""Of the episode that is played again."""

Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class _Start:
    """Starts an episode that has started in one instance in another, and gives the first observation.

    Attributes:
        state: Its state, of an environment of this package.
        numbers: Of any other, its generator as it was before that.
        seed: What it was reset with.
        options: What it was reset with.
    """

    state: Mapping[str, Any] | None
    numbers: np.random.Generator | None
    seed: int | None
    options: dict[str, Any] | None

    def __call__(self, fresh: Env) -> Any:
        if self.state is not None:
            return fresh.unwrapped.set_state(self.state)[0]  # type: ignore[attr-defined]
        fresh.unwrapped.np_random = copy.deepcopy(self.numbers)  # type: ignore[assignment]
        return fresh.reset(seed=self.seed, options=self.options)[0]


class StateLeakCheck(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Stops a run in which a reset has left something behind, so that no policy learns the leftovers.

    Every so many resets it builds fresh instances of the environment, starts the same episode in each, and compares what the running
    one shows. For an environment of this package that is what its session has changed and its probes, the first observation and the
    state's digest, once more after every cache has been emptied (what shows only then is named ``caches.…``); for any other it is the
    first observation.

    Then the last instance plays the episode before this one several times over, with the actions that were taken in it, to see what stays
    in the process: ``fds``, ``threads``, ``children``, ``temp`` (files), ``globals.…`` (variables of modules and classes of the
    environment's packages), ``env.…``, ``cwd``, ``locale``, ``signals.…``, ``random`` and ``numpy.random``. What others do there
    meanwhile is not blamed on it; see `agent_gym.core.leftovers`. What is set once and for all is seen in the first reset and in those
    that are compared, not in steps.

    In a pool the error is no fault to recover from: `recv` raises it.

    Args:
        env: An environment that can be built again: one of this package, or one that `gymnasium.make` has made.
        every: Resets between two comparisons, from 1.
        sample: Fresh instances in a comparison, from 1.
        on_leak: ``"raise"``, or ``"record"``: in the reset's ``info["leaks"]``, as objects with ``channel``, ``value`` and ``fresh``.

    Raises:
        ConfigurationError: The environment cannot be built again, or an argument does not fit.
    """

    def __init__(self, env: Env, every: int = 500, sample: int = 3, on_leak: Literal["raise", "record"] = "raise") -> None:
        RecordConstructorArgs.__init__(self, every=every, sample=sample, on_leak=on_leak)
        super().__init__(env)
        if not all(isinstance(number, int) and number >= 1 for number in (every, sample)):
            raise ConfigurationError(f"every and sample must be at least 1, got {every!r} and {sample!r}")
        if on_leak not in ("raise", "record"):
            raise unknown("on_leak", on_leak, ["raise", "record"])
        if not _ours(env) and env.spec is None:
            raise ConfigurationError(
                f"StateLeakCheck needs an environment that can be built again; make {type(env.unwrapped).__name__} with gymnasium.make"
            )
        self._every, self._sample, self._on_leak = every, sample, on_leak
        self._resets = 0
        self._suspects: Settings = {}
        self._start: _Start | None = None  # of the episode that is played again, and what was done in it
        self._actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment, and compares when it is time.

        Raises:
            StateLeakError: The episode does not start as it does in a fresh instance, or something of it stays in the process; says of
                which task, where, and what.
        """
        self._resets += 1
        due, kept = self._resets % self._every == 0, (self._resets + 1) % self._every == 0
        if not (due or kept or self._resets == 1):
            self._start = None
            return super().reset(seed=seed, options=options)
        before, numbers = settings(), None if _ours(self.env) else copy.deepcopy(self.unwrapped.np_random)
        observation, info = super().reset(seed=seed, options=options)
        self._suspects |= {key: value for key, value in changed(before, settings()).items() if key not in self._suspects}
        base = self.unwrapped
        state = {**base.get_state(), "kind": "prefix", "calls": []} if isinstance(base, Interface | AgentEnv) else None
        start = _Start(state, numbers, seed, options)
        leaks = self._leaks(start, observation) if due else []
        self._start, self._actions = start if kept else None, []
        if leaks and self._on_leak == "raise":
            task = f"task {info['task_id']!r}, " if "task_id" in info else ""
            raise StateLeakError(f"{task}after {self._resets} resets: {'; '.join(map(str, leaks))}", leaks)
        return observation, {**info, "leaks": [leak._asdict() for leak in leaks]} if leaks else info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment."""
        if self._start is not None and len(self._actions) < _MOST_ACTIONS:
            self._actions.append(copy.deepcopy(action))
        return self.env.step(action)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_suspects": {}}  # they are about this process

    def _leaks(self, start: _Start, observation: Any) -> list[Leak]:
        used = _shown(self.unwrapped, observation)
        for number in range(self._sample):
            fresh = self._build()
            try:
                leaks = list(_differences(_shown(fresh.unwrapped, start(fresh)), used))
                if not leaks and number == self._sample - 1:
                    if (inner := _ours(fresh)) is not None:
                        inner.close()
                        inner.clear_caches()
                        emptied = _differences(_shown(fresh.unwrapped, start(fresh)), used)
                        leaks = [leak._replace(channel=f"caches.{leak.channel}") for leak in emptied]
                    leaks += self._left_behind(fresh, self._start or start)
            finally:
                fresh.close()
            if leaks:
                return leaks
        return []

    def _left_behind(self, fresh: Env, start: _Start) -> list[Leak]:
        """What stays in the process of an episode that a fresh instance plays several times."""

        def episode() -> None:
            start(fresh)
            end = time.monotonic() + _MOST_S
            for action in self._actions:
                _, _, terminated, truncated, _ = fresh.step(action)
                if terminated or truncated or time.monotonic() > end:
                    break

        inner = _ours(fresh)
        kinds = [type(fresh.unwrapped)] if inner is None else [type(inner), type(inner.session)]
        suspects, self._suspects = self._suspects, {}
        return left_behind(episode, suspects, modules_of(kinds))

    def _build(self) -> Env:
        base = self.unwrapped
        if not isinstance(base, Interface | AgentEnv):
            assert self.env.spec is not None
            return gymnasium.make(self.env.spec)
        if base.rebuild is None:
            raise ConfigurationError("StateLeakCheck needs an environment that gymnasium.make has made")
        return base.rebuild() if isinstance(base, Interface) else base.renewed()


def _ours(env: Env) -> AgentEnv | None:
    """The environment of this package that is inside, if there is one."""
    base = env.unwrapped
    inner = base.rich.unwrapped if isinstance(base, Interface) else base
    return inner if isinstance(inner, AgentEnv) else None


def _shown(base: Env, observation: Any) -> dict[str, Any]:
    env = _ours(base)
    if env is None:
        return {"observation": observation}
    record, session = env.last_record, env.session
    return {
        "changes": {f"{change.where}/{change.key}": asdict(change) for change in session.changes()},
        "probes": {name: value for name, value in session.probes().items() if name != "digest"},
        "observation": {"text": record.observation.text, "data": record.observation.data},
        "digest": record.digest,
    }


def _differences(fresh: Mapping[str, Any], used: Mapping[str, Any]) -> Iterator[Leak]:
    """Where what a fresh instance and a used one show differs: the first place in each channel."""
    for name, one in fresh.items():
        other = used[name]
        parts = {f"{name}.{key}": (one.get(key), other.get(key)) for key in {**one, **other}} if name == "probes" else {name: (one, other)}
        for channel, values in parts.items():
            if found := difference(*values, channel):
                yield Leak(found.where, found.other, found.one)
