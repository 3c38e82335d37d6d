"""How a pool runs: throughput against the bound, waits, faults, what each environment uses, and which one keeps growing.

The pool tells a `Meter` what happens, and `PoolStats.of` turns that into figures.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from agent_gym.runner.messages import Usage
from agent_gym.runner.supervision import Counters, Outcome
from agent_gym.runner.tasks import TaskQueue
from agent_gym.runner.usage import Alert, Growth

__all__ = ["EnvStats", "Meter", "PoolStats", "PoolView", "ServerStats"]

_THREADS = "threads share one process, so CPU, memory and open files of an environment cannot be told apart"


@dataclass(frozen=True)
class EnvStats:
    """One environment. What it uses is None with threads, which cannot be told apart, and until it was first measured.

    Attributes:
        env_id: The slot.
        state: The slot's state.
        steps: Steps so far.
        faults: Resets and steps of it that ended by a fault.
        cpu_s: Seconds of CPU time of its present worker, and of all that this started.
        memory_mib: Their resident memory, in MiB; pages that several share count for each.
        fds: Their open file descriptors.
        processes: How many processes they are.
    """

    env_id: int
    state: str
    steps: int
    faults: int
    cpu_s: float | None = None
    memory_mib: float | None = None
    fds: int | None = None
    processes: int | None = None


@dataclass(frozen=True, kw_only=True)
class PoolStats:
    """A pool at one moment. ``as_dict`` gives it as JSON values. What needs steps is None where there were none in the window.

    Attributes:
        backend: The backend's name.
        num_envs: Slots.
        window_s: The last so many seconds are what the next seven rest on.
        throughput_per_s: Steps in a second.
        fraction_of_bound: Throughput ÷ (environments that are not retired ÷ mean seconds of a step, its share of the resets included):
            1 if every environment always works, and never waits for the runner or the learner.
        step_p50_s: Median of the seconds that a step takes in the worker.
        step_p95_s: Its 95th percentile.
        step_p99_s: Its 99th percentile.
        overhead_p50_s: Median of the seconds from a request to its answer, less those in the worker.
        learner_wait_p50_s: Median of the seconds from an answer until the environment was given something to do again.
        steps: Steps since the start.
        episodes: Episodes that ended.
        faults: Deaths, exceptions and deadlines passed.
        restarts: Workers replaced.
        late_answers: Answers to requests that had been given up, dropped.
        outstanding: Requests whose answers have not arrived.
        arrived: Answers that wait to be received.
        learner_wait_s: Seconds that environments have waited for the learner, all together, since the start.
        states: How many slots there are of each state.
        retired: The slots that were given up.
        tasks: How many tasks there are of each status; None without tasks.
        envs: The environments.
        alerts: What keeps growing.
        remark: What cannot be told, and why; else empty.
    """

    backend: str
    num_envs: int
    window_s: float
    throughput_per_s: float
    fraction_of_bound: float | None
    step_p50_s: float | None
    step_p95_s: float | None
    step_p99_s: float | None
    overhead_p50_s: float | None
    learner_wait_p50_s: float | None
    steps: int
    episodes: int
    faults: int
    restarts: int
    late_answers: int
    outstanding: int
    arrived: int
    learner_wait_s: float
    states: dict[str, int]
    retired: list[int]
    tasks: dict[str, int] | None
    envs: list[EnvStats]
    alerts: list[Alert]
    remark: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, pool: "PoolView") -> Self:
        """A pool's figures, now. Takes a new sample of usage if the last is older than a fifth of a second."""
        meter, counters, states = pool.meter, pool.counters, list(pool.states)
        if meter.due(after_s=0.2):
            meter.sample(pool.usages)
        window_s, recent = meter.recent()
        steps = [one for one in recent if one.stepped]
        retired = [slot for slot, state in enumerate(states) if state == "retired"]
        able_s = window_s * (len(states) - len(retired))
        p50, p95, p99 = _percentiles([step.seconds for step in steps], 50, 95, 99)
        (overhead,) = _percentiles([step.waited - step.seconds for step in steps], 50)
        (learner,) = _percentiles([step.learner_s for step in steps], 50)
        envs = []
        for slot, state in enumerate(states):
            usage = meter.usages.get(slot)
            used = () if usage is None else (usage.cpu_s, usage.memory_mib, usage.fds, usage.processes)
            envs.append(EnvStats(slot, state, meter.steps[slot], meter.faults[slot], *used))
        return cls(
            backend=pool.backend_name,
            num_envs=len(states),
            window_s=window_s,
            throughput_per_s=len(steps) / window_s if window_s > 0 else 0.0,
            fraction_of_bound=sum(one.seconds for one in recent) / able_s if steps and able_s > 0 else None,
            step_p50_s=p50,
            step_p95_s=p95,
            step_p99_s=p99,
            overhead_p50_s=overhead,
            learner_wait_p50_s=learner,
            steps=sum(meter.steps),
            episodes=counters.episodes,
            faults=counters.faults,
            restarts=counters.restarts,
            late_answers=counters.late_answers,
            outstanding=pool.outstanding,
            arrived=pool.arrived,
            learner_wait_s=meter.learner_wait_s,
            states=dict(Counter(states)),
            retired=retired,
            tasks=None if pool.queue is None else pool.queue.counts,
            envs=envs,
            alerts=meter.alerts(),
            remark=_THREADS if pool.backend_name == "thread" else "",
        )


