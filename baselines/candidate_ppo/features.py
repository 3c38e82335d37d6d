"""What CandidatePPO sees: an observation and its candidates, however many, as numbers and as bags of hashed tokens; nothing is padded.

The numbers are those of the array interface (`agent_gym.interface.features`). The tokens say what these cannot: which field of a record
has which value, whether the goal names it, whether it is the greatest of its kind, whether another field says the same; and of a call,
what was done with its arguments before, and how far apart they stand in the goal. Nothing here knows any world.
"""

import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Sequence
from numpy.typing import NDArray

from agent_gym.baselines.candidate_ppo.facts import LONGEST, WORDS, Facts, grams
from agent_gym.baselines.candidate_ppo.pages import read
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

_NEWEST, _HISTORY, _GAP = 256, 384, 8


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
        self._goal = _hashed([*grams(shapes(words)), *_pieces(words)])
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            self._places.setdefault(word, []).append(place)
        self._facts = Facts(words, toolbox)
        self._done: dict[Entity | str, dict[str, None]] = {}
        self._history: dict[str, None] = {}
        self._asks = ""
        self._newest: Mapping[str, Any] = {}
        self._stands: dict[Entity, list[int]] = {}
        self._outline = ""
        self._elements: dict[str | int, Mapping[str, Any]] = {}
        self._page: list[str] = []

    def encode(self, data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Takes in an observation's ``data``; see `RaggedInterface` for what comes of it."""
        text, numbers, rows = self.encoder.read(data)
        self._asks = data.get("asks", "")
        newest = self._hear(data["last"]) if data["last"] is not None else []
        if self._asks:
            newest.append(f"asks:{self._asks}")
        if "outline" in (view := data.get("view", {})):
            newest += self._look(view)
        self._history |= dict.fromkeys(newest[:_NEWEST])
        newest += [f"w:{word}" for word in dict.fromkeys(shapes(self.encoder.memory.page))]
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

    def _look(self, view: Mapping[str, Any]) -> list[str]:
        """Takes in the page that is shown; what it says."""
        if view["outline"] != self._outline:
            self._outline, path = view["outline"], _path(view["url"])
            self._elements = {element["bid"]: element for element in view["elements"]}
            self._page = [f"at:{_form(path)}", *self._facts.look(path, read(self._outline))]
        return self._page

    def _of_element(self, bid: str | int) -> Iterator[str]:
        """What the page says of an element: of its row, and of what was seen where it leads to."""
        element = self._elements[bid]
        yield from (f"in:{word}" for word in grams(shapes(tokens(element.get("context") or "")[:WORDS])))
        yield from (f"is:{state}" for state in element.get("states", ()))
        if isinstance(last := self._newest.get("bid"), str) and last in self._elements:
            places = list(self._elements)
            away = places.index(bid) - places.index(last)
            yield f"from last:{max(-_GAP, min(_GAP, away))}"
            yield f"beside last:{element.get('context') == self._elements[last].get('context')}"
        yield from (f"row.{token}" for token in self._facts.around_element(bid))
        if "value" in element:
            yield f"filled:{bool(element['value'])}"
            yield from (f"filled{where}" for where in self._facts.around(tokens(element["value"])))
        if "url" in element:
            path = _path(element["url"])
            yield f"to:{_form(path)}"
            if ("page", path) in self._facts.records:
                yield "visited"
                yield from (f"there.{token}" for token in self._facts.of(("page", path), ""))

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
                if len(text := said(value)) <= LONGEST:
                    yield f"{name}:{argument}={text}"
                    yield from self._done.get(f"{argument}={value}", ())
                    words = tokens(text)
                    yield from (f"{argument}@{where}" for where in self._facts.told_in(words))
                    yield from (f"{argument}{where}" for where in self._facts.around(words))
                    yield from (f"{argument}.{token}" for token in self._facts.saying(value))
                for other in candidate.entities.values():
                    if other[1] in self._elements and "value" in (element := self._elements[other[1]]):
                        yield f"{argument}==shown:{element['value'] == text}"
                    if argument in (record := self._facts.records.get(other, {})):
                        yield f"{argument}=={record[argument] == value}"
                continue
            if (argument, entity) not in told:
                told[argument, entity] = [
                    *(f"{argument}<{call}" for call in self._done.get(f"{argument}={entity[1]}", ())),
                    *(f"{argument}.{token}" for token in self._facts.of(entity, self._asks)),
                    *(f"{argument}{where}" for where in self._facts.around(tokens(str(entity[1])))),
                    f"{argument}:{self._standing(entity)}",
                    *(self._of_element(entity[1]) if entity[1] in self._elements else ()),
                    *(f"w:{word}" for word in grams(shapes((memory.names.get(entity) or memory.words[entity])[:WORDS]))),
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
            if entity is not None and (places := self._facts.named_in_row(entity[1])):
                self._stands[key] = sorted(places)
                return self._stands[key]
            memory = self.encoder.memory
            words = frozenset(value_tokens(value)) if entity is None else frozenset(memory.words[entity]) & memory.goal_words
            if entity is not None:
                alike = [frozenset(memory.words[other]) for other in memory.entities(entity[0]) if other != entity]
                words = frozenset(word for word in words if not all(word in other for other in alike)) or words
            self._stands[key] = sorted(place for word in words for place in self._places.get(word, ()))
        return self._stands[key]


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


def _path(url: str) -> str:
    """An address's path; all of it where it is none, as what pages link to need not be."""
    try:
        return urlsplit(url).path
    except ValueError:
        return url


def _form(path: str) -> str:
    """A path's form: digits as 0."""
    return "/".join(shapes(path.split("/")))


def _pieces(words: Iterable[str]) -> list[str]:
    """Three letters at a time, by which kindred words are known."""
    return [f"^{word[at : at + 3]}" for word in words if word.isalpha() for at in range(max(1, len(word) - 2))]


def _hashed(found: Iterable[str]) -> NDArray[np.int32]:
    return np.fromiter(map(_bucket, found), np.int32)


@lru_cache(maxsize=262_144)
def _bucket(token: str) -> int:
    return zlib.crc32(token.encode()) % BUCKETS
