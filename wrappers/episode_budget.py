"""A budget for each episode: of steps, of calls, of tokens, of money."""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import gymnasium

from agent_gym.core.canonical import dumps
from agent_gym.core.observation import cut
from agent_gym.core.record import StepRecord
from agent_gym.core.verdict import Ending
from agent_gym.episode import MAX_TEXT_BYTES
from agent_gym.errors import ConfigurationError
from agent_gym.wrappers.rich import UNSEEN, Result, RichWrapper, token_counter

__all__ = ["EpisodeBudget"]


_ALL = 1 - 1e-9
"""Sums of prices are rounded: 0.7 and 0.1 use up 0.8."""


class EpisodeBudget(RichWrapper):
    """Ends an episode as ``budget``, truncated and no success, with the step that uses up what it may use.

    The observation's text says in its last line what is left. Tokens are those of the text that an action answers and of the action;
    where `RecordTrajectory` outside was told the ``usage`` of a step, its tokens and its cost count instead, if they are numbers from 0.

    Args:
        env: An `AgentEnv`, or wrappers around one. What changes the text goes beneath.
        steps: Steps.
        calls: Calls of tools, with what the gateway tried again; an action that cannot be read is none.
        tokens: Tokens read and written.
        cost: What tokens and calls may cost together, in the unit of the prices.
        cost_per_token: The price of a token, where a step's cost is not known.
        cost_per_call: The price of such a call.
        tokenizer: A function (or its import string) that gives a text's tokens or their number; otherwise 4 bytes of UTF-8 are one.

    Raises:
        ConfigurationError: No limit is given, a number does not fit, or it stands in a wrong place.
    """

    not_around = UNSEEN

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        steps: int | None = None,
        calls: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        cost_per_token: float = 0.0,
        cost_per_call: float = 0.0,
        tokenizer: str | Callable[[str], Any] | None = None,
    ) -> None:
        given = {"steps": steps, "calls": calls, "tokens": tokens, "cost": cost}
        self._count, name = token_counter(tokenizer)
        super().__init__(env, **given, cost_per_token=cost_per_token, cost_per_call=cost_per_call, tokenizer=name)
        self._limits = {kind: limit for kind, limit in given.items() if limit is not None}
        if not self._limits or not all(_positive(limit) for limit in self._limits.values()):
            raise ConfigurationError(f"EpisodeBudget needs at least one of {', '.join(given)}, each above 0; got {self._limits}")
        if not all(price == 0 or _positive(price) for price in (cost_per_token, cost_per_call)):
            raise ConfigurationError(f"prices must be at least 0, got {cost_per_token!r} a token and {cost_per_call!r} a call")
        self._prices = (cost_per_token, cost_per_call)
        self._counts_tokens = tokens is not None or cost is not None
        self._used: dict[str, float] = dict.fromkeys(given, 0)
        self._read = 0

    @property
    def used(self) -> dict[str, float]:
        """What the episode has used so far: steps, calls, tokens and cost."""
        return dict(self._used)

    def observation(self, observation: Any) -> Any:
        """The same, and what is left."""
        left = [(kind, max(0, limit - self._used[kind])) for kind, limit in self._limits.items()]
        line = "\nBudget left: " + ", ".join([f"cost {v:g}" if kind == "cost" else f"{v} {kind}" for kind, v in left]) + "."
        text, room = observation["text"], MAX_TEXT_BYTES - len(line)
        text = (text if 4 * len(text) <= room else cut(text, room)) + line
        self._read = self._count(text) if self._counts_tokens else 0
        return {**observation, "text": text}

    def save_state(self) -> dict[str, float]:
        """What is used so far."""
        return dict(self._used)

    def load_state(self, state: dict[str, float]) -> None:
        """Takes up what `save_state` gave."""
        self._used = dict(state)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with the whole budget."""
        self._used = dict.fromkeys(self._used, 0)
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Result:
        """Carries out one action, and ends the episode where the budget is used up."""
        usage = {kind: amount for kind, amount in (self.agent_env.usage or {}).items() if _counts(amount)}
        observation, reward, terminated, truncated, info = self.env.step(action)
        record = self.agent_env.last_record
        used, calls = self._used, len(record.attempts)
        tokens = self._spoken(action, record, usage) if self._counts_tokens else 0
        used["steps"] += 1
        used["calls"] += calls
        used["tokens"] += tokens
        known = usage.get("cost_usd")
        used["cost"] += (tokens * self._prices[0] if known is None else float(known)) + calls * self._prices[1]
        result = self.observation(observation), reward, terminated, truncated, info
        spent = next((kind for kind, limit in self._limits.items() if used[kind] >= limit * _ALL), None)
        if spent is None or terminated or truncated:
            return result
        return self.conclude(result, Ending.BUDGET, f"{spent}: {used[spent]:g} of {self._limits[spent]:g} used")

    def _spoken(self, action: Any, record: StepRecord, usage: Mapping[str, float]) -> int:
        """The tokens of a step: as they are known, or else counted."""
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if written is None:
            told = action if isinstance(action, str) else "" if record.call is None else dumps(record.call.to_dict()).decode()
            written = self._count(told)
        return int((self._read if read is None else read) + written)


def _counts(amount: Any) -> bool:
    """Whether somebody knows an amount: what is no number, or below 0, would let an episode go on for ever."""
    return isinstance(amount, Real) and 0 <= float(amount) < math.inf


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
