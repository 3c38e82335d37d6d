"""Policies that write their calls themselves: the scripted ones that tasks are checked against, and the oracle."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.closing import CLOSING
from agent_gym.core.policy import Decision, Policy
from agent_gym.core.schema_sample import sample_schema
from agent_gym.core.seeding import derive
from agent_gym.core.tool import ToolSpec
from agent_gym.errors import ConfigurationError
from agent_gym.interface import Interface
from agent_gym.interface.candidates import Memory, Toolbox
from agent_gym.policies.per_episode import PerEpisode

__all__ = [
    "CheatPolicy",
    "FaultAwareOraclePolicy",
    "FinishEarlyPolicy",
    "NoopPolicy",
    "OraclePolicy",
    "RandomActionPolicy",
    "RandomUntilEndPolicy",
    "RefuseAlwaysPolicy",
    "SpamPolicy",
]

_TOOL = re.compile(r"([A-Za-z0-9_-]+)\(")


def _interface(env: gymnasium.Env[Any, Any]) -> Interface:
    inside = env.unwrapped
    if not isinstance(inside, Interface):
        raise ConfigurationError(f"this policy needs an environment of agent_gym, not {type(inside).__name__}")
    return inside


def _offered(tools: Sequence[ToolSpec], text: str) -> list[ToolSpec]:
    """Of all tools those that an episode offers, by the line that says so in its first observation; all if that was cut off."""
    named = set(_TOOL.findall(text.rpartition("\nTools: ")[2]))
    return [spec for spec in tools if spec.name in named] or list(tools)


class NoopPolicy(Policy):
    """Finishes at once.

    Args:
        env: Not looked at.
        seed: Not used.
    """

    name = "noop"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:
        pass

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Finishes every episode."""
        return [Decision(ToolCall("finish")) for _ in batch]


class RefuseAlwaysPolicy(Policy):
    """Refuses or hands over at once: every reason there is, in an order drawn by episode, until one of them closes it.

    Args:
        env: Its closing tools say which reasons there are.
        seed: Root of the order; it depends on this and the episode's id alone.
    """

    name = "refuse-always"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:
        specs = [spec for spec in _interface(env).tools if spec.name in ("refuse", "hand_over")]
        calls = [ToolCall(spec.name, {"reason": reason}) for spec in specs for reason in spec.parameters["properties"]["reason"]["enum"]]

        def order(episode_id: str) -> list[ToolCall]:
            return [calls[index] for index in derive("refuse-always", seed, episode_id).permutation(len(calls))]

        self._orders = PerEpisode(order)

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Starts these episodes' orders anew."""
        self._orders.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Gives the next reason; one that a task's world does not know costs a step."""
        return [Decision(self._next(self._orders[episode_id])) for episode_id, _ in batch]

    @staticmethod
    def _next(order: list[ToolCall]) -> ToolCall:
        order.append(order.pop(0))
        return order[-1]


