"""What the array interface shows a learner: fixed-size arrays with every value within [−1, 1], alike for every environment."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.closing import CLOSING
from agent_gym.core.tool import STATUSES
from agent_gym.interface.candidates import Candidate, Entity, Memory, Toolbox
from agent_gym.interface.hashing import MAX_TOKENS, bag, json_tokens, shapes, slot, tokens, unit, value_tokens

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
CANDIDATE_SIZE = 68
"""C: one candidate's row: the tool's name and the words of its arguments and their records (hashed); what these share with the goal,
alone and against the tool's other candidates; what its arguments share with the newest result and with all that was read; and whether
it, or its tool, was tried."""

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
_COL_NEWEST, _COL_READ = 64, 65
_COL_BEST, _COL_BEHIND = 66, 67
_NOTHING: frozenset[str] = frozenset()


@dataclass
class _Argument:
    """What one argument's value contributes to a row.

    Attributes:
        vector: Its words as a hashed bag, then what it shares with the goal: count, share, and whether all of it is named.
        own: Its own words.
        shared: The words of its record that the goal has too.
        read: How much of it stands in the newest result, and in any.
    """

    vector: NDArray[np.float32]
    own: frozenset[str]
    shared: frozenset[str]
    read: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class _Block:
    """One tool's candidates and the part of their rows that stays until one of their records is read anew."""

    candidates: list[Candidate]
    version: int
    arguments: list[list[_Argument]]
    rows: NDArray[np.float32]
    index: dict[bytes, int]


