"""What CandidatePPO sees: an observation and its candidates, however many, as numbers and as bags of hashed tokens; nothing is padded.

The numbers are those of the array interface (`agent_gym.interface.features`). The tokens say what these cannot: which field of a record
has which value, whether the goal names it, whether it is the greatest of its kind, whether another field says the same; and of a call,
what was done with its arguments before, and how far apart they stand in the goal. Nothing here knows any world.
"""

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Sequence
from numpy.typing import NDArray

from agent_gym.interface import ArrayInterface
from agent_gym.interface.answers import said
from agent_gym.interface.candidates import Candidate, Entity, Toolbox
from agent_gym.interface.features import CANDIDATE_SIZE, COL_OVERLAP, COL_TRIED, DATA_SIZE, TEXT_SIZE, Encoder
from agent_gym.interface.hashing import shapes, tokens, value_tokens

__all__ = ["BAGS", "BUCKETS", "INTERFACE", "MOST", "SCHEMA", "STATE_SIZE", "RaggedEncoder", "RaggedInterface"]

MOST = 512
"""Candidates of one observation, at most: a bound on what a hostile result can cost."""
BUCKETS = 2**14
"""Tokens are hashed to so many numbers."""
BAGS = 3
"""Bags of an observation, before those of its candidates: the goal, the newest result, all that was read."""
STATE_SIZE = TEXT_SIZE + DATA_SIZE
SCHEMA = f"2:{TEXT_SIZE}:{DATA_SIZE}:{CANDIDATE_SIZE}:{BUCKETS}"
"""Names what these features mean; a network fits those that it was trained on only."""
INTERFACE = "agent_gym.baselines.candidate_ppo.features:RaggedInterface"

_LONGEST = 40
"""Characters of a value that is told as a whole."""
_NEWEST, _HISTORY, _WORDS, _GAP, _TELLING = 256, 384, 16, 8, 4
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d)?")


class RaggedInterface(ArrayInterface):
    """The array interface with any number of candidates, up to `MOST`.

    Observations are ``{"state": float32[D + M], "rows": float32[n, C], "ids": int32[L], "sizes": int32[BAGS + n]}``: the numbers of the
    observation, those of each candidate, and all tokens, bag after bag, with the sizes of the bags. The action is an index below n.
    """

    def __init__(self, rich: gymnasium.Env[Any, Any]) -> None:
        super().__init__(rich)
        numbers = Box(-1.0, 1.0, (CANDIDATE_SIZE,), np.float32)
        self.observation_space = Dict(
            {
                "state": Box(-1.0, 1.0, (STATE_SIZE,), np.float32),
                "rows": Sequence(numbers, stack=True),
                "ids": Sequence(Discrete(BUCKETS), stack=True),
                "sizes": Sequence(Discrete(2**31), stack=True),
            }
        )
        self.action_space = Discrete(MOST)
        self._ragged: RaggedEncoder | None = None

    def _begin(self) -> None:
        super()._begin()
        assert self._toolbox is not None
        self._ragged = RaggedEncoder(self.task.goal, self._toolbox)
        self._encoder = self._ragged.encoder

    def _encode(self, observation: Mapping[str, Any], info: dict[str, Any]) -> dict[str, Any]:
        if self._ragged is None:
            self._begin()
        assert self._ragged is not None
        data = observation["data"]
        self._seen.append({key: data[key] for key in ("step", "max_steps", "last", "view", "asks") if key in data})
        encoded = self._ragged.encode(data)
        self._mask = np.ones(len(encoded["rows"]), np.int8)
        info["gaps"] = [*info["gaps"], *self._ragged.encoder.gaps]
        return encoded


