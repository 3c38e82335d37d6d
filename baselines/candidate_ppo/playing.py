"""Episodes that are played to be imitated: side by side, and with what the oracle would do at each step."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium

from agent_gym.baselines.sb3.bc import oracle_index
from agent_gym.core.seeding import derive_seed
from agent_gym.errors import InfrastructureError
from agent_gym.runner import AsyncPool, Row

__all__ = ["Advice", "Played", "Visit", "play"]


class Advice(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds to each info what the oracle would do: ``oracle``, the index of its call among the candidates, or None if it is not on offer;
    and ``oracle_changes``, whether that call changes anything.

    Args:
        env: An environment whose interface has candidates.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._rich: list[dict[str, Any]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As in Gymnasium."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._rich = []
        return observation, self._advised(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """As in Gymnasium."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, info if terminated or truncated else self._advised(info)

    def _advised(self, info: dict[str, Any]) -> dict[str, Any]:
        inner: Any = self.env.unwrapped
        self._rich.append(inner.observation.to_dict())
        index = oracle_index(inner, self._rich)
        changing = {spec.name for spec in inner.tools if not spec.read_only}
        return {**info, "oracle": index, "oracle_changes": index is not None and inner.candidates[index].name in changing}


class Visit(NamedTuple):
    """One state that was met, and what was done there."""

    observation: Any
    oracle: int | None
    """Index of the oracle's call; None where it is not on offer."""
    oracle_changes: bool
    """Whether it changes anything."""
    action: int = -1
    """What was done."""
    reward: float = 0.0
    """What came of it."""


class Played(NamedTuple):
    """One episode."""

    visits: list[Visit]
    info: dict[str, Any]
    """The last step's; empty where the episode was broken off, or its environment failed."""


def play(
    pool: AsyncPool,
    task_ids: Sequence[str],
    choose: Callable[[Sequence[tuple[int, Visit]]], Sequence[int | None]],
    *,
    seed: int,
    progress: Callable[[], None] = lambda: None,
) -> list[Played]:
    """Plays each task once. All environments act together, so what comes does not depend on how fast they are.

    Args:
        pool: Environments with `Advice`; nobody else uses them.
        task_ids: The tasks.
        choose: Says for each state, with the place of its task in ``task_ids``, which candidate to take; None breaks the
            episode off.
        seed: Root of the episodes' seeds.
        progress: Called after each episode.

    Returns:
        One a task, in their order.

    Raises:
        InfrastructureError: Every environment was given up.
    """
    episodes = [Played([], {}) for _ in task_ids]
    waiting = iter(range(len(task_ids)))
    playing: dict[int, int] = {}  # the place of the task that an environment is at

    def begin(slots: Sequence[int]) -> None:
        begun = dict(zip([i for i in slots if pool.states[i] != "retired"], waiting, strict=False))
        seeds = [derive_seed("play", seed, place) >> 32 for place in begun.values()]
        playing.update(begun)
        pool.async_reset(list(begun), seeds, [{"task_id": task_ids[place]} for place in begun.values()])

    def took_in(row: Row) -> tuple[int, Visit] | None:
        place = playing[row.env_id]
        visits = episodes[place].visits
        if row.kind == "step":
            visits[-1] = visits[-1]._replace(reward=float(row.reward))
        if row.done:
            episodes[place] = Played(visits, {} if row.fault else row.info)
            return None
        visits.append(Visit(row.observation, row.info["oracle"], row.info["oracle_changes"]))
        return place, visits[-1]

    begin(range(pool.num_envs))
    while playing:
        rows = sorted(pool.recv(len(playing)), key=lambda row: row.env_id)
        met = {row.env_id: found for row in rows if (found := took_in(row)) is not None}
        going: dict[int, int] = {}
        actions = choose(list(met.values())) if met else ()
        for (slot, (place, visit)), action in zip(met.items(), actions, strict=True):
            if action is not None:
                episodes[place].visits[-1] = visit._replace(action=action)
                going[slot] = action
        over = [slot for slot in playing if slot not in going]
        for slot in over:
            del playing[slot]
            progress()
        pool.send(list(going.values()), list(going))
        begin(over)
        if not playing and next(waiting, None) is not None:
            raise InfrastructureError("every environment was given up; the log of the pool says why")
    return episodes
