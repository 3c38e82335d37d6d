"""The base of wrappers that know what an episode is about: they stand between an `AgentEnv` and its interface."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.agent_env import AgentEnv
from agent_gym.core.observation import cut
from agent_gym.core.verdict import Ending
from agent_gym.episode import MAX_TEXT_BYTES
from agent_gym.errors import ConfigurationError
from agent_gym.wrappers.reward_wrapper import called_by_name

__all__ = ["UNSEEN", "Result", "RichWrapper", "check_order", "token_counter"]

UNSEEN = dict.fromkeys(
    ("RecordTrajectory", "AggregateReward", "NormalizeReturn", "PotentialShaping"), "it would not see how the episode ends"
)
"""`RichWrapper.not_around` of those that end episodes."""

Result = tuple[Any, Any, bool, bool, dict[str, Any]]
"""What ``step`` gives: observation, reward, terminated, truncated, info."""


class RichWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A wrapper that sees rich observations and tool calls, and may end an episode.

    It is named in ``rich_wrappers`` of an id, ``[["agent_gym.wrappers:EpisodeBudget", {"steps": 20}], …]``, innermost first. What it
    keeps from step to step it gives in `save_state`, so that ``get_state`` and ``set_state`` of the interface carry it.

    Args:
        env: An `AgentEnv`, or wrappers around one.
        **arguments: What the wrapper was made with, for its spec.

    Attributes:
        agent_env: The environment beneath.
        not_around: Names of wrappers that may not be beneath this one, each with the reason.

    Raises:
        ConfigurationError: It stands in a wrong place.
    """

    not_around: ClassVar[dict[str, str]] = {}

    def __init__(self, env: gymnasium.Env[Any, Any], **arguments: Any) -> None:
        RecordConstructorArgs.__init__(self, **arguments)
        super().__init__(env)
        name, inner = type(self).__name__, env.unwrapped
        if not isinstance(inner, AgentEnv):
            where = "goes inside the interface" if hasattr(inner, "rich") else "goes around an AgentEnv"
            raise ConfigurationError(
                f"{name} {where}, not around {type(inner).__name__}; make it with rich_wrappers=[['agent_gym.wrappers:{name}', {{…}}]]"
            )
        check_order(env, name, self.not_around)
        self.agent_env = inner

    def observation(self, observation: Any) -> Any:
        """What is shown in an observation's place, after ``reset``, ``step`` and ``set_state``; the same unless a wrapper overrides it."""
        return observation

    def save_state(self) -> Any:
        """What the wrapper keeps between steps, as a JSON value; None for nothing."""
        return None

    def load_state(self, state: Any) -> None:
        """Takes up what `save_state` gave; it comes before the environment beneath goes to that state."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; see `AgentEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.observation(observation), info

    def step(self, action: Any) -> Result:
        """Carries out one action; see `AgentEnv.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self.observation(observation), reward, terminated, truncated, info

    def conclude(self, result: Result, ending: Ending, why: str) -> Result:
        """Ends the episode with the step whose result this is.

        Args:
            result: What the step gave; its episode must be running.
            ending: ``failure``, ``deadline`` or ``budget``.
            why: The reason, for the record.

        Returns:
            What the step gives now.
        """
        observation, reward, _, _, info = result
        before = self.agent_env.last_record
        record = self.agent_env.conclude(ending, why)
        info = {**info, "ending": str(ending), "success": False, "is_success": False}
        if record.reward_parts != before.reward_parts:  # the state that an episode ends in has no potential
            reward += (record.reward or 0.0) - (before.reward or 0.0)
            info["reward_parts"] = {**info["reward_parts"], "shaping": record.reward_parts["shaping"]}
        return observation, reward, ending.terminates, not ending.terminates, info

    @staticmethod
    def with_text(observation: dict[str, Any], text: str) -> dict[str, Any]:
        """The observation with another text, which is cut to what the space holds."""
        return {**observation, "text": text if 4 * len(text) <= MAX_TEXT_BYTES else cut(text, MAX_TEXT_BYTES)}


def check_order(env: gymnasium.Env[Any, Any], name: str, not_around: Mapping[str, str]) -> None:
    """Looks whether a wrapper of that name may go around an environment.

    Raises:
        ConfigurationError: There is a wrapper beneath, on either side of an interface, that belongs outside.
    """
    while isinstance(env, gymnasium.Wrapper) or hasattr(env, "rich"):
        if why := not_around.get(type(env).__name__):
            raise ConfigurationError(f"{name} goes inside {type(env).__name__}, not around it: {why}")
        env = env.env if isinstance(env, gymnasium.Wrapper) else env.rich


def token_counter(tokenizer: str | Callable[[str], Any] | None) -> tuple[Callable[[str], int], str | None]:
    """How tokens are counted: four bytes of UTF-8 are one, unless a tokenizer is given.

    Args:
        tokenizer: A function, or its import string, that gives a text's tokens or their number.

    Returns:
        The count, and the import string for the spec.

    Raises:
        ConfigurationError: The string names nothing that can be called.
    """
    if tokenizer is None:
        return lambda text: -(-(len(text) if text.isascii() else len(text.encode())) // 4), None
    function, name = called_by_name(tokenizer)

    def count(text: str) -> int:
        tokens = function(text)
        return tokens if isinstance(tokens, int) else len(tokens)

    return count, name
