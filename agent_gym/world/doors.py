"""Doors into a World: ways in which an agent reaches its operations. Here the tool door; every world opens through it alike."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from agent_gym.core import Change, Observation, Session, Snapshot, Task, ToolCall, ToolResult, Verdict
from agent_gym.core.tool import CALL_FAILED
from agent_gym.world.counterpart import ASK, Counterpart
from agent_gym.world.grading import fits, goal_check, judge
from agent_gym.world.kind import WorldKind
from agent_gym.world.operations import NotFound, OperationFailed, carry_out
from agent_gym.world.schema import Base
from agent_gym.world.world import World

__all__ = ["WorldSession", "prepare"]


class WorldSession(Session):
    """One episode in a world, through the tool door: every operation is a tool, and so is asking the counterpart.

    Args:
        kind: The kind of world.
        task: The task.
        base: The base database that the task's spec names.
        snapshot: What `save` of an earlier session of the same task gave, to go on from there.
    """

    def __init__(self, kind: WorldKind, task: Task, base: Base, snapshot: Snapshot | None = None) -> None:
        self.tools, self.rules, self.reasons = kind.tools, kind.rules, kind.reasons
        self._kind = kind
        self._task = task
        self._spec = task.spec
        self._world = World(kind.schema, base)
        self._before: list[tuple[ToolCall, str]] = []  # the calls before the first write, and how each was answered
        self._wrote = False
        self._excused = [False] * len(self._spec["forbidden"])  # whether what each says after "unless" has happened
        self._asked: list[str] = []  # the intents that were answered
        self._happened = [False] * len(self._spec["events"])
        self.useless_questions = None if kind.counterpart is None else 0
        self._reached = [False] * len(self._spec["milestones"])
        self._goal_at = ("", False)  # the digest at which the goal was last looked at, and whether it was met
        if snapshot is None:
            self._prepare()
        else:
            self._restore(snapshot)

    @property
    def world(self) -> World:
        """The live world, for tests and reports."""
        return self._world

    def _prepare(self) -> None:
        """Adds the task's own rows to the base; they belong to the start."""
        with self._world.transaction():
            prepare(self._world, self._spec)
        self._world.settle()

    def _restore(self, snapshot: Snapshot) -> None:
        self._world.restore(snapshot["world"])
        self._before = [(ToolCall(**call), status) for call, status in snapshot["before"]]
        self._wrote = snapshot["wrote"]
        self._excused = list(snapshot["excused"])
        self._asked, self.useless_questions = list(snapshot["asked"]), snapshot["useless_questions"]
        self._happened = list(snapshot["happened"])
        self._reached = list(snapshot["reached"])
        self.violation = snapshot["violation"]
        self._waited_s = snapshot["waited_s"]

    def observe(self) -> Observation:
        """Nothing beyond what the calls gave: a tool door has no view of its own."""
        return Observation("", {})

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:
        """Carries out an operation as one transaction, or puts a question to the counterpart; see `Session.call`."""
        if call.name == ASK and self._kind.counterpart is not None:
            return self._ask(self._kind.counterpart, call.arguments["question"])
        operation = self._kind.operations.get(call.name)
        if operation is None:
            return ToolResult(status="unknown_tool", content=f"there is no tool {call.name!r}")
        result = carry_out(self._world, operation, call.arguments, deadline, key)
        if not result.from_cache:
            self._note(call, result.status, writes=not operation.spec.read_only)
        return result

    def owners(self, call: ToolCall) -> set[frozenset[str]]:
        """To whom are open the rows that a call names; a row that is not there is open to all."""
        owners: set[frozenset[str]] = set()
        if call.name in self._kind.operations:
            for table, key in self._kind.named(call.name, call.arguments):
                with suppress(NotFound):
                    found = self._kind.owner(self._world, table, key)
                    if found is not None:
                        owners.add(frozenset((found,) if isinstance(found, str) else found))
        return owners

    def denied(self, call: ToolCall) -> None:
        """Takes in that a call was not permitted: a look in vain, on which a task may turn."""
        self._note(call, "forbidden", writes=False)

    def _ask(self, counterpart: Counterpart, question: str) -> ToolResult:
        """What the counterpart says. A question that brings nothing new is counted; one with an answer is noted by its intent."""
        intent, answer = counterpart.answer(self._task.goal, question, self._spec["answers"])
        if answer is None or intent in self._asked:
            self.useless_questions = (self.useless_questions or 0) + 1
        if answer is None:
            return _told("empty", {"answer": f"The {counterpart.who} has nothing to add."})
        if intent:
            self._asked.append(intent)
            self._note(ToolCall(ASK, {"intent": intent}), "ok", writes=False)
        return _told("ok", dict(answer))

    def rehearse(self, call: ToolCall, deadline: float) -> ToolResult | None:
        """What an operation would give, without anything being done."""
        operation = self._kind.operations.get(call.name)
        return None if operation is None else carry_out(self._world, operation, call.arguments, deadline, trial=True)

    def _note(self, call: ToolCall, status: str, *, writes: bool) -> None:
        """Takes in a call that was answered so."""
        if writes and status not in CALL_FAILED:
            self._wrote = True
            for pattern, excused in zip(self._spec["forbidden"], self._excused, strict=True):
                if not excused and fits(pattern, call, writes=True):
                    self.violation = str(call)
        elif not self._wrote:
            self._before.append((call, status))
        for index, pattern in enumerate(self._spec["forbidden"]):
            self._excused[index] |= "unless" in pattern and fits(pattern["unless"], call, writes=writes, status=status)
        for index, milestone in enumerate(self._spec["milestones"]):
            self._reached[index] |= "call" in milestone and fits(milestone["call"], call, writes=writes, status=status)
        for index, event in enumerate(self._spec["events"]):
            if not self._happened[index] and fits(event["after"], call, writes=writes, status=status):
                self._happened[index] = True
                self._happen(event)

    def _happen(self, event: Mapping[str, Any]) -> None:
        """What somebody else does; they too may find that it cannot be done any more."""
        self.meanwhile += 1
        with suppress(OperationFailed), self._world.transaction():
            self._kind.operations[event["operation"]].run(self._world, **event["arguments"])

    def verdict(self, closing: ToolCall) -> Verdict:
        """Judges the live database; see `agent_gym.world.grading`."""
        return judge(self._world, self._task, self._before, self.milestones(), self.violation, closing)

    def milestones(self) -> dict[str, bool]:
        """The task's milestones in order, and whether each has been reached."""
        digest = self._world.digest()
        if self._wrote and self._goal_at[0] != digest:
            self._goal_at = (digest, goal_check(self._world, self._spec["goal"]).passed)
        met = self._wrote and self._goal_at[1]
        pairs = zip(self._spec["milestones"], self._reached, strict=True)
        return {milestone["name"]: called or (met and "goal" in milestone) for milestone, called in pairs}

    def now(self) -> float:
        """The world's clock, and the part of a second that has been waited beyond it."""
        return self._world.clock + self._waited_s

    def wait(self, seconds: float) -> None:
        """Lets virtual time pass; the world's clock shows whole seconds."""
        whole, rest = divmod(self._waited_s + seconds, 1.0)
        with self._world.transaction():
            self._world.advance(int(whole))
        self._waited_s = rest

    def digest(self) -> str:
        """The digest of every row but the logs'."""
        return self._world.digest()

    def changes(self) -> list[Change]:
        """The rows that differ from the episode's start."""
        return self._world.changes()

    def save(self) -> Snapshot | None:
        """World and progress as JSON values."""
        return {
            "world": self._world.snapshot(),
            "before": [[call.to_dict(), status] for call, status in self._before],
            "wrote": self._wrote,
            "excused": list(self._excused),
            "asked": list(self._asked),
            "useless_questions": self.useless_questions,
            "happened": list(self._happened),
            "reached": list(self._reached),
            "violation": self.violation,
            "waited_s": self._waited_s,
        }

    def probes(self) -> dict[str, Any]:
        """Rows, clock and progress: equal in every new session of one task."""
        return {"digest": self.digest(), "clock": self._world.clock, "serial": self._world.serial, "milestones": self.milestones()}

    def interrupt(self) -> None:
        """Stops the operation that is under way."""
        self._world.interrupt()

    def close(self) -> None:
        """Frees the database."""
        self._world.close()


def prepare(world: World, spec: Mapping[str, Any]) -> None:
    """Adds a task's own rows to its base, inside the open transaction."""
    for table, key, columns in spec["setup"]:
        if key is None:
            world.insert(table, **columns)
        elif columns is None:
            world.delete(table, key)
        else:
            world.update(table, key, **columns)
    while world.serial < spec["serial"]:  # ids that the task's own rows have
        world.new_id("")
    world.advance(spec["clock"] - world.clock)


def _told(status: str, answer: dict[str, Any]) -> ToolResult:
    return ToolResult(status=status, content=orjson.dumps(answer).decode(), structured=answer)