class Encoder:
    """Encodes one episode, observation by observation.

    Args:
        goal: The goal's text.
        toolbox: The tools on offer.
        most: How many candidates are kept, at most.
    """

    def __init__(self, goal: str, toolbox: Toolbox, most: int = CANDIDATES) -> None:
        self.memory = Memory(goal, toolbox)
        self.offered: list[Candidate] = []
        """The candidates of the newest observation, by index."""
        self.gaps: tuple[str, ...] = ()
        self._most = most
        self._goal = unit(bag(shapes(tokens(goal)), _BAG, bigrams=True))
        self._read = np.zeros(_BAG, np.float32)
        self._page: tuple[str, ...] = ()
        self._page_bag = np.zeros(_BAG, np.float32)
        self._newest_words: frozenset[str] = _NOTHING
        self._read_words: set[str] = set()
        self._blocks: dict[str, _Block] = {}
        self._arguments: dict[Entity | bytes, tuple[tuple[str, ...], _Argument]] = {}

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of these."""
        return [candidate.call for candidate in self.offered]

    def encode(self, data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Takes in an observation's ``data`` and gives the arrays.

        Returns:
            ``text: float32[D]``, ``data: float32[M]``, ``candidates: float32[K·C]``, ``action_mask: int8[K]``.
        """
        text, numbers, offered = self.read(data)
        rows = np.zeros((CANDIDATES, CANDIDATE_SIZE), np.float32)
        rows[: len(offered)] = offered
        mask = np.zeros(CANDIDATES, np.int8)
        mask[: len(offered)] = 1
        return {"text": text, "data": numbers, "candidates": rows.reshape(-1), "action_mask": mask}

    def read(self, data: Mapping[str, Any]) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """The same without padding: ``text: float32[D]``, ``data: float32[M]`` and ``float32[n, C]``, a row for each candidate."""
        last = data["last"]
        self.memory.update(last, data["view"], data.get("asks", ""))
        words = json_tokens([last["tool"], last["status"], last["result"]])[:MAX_TOKENS] if last is not None else []
        newest = bag(shapes(words), _BAG, bigrams=True)
        page = self.memory.page
        if page is not self._page:  # a page that still stands is read once
            self._page, self._page_bag = page, bag(shapes(page), _BAG, bigrams=True)
            self._read += self._page_bag
        self._read += newest
        newest = newest + self._page_bag
        self._newest_words = frozenset(self.memory.newest[:MAX_TOKENS])
        self._read_words |= self._newest_words
        counts = np.stack([newest, self._read])
        text = np.concatenate([self._goal, unit(np.sign(counts) * np.log1p(np.abs(counts))).reshape(-1)])
        return text, self._numbers(data), self._candidates()

    def _numbers(self, data: Mapping[str, Any]) -> NDArray[np.float32]:
        numbers = np.zeros(DATA_SIZE, np.float32)
        share = data["step"] / data["max_steps"]
        numbers[0], numbers[1] = min(share, 1.0), max(1.0 - share, 0.0)
        if self.memory.statuses:
            numbers[2 + STATUSES.index(self.memory.statuses[-1])] = 1.0
        by_tool = numbers[2 + len(STATUSES) :]
        for name, count in self.memory.tool_calls.items():
            by_tool[abs(slot(name, _TOOL_SLOTS)) - 1] += count
        by_tool /= 1.0 + by_tool
        return numbers

    def _candidates(self) -> NDArray[np.float32]:
        blocks = self._current_blocks()
        self.offered = [candidate for block in blocks for candidate in block.candidates]
        rows = self._with_history(blocks)
        too_many = len(self.offered) > self._most
        self.gaps = ("candidates_cut",) if too_many or self.memory.cut else ()
        if too_many:
            kept = _kept(self.calls, rows, [len(block.candidates) for block in blocks], self._most)
            self.offered, rows = [self.offered[i] for i in kept], rows[kept]
        return rows

    def _with_history(self, blocks: Sequence[_Block]) -> NDArray[np.float32]:
        """All rows, with what depends on the calls made and the results read so far."""
        rows = np.concatenate([block.rows for block in blocks])
        newest, read = self._newest_words, self._read_words
        for _, argument in self._arguments.values():
            own = argument.own
            if not own.isdisjoint(read):
                argument.read = (len(own & newest) / len(own), len(own & read) / len(own))
        shares = [_mean_read(arguments) for block in blocks for arguments in block.arguments]
        rows[:, _COL_NEWEST] = [share for share, _ in shares]
        rows[:, _COL_READ] = [share for _, share in shares]
        start = 0
        for block in blocks:
            end = start + len(block.candidates)
            if self.memory.tool_calls.get(block.candidates[0].call.name, 0):
                rows[start:end, _COL_USED] = 1.0
                for key, times in self.memory.calls.items():
                    row = block.index.get(key)
                    if row is not None:
                        rows[start + row, COL_TRIED], rows[start + row, _COL_TIMES] = 1.0, times / (1.0 + times)
            start = end
        return rows

    def _current_blocks(self) -> list[_Block]:
        """A block for every tool that has candidates; those that changed are built together."""
        stale: list[tuple[str, list[Candidate], int]] = []
        tools = []
        for spec in self.memory.toolbox.tools:
            candidates, version = self.memory.candidates(spec.name)
            if candidates:
                tools.append(spec.name)
                block = self._blocks.get(spec.name)
                if block is None or block.version != version:
                    stale.append((spec.name, candidates, version))
        if stale:
            offered = [candidate for _, candidates, _ in stale for candidate in candidates]
            arguments = [[self._argument(c.entities.get(key), value) for key, value in c.call.arguments.items()] for c in offered]
            made = self._rows(offered, arguments)
            start = 0
            for name, candidates, version in stale:
                end = start + len(candidates)
                rows = made[start:end]
                most = rows[:, COL_OVERLAP].max()
                rows[:, _COL_BEHIND] = most - rows[:, COL_OVERLAP]
                rows[:, _COL_BEST] = rows[:, COL_OVERLAP] == most
                index = {candidate.key: i for i, candidate in enumerate(candidates)}
                self._blocks[name] = _Block(candidates, version, arguments[start:end], rows, index)
                start = end
        return [self._blocks[name] for name in tools]

    def _rows(self, candidates: Sequence[Candidate], table: Sequence[Sequence[_Argument]]) -> NDArray[np.float32]:
        """The candidates' rows, but for what compares them with each other or depends on what happened so far."""
        goal = self.memory.goal_words
        rows = np.concatenate([_name_row(candidate.call.name) for candidate in candidates]).reshape(len(candidates), -1)
        for i in range(max(map(len, table))):
            having = [row for row, arguments in enumerate(table) if len(arguments) > i]
            vectors = np.concatenate([table[row][i].vector for row in having]).reshape(len(having), -1)
            rows[having, _WORDS] += vectors[:, :-3]
            if i < _ARGUMENTS:
                column = _COL_ARGUMENTS + 3 * i
                rows[having, column : column + 3] = vectors[:, -3:]
        rows[:, _WORDS] = unit(rows[:, _WORDS])
        covered = np.array([len(_NOTHING.union(*(argument.shared for argument in arguments))) for arguments in table], np.float32)
        rows[:, COL_OVERLAP] = _saturate(covered)
        rows[:, _COL_FRACTION] = covered / max(1, len(goal))
        names = {name: len(goal.intersection(words := tokens(name))) / len(words) for name in {c.call.name for c in candidates}}
        rows[:, _COL_NAMED] = [names[candidate.call.name] for candidate in candidates]
        return rows

    def _argument(self, entity: Entity | None, value: Any) -> _Argument:
        key = entity if entity is not None else dumps(value)
        known = self._arguments.get(key)
        if known is not None and (entity is None or known[0] is self.memory.words[entity]):
            return known[1]
        words = self.memory.words[entity] if entity is not None else tuple(value_tokens(value))
        goal = self.memory.goal_words
        name = None if entity is None else self.memory.names.get(entity)  # an element is told by its name, found by its context too
        distinct, own = frozenset(words), frozenset(value_tokens(value) if name is None else name[1:])
        shared = distinct & goal
        overlap = (_saturate(len(shared)), len(shared) / max(1, len(distinct)), float(bool(own) and own <= goal))
        argument = _Argument(np.concatenate([_word_bag(name or words), np.array(overlap, np.float32)]), own, shared)
        self._arguments[key] = (words, argument)
        return argument


