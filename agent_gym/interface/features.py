"""What the array interface shows a learner: fixed-size arrays with every value within [−1, 1], alike for every environment."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.action import ToolCall
from agent_gym.core.closing import CLOSING
from agent_gym.core.tool import STATUSES
from agent_gym.interface.candidates import Candidate, Entity, Memory
from agent_gym.interface.hashing import MAX_TOKENS, bag, json_tokens, shapes, tokens, unit

__all__ = [
    "CANDIDATES",
    "CANDIDATE_SIZE",
    "COL_OVERLAP",
    "COL_TRIED",
    "DATA_SIZE",
    "TEXT_SIZE",
    "Encoder",
]

CANDIDATES = 64
"""K: rows for candidates; the rest is padding, masked out."""
TEXT_SIZE = 384
"""D: three hashed bags of words: the goal, the last result, all that was read so far."""
DATA_SIZE = 32
"""M: steps, the last status, calls by tool."""
CANDIDATE_SIZE = 64
"""C: one candidate's row."""

_BAG = TEXT_SIZE // 3
_TOOL_SLOTS = DATA_SIZE - 2 - len(STATUSES)
_NAME, _WORDS, _ARGUMENTS = slice(0, 16), slice(16, 48), 3
_COL_ARGUMENTS = 48
COL_OVERLAP = 57
"""Column of the share of goal words that a candidate's arguments and their records cover (saturating count)."""
_COL_FRACTION = 58
_COL_NAMED = 59
COL_TRIED = 60
"""Column that is 1 if this very call was made before in the episode."""
_COL_TIMES, _COL_USED, _COL_ONE = 61, 62, 63


class Encoder:
    """Encodes one episode, observation by observation.

    Args:
        goal: The goal's text.
        tools: The tools on offer.
    """

    def __init__(self, goal: str, tools: Sequence[Any]) -> None:
        self.memory = Memory(goal, tools)
        self.calls: list[ToolCall] = []
        """The candidates of the newest observation, by index."""
        self.gaps: tuple[str, ...] = ()
        self._goal = unit(bag(shapes(tokens(goal)), _BAG, bigrams=True))
        self._read = np.zeros(_BAG, np.float32)
        self._rows: dict[bytes, tuple[tuple[tuple[str, ...], ...], NDArray[np.float32]]] = {}

    def encode(self, data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Takes in an observation's ``data`` and gives the arrays.

        Returns:
            ``text: float32[D]``, ``data: float32[M]``, ``candidates: float32[K·C]``, ``action_mask: int8[K]``.
        """
        last = data["last"]
        self.memory.update(last)
        words = shapes(json_tokens([last["tool"], last["status"], last["result"]]))[:MAX_TOKENS] if last is not None else []
        newest = bag(words, _BAG, bigrams=True)
        self._read += newest
        return {
            "text": np.concatenate([self._goal, unit(newest), unit(self._read)]),
            "data": self._numbers(data),
            **self._candidates(),
        }

    def _numbers(self, data: Mapping[str, Any]) -> NDArray[np.float32]:
        numbers = np.zeros(DATA_SIZE, np.float32)
        share = data["step"] / data["max_steps"]
        numbers[0], numbers[1] = min(share, 1.0), max(1.0 - share, 0.0)
        if self.memory.statuses:
            numbers[2 + STATUSES.index(self.memory.statuses[-1])] = 1.0
        by_tool = np.zeros(_TOOL_SLOTS, np.float32)
        for name, count in self.memory.tool_calls.items():
            by_tool += count * np.abs(bag((name,), _TOOL_SLOTS))
        numbers[2 + len(STATUSES) :] = by_tool / (1.0 + by_tool)
        return numbers

    def _candidates(self) -> dict[str, NDArray[Any]]:
        memory = self.memory
        offered = memory.candidates()
        self.gaps = ()
        if len(offered) > CANDIDATES:
            ranked = sorted(range(len(offered)), key=lambda i: (offered[i].call.name not in CLOSING, -memory.overlap(offered[i]), i))
            offered = [offered[i] for i in sorted(ranked[:CANDIDATES])]
            self.gaps = ("candidates_cut",)
        rows = np.zeros((CANDIDATES, CANDIDATE_SIZE), np.float32)
        mask = np.zeros(CANDIDATES, np.int8)
        mask[: len(offered)] = 1
        for row, candidate in zip(rows, offered, strict=False):
            row[:] = self._row(candidate)
            times, used = memory.calls.get(candidate.key, 0), memory.tool_calls.get(candidate.call.name, 0)
            row[COL_TRIED], row[_COL_TIMES], row[_COL_USED] = times > 0, times / (1.0 + times), used > 0
        self.calls = [candidate.call for candidate in offered]
        return {"candidates": rows.reshape(-1), "action_mask": mask}

    def _row(self, candidate: Candidate) -> NDArray[np.float32]:
        """The part of a row that stays the same until one of the candidate's records is read anew."""
        words = tuple(self._words(candidate.entities.get(name), value) for name, value in candidate.call.arguments.items())
        cached = self._rows.get(candidate.key)
        if cached is not None and cached[0] == words:
            return cached[1]
        row = np.zeros(CANDIDATE_SIZE, np.float32)
        goal = self.memory.goal_words
        name = tokens(candidate.call.name)
        row[_NAME] = unit(bag((candidate.call.name, *name), 16))
        row[_WORDS] = unit(bag([*name, *shapes(word for part in words for word in part)], 32))
        covered: set[str] = set()
        for i, (part, value) in enumerate(zip(words, candidate.call.arguments.values(), strict=True)):
            distinct = set(part)
            shared = distinct & goal
            covered |= shared
            if i < _ARGUMENTS:
                own = set(json_tokens(value))
                column = _COL_ARGUMENTS + 3 * i
                row[column] = _saturate(len(shared))
                row[column + 1] = len(shared) / max(1, len(distinct))
                row[column + 2] = bool(own) and own <= goal
        row[COL_OVERLAP] = _saturate(len(covered))
        row[_COL_FRACTION] = len(covered) / max(1, len(goal))
        row[_COL_NAMED] = len(set(name) & goal) / len(name)
        row[_COL_ONE] = 1.0
        self._rows[candidate.key] = (words, row)
        return row

    def _words(self, entity: Entity | None, value: Any) -> tuple[str, ...]:
        return self.memory.words[entity] if entity is not None else tuple(json_tokens(value))


def _saturate(count: int) -> float:
    return count / (4.0 + count)