class RaggedEncoder:
    """Encodes one episode, observation by observation.

    Args:
        goal: The goal's text.
        toolbox: The tools on offer.
        most: How many candidates are kept, at most.
    """

    def __init__(self, goal: str, toolbox: Toolbox, most: int = MOST) -> None:
        self.encoder = Encoder(goal, toolbox, most)
        words = tokens(goal)
        self._goal = _hashed([*_grams(shapes(words)), *_pieces(words)])
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            self._places.setdefault(word, []).append(place)
        self._facts = _Facts(words, toolbox)
        self._done: dict[Entity | str, dict[str, None]] = {}
        self._history: dict[str, None] = {}
        self._asks = ""
        self._newest: Mapping[str, Any] = {}
        self._stands: dict[Entity, list[int]] = {}

    def encode(self, data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Takes in an observation's ``data``; see `RaggedInterface` for what comes of it."""
        text, numbers, rows = self.encoder.read(data)
        self._asks = data.get("asks", "")
        newest = self._hear(data["last"]) if data["last"] is not None else []
        newest += [f"w:{word}" for word in dict.fromkeys(shapes(self.encoder.memory.page))]
        if self._asks:
            newest.append(f"asks:{self._asks}")
        self._history |= dict.fromkeys(newest[:_NEWEST])
        bags = [self._goal, _hashed(newest[:_NEWEST]), _hashed(list(self._history)[-_HISTORY:])]
        told: dict[tuple[str, Entity], list[str]] = {}
        self._stands.clear()
        orders = self._orders()
        leads = _leads([candidate.call.name for candidate in self.encoder.offered], rows)
        bags += [
            _hashed([*self._of_candidate(candidate, told, orders), *leads.get(place, ())])
            for place, candidate in enumerate(self.encoder.offered)
        ]
        return {
            "state": np.concatenate([text, numbers]),
            "rows": rows,
            "ids": np.concatenate(bags),
            "sizes": np.array([len(one) for one in bags], np.int32),
        }

    def _hear(self, last: Mapping[str, Any]) -> list[str]:
        """Takes in the newest result; what it says."""
        done = f"{last['tool']}:{last['status']}"
        self._newest = last["arguments"]
        for name, value in last["arguments"].items():
            for one in value if isinstance(value, list) else (value,):
                self._done.setdefault(f"{name}={one}", {})[done] = None
        return [f"called:{done}", *self._facts.hear(last["tool"], last["result"])]

    def _of_candidate(
        self, candidate: Candidate, told: dict[tuple[str, Entity], list[str]], orders: Mapping[str, Mapping[str, list[int]]]
    ) -> Iterator[str]:
        name, memory = candidate.call.name, self.encoder.memory
        yield f"tool:{name}"
        arguments = candidate.call.arguments
        for argument, value in arguments.items():
            entity = candidate.entities.get(argument)
            if self._newest.get(argument) == value:
                yield f"{argument}==last"
            if entity is None:
                if len(text := said(value)) <= _LONGEST:
                    yield f"{name}:{argument}={text}"
                    yield from self._done.get(f"{argument}={value}", ())
                    words = tokens(text)
                    yield from (f"{argument}@{where}" for where in self._facts.told_in(words))
                    yield from (f"{argument}{where}" for where in self._facts.around(words))
                    yield from (f"{argument}.{token}" for token in self._facts.saying(value))
                for other in candidate.entities.values():
                    if argument in (record := self._facts.records.get(other, {})):
                        yield f"{argument}=={record[argument] == value}"
                continue
            if (argument, entity) not in told:
                told[argument, entity] = [
                    *(f"{argument}<{call}" for call in self._done.get(f"{argument}={entity[1]}", ())),
                    *(f"{argument}.{token}" for token in self._facts.of(entity, self._asks)),
                    *(f"{argument}{where}" for where in self._facts.around(tokens(str(entity[1])))),
                    f"{argument}:{self._standing(entity)}",
                    *(f"w:{word}" for word in _grams(shapes((memory.names.get(entity) or memory.words[entity])[:_WORDS]))),
                ]
            yield from told[argument, entity]
        if len(arguments) > 1:
            yield from self._gaps(candidate, orders[name])

    def _standing(self, entity: Entity) -> str:
        """Whether what was read of an entity shares more with the goal than what was read of the others of its kind."""
        memory = self.encoder.memory
        shared = {other: len(memory.goal_words.intersection(memory.words[other])) for other in memory.entities(entity[0])}
        most, own = max(shared.values(), default=0), shared.get(entity, 0)
        if len(shared) < 2:
            return "alone"
        if own < most:
            return "trails"
        return "leads" if list(shared.values()).count(most) == 1 else "ties"

    def _gaps(self, candidate: Candidate, orders: Mapping[str, list[int]]) -> Iterator[str]:
        """How far apart the arguments of a call stand in the goal, in words, and whether they come in the same order as others there."""
        arguments = candidate.call.arguments
        stand = {name: places for name in arguments if (places := self._where(candidate.entities.get(name), arguments[name]))}
        for (one, here), (other, there) in itertools.combinations(stand.items(), 2):
            gap = min((q - p for p in here for q in there), key=lambda d: (abs(d), d))
            yield f"gap:{one}:{other}:{max(-_GAP, min(_GAP, gap))}"
            ranks = [orders[name].index(min(places)) for name, places in ((one, here), (other, there))]
            yield f"order:{one}:{other}:{ranks[0] == ranks[1]}:{min(len(orders[one]), len(orders[other]), 3)}"

    def _orders(self) -> dict[str, dict[str, list[int]]]:
        """Of each tool, by argument, where the goal first names each of its values, in order."""
        found: dict[str, dict[str, set[int]]] = {}
        for candidate in self.encoder.offered:
            if len(candidate.call.arguments) > 1:
                own = found.setdefault(candidate.call.name, {})
                for name, value in candidate.call.arguments.items():
                    if places := self._where(candidate.entities.get(name), value):
                        own.setdefault(name, set()).add(min(places))
        return {tool: {name: sorted(places) for name, places in own.items()} for tool, own in found.items()}

    def _where(self, entity: Entity | None, value: Any) -> list[int]:
        """Where a goal names a value, or its record by what tells it from others of its kind."""
        key = entity if entity is not None else ("", said(value))
        if key not in self._stands:
            memory = self.encoder.memory
            words = frozenset(value_tokens(value)) if entity is None else frozenset(memory.words[entity]) & memory.goal_words
            if entity is not None:
                alike = [frozenset(memory.words[other]) for other in memory.entities(entity[0]) if other != entity]
                words = frozenset(word for word in words if not all(word in other for other in alike)) or words
            self._stands[key] = sorted(place for word in words for place in self._places.get(word, ()))
        return self._stands[key]


class _Facts:
    """What results have said, record by record.

    Args:
        goal: The goal's words, in order.
        toolbox: Says which fields name entities.
    """

    def __init__(self, goal: tuple[str, ...], toolbox: Toolbox) -> None:
        self._text, self._goal, self._kinds = goal, frozenset(goal), toolbox.kinds
        self._around: dict[tuple[str, ...], list[str]] = {}
        self.records: dict[Entity, dict[str, Any]] = {}
        self._nameless = 0
        self._called: dict[Any, dict[str, None]] = {}
        self._telling: dict[Any, dict[Entity, None]] = {}
        self._earlier: dict[tuple[str, str], Any] = {}
        self._newest: frozenset[str] = frozenset()
        self._read: set[str] = set()
        self._version = 0
        self._of: dict[tuple[Entity, str], tuple[int, list[str]]] = {}

    def hear(self, tool: str, result: Any) -> list[str]:
        """Takes in a tool's result; its tokens."""
        self._version += 1
        self._newest = frozenset(value_tokens(result))
        self._read |= self._newest
        found = [f"r:{word}" for word in _grams(shapes(tokens(result)[:_WORDS]))] if isinstance(result, str) else []
        heard: list[tuple[Entity, dict[str, Any]]] = []
        self._walk(result, heard)
        counts: dict[str, int] = {}
        for entity, fields in heard:
            found += (own := self._tokens(entity, fields))
            for one in (f"records:{entity[0]}", *(token for token in own if token.endswith(("@goal", "@phrase")))):
                counts[one] = counts.get(one, 0) + 1
            if any(token.endswith("@phrase") for token in own):
                found += [f"named:{token}" for token in own if "=" in token]
            for name, value in fields.items():
                if _orders(value):
                    before = self._earlier.get((tool, name))
                    if before is not None and type(before) is type(value):
                        found.append(f"{name}:{'up' if value > before else 'down' if value < before else 'same'}")
                    self._earlier[tool, name] = value
        return list(dict.fromkeys([*found, *(f"{one}#{min(count, 4)}" for one, count in counts.items())]))

    def around(self, words: tuple[str, ...]) -> list[str]:
        """Whether the goal has these words one after another, and what stands before and after them there."""
        if not words or words[0] not in self._goal:
            return []
        if words not in self._around:
            found: list[str] = []
            text, size = ("", "", *self._text, ""), len(words)
            for at in range(2, len(text) - size):
                if text[at : at + size] == words:
                    found += ["@phrase", f"<-{text[at - 1]}", f"<-{text[at - 2]} {text[at - 1]}", f"->{text[at + size]}"]
            self._around[words] = list(dict.fromkeys(found))
        return self._around[words]

    def told_in(self, words: Iterable[str]) -> list[str]:
        """Where all of these words stand: in the goal, in the newest result, in any."""
        own = frozenset(words)
        places = (("goal", self._goal), ("newest", self._newest), ("read", self._read))
        return [name for name, place in places if own and own <= place]

    def saying(self, value: Any) -> list[str]:
        """What else the records say, of those without a name of their own, in which a field is this value."""
        if (key := _key(value)) is None:
            return []
        telling = [who for who in self._telling.get(key, ()) if not who[0]][-_TELLING:]
        return list(dict.fromkeys(itertools.chain.from_iterable(self._tokens(who, self.records[who]) for who in telling)))

    def of(self, entity: Entity, asks: str) -> list[str]:
        """What is known of an entity: its record's tokens, or for an answer those of the records that say it."""
        kept = self._of.get((entity, asks))
        if kept is not None and kept[0] == self._version:
            return kept[1]
        if entity in self.records:
            found = self._tokens(entity, self.records[entity])
        elif asks and entity[0] not in self._kinds:
            telling = [(who, record) for who, record in self.records.items() if said(record.get(asks)) == entity[1]]
            found = list(dict.fromkeys(itertools.chain.from_iterable(self._tokens(who, record) for who, record in telling)))
        else:
            found = []
        self._of[entity, asks] = (self._version, found)
        return found

    def _walk(self, value: Any, heard: list[tuple[Entity, dict[str, Any]]]) -> None:
        if isinstance(value, list):
            for part in value:
                self._walk(part, heard)
        if not isinstance(value, dict):
            return
        fields = {name: part for name, part in value.items() if not isinstance(part, dict)}
        named = next(((name, part) for name, part in fields.items() if name in self._kinds and isinstance(part, str | int)), None)
        if named is None:
            self._nameless += 1
            named = ("", self._nameless)
        self.records[named] = {**self.records.get(named, {}), **fields}
        for name, part in fields.items():
            if isinstance(part, str | int) and not isinstance(part, bool) and len(str(part)) > 2:
                self._called.setdefault(part, {})[name] = None
                self._telling.setdefault(part, {})[named] = None
        heard.append((named, fields))
        for part in value.values():
            if isinstance(part, dict | list):
                self._walk(part, heard)

    def _tokens(self, entity: Entity, fields: Mapping[str, Any]) -> list[str]:
        found = []
        alike = [record for other, record in self.records.items() if other[0] == entity[0]] if entity[0] else []
        for name, value in fields.items():
            if isinstance(value, list):
                found.append(f"{name}[{min(len(value), 4)}]")
                if any(isinstance(part, str) and "@phrase" in self.around(tokens(part)) for part in value):
                    found.append(f"{name}@phrase")
            text = said(value)
            words = tokens(text)
            if len(text) <= _LONGEST and name not in self._kinds:
                found.append(f"{name}={' '.join(shapes(words))}")
            elif name not in self._kinds:
                found += [f"{name}~{word}" for word in _grams(shapes(words[:_WORDS]))]
            if words and self._goal.issuperset(words):
                found.append(f"{name}@goal")
                found += [f"{name}{where}" for where in self.around(words)]
            elif len(text) <= _LONGEST and any(len(word) > 2 and word in self._goal for word in words):
                found.append(f"{name}@part")
            found += [f"{name}=={other}" for other in itertools.islice(self._called.get(_key(value), ()), 4) if other != name]
            if _orders(value):
                ranked = [record[name] for record in alike if type(record.get(name)) is type(value)]
                if len(ranked) > 1 and min(ranked) != max(ranked):
                    if value == max(ranked):
                        found.append(f"{name}:most")
                    if value == min(ranked):
                        found.append(f"{name}:least")
        return found


def _leads(names: list[str], rows: NDArray[np.float32]) -> dict[int, list[str]]:
    """Of each tool, the first candidate that was not tried, and the first of those that share most with the goal."""
    found: dict[int, list[str]] = {}
    untried: dict[str, list[int]] = {}
    for place in np.flatnonzero(rows[:, COL_TRIED] == 0):
        untried.setdefault(names[place], []).append(int(place))
    for name, places in untried.items():
        found.setdefault(places[0], []).append(f"next:{name}")
        best = places[int(rows[places, COL_OVERLAP].argmax())]
        found.setdefault(best, []).append(f"best:{name}")
    return found


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int) else None


def _orders(value: Any) -> bool:
    """Whether there is a greatest of such values."""
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (isinstance(value, str) and bool(_DATE.fullmatch(value)))


def _grams(words: list[str]) -> list[str]:
    return [*words, *(f"{one} {other}" for one, other in itertools.pairwise(words))]


def _pieces(words: Iterable[str]) -> list[str]:
    """Three letters at a time, by which kindred words are known."""
    return [f"^{word[at : at + 3]}" for word in words if word.isalpha() for at in range(max(1, len(word) - 2))]


def _hashed(found: Iterable[str]) -> NDArray[np.int32]:
    return np.fromiter(map(_bucket, found), np.int32)


@lru_cache(maxsize=262_144)
def _bucket(token: str) -> int:
    return zlib.crc32(token.encode()) % BUCKETS
