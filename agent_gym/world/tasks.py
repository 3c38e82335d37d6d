"""The tasks of worlds: ids, splits, bases, and how a task is made from its id alone."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Any

from agent_gym.core import Change, Perturbation, Session, Snapshot, Task, TaskSet, ToolCall, ToolSpec
from agent_gym.core.seeding import derive, derive_seed
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.world.counterpart import ASK
from agent_gym.world.crowd import crowd
from agent_gym.world.doors import WorldSession, prepare
from agent_gym.world.kind import WorldKind
from agent_gym.world.schema import Base
from agent_gym.world.world import World

__all__ = ["WorldTaskSet"]

_SYNONYMS = "synonyms"
"""The split whose tasks are said in other verbs."""
_MILD_CROWD, _STRONG_CROWD = 3, 8
"""People who come with a perturbation of the state."""
_CROWDS = 8
"""Bases that they come from."""


class WorldTaskSet(TaskSet):
    """The tasks of one or more kinds of world.

    An id is ``world/family/split/number``. Everything about the task, its base database included, follows from it.

    Args:
        kinds: The kinds of world.
        pace: A factor on the families' step limits, for a door that takes more steps.
    """

    def __init__(self, kinds: Sequence[WorldKind], pace: float = 1.0) -> None:
        if not kinds:
            raise ConfigurationError("a task set needs at least one world")
        self.kinds = {kind.name: kind for kind in kinds}
        self._pace = pace
        self._drafting: dict[tuple[str, str, int], World] = {}
        self._lock = Lock()
        weakref.finalize(self, _close_all, self._drafting)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Every tool of any of the worlds. What can be asked differs by world, and so does ``ask``: here stands the first world's.

        Raises:
            ConfigurationError: Two worlds have different tools of one name.
        """
        tools: dict[str, ToolSpec] = {}
        for kind in self.kinds.values():
            for spec in kind.tools:
                if tools.setdefault(spec.name, spec) != spec and spec.name != ASK:
                    raise ConfigurationError(f"two worlds have different tools named {spec.name!r}; rename that of {kind.name!r}")
        return tuple(tools.values())

    def splits(self) -> Sequence[str]:
        """The names of the splits, in the order in which the worlds name them."""
        named = dict.fromkeys(split for kind in self.kinds.values() for split in kind.tasks)
        return [split for split in named if self.families(split)]

    def families(self, split: str) -> Sequence[str]:
        """The families with tasks in a split."""
        return [
            f"{kind.name}/{name}" for kind in self.kinds.values() for name, family in kind.families.items() if kind.holds(family, split)
        ]

    def cheats(self, family: str) -> Mapping[str, Callable[[Sequence[Mapping[str, Any]]], ToolCall]]:
        """The family's own."""
        world, _, name = family.partition("/")
        return self.kinds[world].families[name].cheats

    def ids(self, split: str, family: str) -> Sequence[str]:
        """The ids of a family's tasks in a split.

        Raises:
            ConfigurationError: There is no such family or split.
        """
        if family not in self.families(split):
            raise unknown(f"family in split {split!r}", family, self.families(split))
        return [f"{family}/{split}/{number}" for number in range(self.kinds[family.partition("/")[0]].tasks[split])]

    def get(self, task_id: str) -> Task:
        """Makes the task of that id."""
        return self._made(task_id)

    def perturbed(self, task: Task, perturbation: Perturbation) -> Task:
        """The task with its family's other verbs, if it has some and a strong perturbation of the wording asks for them, and in a crowd."""
        kind, name, *_ = self._parse(task.id)
        if perturbation.wording and perturbation.strong and kind.holds(kind.families[name], _SYNONYMS):
            other = self._made(task.id, _SYNONYMS)
            if replace(other, goal=task.goal, spec={**other.spec, "params": task.spec["params"]}) == task:  # else more than words differ
                task = replace(task, goal=other.goal, spec=other.spec)
        if perturbation.state:
            task = replace(task, spec={**task.spec, **self._crowded(kind, task, perturbation)})
        return super().perturbed(task, perturbation)

    def _crowded(self, kind: WorldKind, task: Task, perturbation: Perturbation) -> dict[str, Any]:
        """What a crowd changes in a task's spec."""
        rng, (split, index) = perturbation.rng("state", task.id), task.spec["base"]
        world = self._drafting_world(kind, split, index)
        other = World(kind.schema, self._base(kind.name, "crowd", perturbation.seed % _CROWDS))
        with world.transaction(trial=True):
            prepare(world, task.spec)
            own = len(world.written())
            crowd(world, other, rng, _STRONG_CROWD if perturbation.strong else _MILD_CROWD, task.goal)
            setup = [*task.spec["setup"], *map(_own_row, world.written()[own:])]
            serial = world.serial
        other.close()
        return {"setup": setup, "serial": serial}

    def _made(self, task_id: str, wording: str = "") -> Task:
        """Makes the task of that id, in the wordings of another split if one is given."""
        kind, name, split, number = self._parse(task_id)
        family = kind.families[name]
        index = number % kind.bases[split]
        world = self._drafting_world(kind, split, index)
        with world.transaction(trial=True):
            draft = family.draft(world, derive("task", task_id), wording or split)
            setup = [_own_row(change) for change in world.written() if change.before != change.after]
            serial, clock = world.serial, world.clock
        for event in draft.events:
            if event["operation"] not in kind.operations:
                raise unknown(f"operation of an event of {task_id}", event["operation"], kind.operations)
        if bool(draft.asks) != (draft.answer is not None):
            raise ConfigurationError(f"{task_id}: a draft has asks and answer, or neither; got {draft.asks!r} and {draft.answer!r}")
        return Task(
            id=task_id,
            type=f"{kind.name}/{name}",
            split=split,
            goal=draft.goal,
            max_steps=round(family.max_steps * self._pace),
            difficulty=draft.difficulty,
            capabilities=family.capabilities,
            doors=tuple(door for door in family.doors if kind.site or door != "web"),
            refusal=bool(draft.refusal or draft.hand_over),
            asks=draft.asks,
            identity=draft.identity,
            level=draft.level,
            spec={
                "base": [split, index],
                "setup": setup,
                "serial": serial,
                "clock": clock,
                "params": dict(draft.params),
                "goal": draft.rows,
                "allowed": draft.allowed,
                "forbidden": draft.forbidden,
                "look_first": draft.look_first,
                "milestones": draft.milestones,
                "refusal": draft.refusal,
                "hand_over": draft.hand_over,
                "answer": draft.answer,
                "answers": {intent: dict(facts) for intent, facts in draft.answers.items()},
                "events": draft.events,
            },
        )

    def base(self, task: Task) -> tuple[WorldKind, Base]:
        """The world and the base database of one of these tasks: what a session of it is opened on."""
        kind = self.kinds[task.type.partition("/")[0]]
        split, index = task.spec["base"]
        return kind, self._base(kind.name, split, index)

    def open(self, task: Task, snapshot: Snapshot | None = None) -> Session:
        """Opens a session of one of these tasks through the tool door, or goes on with one that was saved."""
        kind, base = self.base(task)
        return WorldSession(kind, task, base, snapshot)

    def clear_cache(self) -> None:
        """Forgets every base database, in all of this process."""
        with self._lock:
            _built.cache_clear()
            _close_all(self._drafting)

    def _drafting_world(self, kind: WorldKind, split: str, index: int) -> World:
        """A world on a base, kept so that tasks are drawn up on it in trials, each of which is undone."""
        place = (kind.name, split, index)
        with self._lock:
            world = self._drafting.get(place)
            if world is None:
                world = self._drafting[place] = World(kind.schema, self._base(*place))
            return world

    def _base(self, world: str, split: str, index: int) -> Base:
        return _built(self.kinds[world].build, derive_seed("base", world, split, index))

    def _parse(self, task_id: str) -> tuple[WorldKind, str, str, int]:
        parts = task_id.split("/")
        kind = self.kinds.get(parts[0])
        if kind is None or len(parts) != 4 or parts[1] not in kind.families or not kind.holds(kind.families[parts[1]], parts[2]):
            example = self.ids(self.splits()[0], self.families(self.splits()[0])[0])[0]
            raise ConfigurationError(f"unknown task id {task_id!r}; ids look like {example!r}")
        number = parts[3]
        known = number.isascii() and number.isdigit() and len(number) < 10 and str(int(number)) == number
        if not known or int(number) >= kind.tasks[parts[2]]:
            raise ConfigurationError(f"unknown task id {task_id!r}; {parts[2]!r} has tasks 0 to {kind.tasks[parts[2]] - 1} in each family")
        return kind, parts[1], parts[2], int(number)


@lru_cache(maxsize=64)
def _built(build: Callable[[int], Base], seed: int) -> Base:
    """A base database; a process builds each once, however many environments it has."""
    return build(seed)


def _own_row(change: Change) -> list[Any]:
    """A row of a task's own, as table, key and columns: those that change; all of them, and no key, if it is new; none if it is gone."""
    if change.before is None or change.after is None:
        return [change.where, None if change.before is None else change.key, change.after]
    return [change.where, change.key, {name: value for name, value in change.after.items() if value != change.before[name]}]


def _close_all(worlds: dict[tuple[str, str, int], World]) -> None:
    for world in worlds.values():
        world.close()
    worlds.clear()
