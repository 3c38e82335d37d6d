"""Which command lines a suite comes down to. What makes no sense for an environment is left out, for reasons that the environment gives."""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import gymnasium

from agent_gym.baselines.learners import LEARNERS
from agent_gym.core.task import TaskSet
from agent_gym.errors import AgentGymError, ConfigurationError, unknown
from agent_gym.registry import VERSION
from agent_gym.report.benchmark.suites import POLICIES, Part, Recipe, Suite

__all__ = ["TRAIN", "Chain", "Command", "LeftOut", "Plan", "plan"]

TRAIN = "train"
"""The step that trains; the others are called by the split they measure on."""
_STORE = ("--store", Path("store"), "--json")


@dataclass(frozen=True)
class Command:
    """One command line.

    Attributes:
        step: ``train``, or the split that it measures on.
        arguments: Those of ``agent-gym``. A path is relative to the benchmark's folder.
    """

    step: str
    arguments: tuple[str | Path, ...]

    def within(self, folder: Path) -> list[str]:
        """The arguments, for a benchmark in that folder."""
        return [str(folder / part) if isinstance(part, Path) else part for part in self.arguments]

    def line(self, folder: Path) -> str:
        """The whole command line, as it would be typed."""
        return shlex.join(["agent-gym", *self.within(folder)])


@dataclass(frozen=True)
class Chain:
    """What one policy with one seed takes on one environment: a training, if any, and then measurements.

    Attributes:
        env_id: The environment.
        env_version: Its version.
        policy: The policy's id.
        seed: The seed.
        commands: In the order in which they are run.
    """

    env_id: str
    env_version: str
    policy: str
    seed: int
    commands: tuple[Command, ...]

    @property
    def place(self) -> Path:
        """Where in the benchmark's folder its files are; a training's own folder, too, under ``train``."""
        return _place(self.env_id, self.policy, self.seed)

    def key(self, number: int) -> dict[str, Any]:
        """What the answer to the command of that number depends on: the command lines until then, and the versions."""
        lines = [shlex.join(map(str, command.arguments)) for command in self.commands[: number + 1]]
        return {"commands": lines, "agent_gym": VERSION, "env_version": self.env_version}


@dataclass(frozen=True)
class LeftOut:
    """A policy that makes no sense for an environment (or, without one, the environment itself), and why."""

    env_id: str
    policy: str | None
    why: str


@dataclass(frozen=True)
class Plan:
    """All that a suite does.

    Attributes:
        suite: The suite.
        chains: What is run.
        left_out: What is not, and why.
        notes: By environment, what a reader of its table should know.
    """

    suite: Suite
    chains: tuple[Chain, ...]
    left_out: tuple[LeftOut, ...]
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def only(self, env_ids: Collection[str], policies: Collection[str], seeds: int) -> "Plan":
        """The part of it that concerns these environments and policies, and so many seeds."""
        chains = (one for one in self.chains if one.env_id in env_ids and one.policy in policies and one.seed < seeds)
        left_out = (one for one in self.left_out if one.env_id in env_ids and one.policy in (None, *policies))
        notes = {env_id: notes for env_id, notes in self.notes.items() if env_id in env_ids}
        return Plan(replace(self.suite, seeds=seeds), tuple(chains), tuple(left_out), notes)


def plan(suite: Suite) -> Plan:
    """Makes the plan; for this each environment is made, and one episode of it begun.

    Raises:
        ConfigurationError: The suite names a policy that does not exist.
    """
    for policy in suite.policies:
        if policy not in POLICIES:
            raise unknown("policy", policy, POLICIES)
    chains: list[Chain] = []
    left_out: list[LeftOut] = []
    notes: dict[str, list[str]] = {}
    for part in suite.parts:
        try:
            told = _ask(part, suite)
        except AgentGymError as error:
            left_out.append(LeftOut(part.env_id, None, str(error)))
            continue
        notes[part.env_id] = [note for note in (part.note, told.note()) if note]
        for policy in suite.policies:
            if why := told.objection(POLICIES[policy]):
                left_out.append(LeftOut(part.env_id, policy, why))
                continue
            for seed in range(suite.seeds):
                commands = tuple(_commands(part, told, policy, seed))
                chains.append(Chain(part.env_id, told.version, policy, seed, commands))
    return Plan(suite, tuple(chains), tuple(left_out), notes)


