"""What makes up a kind of world, as plain values: tables, operations, rules, families. A new world is one `WorldKind`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core import ToolCall, ToolSpec
from agent_gym.errors import ConfigurationError
from agent_gym.world.counterpart import Counterpart
from agent_gym.world.generating import Rows
from agent_gym.world.operations import Operation
from agent_gym.world.schema import Base, Ids, Schema
from agent_gym.world.scripts import Script
from agent_gym.world.world import World

__all__ = ["TRANSFER", "Draft", "Family", "WorldKind"]

TRANSFER = "transfer"
"""The split of the families that are held out."""
_TASKS = {"train": 2_000, "validation": 100, "test": 200, "synonyms": 100, TRANSFER: 200}
_BASES = {"train": 12, "validation": 4, "test": 6, "synonyms": 4, TRANSFER: 4}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A task as its family drew it up; the fields are those of the spec (see `agent_gym.world.grading`).

    Attributes:
        goal: What the agent is asked to do, in words.
        params: What the goal's words stand for, by slot.
        rows: The goal rows.
        allowed: What may change.
        forbidden: Calls that must not take effect.
        look_first: Calls that must come before the first write or the refusal.
        milestones: In the order in which they are usually reached.
        refusal: The reason for which it must be refused, or nothing.
        hand_over: The reason for which it must be handed over, or nothing.
        asks: The kind of value that the goal asks for, by the name that a result's field has (``zip``, ``total_cents``), or nothing.
        answer: That value: a JSON scalar, or a list whose order does not matter.
        answers: What the counterpart says when it is asked, by intent: ``{"answer": text}`` and fields with the facts in it.
        events: What somebody else does meanwhile, ``{"after", "operation", "arguments"}``: once, right after the first call that fits
            the pattern ``after``. What that changes must be in ``allowed``.
        identity: As whom the agent acts; empty for somebody who may see and change everything.
        level: The level of permissions that this task grants at most, one of `agent_gym.gateway.LEVELS`; empty for no limit of its own.
        steps: How many calls its oracle makes through the tool door, the closing one included.
        distractors: How many records look like the right one and are not.
        facts: How many facts from different places must be put together.
    """

    goal: str
    params: Mapping[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    allowed: list[dict[str, Any]] = field(default_factory=list)
    forbidden: list[dict[str, Any]] = field(default_factory=list)
    look_first: list[dict[str, Any]] = field(default_factory=list)
    milestones: list[dict[str, Any]] = field(default_factory=list)
    refusal: str = ""
    hand_over: str = ""
    asks: str = ""
    answer: Any = None
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    identity: str = ""
    level: str = ""
    steps: int = 6
    distractors: int = 0
    facts: int = 1

    @property
    def difficulty(self) -> float:
        """From 0 to 1: half for the oracle's calls (2 to 20), a quarter each for distractors (0 to 8) and facts (1 to 6). Frozen."""
        parts = (0.5, (self.steps - 2) / 18), (0.25, self.distractors / 8), (0.25, (self.facts - 1) / 5)
        return round(sum(share * min(max(part, 0.0), 1.0) for share, part in parts), 2)


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of task.

    Attributes:
        name: Its name within the world.
        draft: Draws up a task on a world that stands on one of the split's bases. What it changes there, inside the open
            transaction, becomes the task's own rows.
        capabilities: What solving it takes, for reports.
        max_steps: The step limit of its tasks.
        transfer: Whether it is held out: then all its tasks are in the split ``transfer``, and none of another family is.
        doors: The doors through which it can be solved.
        cheats: Ways to the reward that must not work, by name: from the rich observations so far to the next call. Beside those that
            every family is tried with (`agent_gym.evaluation.admission`).
    """

    name: str
    draft: Callable[[World, np.random.Generator, str], Draft]
    capabilities: tuple[str, ...] = ()
    max_steps: int = 20
    transfer: bool = False
    doors: tuple[str, ...] = ("tool", "web")
    cheats: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], ToolCall]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WorldKind:
    """One kind of world.

    Attributes:
        name: Its name, the first part of its tasks' ids.
        schema: Its tables.
        build: Builds a base database from a seed.
        operations: Its operations by name.
        rules: What the agent must keep to, in words.
        reasons: The reasons that ``refuse`` takes.
        families: Its families of tasks by name.
        tasks: How many tasks a family has, by split.
        bases: How many base databases there are, by split; none is in two splits.
        verified_by: By operation that writes, the one that reads the record it changes, so that whether it happened can be told.
        counterpart: Who answers ``ask``; None where there is nobody.
        owner: Of a row of a table the identity that it belongs to, ``owner(world, table, key)``, or all those that share it; None where
            it belongs to nobody in particular, and to everybody. The gateway keeps an identity off the rows of others.
        oracle: From a goal's words to the script that solves it by what it observes; None for words it cannot read.
        site: The module of its web site by name, so that the tool door need not load it; nothing where it has none.
            ``agent_gym.world.site`` stands for one with a page for each operation that reads. Another module has a
            `agent_gym.world.site.Site` named ``SITE``, or itself what that has: ``application(operate)``, which gives a WSGI application
            whose every fact and every change comes from ``operate(operation, arguments)``; ``ORIGIN``, under which it is reached; and
            for the oracle ``answer(call, view)``, which reads off a page what a call would give, and ``way(call, views)``, the next
            action towards such a page. It may have ``FILES``, the content by name of what can be uploaded.
        gallery: Whether it shows what a browser can do rather than work to learn: its pages need scripts. It is played in a real
            browser only, and where it is asked for by name; what chance or the heuristic scores on it is not bounded.
    """

    name: str
    schema: Schema
    build: Callable[[int], Base]
    operations: Mapping[str, Operation]
    rules: str
    reasons: tuple[str, ...]
    families: Mapping[str, Family]
    oracle: Callable[[str], Script | None]
    tasks: Mapping[str, int] = field(default_factory=_TASKS.copy)
    bases: Mapping[str, int] = field(default_factory=_BASES.copy)
    verified_by: Mapping[str, str] = field(default_factory=dict)
    counterpart: Counterpart | None = None
    owner: Callable[[World, str, str], str | Collection[str] | None] = lambda world, table, key: None  # noqa: ARG005 - nobody's
    site: str = ""
    gallery: bool = False

    def __post_init__(self) -> None:
        needed = {*self.tasks} | {TRANSFER for family in self.families.values() if family.transfer}
        if missing := sorted(needed - (self.tasks.keys() & self.bases.keys())):
            raise ConfigurationError(f"world {self.name!r}: split {missing[0]!r} needs a number of tasks and one of bases")

    @classmethod
    def beside(cls, file: str, *, start: int, rows: Callable[[Ids, int], Rows], **fields: Any) -> "WorldKind":
        """A world whose tables stand in ``schema.sql`` beside a file, and its rules in ``policy.md``.

        Args:
            file: The file, in a folder that is named like the world.
            start: Virtual seconds at which every episode begins.
            rows: Draws the rows of a base database, from where ids come from and a seed.
            **fields: The other fields.
        """
        folder = Path(file).parent
        schema = Schema.parse((folder / "schema.sql").read_text(encoding="utf-8"))
        return cls(
            name=folder.name,
            schema=schema,
            build=lambda seed: World.build(schema, seed, start, lambda ids: rows(ids, seed).tables),
            rules=(folder / "policy.md").read_text(encoding="utf-8").strip(),
            **fields,
        )

    def holds(self, family: Family, split: str) -> bool:
        """Whether a family has tasks in a split: those that are held out in ``transfer`` alone, and no other there."""
        return split in self.tasks and family.transfer == (split == TRANSFER)

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The operations as tools, and ``ask`` where there is somebody to ask."""
        return (*(operation.spec for operation in self.operations.values()), *self.asking)

    def named(self, operation: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The rows that a call names, as table and key: by parameters whose ``x-entity`` is the primary key of a table."""
        for entity, value in _entities(self.operations[operation].spec.parameters, arguments):
            for table in self._tables_of.get(entity, ()):
                yield table, value

    @cached_property
    def _tables_of(self) -> dict[str, list[str]]:
        tables: dict[str, list[str]] = {}
        for table in self.schema.tables.values():
            tables.setdefault(table.key, []).append(table.name)
        return tables

    @cached_property
    def asking(self) -> tuple[ToolSpec, ...]:
        """``ask``, where there is somebody to ask."""
        return () if self.counterpart is None else (self.counterpart.tool,)


def _entities(schema: Mapping[str, Any], value: Any) -> Iterator[tuple[str, str]]:
    """The kinds and values of all that a value names by ``x-entity``, however deep."""
    if "x-entity" in schema:
        yield from ((schema["x-entity"], part) for part in (value if isinstance(value, list) else [value]))
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _entities(schema.get("properties", {}).get(name, {}), part)
    elif isinstance(value, list):
        for part in value:
            yield from _entities(schema.get("items", {}), part)