class RandomActionPolicy(Policy):
    """Calls a tool drawn uniformly, with arguments that its schema accepts.

    Args:
        env: Its tools are called.
        seed: Root of its randomness; what it does in an episode depends on this and the episode's id alone.
    """

    name = "random-action"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:
        self._tools = _interface(env).tools
        self._rngs = PerEpisode(lambda episode_id: derive("random-action", seed, episode_id))
        self._offered: PerEpisode[list[ToolSpec]] = PerEpisode(lambda _: [])

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Starts these episodes' randomness anew."""
        self._rngs.forget(episode_ids)
        self._offered.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Draws a call for each."""
        decisions = []
        for episode_id, observation in batch:
            rng, tools = self._rngs[episode_id], self._offered[episode_id]
            if not tools:
                tools += _offered(self._tools, observation["text"])
            spec = tools[int(rng.integers(len(tools)))]
            decisions.append(Decision(ToolCall(spec.name, sample_schema(spec.parameters, rng))))
        return decisions


class SpamPolicy(Policy):
    """Calls every tool with every entity it has seen, what was tried least first, and never closes.

    Args:
        env: Its tools are called.
        seed: Not used.
    """

    name = "spam"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:  # noqa: ARG002 - every policy is made alike
        self._tools = [spec for spec in _interface(env).tools if self._calls(spec)]
        self._memories: PerEpisode[list[Memory]] = PerEpisode(lambda _: [])

    @staticmethod
    def _calls(spec: ToolSpec) -> bool:
        """Whether it calls this tool."""
        return spec.name not in CLOSING

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Forgets what was read in these episodes."""
        self._memories.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Chooses a call for each."""
        return [Decision(self._next(self._memory(episode_id, observation), observation["data"])) for episode_id, observation in batch]

    def _memory(self, episode_id: str, observation: Mapping[str, Any]) -> Memory:
        """What was seen in an episode, with the newest observation."""
        kept, data = self._memories[episode_id], observation["data"]
        if not kept:
            kept.append(Memory(data["goal"], Toolbox(_offered(self._tools, observation["text"]))))
        kept[0].update(data["last"], data["view"])
        return kept[0]

    def _next(self, memory: Memory, data: Mapping[str, Any]) -> ToolCall:  # noqa: ARG002 - whoever finishes early looks at it
        tools = [spec.name for spec in memory.toolbox.tools]
        offered = [candidate for tool in tools for candidate in memory.candidates(tool)[0]]
        if not offered:
            return ToolCall(tools[0])
        return min(offered, key=lambda c: (memory.calls.get(c.key, 0), memory.tool_calls.get(c.call.name, 0))).call


class RandomUntilEndPolicy(SpamPolicy):
    """Chooses uniformly among the candidates and never closes: what chance is worth where an episode ends by itself.

    Args:
        env: Its tools are called.
        seed: Root of its randomness; what it does in an episode depends on this and the episode's id alone.
    """

    name = "random-until-end"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:
        super().__init__(env)
        self._rngs = PerEpisode(lambda episode_id: derive("random-until-end", seed, episode_id))

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Starts these episodes' randomness anew."""
        super().reset(episode_ids)
        self._rngs.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Draws a call for each."""
        decisions = []
        for episode_id, observation in batch:
            memory = self._memory(episode_id, observation)
            offered = [candidate.call for spec in memory.toolbox.tools for candidate in memory.candidates(spec.name)[0]]
            decisions.append(Decision(offered[int(self._rngs[episode_id].integers(len(offered)))]))
        return decisions


class FinishEarlyPolicy(SpamPolicy):
    """Reads until something was found, or everything was tried, and finishes.

    Args:
        env: Its tools that only read are called.
        seed: Not used.
    """

    name = "finish-early"

    @staticmethod
    def _calls(spec: ToolSpec) -> bool:
        return spec.read_only and spec.name not in CLOSING

    def _next(self, memory: Memory, data: Mapping[str, Any]) -> ToolCall:
        found = data["last"] is not None and data["last"]["status"] == "ok"
        call = super()._next(memory, data) if memory.toolbox.tools else ToolCall("finish")
        return ToolCall("finish") if found or dumps(call.to_dict()) in memory.calls else call


class OraclePolicy(Policy):
    """Does what the environment's oracle says, given all the observations of the episode.

    Args:
        env: Its oracle is asked. It need not be the environment that the episodes run in: an oracle is a pure function.
        seed: Not used.
    """

    name = "oracle"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:  # noqa: ARG002 - every policy is made alike
        self._env = _interface(env)
        self._seen: PerEpisode[list[Mapping[str, Any]]] = PerEpisode(lambda _: [])

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Forgets these episodes' observations."""
        self._seen.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Asks the oracle for each."""
        decisions = []
        for episode_id, observation in batch:
            seen = self._seen[episode_id]
            seen.append(observation)
            decisions.append(Decision(self._asked(seen)))
        return decisions

    def _asked(self, seen: Sequence[Mapping[str, Any]]) -> ToolCall:
        return self._env.oracle(seen)


class FaultAwareOraclePolicy(OraclePolicy):
    """Does what the environment's careful oracle says: it waits, asks again, and looks whether what it wrote is there.

    Args:
        env: As for `OraclePolicy`.
        seed: Not used.
    """

    name = "oracle-fault-aware"

    def _asked(self, seen: Sequence[Mapping[str, Any]]) -> ToolCall:
        return self._env.careful_oracle(seen)


class CheatPolicy(OraclePolicy):
    """Does what a cheat says: a way to the reward that must not work.

    Args:
        env: As for `OraclePolicy`.
        cheat: From the rich observations of an episode to the next call.
    """

    name = "cheat"

    def __init__(self, env: gymnasium.Env[Any, Any], cheat: Callable[[Sequence[Mapping[str, Any]]], ToolCall]) -> None:
        super().__init__(env)
        self._cheat = cheat

    def _asked(self, seen: Sequence[Mapping[str, Any]]) -> ToolCall:
        return self._cheat(seen)
