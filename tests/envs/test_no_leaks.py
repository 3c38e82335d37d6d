"""What only the grader knows is shown to nobody before the agent has read it: a scan of episodes of every family and world.

Looked for are the values that a task is judged by (those of its goal, its answer, and the calls that it forbids or wants to see) and
what its counterpart knows.
They may stand in the goal's text, the rules and the tools' schemas, and from then on in whatever the agent's own calls have answered
(a page counts as the answer to the action that led there). Anywhere else (the first observation, infos, gaps, a message that says
what went wrong) they are a leak.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium
import pytest

import agent_gym  # noqa: F401 - registers the ids
from agent_gym.core import ToolCall
from agent_gym.core.canonical import dumps, plain
from agent_gym.core.closing import CLOSING
from agent_gym.core.schema_sample import sample_schema
from agent_gym.core.seeding import derive
from agent_gym.core.tool import CALL_FAILED
from agent_gym.envs.worlds import load_worlds
from agent_gym.policies import load
from agent_gym.world import WorldTaskSet

TOOL, WEB = "AgentBase/ToolTask-v0", "AgentBase/WebTask-v0"
SHORTEST, SMALLEST = 4, 100
"""Shorter texts and smaller numbers stand everywhere and mean nothing."""


def values(part: Any) -> Iterator[str]:
    """The scalars of a JSON value that would mean something if they were seen, as texts."""
    if isinstance(part, Mapping):
        for inner in part.values():
            yield from values(inner)
    elif isinstance(part, list | tuple):
        for inner in part:
            yield from values(inner)
    elif isinstance(part, str) and len(part) >= SHORTEST:
        yield part
    elif isinstance(part, int) and not isinstance(part, bool) and abs(part) >= SMALLEST:
        yield str(part)


def written(value: Any) -> str:
    return dumps(plain(value)).decode()


def secrets(spec: Mapping[str, Any]) -> list[str]:
    """What the grader of a task knows."""
    rows = [[rule["where"], rule.get("values", {})] for rule in (*spec["goal"], *spec["allowed"])]
    patterns = [*spec["forbidden"], *spec["look_first"], *(stone["call"] for stone in spec["milestones"] if "call" in stone)]
    events = [event["arguments"] for event in spec["events"]]
    arguments = [one["arguments"] for pattern in patterns for one in pattern.get("any_of", [pattern])]
    return sorted(set(values([rows, arguments, events, spec["answer"], *spec["answers"].values()])))


def shown_in(secret: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", text) is not None


class Watched:
    """An episode in which every observation and info is searched."""

    def __init__(self, env: gymnasium.Env[Any, Any], task_id: str) -> None:
        self.env = env
        self.leaks: list[str] = []
        observation, self.info = env.reset(seed=0, options={"task_id": task_id})
        self.seen = [observation]
        task = env.get_wrapper_attr("task")
        tools = [[spec.name, spec.description, spec.parameters] for spec in env.get_wrapper_attr("tools")]
        self.known = "\n".join([task.goal, observation["data"]["rules"], written(tools)])
        self.secrets = secrets(task.spec)
        self._search()

    def step(self, action: ToolCall) -> bool:
        """Acts; whether the episode goes on."""
        observation, _, terminated, truncated, self.info = self.env.step(action)
        self.seen.append(observation)
        last = observation["data"]["last"]
        self.known += "\n" + written([last["tool"], last["arguments"]])  # what an agent says itself it knows
        if last["status"] not in CALL_FAILED:
            self.known += "\n" + written([last["result"], observation["data"]["view"]])
        self._search()
        return not (terminated or truncated)

    def _search(self) -> None:
        told = {name: value for name, value in self.info.items() if name not in ("task_id", "task_type")}  # these are for reports
        parts = {**self.seen[-1], "info": told}
        for place, part in parts.items():
            text = part if isinstance(part, str) else written(part)
            self.leaks += [
                f"step {len(self.seen) - 1}, {place}: {secret}"
                for secret in self.secrets
                if shown_in(secret, text) and not shown_in(secret, self.known)
            ]


def solved(env: gymnasium.Env[Any, Any], task_id: str) -> list[str]:
    """The leaks on the oracle's way."""
    episode = Watched(env, task_id)
    while episode.step(env.get_wrapper_attr("oracle")(episode.seen)):
        pass
    assert episode.info["ending"] == "success", task_id
    return episode.leaks