@dataclass(frozen=True, kw_only=True)
class ServerStats:
    """How a server runs. ``as_dict`` gives it as JSON values.

    Attributes:
        steps: Steps that were given out.
        episodes: Episodes that ended.
        batches: Batches that were decided on.
        batch_mean: Mean size of a batch; None before the first.
        final_values: Values of observations at which an episode was cut short.
        act_a_s: Seconds of a batch, whatever its size, as fitted.
        act_b_s: Seconds for each observation in it, as fitted.
        latency_s: Seconds that the pool takes for a step, its share of the resets included.
        best_batch: The best size of a batch by these (see `agent_gym.runner.batcher.optimum`), for one device.
        most_batch: How large a batch may be.
        window_s: How long a batch waits for more.
        bound_per_s: Steps a second that nothing can exceed.
        throughput_per_s: Steps a second, of the pool's window.
        fraction_of_bound: Throughput ÷ bound; whoever takes the steps and lets environments wait lowers it.
        queue_bytes: Bytes of what waits and of what is under way.
        queue_peak_bytes: The most that there were.
        row_bytes: Mean bytes of a row, recently; None before the first.
        capacity: For how many episodes the budget has room.
        paused: How often an environment had to wait for room.
        paused_s: Seconds that environments have waited for room, all together.
    """

    steps: int
    episodes: int
    batches: int
    batch_mean: float | None
    final_values: int
    act_a_s: float
    act_b_s: float
    latency_s: float
    best_batch: float
    most_batch: int
    window_s: float
    bound_per_s: float | None
    throughput_per_s: float
    fraction_of_bound: float | None
    queue_bytes: int
    queue_peak_bytes: int
    row_bytes: float | None
    capacity: int
    paused: int
    paused_s: float

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return asdict(self)


class _Came(NamedTuple):
    at: float
    stepped: bool
    seconds: float
    waited: float
    learner_s: float


