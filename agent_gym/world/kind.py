"""What makes up a kind of world, as plain values: tables, operations, rules, families. A new world is one `WorldKind`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from agent_gym.core import ToolSpec
from agent_gym.world.operations import Operation
from agent_gym.world.schema import Base, Schema
from agent_gym.world.scripts import Script
from agent_gym.world.world import World

__all__ = ["Draft", "Family", "WorldKind"]


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
        difficulty: From 0 to 1.
    """

    goal: str
    params: Mapping[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    allowed: list[dict[str, Any]] = field(default_factory=list)
    forbidden: list[dict[str, Any]] = field(default_factory=list)
    look_first: list[dict[str, Any]] = field(default_factory=list)
    milestones: list[dict[str, Any]] = field(default_factory=list)
    refusal: str = ""
    difficulty: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of task.

    Attributes:
        name: Its name within the world.
        draft: Draws up a task on a world that stands on one of the split's bases. What it changes there, inside the open
            transaction, becomes the task's own rows.
        capabilities: What solving it takes, for reports.
        max_steps: The step limit of its tasks.
    """

    name: str
    draft: Callable[[World, np.random.Generator, str], Draft]
    capabilities: tuple[str, ...] = ()
    max_steps: int = 20


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
        oracle: From a goal's words to the script that solves it by what it observes; None for words it cannot read.
        site: The module of its web site by name, so that the tool door need not load it; nothing where it has none. The module has
            ``application(operate)``, which gives a WSGI application whose every fact and every change comes from
            ``operate(operation, arguments)``; ``ORIGIN``, under which it is reached; and for the oracle ``answer(call, view)``,
            which reads off a page what a call would give, and ``way(call, views)``, the next action towards such a page.
    """

    name: str
    schema: Schema
    build: Callable[[int], Base]
    operations: Mapping[str, Operation]
    rules: str
    reasons: tuple[str, ...]
    families: Mapping[str, Family]
    tasks: Mapping[str, int]
    bases: Mapping[str, int]
    oracle: Callable[[str], Script | None]
    verified_by: Mapping[str, str] = field(default_factory=dict)
    site: str = ""

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The operations as tools."""
        return tuple(operation.spec for operation in self.operations.values())
