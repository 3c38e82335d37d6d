"""A long task in which everything turns on what was read long ago: what a short context loses, and what it must find again."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agent_gym.agent_env import AgentEnv
from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import digest
from agent_gym.core.observation import Observation
from agent_gym.core.seeding import derive
from agent_gym.core.session import Change, Session, Snapshot
from agent_gym.core.task import Task, TaskSet
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.core.verdict import Check, Ending, Verdict
from agent_gym.errors import unknown

__all__ = ["MemoryTask"]

_DOORS = 25
_FAMILY = "doors/open"
_PROSE = "the house stands by a quiet river and its garden is full of old apple trees while in winter snow lies on every roof"
_WORDS = _PROSE.split()


def _spec(name: str, description: str, properties: dict[str, Any]) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return ToolSpec(name=name, description=description, parameters=parameters, annotations={"readOnlyHint": False}, may_block=False)


_DOOR = {"type": "integer", "minimum": 1, "maximum": _DOORS}
_TOOLS = (
    _spec("read_note", "Read the next note; each can be read once.", {"door": _DOOR}),
    _spec("open_door", "Open the next door; a wrong code jams it.", {"door": _DOOR, "code": {"type": "string", "pattern": "^[0-9]{6}$"}}),
)


class _MemoryTasks(TaskSet):
    """Ten tasks: other codes, other prose, another order of the doors."""

    def splits(self) -> Sequence[str]:
        return ("train",)

    def families(self, split: str) -> Sequence[str]:  # noqa: ARG002 - there is one of each
        return (_FAMILY,)

    def ids(self, split: str, family: str) -> Sequence[str]:  # noqa: ARG002
        return [f"{_FAMILY}/{number}" for number in range(10)]

    def get(self, task_id: str) -> Task:
        if task_id not in (known := self.ids("train", _FAMILY)):
            raise unknown("task", task_id, known)
        rng = derive("doors", task_id)
        codes = [f"{int(code):06d}" for code in rng.integers(10**6, size=_DOORS)]
        prose = [[" ".join(_WORDS[int(i)] for i in rng.integers(len(_WORDS), size=45)) for _ in range(2)] for _ in codes]
        return Task(
            id=task_id,
            type=_FAMILY,
            split="train",
            goal=f"Read all {_DOORS} notes, then open all {_DOORS} doors with the codes that the notes tell.",
            max_steps=4 * _DOORS,
            spec={"codes": codes, "prose": prose, "order": [int(door) + 1 for door in rng.permutation(_DOORS)]},
        )


class _MemorySession(Session):
    tools = _TOOLS

    def __init__(self, task: Task, snapshot: Snapshot | None) -> None:
        self._spec = task.spec
        self._read: int = snapshot["read"] if snapshot else 0
        self._tried: list[bool] = list(snapshot["tried"]) if snapshot else []

    def observe(self) -> Observation:
        if self._read < _DOORS:
            text = f"Next note: {self._read + 1}"
        elif len(self._tried) < _DOORS:
            text = f"Next door: {self._spec['order'][len(self._tried)]}"
        else:
            text = "Every door has been tried."
        return Observation(text, {"next": text})

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - quick, and nothing is remote
        door = call.arguments["door"]
        if call.name == "read_note":
            if door != self._read + 1:
                return ToolResult(status="conflict", content="that is not the next note")
            self._read += 1
            before, after = self._spec["prose"][door - 1]
            return ToolResult(status="ok", content=f"{before}. Door {door} has the code {self._spec['codes'][door - 1]}. {after}.")
        if self._read < _DOORS or len(self._tried) == _DOORS or door != self._spec["order"][len(self._tried)]:
            return ToolResult(status="conflict", content="it is not this door's turn")
        self._tried.append(call.arguments["code"] == self._spec["codes"][door - 1])
        return ToolResult(status="ok", content="it opens" if self._tried[-1] else "it jams")

    def verdict(self, closing: ToolCall) -> Verdict:
        opened = sum(self._tried)
        done = closing.name == "finish" and opened == _DOORS
        return Verdict(Ending.SUCCESS if done else Ending.FAILURE, (Check("all_doors_are_open", done, f"{opened} of {_DOORS}"),))

    def digest(self) -> str:
        return digest([self._read, self._tried])

    def changes(self) -> list[Change]:
        return [
            Change("doors", str(door), "shut", "open" if opened else "jammed")
            for door, opened in zip(self._spec["order"], self._tried, strict=False)
        ]

    def save(self) -> Snapshot | None:
        return {"read": self._read, "tried": list(self._tried)}


class MemoryTask(AgentEnv):
    """Twenty-five notes, twenty-five doors, fifty calls.

    Description:
        Each note tells the code of one door in the middle of much prose, and can be read once. Then the doors have to be opened, in
        an order that shows itself door by door. An agent that sees no more than the newest results cannot do it.

    Observation:
        ``data["view"]["next"]``: the next note or door.

    Actions:
        ======================== ============================================
        ``read_note(door)``      the note for a door, in turn
        ``open_door(door,code)`` tries the door whose turn it is, once
        ======================== ============================================

    Reward:
        As everywhere: +1 on success.

    Endings:
        As everywhere.

    Tasks:
        Family ``doors/open``; split ``train``, ten tasks.

    Versions:
        1: the first.

    Args:
        **keywords: `AgentEnv`'s.
    """

    version: ClassVar[str] = "1"

    def __init__(self, **keywords: Any) -> None:
        super().__init__(tasks=_MemoryTasks(), tools=_TOOLS, **keywords)

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - nothing else is drawn
        """A session of notes and doors."""
        return _MemorySession(task, snapshot)

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """Reads every note, looks the codes up in what was shown, and finishes."""
        kind, _, number = observations[-1]["data"]["view"]["next"].rpartition(": ")
        if not kind:
            return ToolCall("finish")
        if kind == "Next note":
            return ToolCall("read_note", {"door": int(number)})
        told = f"Door {number} has the code "
        notes = (str(seen["data"]["last"]["result"]) for seen in observations if seen["data"]["last"])
        return ToolCall("open_door", {"door": int(number), "code": next(note for note in notes if told in note).partition(told)[2][:6]})