class Meter:
    """Takes in what happens in a pool. Any thread may call it; a call costs about a microsecond.

    Args:
        num_envs: Slots.
        window_s: How far back throughput and percentiles look, in seconds; at most 20,000 outcomes.
        sample_every_s: How far apart the samples of usage are, in seconds; further if taking one takes more than a hundredth of that.
        clock: Gives seconds, and never goes back.

    Attributes:
        steps: Steps that came back, by slot.
        faults: Resets and steps that ended by a fault, by slot.
        learner_wait_s: Seconds that environments waited for the learner, all together.
        usages: The newest sample of usage, by slot.
    """

    def __init__(
        self, num_envs: int, window_s: float = 30.0, sample_every_s: float = 5.0, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.steps, self.faults = [0] * num_envs, [0] * num_envs
        self.learner_wait_s = 0.0
        self.usages: Mapping[int, Usage] = {}
        self._window_s, self._sample_every_s, self._clock = window_s, sample_every_s, clock
        self._recent: deque[_Came] = deque(maxlen=20_000)
        self._came_at: list[float | None] = [None] * num_envs
        self._learner_s = [0.0] * num_envs
        self._growth = Growth()
        self._start: float | None = None
        self._sampled_at, self._next_sample = float("-inf"), clock() + sample_every_s
        self._lock = Lock()

    def sent(self, slot: int) -> None:
        """A reset or a step was asked for."""
        now = self._clock()
        with self._lock:
            self._start = now if self._start is None else self._start
            came = self._came_at[slot]
            self._learner_s[slot] = 0.0 if came is None else now - came
            self.learner_wait_s += self._learner_s[slot]

    def came(self, outcome: Outcome) -> None:
        """What became of it."""
        now, slot = self._clock(), outcome.slot
        stepped = outcome.kind == "step" and not outcome.fault
        with self._lock:
            self._recent.append(_Came(now, stepped, outcome.seconds, outcome.waited, self._learner_s[slot]))
            self._came_at[slot] = now
            self.steps[slot] += stepped
            self.faults[slot] += bool(outcome.fault)

    def due(self, after_s: float | None = None) -> bool:
        """Whether the next sample of usage is due: by its own pace, or because the last is so many seconds old."""
        now = self._clock()
        return now >= self._next_sample if after_s is None else now - self._sampled_at >= after_s

    def sample(self, usages: Callable[[], Mapping[int, Usage]]) -> None:
        """Takes a sample of what each slot uses."""
        start = self._clock()
        taken = dict(usages())
        now = self._clock()
        with self._lock:
            self.usages, self._sampled_at = taken, now
            self._next_sample = now + max(self._sample_every_s, 100 * (now - start))
            self._growth.add(now, taken)

    def recent(self) -> tuple[float, list[_Came]]:
        """How many seconds the window covers by now, and what came in it."""
        now = self._clock()
        with self._lock:
            recent, start = list(self._recent), now if self._start is None else self._start
        if len(recent) == self._recent.maxlen:  # older ones were dropped
            start = max(start, recent[0].at)
        start = max(start, now - self._window_s)
        return now - start, [one for one in recent if one.at >= start]

    def alerts(self) -> list[Alert]:
        """What keeps growing."""
        with self._lock:
            return self._growth.alerts()


class PoolView(Protocol):
    """What `PoolStats.of` looks at in a pool; all of it may be read from another thread."""

    @property
    def meter(self) -> Meter:
        """The pool's meter."""
        ...

    @property
    def counters(self) -> Counters:
        """What has happened so far."""
        ...

    @property
    def backend_name(self) -> str:
        """The backend's name."""
        ...

    @property
    def states(self) -> Sequence[str]:
        """The state of each slot; ``retired`` is one."""
        ...

    @property
    def outstanding(self) -> int:
        """How many requests have not come back."""
        ...

    @property
    def arrived(self) -> int:
        """How many rows have not been handed out yet."""
        ...

    @property
    def queue(self) -> TaskQueue | None:
        """The tasks, if there are any."""
        ...

    def usages(self) -> Mapping[int, Usage]:
        """What each slot uses, where that can be told."""
        ...


def _percentiles(values: Sequence[float], *percents: float) -> list[float | None]:
    return [float(value) for value in np.percentile(values, percents)] if values else [None] * len(percents)
