"""What runs in which slot: begins episodes, gives out tasks, and makes a row of whatever came of a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_gym.core.seeding import derive_seed
from agent_gym.errors import InfrastructureError
from agent_gym.runner.messages import Kind, Row
from agent_gym.runner.monitor import Meter
from agent_gym.runner.supervision import Outcome, Supervisor
from agent_gym.runner.tasks import TaskQueue

__all__ = ["Episodes", "spread"]

_RESET_TRIES = 3


def spread(*path: str | int) -> int:
    """`derive_seed`, in 31 bits: older environments seed generators that take no more than 32."""
    return derive_seed(*path) >> 32


@dataclass(slots=True)
class _Slot:
    pending: Kind | None = None
    """What it was asked for; until the row is handed out."""
    running: bool = False
    """Whether its episode goes on."""
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


class Episodes:
    """The episodes of a pool.

    Args:
        supervisor: Carries out requests.
        queue: Tasks to work off, or None: then the caller begins the episodes.
        meter: Is told of every request and outcome.
        seed: The root of all seeds.

    Attributes:
        outstanding: Resets and steps whose outcome has not arrived.
        arrived: Rows that have not been handed out.
        called: The outcomes of calls, by request.
        most_running: How many tasks run at once, at most; those that run go on.
    """

    def __init__(self, supervisor: Supervisor, queue: TaskQueue | None, meter: Meter, seed: int) -> None:
        self.outstanding = 0
        self.arrived: list[Row] = []
        self.called: dict[int, Outcome] = {}
        self._supervisor, self._queue, self._meter, self._seed = supervisor, queue, meter, seed
        self._notes = {"stage": queue.stage} if queue is not None and queue.stage else {}
        self._slots = [_Slot() for _ in range(supervisor.num_envs)]
        self.most_running = supervisor.num_envs
        self._free = list(range(supervisor.num_envs))  # slots that take a task next
        self._begun = 0

    @property
    def awaited(self) -> bool:
        """Whether rows can come without anything being sent."""
        return self.outstanding > 0 or (self._queue is not None and bool(self._free) and len(self._queue) > 0 and self._room > 0)

    @property
    def _room(self) -> int:
        """How many further tasks may run."""
        return self.most_running - sum(slot.pending is not None or slot.running for slot in self._slots)

    def state(self, env_id: int) -> str:
        """The slot's state; see `AsyncPool.states`."""
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

    def begun(self, env_id: int) -> bool:
        """Whether the slot has ever had an episode."""
        return self._slots[env_id].episode >= 0

    def begin(self, env_id: int, options: Mapping[str, Any] | None, *seed: int | None, task_id: str | None = None) -> None:
        """Begins the next episode in a slot, with the given seed (which may be None), or else with the episode's own."""
        given = seed[0] if seed else spread("pool", self._seed, self._begun if task_id is None else task_id)
        payload = (given, dict(options) if options else None)
        self._submit(env_id, "reset", payload)
        self._slots[env_id] = _Slot(pending="reset", episode=self._begun, task_id=task_id, payload=payload)
        self._begun += 1

    def step(self, env_id: int, action: Any, notes: Mapping[str, Any] | None, priority: float) -> None:
        """Hands an action to a slot."""
        self._submit(env_id, "step", (action, {**self._notes, **notes} if notes else self._notes))
        self._slots[env_id].priority = priority

    def call(self, env_id: int, payload: Any) -> int:
        """Calls something in a slot; gives the request's id, under which ``called`` will have the outcome."""
        return self._submit(env_id, "call", payload)

    def assign(self) -> None:
        """Gives tasks to free slots whose worker is up; one that is being replaced would only keep its task waiting."""
        if self._queue is None or not self._free or not len(self._queue):
            return
        self._free = [env_id for env_id in self._free if not self._supervisor.retired(env_id)]
        up = [env_id for env_id in self._free if self._supervisor.ready(env_id)][: max(0, self._room)]
        for env_id, task_id in zip(up, self._queue.take(len(up)), strict=False):
            self._free.remove(env_id)
            self.begin(env_id, {"task_id": task_id}, task_id=task_id)

    def take(self, timeout_s: float | None) -> None:
        """Waits until something happens, and takes it in.

        Raises:
            InfrastructureError: No environment could be made at all.
        """
        for outcome in self._supervisor.wait(timeout_s):
            slot = self._slots[outcome.slot]
            if outcome.kind == "call":
                slot.pending = None
                self.called[outcome.request_id] = outcome
                continue
            self.outstanding -= 1
            self._meter.came(outcome)
            slot.seconds += outcome.seconds
            if outcome.fault and outcome.kind == "reset" and self._again(outcome):
                continue
            row = self._row(outcome)
            slot.running, slot.observation = not row.done, None if row.done else row.observation
            self._supervisor.counters.episodes += row.done
            self.arrived.append(row)

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
        try:
            self._submit(env_id, "reset", slot.payload)
        except TypeError:  # no worker can be given it, as the fault says
            return False
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

    def hand_out(self, most: int | None) -> list[Row]:
        """The rows that have arrived; of more than ``most`` those of highest priority. Slots whose episode ended take a task.

        Raises:
            InfrastructureError: Every slot is retired while tasks wait.
        """
        rows, self.arrived = self.arrived, []
        if most is not None and len(rows) > most:
            first = set(sorted(range(len(rows)), key=lambda number: -self._slots[rows[number].env_id].priority)[:most])
            self.arrived = [row for number, row in enumerate(rows) if number not in first]
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
        self.assign()
        waiting = 0 if rows or self._queue is None else len(self._queue)
        if waiting and all(map(self._supervisor.retired, range(self._supervisor.num_envs))):
            raise InfrastructureError(f"every slot is retired after too many failures, and {waiting} tasks wait")
        return rows

    def _submit(self, env_id: int, kind: Kind, payload: Any) -> int:
        number = self._supervisor.submit(env_id, kind, payload)
        self._slots[env_id].pending = kind
        if kind != "call":
            self._meter.sent(env_id)
            self.outstanding += 1
        return number
