"""What results and pages have said, record by record, as tokens."""

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent_gym.baselines.candidate_ppo.pages import Page
from agent_gym.interface.answers import said, term
from agent_gym.interface.candidates import Entity, Toolbox
from agent_gym.interface.hashing import shapes, tokens, value_tokens

__all__ = ["LONGEST", "WORDS", "Facts", "grams"]

LONGEST = 40
"""Characters of a value that is told as a whole."""
WORDS = 16
"""Words of a longer text that are told."""
_TELLING = 4
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d)?")


class Facts:
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
        self._rows: dict[str | int, Entity] = {}
        self._called: dict[Any, dict[str, None]] = {}
        self._telling: dict[Any, dict[Entity, None]] = {}
        self._earlier: dict[tuple[str, str], Any] = {}
        self._newest: frozenset[str] = frozenset()
        self._read: set[str] = set()
        # What is worked out once for all that asks between two results; see `_forget`.
        self._ranks: dict[str, dict[tuple[str, type], tuple[Any, Any]]] = {}
        self._said: dict[str, dict[str, list[Entity]]] = {}
        self._of: dict[tuple[Entity, str], list[str]] = {}

    def hear(self, tool: str, result: Any) -> list[str]:
        """Takes in a tool's result; its tokens."""
        self._forget()
        self._newest = frozenset(value_tokens(result))
        self._read |= self._newest
        found = [f"r:{word}" for word in grams(shapes(tokens(result)[:WORDS]))] if isinstance(result, str) else []
        heard: list[tuple[Entity, Mapping[str, Any]]] = []
        self._walk(result, heard)
        return list(dict.fromkeys([*found, *self._told(tool, heard)]))

    def look(self, path: str, page: Page) -> list[str]:
        """Takes in a page; its tokens. Of the rows of its tables only those that share something with the goal are told."""
        self._forget()
        place = ("page", path)
        self._keep(place, page.fields)
        self._rows = {}
        rows: list[tuple[Entity, Mapping[str, Any]]] = []
        for row in page.rows:
            entity = (f"row {row.kind}", "|".join(map(str, itertools.islice(row.fields.values(), 3))))
            self._keep(entity, row.fields)
            rows.append((entity, row.fields))
            self._rows.update(dict.fromkeys(row.elements, entity))
        named = [row for row in rows if any("@" in token for token in self._tokens(*row))]
        count = f"rows#{min(len(rows), 4)}"
        return list(dict.fromkeys([*page.told, count, *self._told(path, [(place, page.fields), *named])]))

    def around_element(self, bid: str | int) -> list[str]:
        """What the row says that an element of the newest page is in."""
        entity = self._rows.get(bid)
        return [] if entity is None else self.of(entity, "")

    def named_in_row(self, bid: str | int) -> list[int]:
        """Where the goal names what the row says that an element of the newest page is in."""
        entity = self._rows.get(bid)
        found: list[int] = []
        for value in () if entity is None else self.records[entity].values():
            words = tokens(said(value))
            if words and words[0] in self._goal and any(word.isalpha() for word in words):
                found += [at for at in range(len(self._text)) if self._text[at : at + len(words)] == words]
        return found

    def _told(self, source: str, heard: Iterable[tuple[Entity, Mapping[str, Any]]]) -> list[str]:
        found: list[str] = []
        counts: dict[str, int] = {}
        for entity, fields in heard:
            found += (own := self._tokens(entity, fields))
            for one in (f"records:{entity[0]}", *(token for token in own if token.endswith(("@goal", "@phrase")))):
                counts[one] = counts.get(one, 0) + 1
            if any(token.endswith("@phrase") for token in own):
                found += [f"named:{token}" for token in own if "=" in token]
            for name, value in fields.items():
                if _orders(value):
                    before = self._earlier.get((source, name))
                    if before is not None and type(before) is type(value):
                        found.append(f"{name}:{'up' if value > before else 'down' if value < before else 'same'}")
                    self._earlier[source, name] = value
        return [*found, *(f"{one}#{min(count, 4)}" for one, count in counts.items())]

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
        if (entity, asks) in self._of:
            return self._of[entity, asks]
        if entity in self.records:
            found = self._tokens(entity, self.records[entity])
        elif asks and entity[0] not in self._kinds:
            telling = self._saying_of(asks).get(str(entity[1]), ())
            found = list(dict.fromkeys(itertools.chain.from_iterable(self._tokens(who, self.records[who]) for who in telling)))
        else:
            found = []
        self._of[entity, asks] = found
        return found

    def _saying_of(self, asks: str) -> dict[str, list[Entity]]:
        """The records by what they say under the name of what is asked for."""
        if asks not in self._said:
            found = self._said[asks] = {}
            for who, record in self.records.items():
                for text in {said(value): None for name, value in record.items() if name == asks or term(name) == term(asks)}:
                    found.setdefault(text, []).append(who)
        return self._said[asks]

    def _extremes(self, kind: str) -> dict[tuple[str, type], tuple[Any, Any]]:
        """The least and the greatest value of each field, of the records of a kind."""
        if kind not in self._ranks:
            ranked: dict[tuple[str, type], list[Any]] = {}
            for entity, record in self.records.items():
                if entity[0] == kind:
                    for name, value in record.items():
                        if isinstance(value, int | float | str):
                            ranked.setdefault((name, type(value)), []).append(value)
            self._ranks[kind] = {field: (min(values), max(values)) for field, values in ranked.items()}
        return self._ranks[kind]

    def _forget(self) -> None:
        """What was worked out does not hold any more: there is a new result, or another page."""
        for kept in (self._ranks, self._said, self._of):
            kept.clear()

    def _walk(self, value: Any, heard: list[tuple[Entity, Mapping[str, Any]]]) -> None:
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
        self._keep(named, fields)
        heard.append((named, fields))
        for part in value.values():
            if isinstance(part, dict | list):
                self._walk(part, heard)

    def _keep(self, entity: Entity, fields: Mapping[str, Any]) -> None:
        self.records[entity] = {**self.records.get(entity, {}), **fields}
        for name, part in fields.items():
            if isinstance(part, str | int) and not isinstance(part, bool) and len(str(part)) > 2:
                self._called.setdefault(part, {})[name] = None
                self._telling.setdefault(part, {})[entity] = None

    def _tokens(self, entity: Entity, fields: Mapping[str, Any]) -> list[str]:
        found = []
        extremes = self._extremes(entity[0]) if entity[0] else {}
        for name, value in fields.items():
            if isinstance(value, list):
                found.append(f"{name}[{min(len(value), 4)}]")
                if any(isinstance(part, str) and "@phrase" in self.around(tokens(part)) for part in value):
                    found.append(f"{name}@phrase")
            text = said(value)
            words = tokens(text)
            if len(text) <= LONGEST and name not in self._kinds:
                found.append(f"{name}={' '.join(shapes(words))}")
            elif name not in self._kinds:
                found += [f"{name}~{word}" for word in grams(shapes(words[:WORDS]))]
            if words and self._goal.issuperset(words):
                found.append(f"{name}@goal")
                found += [f"{name}{where}" for where in self.around(words)]
            elif len(text) <= LONGEST and any(len(word) > 2 and word in self._goal for word in words):
                found.append(f"{name}@part")
            found += [f"{name}=={other}" for other in itertools.islice(self._called.get(_key(value), ()), 4) if other != name]
            if _orders(value):
                least, most = extremes.get((name, type(value)), (value, value))
                if least != most:
                    if value == most:
                        found.append(f"{name}:most")
                    if value == least:
                        found.append(f"{name}:least")
        return found


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int) else None


def _orders(value: Any) -> bool:
    """Whether there is a greatest of such values."""
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (isinstance(value, str) and bool(_DATE.fullmatch(value)))


def grams(words: list[str]) -> list[str]:
    """The words, and each pair of neighbours."""
    return [*words, *(f"{one} {other}" for one, other in itertools.pairwise(words))]
