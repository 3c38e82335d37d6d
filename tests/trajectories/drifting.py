"""A small environment that does one thing otherwise once a test says so: what a replay must find, name and place.

Four buttons, to be pressed by their numbers; ``send`` sends something to somewhere outside, where it stays.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium

from agent_gym.agent_env import AgentEnv
from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import digest
from agent_gym.core.observation import Observation
from agent_gym.core.session import Change, Session, Snapshot
from agent_gym.core.task import Task, TaskSet
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.core.verdict import Check, Ending, Verdict
from agent_gym.errors import unknown

ENV_ID = "Test/Drifting-v0"
NAMES = ("red", "green", "blue", "red")
SENT: list[str] = []
"""What has arrived outside."""

_BID = {"type": "string", "pattern": "^[0-9]+$", "x-entity": "bid"}
_TEXT = {"type": "string"}


def _spec(name: str, properties: dict[str, Any], **more: Any) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return ToolSpec(name=name, description=more.pop("description", "Does it."), parameters=parameters, **more)


def tools(drift: str | None) -> tuple[ToolSpec, ...]:
    described = {"description": "Presses a button, gently."} if drift == "tools" else {}
    return (
        _spec("press", {"bid": _BID}, may_block=False, **described),
        _spec("look", {}, may_block=False, annotations={"readOnlyHint": True}),
        _spec("send", {"text": _TEXT}, may_block=False, remote=True, annotations={"openWorldHint": True}),
    )


class DriftingTasks(TaskSet):
    def splits(self) -> Sequence[str]:
        return ("train",)

    def families(self, split: str) -> Sequence[str]:  # noqa: ARG002 - the contract's
        return ("buttons/press",)

    def ids(self, split: str, family: str) -> Sequence[str]:  # noqa: ARG002
        return ("green", "blue")

    def get(self, task_id: str) -> Task:
        if task_id not in ("green", "blue") or DriftingEnv.drift == "gone":
            raise unknown("task", task_id, ())
        spec = {"wanted": [task_id], **({"hint": "new"} if DriftingEnv.drift == "task" else {})}
        return Task(id=task_id, type="buttons/press", split="train", goal=f"Press {task_id}.", max_steps=8, spec=spec)


class DriftingSession(Session):
    def __init__(self, task: Task, drift: str | None) -> None:
        self.task, self.drift, self.tools = task, drift, tools(drift)
        self.pressed: list[str] = []
        self.calls = 0
        names = [name for name in NAMES if drift != "element_gone" or name != "green"]
        self.buttons = {str(number): name for number, name in enumerate(names, 40 if drift == "numbers" else 10)}

    def observe(self) -> Observation:
        late = self.drift == "shown" and self.calls >= 2
        elements = [{"bid": bid, "role": "button", "name": name} for bid, name in self.buttons.items()]
        return Observation(f"Pressed: {self.pressed}{'!' if late else ''}", {"pressed": list(self.pressed), "elements": elements})

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - the contract's
        self.calls += 1
        if call.name == "send":
            SENT.append(call.arguments["text"])
            return ToolResult(status="ok", structured={"number": len(SENT)})
        if call.name == "look":
            seen = len(self.pressed) + (self.drift == "tool" and self.calls >= 2)
            return ToolResult(status="ok", content=f"{seen} pressed, seen in {2 if self.drift == 'volatile' else 1}.5 ms")
        if call.arguments["bid"] not in self.buttons:
            return ToolResult(status="not_found", content="no such button")
        self.pressed.append(self.buttons[call.arguments["bid"]])
        return ToolResult(status="ok")

    @property
    def ended(self) -> Verdict | None:  # type: ignore[override]
        return self.verdict(ToolCall("finish")) if self.drift == "length" and self.pressed else None

    def verdict(self, closing: ToolCall) -> Verdict:
        if closing.name != "finish":
            return Verdict(Ending.ABSTAINED)
        right = self.pressed == self.task.spec["wanted"] and self.drift != "grader"
        return Verdict(Ending.SUCCESS if right else Ending.FAILURE, (Check("pressed", right, str(self.pressed)),))

    def digest(self) -> str:
        return digest([self.pressed, self.drift == "state" and self.calls >= 2])

    def changes(self) -> list[Change]:
        return [Change("buttons", str(number), None, name) for number, name in enumerate(self.pressed)]


class DriftingEnv(AgentEnv):
    """The environment; a test sets ``drift`` between recording and replaying."""

    version: ClassVar[str] = "1"
    volatile: ClassVar[Sequence[str]] = (r"seen in [0-9.]+ ms",)
    drift: ClassVar[str | None] = None

    def __init__(self, **keywords: Any) -> None:
        super().__init__(tasks=DriftingTasks(), tools=tools(self.drift), **keywords)

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - the contract's
        return DriftingSession(task, self.drift)

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        data = observations[-1]["data"]
        wanted = data["goal"].removeprefix("Press ").removesuffix(".")
        if data["view"]["pressed"]:
            return ToolCall("finish")
        return ToolCall("press", {"bid": next(one["bid"] for one in data["view"]["elements"] if one["name"] == wanted)})


gymnasium.register(ENV_ID, entry_point="agent_gym.factory:make", kwargs={"env": "tests.trajectories.drifting:DriftingEnv"})
