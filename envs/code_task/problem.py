"""A programming problem, and collections of them: what an agent is given, what its work is judged by, and how it can be solved."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_gym.core import Task, ToolCall
from agent_gym.errors import unknown

__all__ = ["Collection", "Problem", "pack", "unpack"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem, wherever it comes from.

    Attributes:
        id: Unique within the environment.
        family: ``code/<name>``.
        split: ``train``, ``validation``, ``test``, …
        goal: What the agent is asked to do, in words; holds ``prompt``.
        prompt: The problem's own text.
        files: The workspace at the start, text by path; bytes for what is no text.
        grader: Who judges: a key of ``agent_gym.envs.code_task.graders.GRADERS``.
        hidden: What that needs, as JSON values. The agent never sees it.
        tools: Names of the tools on offer, keys of ``agent_gym.envs.code_task.tools.TOOLS``.
        visible: The tests that ``run_tests`` runs, as JSON values: ``runner`` and what that needs; None where there are none.
        solution: Files that solve it; None where none is known.
        oracle_kind: ``observational`` where the collection's oracle knows no more than the agent; else ``privileged``, or ``none``.
        max_steps: Steps after which the episode is truncated.
        difficulty: From 0 (easy) to 1 (hard).
        capabilities: What solving it takes.
        metadata: What its source says besides, as JSON values.
    """

    id: str
    family: str
    split: str
    goal: str
    prompt: str
    files: Mapping[str, str | bytes]
    grader: str
    hidden: Mapping[str, Any]
    tools: tuple[str, ...] = ("list_files", "read_file", "write_file", "run_python")
    visible: Mapping[str, Any] | None = None
    solution: Mapping[str, str] | None = None
    oracle_kind: str = "privileged"
    max_steps: int = 12
    difficulty: float = 0.5
    capabilities: tuple[str, ...] = ("write_code",)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        """The problem as a task, whose spec has ``prompt``, ``files`` (see `pack`), ``tools``, ``visible``, ``grader``, ``hidden`` and
        ``metadata``.
        """
        return Task(
            id=self.id,
            type=self.family,
            split=self.split,
            goal=self.goal,
            max_steps=self.max_steps,
            difficulty=self.difficulty,
            capabilities=self.capabilities,
            oracle_kind=self.oracle_kind,
            spec={
                "prompt": self.prompt,
                "files": pack(self.files),
                "tools": list(self.tools),
                "visible": self.visible,
                "grader": self.grader,
                "hidden": self.hidden,
                "metadata": self.metadata,
            },
        )


def pack(files: Mapping[str, str | bytes]) -> dict[str, Any]:
    """Files as JSON values: text as it is, bytes as ``{"base64": …}``."""
    return {
        path: content if isinstance(content, str) else {"base64": base64.b64encode(content).decode()} for path, content in files.items()
    }


def unpack(files: Mapping[str, Any]) -> dict[str, bytes]:
    """The bytes of files that `pack` gave."""
    return {path: content.encode() if isinstance(content, str) else base64.b64decode(content["base64"]) for path, content in files.items()}


class Collection(ABC):
    """The problems of one family.

    Attributes:
        family: ``code/<name>``.
        skipped: Why problems that its source has were left out, one by one.
    """

    family: str
    skipped: Sequence[str] = ()

    @abstractmethod
    def splits(self) -> Sequence[str]:
        """The splits in which it has problems."""

    @abstractmethod
    def ids(self, split: str) -> Sequence[str]:
        """Its problems' ids in a split, in a fixed order."""

    @abstractmethod
    def problem(self, task_id: str) -> Problem | None:
        """The problem of that id; None if it has none. Costs what making it costs, so it may be cached."""

    @abstractmethod
    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall | None:
        """What a perfect agent does next in an episode of one of its problems; None for an episode of another collection's.

        Args:
            observations: All since the reset.
        """

    def clear_cache(self) -> None:  # noqa: B027 - it may keep nothing
        """Forgets whatever is kept to be faster."""

    def __getitem__(self, task_id: str) -> Problem:
        """The problem of that id.

        Raises:
            ConfigurationError: There is none.
        """
        if (problem := self.problem(task_id)) is None:
            raise unknown("task", task_id, [known for split in self.splits() for known in self.ids(split)])
        return problem
