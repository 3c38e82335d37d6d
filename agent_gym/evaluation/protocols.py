"""Ways of measuring that others have agreed on: which tasks, how many episodes of each, and what counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_gym.core.task import TaskSet
from agent_gym.errors import ConfigurationError

__all__ = ["PROTOCOLS", "Protocol"]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One way: of every family the same number of episodes, and the mean over families.

    Attributes:
        env_id: The environment that it is for.
        episodes: Episodes of each family, if nobody says otherwise.
        keywords: What the environment is made with, if nobody says otherwise.
    """

    env_id: str
    episodes: int
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def task_ids(self, tasks: TaskSet, split: str, families: Sequence[str] | None, episodes: int | None) -> list[str]:
        """The tasks to play: the first of each family.

        Args:
            tasks: The environment's tasks.
            split: The split.
            families: Families to measure; all of the split's by default.
            episodes: Of each family; by default those of the protocol.

        Raises:
            ConfigurationError: There is no such family, or it has too few tasks.
        """
        each = episodes or self.episodes
        chosen: list[str] = []
        for family, ids in tasks.select(split, families).by_family.items():
            if len(ids) < each:
                raise ConfigurationError(f"{family} has {len(ids)} tasks in split {split!r}, fewer than {each} episodes")
            chosen += ids[:each]
        return chosen


PROTOCOLS: Mapping[str, Protocol] = {
    "miniwob": Protocol(env_id="AgentBase/MiniWoB-v0", episodes=50, keywords={"reward_mode": "binary"}),
}
"""The protocols by name. ``miniwob``: a task counts as solved where its raw reward is exactly 1."""
