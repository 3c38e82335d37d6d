"""Policies that act for a whole pool: observations go to them in batches, their actions go back, and whoever learns takes the steps.

::

with AsyncPool("agent_gym:AgentBase/ToolTask-v0", 64) as pool, PolicyServer(pool, policy) as server:
    for step in server.steps(100_000):
        buffer.add(step.before.observation, step.decision, step.after.reward, step.after.done)
"""

import math
import queue
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

from agent_gym.core.policy import Decision, Policy
from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.runner.batcher import Batcher
from agent_gym.runner.device import Acted, Asked, Desk, Device
from agent_gym.runner.messages import Row
from agent_gym.runner.monitor import ServerStats
from agent_gym.runner.pool import AsyncPool
from agent_gym.runner.pressure import Pressure, weight

__all__ = ["PolicyServer", "ServedStep"]

_LATEST = 512


@dataclass(frozen=True, slots=True)
class ServedStep:
    """A step, as a learner wants it.

    Attributes:
        episode_id: The episode's id, as the policy was given it.
        before: The row with the observation that was acted on.
        decision: What the policy decided.
        version: The policy's version, then.
        after: The row that came of it.
        value: What the policy expects of the observation at which the episode was cut short, by `Decision.value`; None where the
            episode goes on or terminated, and with policies that give no values. After a fault, that of ``before``.
    """

    episode_id: str
    before: Row
    decision: Decision
    version: int
    after: Row
    value: float | None = None


@dataclass(slots=True)
class _Seat:
    """The episode of a slot, its newest row, and what was decided on that."""

    episode_id: str
    device: int | None
    row: Row
    bytes: int = 0
    decision: Decision | None = None
    version: int = 0


class _About(NamedTuple):
    """What an observation that waits for a policy is. If it is an episode's last: the step that waits for its value, and its bytes."""

    seat: _Seat
    row: Row
    final: tuple[ServedStep, int] | None = None


