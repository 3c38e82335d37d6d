"""Candidates: the calls that a policy which cannot write may choose from.

A pure function of the goal, the observations so far and the tools, so that it can be rebuilt from a stored trajectory. Nothing
here knows any world. A parameter that carries ``x-entity`` is filled with the entities of that kind that were seen in results
or are named in the goal; one with an ``enum`` with its values; one with ``x-find``, a pattern or several, with what these find in the
goal; a text with ``examples`` with these. Where the goal asks for an answer (``asks``), ``finish`` is also offered with every value that
a field of that name had in results, or that a page showed under that name, as a definition's term or a table's heading.

A record is a JSON object of a result. A field named as an entity kind (``order_id``), or a list named as its plural
(``order_ids``), names entities; the first field that does is the record's subject. Two entities *hang together* if they stand in
the same record, or one in a record around the other's. A call's entities are combined only if each pair hangs together where their
kinds ever do, or else shares a neighbour: an item and a variant, say, through their product.

A tool whose parameters carry ``x-edit`` (``path``, ``old`` and ``new``) changes the text of a file; parameters of it with ``x-fill`` get
that value. It is offered with the edits that `agent_gym.interface.edits` knows for the texts that were read: a record with ``path``
and ``content`` is the text of a file, until a call that was answered ``ok`` changes it.

The elements of a page (``view["elements"]``, see `agent_gym.browser.snapshot`) are entities of the kind ``bid``, and their options
of the kind ``option``. They are on offer only while the page shows them, and only to the tools that an element's ``actions`` name.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.closing import CLOSING
from agent_gym.core.tool import ToolSpec
from agent_gym.interface.answers import answers, said
from agent_gym.interface.edits import python_edits
from agent_gym.interface.hashing import tokens, value_tokens

__all__ = ["Candidate", "Entity", "Memory", "Toolbox"]

Entity = tuple[str, str | int]
"""A kind and a value, such as ``("order_id", "W1234567")``."""

_MAX_COMBINATIONS = 512
_ELEMENT, _OPTION = "bid", "option"
_ANSWER = "answer to the goal"
"""The kind of entities that stand for what ``finish`` may answer; no field is named so."""
_EDIT, _EDITED = "edit of a text", "edited text"
"""The kinds of entities that stand for an edit, and for what it takes away; no field is named so."""
_FINISH = CLOSING[0]
_NO_VIEW: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Candidate:
    """A call on offer.

    Attributes:
        call: The call.
        entities: The entities it was filled with, by parameter.
        key: Its canonical form.
    """

    call: ToolCall
    entities: Mapping[str, Entity]
    key: bytes


class _Built(NamedTuple):
    """A tool's candidates, and what they were built from."""

    candidates: list[Candidate]
    seen: tuple[int, ...]
    read: tuple[int, ...]
    version: int
    checked: int


class Toolbox:
    """What candidates need to know of a set of tools, worked out once.

    Args:
        tools: The tools on offer.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.tools = tuple(tools)
        self.required: dict[str, list[tuple[str, Mapping[str, Any], str | None]]] = {}
        """Of each tool, its required parameters: name, schema, and entity kind or None."""
        self.kinds_of: dict[str, tuple[str, ...]] = {}
        """Of each tool, the entity kinds of its required parameters."""
        self.kinds: dict[str, re.Pattern[str] | None] = {}
        """Every entity kind, with the pattern by which it is found in a goal, where a parameter's schema states one."""
        self.edits: dict[str, dict[str, str]] = {}
        """Of each tool that edits texts, the names of its parameters for ``path``, ``old`` and ``new``."""
        self.fills: dict[str, dict[str, Any]] = {}
        """Of each of these, what further parameters get."""
        self.finders: dict[str, re.Pattern[str]] = {}
        """The patterns of ``x-find``, ready to be used."""
        for spec in tools:
            properties = spec.parameters.get("properties", {})
            needed = [name for name in spec.parameters.get("required", ()) if name in properties]
            self.required[spec.name] = [(name, properties[name], _kind(properties[name])) for name in needed]
            self.kinds_of[spec.name] = tuple(kind for _, _, kind in self.required[spec.name] if kind is not None)
            if spec.name == _FINISH and "answer" in properties:
                self.kinds_of[spec.name] += (_ANSWER,)
            if roles := {schema["x-edit"]: name for name, schema in properties.items() if "x-edit" in schema}:
                self.edits[spec.name] = roles
                self.fills[spec.name] = {name: schema["x-fill"] for name, schema in properties.items() if "x-fill" in schema}
                self.kinds_of[spec.name] = (_EDIT,)
            for schema in properties.values():
                kind = _kind(schema)
                if kind in (_ELEMENT, _OPTION):  # a number in a goal is no element
                    self.kinds[kind] = None
                elif kind is not None and self.kinds.get(kind) is None:
                    self.kinds[kind] = _finder(schema.get("pattern") or schema.get("items", {}).get("pattern"))
                self.finders |= {pattern: _compiled(pattern) for pattern in _patterns(schema)}


