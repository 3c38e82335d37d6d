"""A small complete environment, and defects to plant in it: what the checks of this package must catch or survive."""

import threading
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
from agent_gym.errors import InfrastructureError, unknown

__all__ = ["SmallTask"]

_COLOURS = ("red", "green", "blue", "yellow")
_NUMBER = {"type": "integer", "minimum": 1, "maximum": 4}


def _spec(name: str, description: str, properties: dict[str, Any], read_only: bool, may_block: bool = False) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return ToolSpec(name=name, description=description, parameters=parameters, annotations={"readOnlyHint": read_only}, may_block=may_block)


_LOOK = _spec("look", "See which colour the lamp of a room has.", {"room": {**_NUMBER, "enum": [1, 2, 3, 4]}}, True)
_SWITCH = _spec("switch_off", "Switch off the lamp of a room.", {"room": {**_NUMBER, "enum": [1, 2, 3, 4]}}, False)
_DEFECTS = {
    "sleep_for_ever": _spec("sleep_for_ever", "Never comes back, but can be interrupted.", {}, True, may_block=True),
    "sleep_deaf": _spec("sleep_deaf", "Never comes back, whatever is asked of it.", {}, True, may_block=True),
    "raise_error": _spec("raise_error", "Raises an exception of its own.", {}, True),
    "break_engine": _spec("break_engine", "Makes the environment itself fail.", {}, True),
    "over_reach": _spec("over_reach", "Is never permitted.", {}, False),
    "do_harm": _spec("do_harm", "Does what the rules forbid.", {}, False),
}


class _SmallTasks(TaskSet):
    """Fifty tasks a split: switch off the lamp of the named colour."""

    def splits(self) -> Sequence[str]:
        return ("train", "test")

    def families(self, split: str) -> Sequence[str]:  # noqa: ARG002 - the same in both
        return ("lamps/switch",)

    def ids(self, split: str, family: str) -> Sequence[str]:
        return [f"{family}/{split}/{i}" for i in range(50)]

    def get(self, task_id: str) -> Task:
        ids = {known: split for split in self.splits() for known in self.ids(split, "lamps/switch")}
        if task_id not in ids:
            raise unknown("task", task_id, ids)
        split = ids[task_id]
        rng = derive("lamps", task_id)
        lamps = [_COLOURS[int(i)] for i in rng.permutation(4)]
        room = int(rng.integers(4)) + 1
        goal = f"Switch off the {lamps[room - 1]} lamp."
        return Task(id=task_id, type="lamps/switch", split=split, goal=goal, max_steps=8, spec={"lamps": lamps, "room": room})


class _SmallSession(Session):
    def __init__(self, task: Task, tools: Sequence[ToolSpec], snapshot: Snapshot | None) -> None:
        self.tools = tools
        self._task = task
        self._off: list[int] = list(snapshot["off"]) if snapshot else []
        self._stop = threading.Event()

    def observe(self) -> Observation:
        return Observation(f"Lamps off: {self._off}", {"off": list(self._off)})

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - quick, and nothing is remote
        if call.name == "look":
            colour = self._task.spec["lamps"][call.arguments["room"] - 1]
            return ToolResult(status="ok", structured={"room": call.arguments["room"], "lamp": colour})
        if call.name == "switch_off":
            if call.arguments["room"] in self._off:
                return ToolResult(status="conflict", content="it is off already")
            self._off.append(call.arguments["room"])
            return ToolResult(status="ok", structured={"room": call.arguments["room"], "lamp": "off"})
        return self._misbehave(call.name)

    def _misbehave(self, name: str) -> ToolResult:
        if name == "sleep_for_ever":
            self._stop.clear()
            self._stop.wait()
            return ToolResult(status="ok")
        if name == "sleep_deaf":
            threading.Event().wait()
        if name == "raise_error":
            raise ZeroDivisionError("planted")
        if name == "break_engine":
            raise InfrastructureError("planted")
        if name == "do_harm":
            self.violation = "do_harm"
            return ToolResult(status="ok")
        return ToolResult(status="forbidden", content="not permitted")

    def verdict(self, closing: ToolCall) -> Verdict:
        if closing.name != "finish":
            return Verdict(Ending.ABSTAINED)
        done = self._off == [self._task.spec["room"]]
        return Verdict(Ending.SUCCESS if done else Ending.FAILURE, (Check("the_right_lamp_is_off", done, str(self._off)),))

    def milestones(self) -> dict[str, bool]:
        return {"switched_off": self._task.spec["room"] in self._off}

    def digest(self) -> str:
        return digest(self._off)

    def changes(self) -> list[Change]:
        return [Change("lamps", str(room), "on", "off") for room in sorted(self._off)]

    def interrupt(self) -> None:
        self._stop.set()


class _SavableSession(_SmallSession):
    def save(self) -> Snapshot | None:
        return {"off": list(self._off)}


class SmallTask(AgentEnv):
    """Four rooms, four lamps.

    Description:
        One lamp has to be switched off; `look` tells which room has it. With ``defects=True`` there are six further tools that
        misbehave, each in its way, to try what an environment, a wrapper or a runner survives.

    Observation:
        ``data["view"]["off"]``: the rooms whose lamp is off.

    Actions:
        ============================ ==========================================
        ``look(room)``               the colour of a room's lamp
        ``switch_off(room)``         switches it off
        ``sleep_for_ever``, …        see `agent_gym.testing.small`
        ============================ ==========================================

    Reward:
        As everywhere: +1 on success, −1 on a violation.

    Endings:
        As everywhere.

    Tasks:
        Family ``lamps/switch``; splits ``train`` and ``test``, fifty tasks each.

    Versions:
        1: the first.

    Args:
        savable: Whether sessions can be saved, or states are restored by making the calls again.
        defects: Whether the tools that misbehave are offered; or the names of those that are.
        **keywords: `AgentEnv`'s.
    """

    version: ClassVar[str] = "1"

    def __init__(self, *, savable: bool = True, defects: bool | Sequence[str] = False, **keywords: Any) -> None:
        self._session_type = _SavableSession if savable else _SmallSession
        names = (_DEFECTS if defects else ()) if isinstance(defects, bool) else defects
        self._tools = (_LOOK, _SWITCH, *(_DEFECTS[name] for name in names))
        super().__init__(tasks=_SmallTasks(), tools=self._tools, **keywords)

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - nothing else is drawn
        """A session of four rooms."""
        return self._session_type(task, self._tools, snapshot)

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """Looks into the rooms in turn, switches off the lamp that the goal names, and finishes."""
        data = observations[-1]["data"]
        if data["view"]["off"]:
            return ToolCall("finish")
        last = data["last"]
        if last and last["tool"] == "look" and last["result"]["lamp"] in data["goal"]:
            return ToolCall("switch_off", {"room": last["result"]["room"]})
        looked = [o["data"]["last"]["arguments"]["room"] for o in observations if o["data"]["last"] and o["data"]["last"]["tool"] == "look"]
        return ToolCall("look", {"room": max(looked, default=0) + 1})