class PolicyServer:
    """Serves the environments of a pool. It is used from the pool's thread; each policy acts on a thread of its own meanwhile.

    Whoever is ready is dispatched as soon as a policy is free. What an episode contains depends on neither batches nor devices, if what
    the policy decides in it does not. Where a policy gives values, an observation at which an episode was cut short goes along in the
    next batch, for its value alone.

    What is held is bounded by bytes: episodes beyond what the budget has room for do not begin, and steps that would go beyond it are
    not asked for, until there is room; both are counted as ``paused``.

    If a policy fails, a `PolicyError` says how, this server is of no more use, and the pool can be closed, or served by another.

    Args:
        pool: The pool, open, with no episode that waits for an action.
        policy: A policy; or several, one a device, each with its own weights. With several, an episode goes to whichever is free,
            unless they remember episodes (they do something at `Policy.reset`): then to the same throughout.
        window: Seconds that a batch which could be larger waits for more; 0 for none, ``"auto"`` for the longest that costs little
            throughput (fewer, larger batches, where they cost money or a shared device).
        max_batch: The largest batch; None for what the measured times make best.
        act_timeout_s: Seconds that a policy has for a batch.
        budget_mib: How much may be held of observations and infos, in MiB.

    Raises:
        ConfigurationError: A value that does not fit, or a pool that does not.
    """

    def __init__(
        self,
        pool: AsyncPool,
        policy: Policy | Sequence[Policy],
        *,
        window: float | Literal["auto"] = 0.0,
        max_batch: int | None = None,
        act_timeout_s: float = 60.0,
        budget_mib: float = 1024.0,
    ) -> None:
        policies = list(policy) if isinstance(policy, Sequence) else [policy]
        if not policies or not all(isinstance(one, Policy) for one in policies) or len(set(map(id, policies))) < len(policies):
            raise ConfigurationError(
                f"policy must be a Policy, or several with none twice, since they act at the same time; got {policy!r}"
            )
        for name, value in (("act_timeout_s", act_timeout_s), ("budget_mib", budget_mib)):
            if not (isinstance(value, int | float) and 0 < value < math.inf):
                raise ConfigurationError(f"{name} must be above 0, got {value!r}")
        states = pool.states
        if pool.queue is not None and "idle" in states:
            raise ConfigurationError(f"env {states.index('idle')} waits for an action in an episode of somebody else's; make a new pool")
        self._pool, self._act_timeout_s = pool, act_timeout_s
        self._batcher: Batcher[Asked[_About]] = Batcher(len(policies), window, max_batch, pool.num_envs)
        self._desk = Desk(self._batcher)
        self._pressure = Pressure(int(budget_mib * 2**20))
        self._results: queue.SimpleQueue[Acted[_About]] = queue.SimpleQueue()
        self._devices = [Device(number, one, self._desk, self._results, pool.wake) for number, one in enumerate(policies)]
        self._end = weakref.finalize(self, self._desk.end)
        self._fresh: list[tuple[Asked[_About], int | None]] = []  # to be put on the desk
        self._asked = 0  # what waits for a policy, or is there
        self._seats: dict[int, _Seat] = {}
        self._vacant = deque(env_id for env_id, state in enumerate(states) if state not in ("busy", "retired"))
        self._starting = {env_id for env_id, state in enumerate(states) if state == "busy"}
        self._retired = states.count("retired")
        self._decided: deque[tuple[Row, Decision, int]] = deque()  # in which slot, what, and by which version
        self._given: deque[tuple[ServedStep, int]] = deque()  # steps to give out, and the bytes that go with them
        self._finals = 0  # steps that wait for a value
        self._seconds = self._stepped = 0.0  # of the latest rows, the older the less
        self._counts = dict.fromkeys(("steps", "episodes", "batches", "decided", "final_values"), 0)
        self._broken = False

    def steps(self, steps: int | None = None, episodes: int | None = None) -> Iterator[ServedStep]:
        """Serves, and gives each step as it comes; the steps of an episode in their order.

        What is under way when it stops goes on at the next call: nothing is dropped, so that short episodes are not favoured. Policies
        act while the steps are taken; once all of them are, none acts until the next call, so that it can be trained meanwhile.

        Args:
            steps: How many steps to give.
            episodes: How many episodes to begin; those under way, also from an earlier call, are played to their end. Not where the
                pool has tasks, which are worked off.

        Yields:
            The steps. Without either limit they end with the pool's tasks, or never.

        Raises:
            PolicyError: A policy raised, took too long, or did not give one decision for each observation.
            InfrastructureError: No environment could be made, or every slot is retired.
            ConfigurationError: The pool has tasks and ``episodes`` is given, a number is below 0, or the server is closed or has failed.
        """
        if self._broken or not self._end.alive:
            raise ConfigurationError(f"this server {'has failed' if self._broken else 'is closed'}; make a new one")
        if episodes is not None and self._pool.queue is not None:
            raise ConfigurationError("this pool has tasks, and each is an episode; leave out episodes")
        for name, value in (("steps", steps), ("episodes", episodes)):
            if value is not None and value < 0:
                raise ConfigurationError(f"{name} must be at least 0, got {value!r}")
        return self._serve(math.inf if steps is None else steps, math.inf if episodes is None else episodes)

    def run(
        self,
        steps: int | None = None,
        episodes: int | None = None,
        progress: Callable[[ServerStats], None] | None = None,
        every_s: float = 1.0,
    ) -> ServerStats:
        """Serves as `steps` does, keeps nothing, and says how it went.

        Args:
            steps: As for `steps`.
            episodes: As for `steps`.
            progress: Is called now and then with the figures.
            every_s: How often, in seconds.

        Raises:
            ConfigurationError: It would never end; and what `steps` raises.
        """
        if steps is None and episodes is None and self._pool.queue is None:
            raise ConfigurationError("run() needs steps or episodes, or a pool with tasks; else it never ends")
        told = time.monotonic()
        for _ in self.steps(steps, episodes):
            if progress is not None and time.monotonic() - told >= every_s:
                progress(self.stats())
                told = time.monotonic()
        return self.stats()

    def stats(self) -> ServerStats:
        """Figures on how it runs."""
        window_s, recent = self._pool.meter.recent()
        throughput = sum(one.stepped for one in recent) / window_s if window_s > 0 else 0.0
        batcher, pressure, counts = self._batcher, self._pressure, self._counts
        with self._desk.lock:
            (a, b), best, most_batch, batch_window_s = batcher.times.line, batcher.best, batcher.most, batcher.window_s
        known = counts["batches"] > 0 and 0 < best.per_s < math.inf
        return ServerStats(
            steps=counts["steps"],
            episodes=counts["episodes"],
            batches=counts["batches"],
            batch_mean=counts["decided"] / counts["batches"] if counts["batches"] else None,
            final_values=counts["final_values"],
            act_a_s=a,
            act_b_s=b,
            latency_s=batcher.latency_s,
            best_batch=best.batch,
            most_batch=most_batch,
            window_s=batch_window_s,
            bound_per_s=best.per_s if known else None,
            throughput_per_s=throughput,
            fraction_of_bound=throughput / best.per_s if known else None,
            queue_bytes=pressure.expects(self._pool.outstanding),
            queue_peak_bytes=pressure.peak,
            row_bytes=pressure.row,
            capacity=pressure.capacity,
            paused=pressure.paused,
            paused_s=pressure.paused_s(time.monotonic()),
        )

    def close(self) -> None:
        """Lets the policies' threads end; the pool is left to its owner. Closing twice is fine."""
        self._pool.most_running = self._pool.num_envs
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Beneath.

    def _serve(self, steps: float, episodes: float) -> Iterator[ServedStep]:
        try:
            while True:
                self._collect(0.0)
                episodes -= self._ask(episodes)
                self._desk.put(self._fresh, more=self._pool.awaited or bool(self._pool.arrived))
                self._asked += len(self._fresh)
                self._fresh.clear()
                while self._given and steps > 0:
                    step, number = self._given.popleft()
                    self._pressure.release(number)
                    self._counts["steps"] += 1
                    steps -= 1
                    yield step
                    del step
                if steps <= 0 or self._over(episodes):
                    self._rest()
                    return
                self._wait()
        except GeneratorExit:
            raise
        except BaseException:
            self._broken = True
            raise
        finally:
            self._desk.close()

    def _rest(self) -> None:
        """Lets policies come to the end of what they are at, and the environments go on."""
        self._desk.close()
        while busy := dict(self._desk.busy):
            self._collect(max(0.001, min(busy.values()) + self._act_timeout_s - time.monotonic()))
        self._ask(0)

    def _collect(self, wait_s: float) -> None:
        """Takes in what policies have decided, and waits for the first of it."""
        while self._asked:
            try:
                acted = self._results.get(timeout=wait_s) if wait_s > 0.0 else self._results.get_nowait()
            except queue.Empty:
                break
            wait_s = 0.0
            self._asked -= len(acted.asked)
            self._counts["batches"] += 1
            self._counts["decided"] += len(acted.asked)
            for asked, decision in zip(acted.asked, self._devices[acted.device].decisions(acted), strict=True):
                seat, row, final = asked.about
                if final is None:
                    seat.decision, seat.version = decision, acted.version
                    self._decided.append((row, decision, acted.version))
                else:
                    self._finals -= 1
                    self._counts["final_values"] += 1
                    step, number = final
                    self._given.append((replace(step, value=decision.value), number))
        now = time.monotonic()
        for number, since in dict(self._desk.busy).items():
            if now - since >= self._act_timeout_s:
                raise self._devices[number].late(self._act_timeout_s)

    def _ask(self, most: float) -> int:
        """Begins episodes and hands out actions as far as there is room; gives how many episodes of at most so many it began."""
        pool, pressure = self._pool, self._pressure
        capacity, waiting = min(pool.num_envs - self._retired, pressure.capacity), set[int]()
        self._batcher.envs = max(1, capacity)
        begun: list[int] = []
        if pool.queue is not None:
            pool.most_running = max(1, capacity)
            if pressure.capacity < pool.num_envs and len(pool.queue):
                waiting.update(env_id for env_id, state in enumerate(pool.states) if state == "done")
        else:
            room = capacity - len(self._seats) - len(self._starting)
            while self._vacant and len(begun) < min(most, room):
                begun.append(self._vacant.popleft())
            if begun:
                pool.async_reset(begun)
                self._starting.update(begun)
            if most > len(begun):
                waiting.update(self._vacant)
        sent: list[tuple[Row, Decision, int]] = []
        while self._decided and pressure.takes(pool.outstanding + len(sent)):
            sent.append(self._decided.popleft())
        if sent:
            notes = [{"policy_version": version, **decision.notes()} for _, decision, version in sent]
            pool.send([decision.action for _, decision, _ in sent], [row.env_id for row, _, _ in sent], notes)
        waiting.update(row.env_id for row, _, _ in self._decided)
        if pressure.row is not None:  # before, it is only that the first has not been weighed
            pressure.waiting(waiting, time.monotonic())
        return len(begun)

    def _wait(self) -> None:
        """Waits until rows come, a policy has decided, or one is late."""
        left = None
        if self._asked:
            now = time.monotonic()
            left = max(0.0, min(dict(self._desk.busy).values(), default=now) + self._act_timeout_s - now)
        if self._pool.awaited or self._pool.arrived:
            for row in self._pool.recv(timeout=left):
                self._take(row)
        elif left is not None:
            self._collect(left)
        else:
            self._pool.recv(timeout=0.0)  # says so itself, where tasks wait
            raise InfrastructureError("every slot is retired after too many failures")

    def _take(self, row: Row) -> None:
        """Takes in a row: a step is given out, and an observation waits for a policy."""
        env_id, seat, number = row.env_id, self._seats.get(row.env_id), 0
        self._seconds += row.seconds - self._seconds / _LATEST
        self._stepped += (row.kind == "step") - self._stepped / _LATEST
        self._batcher.latency_s = self._seconds / max(1.0, self._stepped)
        if not row.fault:  # else the observation is one that is held already
            number = weight(row.observation) + weight(row.info)
            self._pressure.hold(number, self._pool.outstanding)
        step = None
        if seat is not None and seat.decision is not None:
            value = seat.decision.value if row.fault else None
            step = ServedStep(seat.episode_id, seat.row, seat.decision, seat.version, row, value)
        goes = (seat.bytes if seat is not None else 0) + (number if row.done else 0)
        self._starting.discard(env_id)
        if row.done:
            self._seats.pop(env_id, None)
            self._leave(row)
        else:
            new = seat is None
            if seat is None:
                seat = self._seats[env_id] = _Seat(str(row.episode), self._place(), row)
            seat.row, seat.bytes, seat.decision = row, number, None
            self._fresh.append((Asked(seat.episode_id, row.observation, new, _About(seat, row)), seat.device))
        if step is None:
            self._pressure.release(goes)
        elif seat is not None and step.decision.value is not None and row.truncated and not row.terminated and not row.fault:
            self._finals += 1
            self._fresh.append((Asked(seat.episode_id, row.observation, False, _About(seat, row, (step, goes))), seat.device))
        else:
            self._given.append((step, goes))

    def _leave(self, row: Row) -> None:
        """Takes in that an episode is over, and its slot is free or given up."""
        self._counts["episodes"] += 1
        if row.fault and self._pool.states[row.env_id] == "retired":
            self._retired += 1
        elif self._pool.queue is None:
            self._vacant.append(row.env_id)

    def _place(self) -> int | None:
        """The device of a new episode: where fewest are, if policies have memory; else any."""
        if len(self._devices) == 1 or not any(device.memory for device in self._devices):
            return None
        there = Counter(seat.device for seat in self._seats.values())
        return min(range(len(self._devices)), key=lambda number: there[number])

    def _over(self, episodes: float) -> bool:
        """Whether nothing is left to do."""
        if self._seats or self._starting or self._finals or self._given or self._pool.outstanding or self._pool.arrived:
            return False
        return episodes <= 0 if self._pool.queue is None else not len(self._pool.queue)