class Memory:
    """What has been read in one episode, and the candidates that follow from it.

    Args:
        goal: The goal's text.
        toolbox: The tools on offer.
    """

    def __init__(self, goal: str, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self.goal_words = frozenset(tokens(goal))
        self.words: dict[Entity, tuple[str, ...]] = {}
        """The words of the record that an entity is the subject of; while none was read, of the last that names it as a field, or
        of the entity itself."""
        self.calls: dict[bytes, int] = {}
        """How often each call was made, by its canonical form."""
        self.tool_calls: dict[str, int] = {}
        """How often each tool was called."""
        self.statuses: list[str] = []
        self.cut = False
        """Whether a tool ever had so many combinations that some were left out."""
        self.newest: tuple[str, ...] = ()
        """The words of the newest result and of the page that is shown."""
        self.page: tuple[str, ...] = ()
        """The words of the page that is shown."""
        self.names: dict[Entity, tuple[str, ...]] = {}
        """The role and the words of the name of an element that was ever shown."""
        self._subjects: set[Entity] = set()
        self._links: dict[Entity, set[Entity]] = {}
        self._linked_kinds: set[frozenset[str]] = set()
        self._by_kind: dict[str, dict[Entity, None]] = {}
        self._seen_of: defaultdict[str, int] = defaultdict(int)
        self._read_of: defaultdict[str, int] = defaultdict(int)
        self._links_version = 0
        self._changes = 0
        self._built: dict[str, _Built] = {}
        self._known: dict[str, dict[tuple[str, ...], Candidate]] = {spec.name: {} for spec in toolbox.tools}
        self._texts: dict[str, str] = {}
        self._asks = ""
        self._elements: list[tuple[Any, ...]] = []
        self._outline = ""
        self._actions: dict[Entity, Sequence[str]] = {}
        self._found = {
            pattern: list(dict.fromkeys(match.group() for match in finder.finditer(goal))) for pattern, finder in toolbox.finders.items()
        }
        self._numbers = [int(word) for word in tokens(goal) if word.isdecimal() and len(word) <= 9]
        kinds = toolbox.kinds
        named = [(kind, match.group()) for kind, pattern in kinds.items() if pattern for match in pattern.finditer(goal)]
        for entity in named:
            self._see(entity)
        self._link(named, [])

    def update(self, last: Mapping[str, Any] | None, view: Mapping[str, Any] = _NO_VIEW, asks: str = "") -> None:
        """Takes in the newest result, what is shown now and what is asked: an observation's ``last``, ``view`` and, if any, ``asks``."""
        self.newest, self._asks = (), asks
        if last is not None:
            self._hear(last)
        self._look(view.get("elements", ()))
        outline = view.get("outline", "")
        if outline != self._outline:
            self._outline, self.page = outline, tokens(outline)
            for text, words in answers(outline, asks) if asks else ():
                self._see((_ANSWER, text), words)
        self.newest += self.page

    def _hear(self, last: Mapping[str, Any]) -> None:
        call = ToolCall(last["tool"], last["arguments"])
        key = dumps(call.to_dict())
        self.calls[key] = self.calls.get(key, 0) + 1
        self.tool_calls[call.name] = self.tool_calls.get(call.name, 0) + 1
        self.statuses.append(last["status"])
        if last["status"] == "ok":
            self._edit(call)
        self.newest = tuple(value_tokens(last["result"]))
        self._read(last["result"], [], self.newest)

    def candidates(self, tool: str) -> tuple[list[Candidate], int]:
        """A tool's candidates, in the order in which their entities were first seen.

        Returns:
            The candidates, and a number that is another one whenever they, or the words of their entities, have changed.
        """
        built = self._built.get(tool)
        if built is None or built.checked != self._changes:
            kinds = self.toolbox.kinds_of[tool]
            seen = (*map(self._seen_of.__getitem__, kinds), self._links_version if len(kinds) > 1 else 0)
            read = tuple(map(self._read_of.__getitem__, kinds))
            if built is None or built.seen != seen:
                built = _Built(list(self._fill(tool)), seen, read, self._changes, self._changes)
            elif built.read != read:
                built = _Built(built.candidates, seen, read, self._changes, self._changes)
            else:
                built = built._replace(checked=self._changes)
            self._built[tool] = built
        return built.candidates, built.version

    def entities(self, kind: str) -> Iterable[Entity]:
        """The entities of a kind that were seen, the first seen first."""
        return self._by_kind.get(kind, {}).keys()

    # Reading.

    def _look(self, elements: Sequence[Mapping[str, Any]]) -> None:
        """Puts the elements that are shown in the place of those that were."""
        shown = [tuple(element.get(key, ()) for key in ("bid", "role", "name", "context", "actions", "options")) for element in elements]
        if shown == self._elements:
            return
        self._elements = shown
        for kind in (_ELEMENT, _OPTION):
            for entity in self._by_kind.pop(kind, ()):
                self._links.pop(entity, None)
        for bid, role, name, context, actions, options in shown:
            entity = (_ELEMENT, bid)
            self.names[entity] = (role, *tokens(name or ""))
            self._actions[entity] = actions
            self._see(entity, (*self.names[entity], *tokens(context or "")))
            for option in options:
                self._see((_OPTION, option))
            self._link([entity, *((_OPTION, option) for option in options)], [])
        self._seen_of[_ELEMENT] += 1
        self._links_version += 1
        self._changes += 1

    def _read(self, value: Any, around: list[Entity], words: tuple[str, ...] | None = None) -> None:
        """Takes in a value, its records and theirs; ``around`` are the entities of the records around it, ``words`` its words if known."""
        if isinstance(value, list):
            for part in value:
                self._read(part, around)
        if not isinstance(value, dict):
            return
        here: list[Entity] = []
        subject = None
        for name, part in value.items():
            if name in self.toolbox.kinds and isinstance(part, str | int) and not isinstance(part, bool):
                entity = (name, part)
                words = words or tuple(value_tokens(value))
                if subject is None:
                    subject = entity
                    self._subjects.add(entity)
                self._see(entity, words if entity is subject or entity not in self._subjects else None)
                here.append(entity)
            elif name[:-1] in self.toolbox.kinds and name.endswith("s") and isinstance(part, list):
                listed = [(name[:-1], item) for item in part if isinstance(item, str | int) and not isinstance(item, bool)]
                for entity in listed:
                    self._see(entity)
                here += listed
            if name == self._asks and (text := said(part)):
                words = words or tuple(value_tokens(value))
                self._see((_ANSWER, text), words)
        if isinstance(path := value.get("path"), str) and isinstance(content := value.get("content"), str):
            self._keep(path, content)
        self._link(here, around)
        inner = around + here
        for part in value.values():
            if isinstance(part, dict | list):
                self._read(part, inner)

    def _keep(self, path: str, text: str) -> None:
        """Takes in what is in a file now; the newest is the last."""
        if self._texts.get(path) != text:
            self._texts.pop(path, None)
            self._texts[path] = text
            self._seen_of[_EDIT] += 1
            self._changes += 1

    def _edit(self, call: ToolCall) -> None:
        """Takes in that a text was edited, if the call is one that does so."""
        if (roles := self.toolbox.edits.get(call.name)) is not None:
            path, old, new = (str(call.arguments.get(roles[role])) for role in ("path", "old", "new"))
            if path in self._texts:
                self._keep(path, self._texts[path].replace(old, new))

    def _see(self, entity: Entity, words: tuple[str, ...] | None = None) -> None:
        kind, value = entity
        if entity not in (known := self._by_kind.setdefault(kind, {})):
            known[entity] = None
            self._seen_of[kind] += 1
            self._changes += 1
            self.words.setdefault(entity, tokens(str(value)))
        if words is not None and words != self.words[entity]:
            self._read_of[kind] += 1
            self._changes += 1
            self.words[entity] = words

    def _link(self, here: Sequence[Entity], around: Sequence[Entity]) -> None:
        for i, entity in enumerate(here):
            for other in (*here[:i], *around):
                if entity[0] == other[0]:
                    continue
                mine = self._links.setdefault(entity, set())
                if other not in mine:
                    mine.add(other)
                    self._links.setdefault(other, set()).add(entity)
                    self._linked_kinds.add(frozenset((entity[0], other[0])))
                    self._links_version += 1
                    self._changes += 1

    def _hang_together(self, one: Entity, other: Entity) -> bool:
        if one == other or one[0] == other[0]:
            return one != other
        mine = self._links.get(one, set())
        if frozenset((one[0], other[0])) in self._linked_kinds:
            return other in mine
        return not mine.isdisjoint(self._links.get(other, set()))

    # Building.

    def _edits(self, tool: str) -> Iterator[tuple[dict[str, Any], dict[str, Entity]]]:
        """The arguments, and their entities, of all edits of the texts that were read, the newest text first."""
        roles, fills = self.toolbox.edits[tool], self.toolbox.fills[tool]
        for path, text in reversed(self._texts.items()):
            for edit in python_edits(text) if path.endswith(".py") else ():
                one = (_EDIT, f"{edit.old}\0{edit.new}")
                gone = (_EDITED, one[1])
                self.words[one], self.words[gone] = edit.words, ()
                arguments = {roles["path"]: path, roles["old"]: edit.old, roles["new"]: edit.new, **fills}
                yield arguments, {roles["old"]: gone, roles["new"]: one}

    def _fill(self, tool: str) -> Iterator[Candidate]:
        if tool in self.toolbox.edits:
            edits = [*itertools.islice(self._edits(tool), _MAX_COMBINATIONS + 1)]
            self.cut |= len(edits) > _MAX_COMBINATIONS
            yield from self._made(tool, edits[:_MAX_COMBINATIONS])
            return
        partial: list[tuple[dict[str, Any], dict[str, Entity]]] = [({}, {})]
        for name, schema, kind in self.toolbox.required[tool]:
            grown = []
            for value, entity in self._options(tool, schema, kind):
                for arguments, entities in partial:
                    if entity is None:
                        grown.append(({**arguments, name: value}, entities))
                    elif all(self._hang_together(entity, other) for other in entities.values()):
                        grown.append(({**arguments, name: value}, {**entities, name: entity}))
            self.cut |= len(grown) > _MAX_COMBINATIONS
            partial = grown[:_MAX_COMBINATIONS]
        if _ANSWER in self.toolbox.kinds_of[tool]:
            partial = [*partial, *(({"answer": entity[1]}, {"answer": entity}) for entity in self._by_kind.get(_ANSWER, ()))]
        yield from self._made(tool, partial)

    def _made(self, tool: str, filled: Sequence[tuple[dict[str, Any], dict[str, Entity]]]) -> Iterator[Candidate]:
        known = self._known[tool]
        for arguments, entities in filled:
            values = tuple(map(repr, arguments.values()))
            if values not in known:
                call = ToolCall(tool, arguments)
                known[values] = Candidate(call, entities, dumps(call.to_dict()))
            yield known[values]

    def _options(self, tool: str, schema: Mapping[str, Any], kind: str | None) -> Iterator[tuple[Any, Entity | None]]:
        if kind is not None:
            many = schema.get("type") == "array"
            for entity in self._by_kind.get(kind, ()):
                if kind != _ELEMENT or tool in self._actions.get(entity, ()):
                    yield ([entity[1]] if many else entity[1]), entity
        elif "x-find" in schema:
            for text in dict.fromkeys(text for pattern in _patterns(schema) for text in self._found[pattern]):
                yield text, None
        elif "const" in schema:
            yield schema["const"], None
        elif "enum" in schema:
            for value in schema["enum"]:
                yield value, None
        elif schema.get("type") == "boolean":
            yield True, None
            yield False, None
        elif schema.get("type") == "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 2**31)
            for number in dict.fromkeys([low, *(n for n in self._numbers if low <= n <= high)]):
                yield number, None
        elif schema.get("type") == "string":
            for text in schema.get("examples", ()):
                yield text, None


def _kind(schema: Mapping[str, Any]) -> str | None:
    """The entity kind of a parameter, also of a list's items."""
    found = schema.get("x-entity") or schema.get("items", {}).get("x-entity")
    return str(found) if found else None


def _patterns(schema: Mapping[str, Any]) -> list[str]:
    """The patterns of ``x-find``."""
    found = schema.get("x-find", [])
    return [found] if isinstance(found, str) else list(found)


def _finder(pattern: str | None) -> re.Pattern[str] | None:
    return _compiled(pattern) if pattern else None


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern.removeprefix('^').removesuffix('$')})(?!\w)")