def blundered(env: gymnasium.Env[Any, Any], task_id: str) -> list[str]:
    """The leaks in what is said to who calls every tool with arguments of the right form that name nothing."""
    episode = Watched(env, task_id)
    for spec in env.get_wrapper_attr("tools"):
        rng = derive("blunder", task_id, spec.name)
        if spec.name not in CLOSING and not episode.step(ToolCall(spec.name, sample_schema(spec.parameters, rng))):
            break
    return episode.leaks


def spammed(env: gymnasium.Env[Any, Any], task_id: str) -> list[str]:
    """The leaks in what is said to who calls every tool with everything that was seen."""
    episode, policy = Watched(env, task_id), load("spam", env)
    while episode.step(policy.act([(task_id, episode.seen[-1])])[0].action):
        pass
    return episode.leaks


def made(env_id: str, world: str, split: str) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(env_id, interface="text", disable_env_checker=True, worlds=[world], split=split)


WORLDS = load_worlds(None)
CASES = [(kind.name, split) for kind in WORLDS for split in ("train", "transfer") if split in WorldTaskSet([kind]).splits()]


@pytest.mark.slow
@pytest.mark.parametrize(("world", "split"), CASES)
def test_no_tool_shows_what_it_was_not_asked_for(world: str, split: str) -> None:
    env = made(TOOL, world, split)
    tasks = env.get_wrapper_attr("tasks")
    for family in tasks.families(split):
        ids: Sequence[str] = tasks.ids(split, family)
        leaks = [leak for task_id in ids[:6] for leak in solved(env, task_id)]
        leaks += [leak for task_id in ids[6:9] for play in (blundered, spammed) for leak in play(env, task_id)]
        assert leaks == [], family
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize(("world", "split"), CASES)
def test_no_page_shows_it_either(world: str, split: str) -> None:
    env = made(WEB, world, split)
    tasks = env.get_wrapper_attr("tasks")
    for family in tasks.families(split):
        assert [leak for task_id in tasks.ids(split, family)[:2] for leak in solved(env, task_id)] == [], family
    env.close()


class Telltale(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Says the answer where it should not."""

    def __init__(self, env: gymnasium.Env[Any, Any], place: str) -> None:
        super().__init__(env)
        self._place = place

    def _tell(self, observation: dict[str, Any], info: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        answer = self.get_wrapper_attr("task").spec["answer"]
        if self._place == "text":
            observation["text"] += f"\n(It is {answer}.)"
        elif self._place == "data":
            observation["data"]["view"]["hint"] = [answer]
        elif self._place == "info":
            info["hint"] = answer
        elif self._place == "gaps":
            info["gaps"] = [*info["gaps"], f"not {answer}"]
        elif observation["data"]["last"] is not None and observation["data"]["last"]["status"] == "not_found":
            observation["data"]["last"]["result"] += f"; did you mean {answer}?"
        return observation, info

    def reset(self, **keywords: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._tell(*super().reset(**keywords))

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        observation, info = self._tell(observation, info)
        return observation, reward, terminated, truncated, info


@pytest.mark.parametrize("place", ["text", "data", "info", "gaps", "message"])
def test_the_scan_finds_a_planted_leak(place: str) -> None:
    env = Telltale(made(TOOL, "library", "transfer"), place)
    task_id = "library/due/transfer/0"
    assert solved(env.env, task_id) == []
    leaks = blundered(env, task_id) if place == "message" else solved(env, task_id)
    answer = env.get_wrapper_attr("task").spec["answer"]
    assert leaks
    assert all(leak.endswith(answer) for leak in leaks)
    env.close()