@dataclass(frozen=True)
class _Told:
    """What an environment says of itself.

    Attributes:
        version: Its version.
        splits: Those of the suite's splits in which it has tasks.
        taught: Families of the train split whose oracle demonstrates, knowing no more than can be observed.
        untaught: The other families of the train split.
        unsolved: Families that are measured on and have no oracle at all.
        milestones: Whether its episodes have milestones.
    """

    version: str
    splits: tuple[str, ...]
    taught: tuple[str, ...]
    untaught: tuple[str, ...]
    unsolved: tuple[str, ...]
    milestones: bool

    def objection(self, recipe: Recipe) -> str:
        """Why a policy makes no sense here; empty where it does."""
        if recipe.oracle and self.unsolved:
            return f"{_some(self.unsolved)} {'have' if len(self.unsolved) > 1 else 'has'} no oracle"
        if (recipe.clone or recipe.dagger) and not self.taught:
            return "no family that is trained on has an oracle that knows no more than can be observed, so there is nothing to clone"
        if recipe.milestones and not self.milestones:
            return "its tasks have no milestones"
        return ""

    def note(self) -> str:
        if not self.taught or not self.untaught:
            return ""
        return (
            f"All policies are trained on the {len(self.taught)} families whose oracle demonstrates, and measured on all; it does not in "
            f"{_some(self.untaught)}."
        )


def _ask(part: Part, suite: Suite) -> _Told:
    env = gymnasium.make(part.env_id, interface="text", disable_env_checker=True, **part.settings)
    try:
        tasks: TaskSet = env.get_wrapper_attr("tasks")
        families = part.settings.get("families")
        kinds = _oracles(tasks, "train", families)
        splits = [split for split in suite.splits if _has(tasks, split, families)]
        if not splits:
            raise ConfigurationError(f"it has tasks in none of the splits {', '.join(suite.splits)}")
        measured = {family: kind for split in splits for family, kind in _oracles(tasks, split, families).items()}
        milestones = False
        if any(POLICIES[policy].milestones for policy in suite.policies):
            env.reset(seed=0)
            milestones = bool(env.get_wrapper_attr("rich").session.milestones())
        return _Told(
            version=env.get_wrapper_attr("rich").version,
            splits=tuple(splits),
            taught=tuple(family for family, kind in kinds.items() if kind == "observational"),
            untaught=tuple(family for family, kind in kinds.items() if kind != "observational"),
            unsolved=tuple(family for family, kind in measured.items() if kind == "none"),
            milestones=milestones,
        )
    finally:
        env.close()


def _oracles(tasks: TaskSet, split: str, families: Sequence[str] | None) -> dict[str, str]:
    """The kind of each family's oracle, by its first task."""
    return {family: tasks.get(ids[0]).oracle_kind for family, ids in tasks.select(split, families).by_family.items()}


def _has(tasks: TaskSet, split: str, families: Sequence[str] | None) -> bool:
    try:
        return bool(tasks.select(split, families).by_family)
    except ConfigurationError:  # there is no such split, or it has no such family
        return False


def _commands(part: Part, told: _Told, policy: str, seed: int) -> list[Command]:
    recipe = POLICIES[policy]
    made: list[Command] = []
    measured: str | Path = policy
    if recipe.algo:
        folder = TRAIN / _place(part.env_id, policy, seed)
        measured = folder / "model.zip"
        options: dict[str, Any] = {"algo": recipe.algo, "bc": part.bc if recipe.clone else 0}
        if recipe.dagger:
            options["dagger"] = part.dagger
        known = {of.name for of in fields(LEARNERS[recipe.algo][0])}
        further = {**part.training, **(part.cloning if recipe.clone else {})}
        fitting = {name: value for name, value in further.items() if name in known}
        options |= {"steps": part.steps if recipe.ppo else 0, **fitting, "seed": seed}
        settings = dict(part.settings)
        if told.taught and told.untaught:
            settings["families"] = list(told.taught)
        if recipe.milestones:
            settings["shaping"] = "milestones"
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        trained: tuple[str | Path, ...] = (TRAIN, part.env_id, *_set(settings), *words, "--folder", folder, "--resume", *_STORE)
        made.append(Command(TRAIN, trained))
    for split in told.splits:
        amount = ("--split", split, "--episodes", str(part.episodes), "--seed", str(seed))
        made.append(Command(split, ("eval", measured, part.env_id, *_set(part.settings), *amount, *_STORE)))
    return made


def _set(settings: Mapping[str, Any]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{name}={json.dumps(value)}")]


def _place(env_id: str, policy: str, seed: int) -> Path:
    return Path(env_id.rpartition("/")[2]) / f"{policy}-seed{seed}"


def _some(names: Collection[str], shown: int = 5) -> str:
    first = ", ".join(list(names)[:shown])
    return first if len(names) <= shown else f"{first} and {len(names) - shown} more"
