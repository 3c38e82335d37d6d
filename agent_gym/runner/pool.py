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

import operator
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import gymnasium
from gymnasium.envs.registration import EnvSpec

from agent_gym.core.seeding import derive_seed
from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.runner.backends import Backend, make_backend
from agent_gym.runner.messages import Batch, Kind, Row, Usage
from agent_gym.runner.schedulers import Scheduler
from agent_gym.runner.supervision import Counters, Deadlines, Outcome, Supervisor
from agent_gym.runner.tasks import TaskQueue, TaskReport
from agent_gym.runner.worker import Factory

if TYPE_CHECKING:
    from agent_gym.runner.monitor import PoolStats

__all__ = ["AsyncPool"]

_RESET_TRIES = 3
_RECENT = 10_000


@dataclass(slots=True)
class _Slot:
    pending: Kind | None = None
    """What it was asked for."""
    running: bool = False
    """Whether an episode waits for an action, or is about to."""
    episode: int = -1
    task_id: str | None = None
    payload: Any = None
    """Seed and options of the reset, for another try."""
    tries: int = 0
    observation: Any = None
    """The last good one."""
    seconds: float = 0.0
    """Of the episode, in the worker."""
    priority: float = 0.0


class AsyncPool:
    """Many environments, stepped independently. It is used from one thread.

    The episode of number e gets the seed ``derive_seed("pool", seed, e)`` unless the caller gives one; with tasks it is
    ``derive_seed("pool", seed, task_id)``. So what an episode contains depends on neither its slot, nor the number of workers, the
    backend, or the order in which things come back.

    A worker that dies, hangs or raises is replaced. Its episode ends with a row whose ``fault`` says why: truncated, reward 0.0, the
    last good observation, ``info["ending"] == "infra_error"``. A reset that fails is tried again on a new worker, three times in all.

    Args:
        env: An id for ``gymnasium.make``, a spec, or a function that makes an environment (for ``backend="process"`` one that
            cloudpickle can pickle).
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
        counters: What has happened so far.
        recent: The newest steps: (slot, seconds in the worker, seconds from the request to the answer's arrival).

    Raises:
        ConfigurationError: A keyword that does not fit.
    """

    def __init__(
        self,
        env: str | EnvSpec | Callable[..., gymnasium.Env[Any, Any]],
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
        if not (isinstance(env, str | EnvSpec) or callable(env)):
            raise ConfigurationError(f"env must be an id, an EnvSpec or a function that makes an environment, got {type(env).__name__}")
        self.num_envs = num_envs
        self.recent: deque[tuple[int, float, float]] = deque(maxlen=_RECENT)
        self._queue = tasks if isinstance(tasks, TaskQueue) or tasks is None else TaskQueue(tasks, scheduler, requeues)
        self._notes = {"stage": self._queue.stage} if self._queue is not None and self._queue.stage else {}
        self._seed = seed
        self._began = time.monotonic()
        self._slots = [_Slot() for _ in range(num_envs)]
        self._free = list(range(num_envs))  # slots that take a task next
        self._ready: list[Row] = []
        self._called: dict[int, Outcome] = {}
        self._episodes = 0
        self._outstanding = 0
        deadlines = Deadlines(make_s=make_timeout_s, reset_s=reset_timeout_s, step_s=step_timeout_s)
        self._backend: Backend = make_backend(backend, num_envs, workdir)
        self._end = weakref.finalize(self, self._backend.close, 2.0)  # a pool that nobody closes leaves nothing behind either
        self._supervisor = Supervisor(self._backend, num_envs, Factory(env, dict(env_kwargs or {})), deadlines, max_restarts)
        self.counters: Counters = self._supervisor.counters

    # What it runs.

    @property
    def single_observation_space(self) -> gymnasium.Space[Any]:
        """The observation space of one environment. Like the three below it waits for the first worker.

        Raises:
            InfrastructureError: No environment could be made.
        """
        space: gymnasium.Space[Any] = self._known("observation_space")
        return space

    @property
    def single_action_space(self) -> gymnasium.Space[Any]:
        """The action space of one environment."""
        space: gymnasium.Space[Any] = self._known("action_space")
        return space

    @property
    def spec(self) -> EnvSpec | None:
        """The environment's spec, if it has one."""
        spec: EnvSpec | None = self._known("spec")
        return spec

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
        return [self._state(env_id) for env_id in range(self.num_envs)]

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
            seed: One seed a slot; or an integer s: then the i-th of the slots gets ``derive_seed("pool", s, i)``; by default see above.
            options: Reset options, for all or one dict a slot.

        Raises:
            ConfigurationError: A slot is busy or retired, a number does not fit, or the pool has tasks; nothing was started.
        """
        self._check_open()
        if self._queue is not None:
            raise ConfigurationError("this pool has tasks, and starts their episodes itself; call recv()")
        ids = self._ids(env_ids)
        seeds: Sequence[int | None]
        if isinstance(seed, int):
            seeds = [derive_seed("pool", seed, number) for number in range(len(ids))]
        else:
            seeds = [None] * len(ids) if seed is None else self._fitting("seeds", seed, ids)
        many = [options] * len(ids) if options is None or isinstance(options, Mapping) else self._fitting("options", options, ids)
        self._expect(ids, ("idle", "done", "starting", "restarting"), "reset")
        for env_id, own, given in zip(ids, seeds, many, strict=True):
            number = self._episodes
            self._begin(env_id, derive_seed("pool", self._seed, number) if own is None else own, given)

    def start(self) -> None:
        """Starts as many tasks as there are environments that are up; `recv` does so by itself.

        Raises:
            ConfigurationError: The pool has no tasks.
        """
        self._check_open()
        if self._queue is None:
            raise ConfigurationError("this pool has no tasks; call async_reset()")
        self._assign()

    def send(
        self,
        actions: Sequence[Any],
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
        many = [notes] * len(ids) if notes is None or isinstance(notes, Mapping) else self._fitting("notes", notes, ids)
        orders = [priority or 0.0] * len(ids) if priority is None or not hasattr(priority, "__len__") else self._fitting("priorities", priority, ids)
        self._expect(ids, ("idle",), "step")
        for action, env_id, note, order in zip(actions, ids, many, orders, strict=True):
            self._submit(env_id, "step", (action, {**self._notes, **note} if note else self._notes))
            self._slots[env_id].priority = order

    def recv(self, min: int = 1, max: int | None = None, timeout: float | None = None) -> Batch:
        """Waits for rows.

        Args:
            min: How many to wait for; fewer come if no more can.
            max: How many to return at most; the others come next time.
            timeout: Seconds to wait at most.

        Returns:
            The rows that are ready, in order of arrival. None at a timeout, and when nothing is outstanding and no task can start.

        Raises:
            InfrastructureError: No environment could be made, or every slot is retired while tasks wait.
            ConfigurationError: The pool is closed, or a number does not fit.
        """
        self._check_open()
        if min < 0 or (max is not None and max < min):
            raise ConfigurationError(f"recv needs 0 <= min <= max, got min={min}, max={max}")
        until = None if timeout is None else time.monotonic() + timeout
        self._assign()
        while True:
            more = len(self._ready) < min and self._awaited
            left = 0.0 if not more else None if until is None else _left(until)
            self._take_all(left)
            self._assign()
            if len(self._ready) >= min or not self._awaited or left == 0.0:
                break
        return self._hand_out(max)

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
        asked = [self._submit(env_id, "call", (name, args, kwargs)) for env_id in ids]
        while not all(number in self._called for number in asked):
            self._take_all(None)
        outcomes, self._called = [self._called[number] for number in asked], {}
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
        return self._queue is not None and self._queue.finished

    @property
    def report(self) -> dict[str, TaskReport]:
        """What has become of every task."""
        return {} if self._queue is None else self._queue.report

    @property
    def queue(self) -> TaskQueue | None:
        """The tasks."""
        return self._queue

    def usage(self, env_id: int) -> Usage | None:
        """What an environment uses; None where that cannot be told (threads)."""
        return self._backend.usage(env_id)

    def stats(self) -> "PoolStats":
        """Figures on how it runs."""
        from agent_gym.runner.monitor import PoolStats  # which knows this class

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
            self._take_all(None)
        return self._supervisor.made[name]

    @property
    def _awaited(self) -> bool:
        """Whether rows can come without anything being sent."""
        return self._outstanding > 0 or (self._queue is not None and bool(self._free) and len(self._queue) > 0)

    def _submit(self, env_id: int, kind: Kind, payload: Any) -> int:
        number = self._supervisor.submit(env_id, kind, payload)
        self._slots[env_id].pending = kind
        self._outstanding += kind != "call"
        return number

    def _begin(self, env_id: int, seed: int, options: Mapping[str, Any] | None, task_id: str | None = None) -> None:
        payload = (seed, dict(options) if options else None)
        self._submit(env_id, "reset", payload)
        self._slots[env_id] = _Slot(pending="reset", episode=self._episodes, task_id=task_id, payload=payload)
        self._episodes += 1

    def _assign(self) -> None:
        """Gives tasks to free slots whose worker is up; one that is being replaced would only keep its task waiting."""
        if self._queue is None or not self._free or not len(self._queue):
            return
        self._free = [env_id for env_id in self._free if not self._supervisor.retired(env_id)]
        up = [env_id for env_id in self._free if self._supervisor.ready(env_id)]
        for env_id, task_id in zip(up, self._queue.take(len(up)), strict=False):
            self._free.remove(env_id)
            self._begin(env_id, derive_seed("pool", self._seed, task_id), {"task_id": task_id}, task_id)

    def _take_all(self, timeout_s: float | None) -> None:
        for outcome in self._supervisor.wait(timeout_s):
            slot = self._slots[outcome.slot]
            if outcome.kind == "call":
                slot.pending = None
                self._called[outcome.request_id] = outcome
                continue
            self._outstanding -= 1
            slot.seconds += outcome.seconds
            if outcome.kind == "step":
                self.recent.append((outcome.slot, outcome.seconds, outcome.waited))
            elif outcome.fault and self._again(outcome):
                continue
            row = self._row(outcome)
            slot.running, slot.observation = not row.done, row.observation
            self.counters.episodes += row.done
            self._ready.append(row)

    def _again(self, outcome: Outcome) -> bool:
        """Whether a reset that failed gives no row, but leads to another: of the same episode, or of a task that is next."""
        env_id = outcome.slot
        slot = self._slots[env_id]
        if self._queue is not None and slot.task_id is not None:
            self._queue.fail(slot.task_id, outcome.fault)
            self._slots[env_id] = _Slot()
            self._free.append(env_id)
            return True
        slot.tries += 1
        if slot.tries >= _RESET_TRIES or self._supervisor.retired(env_id):
            return False
        self._submit(env_id, "reset", slot.payload)
        return True

    def _row(self, outcome: Outcome) -> Row:
        slot = self._slots[outcome.slot]
        observation, reward, terminated, truncated, info, mask = slot.observation, 0.0, False, True, {}, None
        if outcome.fault:
            info = {"ending": "infra_error", "reward_valid": False, "fault": outcome.fault}
        elif outcome.kind == "step":
            observation, reward, terminated, truncated, info, mask = outcome.value
        else:
            truncated = False
            observation, info, mask = outcome.value
        return Row(
            env_id=outcome.slot,
            request_id=outcome.request_id,
            kind="step" if outcome.kind == "step" else "reset",
            episode=slot.episode,
            task_id=slot.task_id,
            observation=observation,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            info=info,
            mask=mask,
            fault=outcome.fault,
            seconds=outcome.seconds,
            waited=outcome.waited,
        )

    def _hand_out(self, most: int | None) -> Batch:
        rows, self._ready = self._ready, []
        if most is not None and len(rows) > most:
            first = sorted(range(len(rows)), key=lambda number: -self._slots[rows[number].env_id].priority)[:most]
            self._ready = [row for number, row in enumerate(rows) if number not in first]
            rows = [rows[number] for number in sorted(first)]
        for row in rows:
            slot = self._slots[row.env_id]
            slot.pending = None
            if self._queue is not None and row.done and row.task_id is not None:
                if row.info.get("ending") == "infra_error":  # whether the pool saw it or the environment did
                    self._queue.fail(row.task_id, row.fault or "the episode ended as infra_error")
                else:
                    self._queue.done(row.task_id, slot.seconds)
                self._free.append(row.env_id)
        self._assign()
        if not rows and self._queue is not None and len(self._queue) and all(map(self._supervisor.retired, range(self.num_envs))):
            raise InfrastructureError(f"every slot is retired after too many failures, and {len(self._queue)} tasks wait")
        return Batch(tuple(rows))

    # Misuse.

    def _check_open(self) -> None:
        if self.closed:
            raise ConfigurationError("this pool is closed; make a new one")

    def _ids(self, env_ids: Iterable[int] | None) -> list[int]:
        if env_ids is None:
            return [env_id for env_id in range(self.num_envs) if self._state(env_id) != "retired"]
        ids = [operator.index(env_id) for env_id in env_ids]
        if wrong := [env_id for env_id in ids if not 0 <= env_id < self.num_envs]:
            raise ConfigurationError(f"env {wrong[0]} is not in [0, {self.num_envs})")
        if len(set(ids)) < len(ids):
            raise ConfigurationError(f"an env is named twice in {ids}; each can be asked for one thing at a time")
        return ids

    @staticmethod
    def _fitting(what: str, given: Any, ids: Sequence[int]) -> Any:
        if len(given) != len(ids):
            raise ConfigurationError(f"{len(given)} {what} for {len(ids)} envs {list(ids)[:20]}; nothing was sent")
        return given

    def _state(self, env_id: int) -> str:
        slot, supervisor = self._slots[env_id], self._supervisor
        if slot.pending is not None:
            return "busy"
        if slot.running:
            return "idle"
        if supervisor.retired(env_id):
            return "retired"
        if not supervisor.ready(env_id):
            return "restarting" if supervisor.failed(env_id) else "starting"
        return "done"

    def _expect(self, ids: Sequence[int], allowed: Sequence[str], verb: str) -> None:
        for env_id in ids:
            if (state := self._state(env_id)) not in allowed:
                what, remedy = _REMEDIES[state]
                if state != "busy" and self._slots[env_id].episode < 0:
                    what = "was never reset"
                raise ConfigurationError(f"cannot {verb} env {env_id}, which is {state}: it {what}; {remedy}. Nothing was sent")


_REMEDIES = {
    "busy": ("was asked for something whose row recv() has not returned yet", "call recv() first"),
    "done": ("has no episode", "call async_reset() and wait for its row (with tasks, recv() starts the next one)"),
    "starting": ("has no episode yet", "call async_reset() and wait for its row (with tasks, recv() starts the first one)"),
    "restarting": ("has no episode", "call async_reset() and wait for its row (with tasks, recv() starts the next one)"),
    "retired": ("failed too often in a row", "leave it out, or make a new pool once the cause is mended"),
}


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