def _kept(calls: Sequence[ToolCall], rows: NDArray[np.float32], sizes: Sequence[int], most: int) -> NDArray[np.intp]:
    """Which calls stay if there are too many: those that close, then the best of each tool, the second best of each, and so on.

    Better is what was not tried yet, of equals what shares more with the goal, and then what is news: what the newest result showed
    or none has shown. So no tool is crowded out by one with more to offer, and none by what is done already.

    Args:
        calls: The calls, tool by tool.
        rows: Their rows.
        sizes: How many each tool has.
        most: How many stay.
    """
    overlap, tools = rows[:, COL_OVERLAP], np.repeat(np.arange(len(sizes)), sizes)
    ranked = np.lexsort((rows[:, _COL_READ] - rows[:, _COL_NEWEST], -overlap, rows[:, COL_TRIED], tools))
    place = np.empty(len(calls), np.intp)
    place[ranked] = np.concatenate([np.arange(size) for size in sizes])
    closing = np.array([call.name in CLOSING and "answer" not in call.arguments for call in calls])
    return np.sort(np.lexsort((-overlap, place, ~closing))[:most])


@functools.lru_cache(maxsize=4_096)
def _name_row(tool: str) -> NDArray[np.float32]:
    """What all rows of a tool have in common; the words are not yet at length 1."""
    words = tokens(tool)
    row = np.zeros(CANDIDATE_SIZE, np.float32)
    row[_NAME] = unit(bag((tool, *words), 16))
    row[_WORDS] = bag(words, 32)
    row[_COL_ONE] = 1.0
    return row


@functools.lru_cache(maxsize=16_384)
def _word_bag(words: tuple[str, ...]) -> NDArray[np.float32]:
    return bag(shapes(words), 32)


def _mean_read(arguments: Sequence[_Argument]) -> tuple[float, float]:
    """How much of a call's arguments stands in the newest result, and in any."""
    if len(arguments) == 1:
        return arguments[0].read
    count = max(1, len(arguments))
    return sum(a.read[0] for a in arguments) / count, sum(a.read[1] for a in arguments) / count


def _saturate(count: Any) -> Any:
    return count / (4.0 + count)
