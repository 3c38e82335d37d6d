"""The contract of a policy: what turns observations into actions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Decision", "Policy"]


@dataclass(frozen=True)
class Decision:
    """What a policy decided for one episode.

    Attributes:
        action: A candidate's index, a `ToolCall`, or text.
        logprob: The log-probability of the action under the policy, in nats, where there is one.
        usage: What it cost: ``prompt_tokens``, ``completion_tokens``, ``cost_usd``, as far as known.
        note: Anything JSON that the record should keep.
        value: The return that the policy expects from the observation on, where it estimates that.
    """

    action: Any
    logprob: float | None = None
    usage: Mapping[str, float] | None = None
    note: Any = None
    value: float | None = None

    def notes(self) -> dict[str, Any]:
        """What a recorder keeps besides the action, as JSON values."""
        pairs = {"logprob": self.logprob, "usage": dict(self.usage) if self.usage else None, "note": self.note, "value": self.value}
        return {key: value for key, value in pairs.items() if value is not None}


class Policy(ABC):
    """Acts for any number of episodes at once.

    Attributes:
        interface: ``"array"`` (observations are the array interface's dicts) or ``"text"`` (rich observations); or the import string of
            another interface.
        name: What reports call it.
        version: Counts up when it learns.
    """

    interface: str = "text"
    name: str = "policy"
    version: int = 0

    @abstractmethod
    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Decides for a batch.

        Args:
            batch: Pairs of an episode's id and its newest observation.

        Returns:
            One decision a pair, in the same order.
        """

    def reset(self, episode_ids: Sequence[str]) -> None:  # noqa: B027 - a policy without memory has nothing to do
        """Says that these episodes are new: whatever was remembered under these ids is void."""
