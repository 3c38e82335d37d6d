"""The game itself: episodes in turn, the calls on offer, and the way back. Nothing here reads or prints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium

from agent_gym.core.action import ToolCall
from agent_gym.core.record import StepRecord
from agent_gym.core.task import Task
from agent_gym.core.tool import ToolSpec
from agent_gym.evaluation.schedule import episode_seed
from agent_gym.interface import Interface
from agent_gym.interface.candidates import Toolbox
from agent_gym.interface.features import Encoder

__all__ = ["Game"]


@dataclass(frozen=True)
class _Moment:
    """A point that `Game.undo` can go back to: the environment's state, and the reward until then."""

    state: dict[str, Any]
    reward: float


class Game:
    """Episodes that a person plays, one after the other.

    Args:
        env: An environment with the text interface, which may be recorded.
        task_ids: The tasks, in order.
        seed: Of the episodes.

    Attributes:
        number: The episode's number, from 1.
        reward: The episode's reward so far.
        ending: How the episode has ended, or empty.
        choices: The calls on offer: the same, in the same order, as the array interface has as candidates.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], task_ids: Iterator[str], seed: int) -> None:
        inside = env.unwrapped
        assert isinstance(inside, Interface)
        self._env, self._inside = env, inside
        self._task_ids, self._seed = task_ids, seed
        self.number = 0
        self._task_id = ""

    def next(self) -> bool:
        """Begins the next episode; False if there is none."""
        task_id = next(self._task_ids, None)
        if task_id is None:
            return False
        self._task_id = task_id
        self.number += 1
        self.restart()
        return True

    def restart(self) -> None:
        """Begins the episode anew."""
        observation, _ = self._env.reset(seed=episode_seed(self._seed, self.number - 1), options={"task_id": self._task_id})
        self._past: list[_Moment] = []
        self._seen: list[dict[str, Any]] = [observation["data"]]
        self._arrive(0.0, "")

    def step(self, call: ToolCall) -> None:
        """Carries out a call."""
        moment = _Moment(self._inside.get_state(), self.reward)
        observation, reward, terminated, truncated, info = self._env.step(call)
        self._past.append(moment)
        self._seen.append(observation["data"])
        self._arrive(self.reward + float(reward), info["ending"] if terminated or truncated else "")

    def undo(self) -> bool:
        """Takes the last step back, also the one that ended the episode; False if there is none."""
        if not self._past:
            return False
        moment = self._past.pop()
        self._seen.pop()
        self._inside.set_state(moment.state)
        self._arrive(moment.reward, "")
        return True

    @property
    def data(self) -> dict[str, Any]:
        """The newest observation's ``data``."""
        return self._seen[-1]

    @property
    def view(self) -> str:
        """What can be seen now beyond the goal and the last result, in words."""
        return self._inside.view

    @property
    def task(self) -> Task:
        """The episode's task."""
        return self._inside.task

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called."""
        return self._inside.tools

    @property
    def last_record(self) -> StepRecord:
        """All about the last step."""
        return self._inside.last_record

    def _arrive(self, reward: float, ending: str) -> None:
        self.reward, self.ending = reward, ending
        encoder = Encoder(self.task.goal, Toolbox(self.tools))
        for data in self._seen:
            encoder.encode(data)
        self.choices: tuple[ToolCall, ...] = () if ending else tuple(encoder.calls)
