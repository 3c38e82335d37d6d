"""Makes the tasks: which examples show a function, which faults it gets; ``python -m agent_gym.envs.code_task.repair.make`` writes them.

A fault is an edit that some edit undoes. Kept are those sets of one to three faults that some shown example and some hidden one notice,
and that can be mended in any order: every edit that makes more of the shown examples pass is a step to where all pass, the hidden too.
"""

import inspect
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from agent_gym.core.seeding import derive
from agent_gym.envs.code_task.repair.drawn import ARGUMENTS
from agent_gym.envs.code_task.repair.functions import MODULES, called, functions, shown
from agent_gym.envs.code_task.repair.mending import Example, versions
from agent_gym.envs.code_task.repair.trying import passed

__all__ = ["make"]

_DRAWN, _SHOWN, _HIDDEN, _LONGEST, _USUAL = 40, 5, 14, 50, 14
_MOST = {1: 14, 2: 8, 3: 4}
_DRAWS = {2: 30, 3: 30}
_OFFERED = 52  # edits, so that all of them and the other calls are on offer at once


def make(function: FunctionType) -> dict[str, Any]:
    """The tasks of a function: ``shown`` and ``hidden``, arguments as literals, and ``faults``, for each task the edits in their order."""
    name, text = function.__name__, inspect.getsource(function)
    cases = _cases(function)
    spoiled = {version: passed([version], name, cases)[0] for _, version in versions(text)}
    telling = _telling(cases, list(spoiled.values()))
    hidden = [case for case in cases if case not in telling][:_HIDDEN]
    return {
        "shown": [arguments for arguments, _ in telling],
        "hidden": [arguments for arguments, _ in hidden],
        "faults": [*_Maker(name, telling, hidden).faults(shown(function, telling))],
    }


def _cases(function: FunctionType) -> list[Example]:
    draw, edges = ARGUMENTS[function.__name__]
    rng = derive("repair", function.__name__)
    arguments = [*edges, *(draw(rng) for _ in range(_DRAWN))]
    return called(function, [*dict.fromkeys(map(repr, arguments))])


def _telling(cases: Sequence[Example], outcomes: Sequence[Sequence[bool]]) -> list[Example]:
    """The examples that notice the most spoiled versions, and tell these apart best; of equals those of a usual length."""
    chosen: list[int] = []
    while len(chosen) < _SHOWN:
        left = [number for number, (given, _) in enumerate(cases) if number not in chosen and len(given) <= _LONGEST]
        chosen.append(max(left, key=lambda number: _told([*chosen, number], cases, outcomes)))
    return [cases[number] for number in sorted(chosen)]


def _told(chosen: Sequence[int], cases: Sequence[Example], outcomes: Sequence[Sequence[bool]]) -> tuple[float, int]:
    patterns = Counter(tuple(passes[number] for number in chosen) for passes in outcomes)
    unnoticed = patterns[(True,) * len(chosen)] / len(outcomes)
    entropy = -sum(count / len(outcomes) * math.log(count / len(outcomes)) for count in patterns.values())
    return entropy - 3 * unnoticed, -sum(abs(len(cases[number][0]) - _USUAL) for number in chosen)


class _Maker:
    """Makes the faults of one function.

    Args:
        name: The function's.
        shown: The examples that are shown.
        hidden: Those that judge.
    """

    def __init__(self, name: str, shown: list[Example], hidden: list[Example]) -> None:
        self._name, self._shown, self._hidden = name, shown, hidden
        self._scores: dict[str, tuple[int, bool]] = {}
        self._safe: dict[str, bool] = {}

    def faults(self, text: str) -> Iterator[list[list[str]]]:
        """Sets of faults, those of one fault first, in an order that is drawn."""
        rng = derive("repair", self._name, "faults")
        for count, most in _MOST.items():
            made: dict[str, list[list[str]]] = {}
            if count == 1:
                drawn = [versions(text)[place : place + 1] for place in rng.permutation(len(versions(text)))]
            else:
                drawn = [self._chain(text, count, rng) for _ in range(_DRAWS[count])]
            for chain in drawn:
                if chain and self._good(text, chain):
                    made.setdefault(chain[-1][1], [[edit.old, edit.new] for edit, _ in chain])
            yield from [*made.values()][:most]

    def _chain(self, text: str, count: int, rng: Any) -> list[Any]:
        chain: list[Any] = []
        for _ in range(count):
            options = versions(text)
            if not options:
                return []
            chain.append(options[int(rng.integers(len(options)))])
            text = chain[-1][1]
        return chain

    def _good(self, text: str, chain: Sequence[Any]) -> bool:
        before = [text, *(version for _, version in chain[:-1])]
        undone = all(earlier in [back for _, back in versions(later)] for earlier, (_, later) in zip(before, chain, strict=True))
        spoiled = chain[-1][1]
        if not undone or all(passed([spoiled], self._name, self._hidden)[0]):
            return False
        if len(chain) > 1 and self._near(spoiled, len(chain) - 1):
            return False
        return self._score(spoiled)[0] < len(self._shown) and self._leads_home(spoiled, len(chain) + 1)

    def _near(self, version: str, edits: int) -> bool:
        """Whether fewer edits do."""
        return any(
            self._score(other) == (len(self._shown), True)
            or (edits > 1 and self._score(other)[0] > self._score(version)[0] and self._near(other, edits - 1))
            for _, other in versions(version)
        )

    def _leads_home(self, version: str, edits: int) -> bool:
        """Whether every edit that makes more shown examples pass leads to a version that passes all, and there is one."""
        if version not in self._safe:
            score, right = self._score(version)
            if score == len(self._shown):
                self._safe[version] = right
            elif not edits or len(versions(version)) > _OFFERED:
                self._safe[version] = False
            else:
                better = [other for _, other in versions(version) if self._score(other)[0] > score]
                self._safe[version] = bool(better) and all(self._leads_home(other, edits - 1) for other in better)
        return self._safe[version]

    def _score(self, version: str) -> tuple[int, bool]:
        """How many shown examples a version passes, and whether it passes all the hidden ones."""
        if version not in self._scores:
            score = sum(passed([version], self._name, self._shown)[0])
            self._scores[version] = score, score == len(self._shown) and all(passed([version], self._name, self._hidden)[0])
        return self._scores[version]


def main() -> None:
    """Writes ``tasks.json``."""
    made = {split: {name: make(function) for name, function in functions(split).items()} for split in MODULES}
    rows = [f" {json.dumps(split)}: {{\n" + ",\n".join(_rows(tasks)) + "\n }" for split, tasks in made.items()]
    Path(__file__).with_name("tasks.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def _rows(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, task in tasks.items():
        shown, hidden = json.dumps(task["shown"]), json.dumps(task["hidden"])
        faults = ",\n".join(f"   {json.dumps(fault)}" for fault in task["faults"])
        yield f'  "{name}": {{"shown": {shown},\n   "hidden": {hidden},\n   "faults": [\n{faults}]}}'


if __name__ == "__main__":
    main()
