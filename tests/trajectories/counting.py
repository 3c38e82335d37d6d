"""A small environment for tests: add up to a target, then finish. Its families fail in the ways that a recorder must keep apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import orjson

from agent_gym.agent_env import AgentEnv
from agent_gym.core.action import ToolCall
from agent_gym.core.observation import Observation
from agent_gym.core.policy import Decision, Policy
from agent_gym.core.session import Change, Session, Snapshot
from agent_gym.core.task import Task, TaskSet
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.core.verdict import Check, Ending, Verdict
from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.interface import ArrayInterface, TextInterface

ENV_ID = "tests.trajectories.counting:Test/Counting-v0"
FAMILIES = ("count/even", "count/odd", "count/unopened", "count/breaking")

TOOLS = (
    ToolSpec(
        name="add",
        description="Adds to the count.",
        parameters={
            "type": "object",
            "properties": {"amount": {"type": "integer"}},
            "required": ["amount"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(name="look", description="Finds nothing.", annotations={"readOnlyHint": True}),
    ToolSpec(name="crash", description="Raises."),
)


class CountingTasks(TaskSet):
    def splits(self) -> Sequence[str]:
        return ("train", "test")

    def families(self, split: str) -> Sequence[str]:
        return FAMILIES if split == "test" else FAMILIES[:2]

    def ids(self, split: str, family: str) -> Sequence[str]:
        return [f"{split}/{family.partition('/')[2]}/{number}" for number in range(5)]

    def get(self, task_id: str) -> Task:
        parts = task_id.split("/")
        if len(parts) != 3 or f"count/{parts[1]}" not in FAMILIES or parts[2] not in "01234":
            raise ConfigurationError(f"unknown task {task_id!r}")
        split, family, number = parts
        return Task(id=task_id, type=f"count/{family}", split=split, goal=f"Count to {number}.", max_steps=6, spec={"target": int(number)})


class CountingSession(Session):
    tools = TOOLS

    def __init__(self, task: Task) -> None:
        self.task = task
        self.count = 0

    def observe(self) -> Observation:
        if self.task.type == "count/breaking" and self.count:
            raise InfrastructureError("the abacus broke")
        return Observation(f"The count is {self.count}. \N{SNOWMAN}", {"count": self.count})

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - the contract's
        if call.name == "crash":
            raise RuntimeError("no such luck")
        if call.name == "look":
            return ToolResult(status="empty")
        self.count += call.arguments["amount"]
        return ToolResult(status="ok", content=f"now {self.count}", structured={"count": self.count})

    def verdict(self, closing: ToolCall) -> Verdict:
        if closing.name != "finish":
            return Verdict(Ending.ABSTAINED)
        right = self.count == self.task.spec["target"]
        return Verdict(Ending.SUCCESS if right else Ending.FAILURE, (Check("counted", right, f"count {self.count}"),))

    def digest(self) -> str:
        return f"{self.count:032x}"

    def changes(self) -> list[Change]:
        return [Change("count", "count", 0, self.count)] if self.count else []

    def milestones(self) -> dict[str, bool]:
        return {"begun": self.count > 0}

    def save(self) -> Snapshot | None:
        return None


class CountingEnv(AgentEnv):
    version = "7"

    def __init__(self, **keywords: Any) -> None:
        super().__init__(tasks=CountingTasks(), tools=TOOLS, **keywords)

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - the contract's
        if task.type == "count/unopened":
            raise InfrastructureError("no abacus")
        return CountingSession(task)

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        data = observations[-1]["data"]
        target = int(data["goal"].removeprefix("Count to ").rstrip("."))
        missing = target - data["view"]["count"]
        return ToolCall("add", {"amount": missing}) if missing else ToolCall("finish")


class CountingPolicy(Policy):
    """Solves what can be solved; counts one too far for targets in ``wrong``."""

    name = "counting"
    version = 3

    def __init__(self, wrong: frozenset[int] = frozenset()) -> None:
        self.wrong = wrong
        self.episodes: list[str] = []

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        return [Decision(self._decide(observation["data"]), logprob=-0.5, usage={"prompt_tokens": 10}) for _, observation in batch]

    def reset(self, episode_ids: Sequence[str]) -> None:
        self.episodes += episode_ids

    def _decide(self, data: Mapping[str, Any]) -> Any:
        target = int(data["goal"].removeprefix("Count to ").rstrip("."))
        missing = target + (target in self.wrong) - data["view"]["count"]
        return ToolCall("add", {"amount": missing}) if missing else orjson.dumps({"name": "finish", "arguments": {}}).decode()


def make(interface: str = "text", **keywords: Any) -> gymnasium.Env[Any, Any]:
    env = CountingEnv(**keywords)
    return {"text": TextInterface, "array": ArrayInterface}[interface](env)


gymnasium.register("Test/Counting-v0", entry_point="tests.trajectories.counting:make")
