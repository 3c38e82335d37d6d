"""``code/data``: questions about a shop's files, answered by running code."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.core.seeding import derive
from agent_gym.envs.code_task.data_questions.questions import QUESTIONS
from agent_gym.envs.code_task.data_questions.shop import make
from agent_gym.envs.code_task.problem import Collection, Problem
from agent_gym.envs.code_task.wording import read_slots

__all__ = ["DataQuestions"]

_COUNTS = {"train": 20, "validation": 4, "test": 10}
"""Tasks of each kind of question, by split. No two are about the same shop."""
_PROGRAM = "answer.py"
_GOAL = (
    "Answer a question about a shop, whose customers are in customers.json, its orders in orders.csv, its products and the lines of the "
    "orders in shop.sqlite: {question} Finish with the answer alone."
)
_DRAWS = 50


class DataQuestions(Collection):
    """Ten kinds of questions, each about a shop of its own. The oracle writes a program from the question's words, and runs it."""

    family = "code/data"

    def splits(self) -> Sequence[str]:
        """Three."""
        return list(_COUNTS)

    def ids(self, split: str) -> Sequence[str]:
        """``data/<kind>/<split>/<number>``."""
        return [f"data/{name}/{split}/{number}" for name in QUESTIONS for number in range(_COUNTS.get(split, 0))]

    def problem(self, task_id: str) -> Problem | None:
        """The question of that id, about a shop that is drawn for it."""
        parts = task_id.split("/")
        return _problem(task_id) if len(parts) == 4 and task_id in self.ids(parts[2]) else None

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall | None:
        """Writes the program that the question asks for, runs it, and answers what it printed."""
        goal = observations[0]["data"]["goal"]
        found = next(((kind, slots) for kind in QUESTIONS.values() if (slots := read_slots(kind.text, goal)) is not None), None)
        if found is None:
            return None
        last = observations[-1]["data"]["last"]
        if last is None:
            return ToolCall("write_file", {"path": _PROGRAM, "content": found[0].solve(found[1])})
        if last["tool"] == "write_file":
            return ToolCall("run_python", {"path": _PROGRAM})
        return ToolCall("finish", {"answer": last["result"]["stdout"].strip()})

    def clear_cache(self) -> None:
        """Draws all shops anew."""
        _problem.cache_clear()


@lru_cache(maxsize=64)
def _problem(task_id: str) -> Problem:
    _, name, split, _ = task_id.split("/")
    kind = QUESTIONS[name]
    for draw in range(_DRAWS):
        rng = derive("code_data", task_id, draw)
        shop = make(rng)
        slots = kind.draw(rng, shop)
        if (answer := kind.answer(shop, slots)) is not None and answer not in kind.text.format(**slots):
            break
    else:
        raise AssertionError(f"no shop was drawn that {task_id} can be asked about")
    question = kind.text.format(**slots)
    return Problem(
        id=task_id,
        family=DataQuestions.family,
        split=split,
        goal=_GOAL.format(question=question),
        prompt=question,
        files=shop.files(),
        grader="answer",
        hidden={"answer": answer, "kind": kind.kind},
        tools=("list_files", "read_file", "search", "write_file", "edit_file", "run_python", "run_shell"),
        oracle_kind="observational",
        max_steps=15,
        difficulty=kind.difficulty,
        capabilities=("write_code", "data"),
        metadata={"question": name},
    )
