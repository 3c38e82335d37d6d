"""Runs many environments at once, each at its own pace: send actions to some, receive from those that are ready.

A slot is asked for one thing at a time and gives one row for it, whatever happens to its worker. ::

    with AsyncPool("agent_gym:AgentBase/ToolTask-v0", 64) as pool:
        pool.async_reset()
        while True:
            batch = pool.recv()
            done = [row.env_id for row in batch if row.done]
            going = [row for row in batch if not row.done]
            pool.async_reset(done)
            pool.send(policy(going), [row.env_id for row in going])
"""

import builtins
import operator
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.runner.backends import Backend, make_backend
from agent_gym.runner.episodes import Episodes, spread
from agent_gym.runner.messages import Batch, Usage
from agent_gym.runner.monitor import Meter, PoolStats
from agent_gym.runner.schedulers import Scheduler
from agent_gym.runner.supervision import Counters, Deadlines, Supervisor
from agent_gym.runner.tasks import TaskQueue, TaskReport
from agent_gym.runner.worker import Factory

__all__ = ["AsyncPool"]

_Env = str | EnvSpec | Callable[..., gymnasium.Env[Any, Any]]


class AsyncPool:
    """Many environments, stepped independently. It is used from one thread.

    The episode of number e gets the seed ``derive_seed("pool", seed, e) >> 32`` unless the caller gives one; with tasks it is
    ``derive_seed("pool", seed, task_id) >> 32``: 31 bits, since older environments take no more than 32. So what an episode contains
    depends on neither its slot, nor the number of workers, the backend, or the order in which things come back.

    A worker that dies, hangs or raises is replaced. Its episode ends with a row whose ``fault`` says why: truncated, reward 0.0, the
    last good observation, ``info["ending"] == "infra_error"``. A reset that fails is tried again on a new worker, three times in all.
    A `StateLeakError` is no fault: from then on `recv` raises it.

    Args:
        env: An id for ``gymnasium.make``, a spec, or a function that makes an environment (for ``backend="process"`` one that
            cloudpickle can pickle); or a list of such, one a slot.
        num_envs: Slots, at least 1.
        backend: ``"thread"`` or ``"process"``.
        env_kwargs: Keywords for the environment.
        tasks: Tasks to work off, each once; given as the reset option ``task_id``.
        scheduler: Which task is next, where ``tasks`` is not a queue: a name of ``SCHEDULERS`` or ``PRESETS``, or a scheduler.
        seed: The root of all seeds.
        make_timeout_s: Seconds for a constructor.
        reset_timeout_s: Seconds for a reset.
        step_timeout_s: Seconds for a step or a call.
        requeues: How many attempts of a task may fail before the one that sends it to quarantine, where ``tasks`` is not a queue.
        max_restarts: Failures in a row, without a successful step, that a slot survives; then it is retired.
        workdir: Where environments get their temporary folder and log file (process backend).

    Attributes:
        num_envs: Slots.
        backend_name: The backend's name.
        queue: The tasks, if it has any.
        counters: What has happened so far.
        meter: Times of what has happened lately.

    Raises:
        ConfigurationError: A keyword that does not fit.
    """

    def __init__(
        self,
        env: _Env | Sequence[_Env],
        num_envs: int,
        *,
        backend: str = "thread",
        env_kwargs: Mapping[str, Any] | None = None,
        tasks: TaskQueue | Iterable[str] | None = None,
        scheduler: str | Scheduler = "fifo",
        seed: int = 0,
        make_timeout_s: float = 60.0,
        reset_timeout_s: float = 60.0,
        step_timeout_s: float = 60.0,
        requeues: int = 2,
        max_restarts: int = 5,
        workdir: str | Path | None = None,
    ) -> None:
        if num_envs < 1:
            raise ConfigurationError(f"num_envs must be at least 1, got {num_envs!r}")
        envs: list[Any] = list(env) if isinstance(env, list | tuple) else [env] * num_envs
        if len(envs) != num_envs:
            raise ConfigurationError(f"{len(envs)} envs for {num_envs} slots")
        if wrong := [given for given in envs if not (isinstance(given, str | EnvSpec) or callable(given))]:
            raise ConfigurationError(f"env must be an id, an EnvSpec or a function that makes an environment, got {wrong[0]!r}")
        deadlines = Deadlines(make_s=make_timeout_s, reset_s=reset_timeout_s, step_s=step_timeout_s)
        self.num_envs, self.backend_name = num_envs, backend
        self.queue = tasks if isinstance(tasks, TaskQueue) or tasks is None else TaskQueue(tasks, scheduler, requeues)
        self.meter = Meter(num_envs)
        self._backend: Backend = make_backend(backend, num_envs, workdir)
        self._end = weakref.finalize(self, self._backend.close, 2.0)  # a pool that nobody closes leaves nothing behind either
        factories = [Factory.of(given, env_kwargs) for given in envs]
        self._supervisor = Supervisor(self._backend, factories, deadlines, max_restarts)
        self.counters: Counters = self._supervisor.counters
        self._episodes = Episodes(self._supervisor, self.queue, self.meter, seed)
        self._woken = False

    # What it runs.

    @property
    def single_observation_space(self) -> gymnasium.Space[Any]:
        """The observation space of one environment. Like the three below it waits for the first worker.

        Raises:
            InfrastructureError: No environment could be made.
        """
        return self._known("observation_space")  # type: ignore[no-any-return]

    @property
    def single_action_space(self) -> gymnasium.Space[Any]:
        """The action space of one environment."""
        return self._known("action_space")  # type: ignore[no-any-return]

    @property
    def spec(self) -> EnvSpec | None:
        """The environment's spec, if it has one."""
        return self._known("spec")  # type: ignore[no-any-return]

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the environment's metadata."""
        return dict(self._known("metadata"))

    @property
    def render_mode(self) -> str | None:
        """The environment's render mode."""
        mode: str | None = self._known("render_mode")
        return mode

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._end.alive

    @property
    def states(self) -> list[str]:
        """The state of every slot.

        ``starting`` and ``restarting``: its worker is not up. ``idle``: its episode waits for an action. ``busy``: it was asked for
        something. ``done``: it has no episode; reset it. ``retired``: it failed too often and is given up.
        """
        return [self._episodes.state(env_id) for env_id in range(self.num_envs)]

    # Episodes and steps.

    def async_reset(
        self,
        env_ids: Iterable[int] | None = None,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Starts episodes; their rows, of kind ``reset``, come from `recv`.

        Args:
            env_ids: Slots; by default all that are not retired.
            seed: One seed a slot (None lets the environment go on with its own random stream); or an integer s: then the i-th of the
                slots gets ``derive_seed("pool", s, i) >> 32``; by default the episode's own, see above.
            options: Reset options, for all or one dict a slot.

        Raises:
            ConfigurationError: A slot is busy, a number does not fit, or the pool has tasks; nothing was started. (A retired slot that
                is named gives a row with its fault.)
            TypeError: Options cannot be passed to their worker; those before were sent. (To one that is not up yet: a row with the fault.)
        """
        self._check_open()
        if self.queue is not None:
            raise ConfigurationError("this pool has tasks, and starts their episodes itself; call recv()")
        ids = self._ids(env_ids)
        seeds: Sequence[tuple[int | None, ...]]
        if seed is None:
            seeds = [()] * len(ids)
        elif isinstance(seed, int | np.integer):
            seeds = [(spread("pool", int(seed), number),) for number in range(len(ids))]
        else:
            seeds = [(None if own is None else operator.index(own),) for own in self._fitting("seeds", seed, ids)]
        many = self._each("options", options, ids, isinstance(options, Mapping))
        self._expect(ids, ("idle", "done", "starting", "restarting", "retired"), "reset")
        for env_id, own, given in zip(ids, seeds, many, strict=True):
            self._episodes.begin(env_id, given, *own)

    def start(self) -> None:
        """Starts as many tasks as there are environments that are up; `recv` does so by itself.

        Raises:
            ConfigurationError: The pool has no tasks.
        """
        self._check_open()
        if self.queue is None:
            raise ConfigurationError("this pool has no tasks; call async_reset()")
        self._episodes.assign()

    def send(
        self,
        actions: Sequence[Any] | NDArray[Any],
        env_ids: Iterable[int],
        notes: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
        priority: float | Sequence[float] | None = None,
    ) -> None:
        """Hands out actions; the rows, of kind ``step``, come from `recv`.

        Args:
            actions: One a slot.
            env_ids: Slots whose episode waits for an action.
            notes: What only the learner knows of these steps, for all or one dict a slot; a ``RecordTrajectory`` in the worker keeps it.
            priority: For all or one a slot. When more rows are ready than `recv` may return, higher ones go first. Default 0.

        Raises:
            ConfigurationError: A slot is not idle, or a number does not fit; nothing was sent.
            TypeError: An action cannot be passed to its worker; those before it were sent.
        """
        self._check_open()
        ids = self._ids(env_ids)
        self._fitting("actions", actions, ids)
        many = self._each("notes", notes, ids, isinstance(notes, Mapping))
        orders = self._each("priorities", 0.0 if priority is None else priority, ids, not hasattr(priority, "__len__"))
        self._expect(ids, ("idle",), "step")
        for env_id, action, note, order in zip(ids, actions, many, orders, strict=True):
            self._episodes.step(env_id, action, note, order)

    def recv(self, min: int = 1, max: int | None = None, timeout: float | None = None) -> Batch:
        """Waits for rows.

        Args:
            min: How many to wait for; fewer come if no more can.
            max: How many to return at most; the others come next time.
            timeout: Seconds to wait at most.

        Returns:
            The rows that are ready, in order of arrival. None at a timeout, and when nothing is outstanding and no task can start;
            those there are when another thread calls `wake`.

        Raises:
            InfrastructureError: No environment could be made, or every slot is retired while tasks wait.
            StateLeakError: A reset leaves something behind, as a ``StateLeakCheck`` in a worker has found.
            ConfigurationError: The pool is closed, or a number does not fit.
        """
        self._check_open()
        if min < 0 or (max is not None and max < min):
            raise ConfigurationError(f"recv needs 0 <= min <= max, got min={min}, max={max}")
        until = None if timeout is None else time.monotonic() + timeout
        episodes = self._episodes
        episodes.assign()
        while True:
            left: float | None = 0.0  # also where enough has arrived: more may have come meanwhile
            if len(episodes.arrived) < min and episodes.awaited and not self._woken:
                left = None if until is None else builtins.max(0.0, until - time.monotonic())
            episodes.take(left)
            episodes.assign()
            if left == 0.0 or len(episodes.arrived) >= min or not episodes.awaited:
                break
        self._woken = False
        if self.meter.due():
            self.meter.sample(self._backend.usages)
        return Batch(tuple(episodes.hand_out(max)))

    def wake(self) -> None:
        """Has the `recv` that waits, or else the next one, return with the rows there are. May be called from any thread."""
        self._woken = True
        self._backend.wake()

    def call(self, name: str | Callable[..., Any], *args: Any, env_ids: Iterable[int] | None = None, **kwargs: Any) -> list[Any]:
        """Calls a method of environments, or reads an attribute, and waits for all.

        Args:
            name: The name, looked for through all wrappers; or a function, which is given the environment.
            *args: Arguments.
            env_ids: Slots, none of them busy; by default all that are not retired.
            **kwargs: Keywords.

        Returns:
            One value a slot.

        Raises:
            ConfigurationError: A slot is busy or retired; nothing was called.
            InfrastructureError: A worker died or did not come back in time.
            Exception: What the environment raised, with its traceback as a note.
        """
        self._check_open()
        ids = self._ids(env_ids)
        self._expect(ids, ("idle", "done", "starting", "restarting"), "call")
        called = self._episodes.called
        called.clear()  # of what a call that was broken off has left
        asked = [self._episodes.call(env_id, (name, args, kwargs)) for env_id in ids]
        while not all(number in called for number in asked):
            self._episodes.take(None)
        outcomes = [called[number] for number in asked]
        for outcome in outcomes:
            if outcome.fault:
                raise InfrastructureError(f"env {outcome.slot}: {outcome.fault}")
            if outcome.error:
                error: Exception = outcome.value
                error.add_note(f"in env {outcome.slot}:\n{outcome.error}")
                raise error
        return [outcome.value for outcome in outcomes]

    # Tasks and figures.

    @property
    def finished(self) -> bool:
        """Whether every task is accounted for, and its last row was handed out."""
        return self.queue is not None and self.queue.finished

    @property
    def report(self) -> dict[str, TaskReport]:
        """What has become of every task."""
        return {} if self.queue is None else self.queue.report

    @property
    def outstanding(self) -> int:
        """How many resets and steps have no outcome yet."""
        return self._episodes.outstanding

    @property
    def awaited(self) -> bool:
        """Whether rows can come without anything being sent: something is outstanding, or a task can start."""
        return self._episodes.awaited

    @property
    def most_running(self) -> int:
        """How many tasks run at once, at most; to begin with, as many as there are slots. Fewer only keeps others from starting."""
        return self._episodes.most_running

    @most_running.setter
    def most_running(self, number: int) -> None:
        self._episodes.most_running = number

    @property
    def arrived(self) -> int:
        """How many rows wait for `recv`."""
        return len(self._episodes.arrived)

    def usages(self) -> Mapping[int, Usage]:
        """What the environments use; empty where that cannot be told (threads)."""
        return self._backend.usages()

    def stats(self) -> PoolStats:
        """Figures on how it runs. May be called from another thread."""
        return PoolStats.of(self)

    # The end.

    def close(self, timeout_s: float = 10.0) -> None:
        """Closes every environment, and kills or abandons what has not come to its end in time. Closing twice is fine.

        Args:
            timeout_s: Seconds that environments have to come to an end.
        """
        if self._end.detach() is not None:
            self._backend.close(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Beneath.

    def _known(self, name: str) -> Any:
        self._check_open()
        while self._supervisor.made is None:
            self._episodes.take(None)
        return self._supervisor.made[name]

    def _check_open(self) -> None:
        if self.closed:
            raise ConfigurationError("this pool is closed; make a new one")

    def _ids(self, env_ids: Iterable[int] | None) -> list[int]:
        if env_ids is None:
            return [env_id for env_id in range(self.num_envs) if self._episodes.state(env_id) != "retired"]
        ids = [operator.index(env_id) for env_id in env_ids]
        if wrong := [env_id for env_id in ids if not 0 <= env_id < self.num_envs]:
            raise ConfigurationError(f"env {wrong[0]} is not in [0, {self.num_envs})")
        if len(set(ids)) < len(ids):
            raise ConfigurationError(f"an env is named twice in {ids}; each can be asked for one thing at a time")
        return ids

    def _each(self, what: str, given: Any, ids: Sequence[int], for_all: bool) -> Any:
        return [given] * len(ids) if given is None or for_all else self._fitting(what, given, ids)

    @staticmethod
    def _fitting(what: str, given: Any, ids: Sequence[int]) -> Any:
        if len(given) != len(ids):
            raise ConfigurationError(f"{len(given)} {what} for {len(ids)} envs {list(ids)[:20]}; nothing was sent")
        return given

    def _expect(self, ids: Sequence[int], allowed: Sequence[str], verb: str) -> None:
        for env_id in ids:
            if (state := self._episodes.state(env_id)) not in allowed:
                what, remedy = _REMEDIES[state]
                if state in ("done", "restarting") and not self._episodes.begun(env_id):
                    what = "was never reset"
                raise ConfigurationError(f"cannot {verb} env {env_id}, which is {state}: it {what}; {remedy}. Nothing was sent")


_REMEDIES = {
    "busy": ("was asked for something whose row recv() has not returned yet", "call recv() first"),
    "done": ("has no episode", "call async_reset() and wait for its row (with tasks, recv() starts the next one)"),
    "starting": ("has no episode yet", "call async_reset() and wait for its row (with tasks, recv() starts the first one)"),
    "restarting": ("has no episode", "call async_reset() and wait for its row (with tasks, recv() starts the next one)"),
    "retired": ("failed too often in a row", "leave it out, or make a new pool once the cause is mended"),
}
