"""Dialects: the same tools under other names, with dates and numbers written otherwise, and the way back.

A `Dialect` stands between an episode and its `Session`, on either side of which nothing knows of it. What goes into calls keeps its
form: an id, a day or a number that is read can be given back as it was read. An observation says by which conventions its results
are written, in words and under ``conventions``, as a manual would; an oracle of ours is asked and heard through the same dialect.
Of pages other words stand for some: what is read off a page is taken back so too.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import orjson

from agent_gym.core.action import ToolCall
from agent_gym.core.observation import Observation
from agent_gym.core.perturbation import Perturbation, plain_words
from agent_gym.core.task import Task
from agent_gym.core.tool import ToolResult, ToolSpec

__all__ = ["Dialect", "ask_plainly"]

_STYLES = ("camelCase", "PascalCase", "Title_Case")
_DATES = {
    form: re.compile(rf"(?<!\S){pattern}(?![^\sT,])")
    for form, pattern in {
        "2026-12-31": r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)",
        "2026/12/31": r"(?P<y>\d{4})/(?P<m>\d\d)/(?P<d>\d\d)",
        "31.12.2026": r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d{4})",
    }.items()
}
"""The last day of 2026 in each format, and how a date in it is found: alone, before a time, or in a list."""
_ISO, *_OTHER_DATES = _DATES
_GROUPS, _AS_EVER = "12'345", "12345"
_GROUPED = re.compile(r"-?\d{1,3}(?:'\d{3})*")
_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*")
_WORD = re.compile(r"[A-Z][a-z]*|[a-z]+")
_LETTERS = re.compile(r"[a-z]+")
_PAIRS = {
    "id": "ref",
    "user": "customer",
    "order": "purchase",
    "item": "article",
    "product": "ware",
    "variant": "version",
    "payment": "settlement",
    "reason": "cause",
    "name": "designation",
    "email": "mailbox",
    "quantity": "count",
    "person": "individual",
    "thread": "conversation",
    "document": "paper",
    "folder": "binder",
    "event": "appointment",
    "contact": "acquaintance",
    "title": "heading",
    "book": "volume",
    "member": "reader",
    "loan": "borrowing",
    "path": "place",
    "content": "body",
    "value": "entry",
}
_OTHER = {**_PAIRS, **{other: word for word, other in _PAIRS.items()}}
"""Each word for the other, so that no two names become one; none of them ends in the ``s`` of plurals."""
_SHOWN = ("bid", "option")
"""The kinds of things that pages name, which are no results."""
_AS_IS = frozenset({"bid", "role", "states", "actions", "url", "focused", "status"})
"""What a page's snapshot says in terms of its own."""
_PAGE_WORD = re.compile(r"(?<![\w/.@'-])[A-Za-z]+(?![\w/@'-])")
"""A word of a page that is no part of an address or a longer name."""


@dataclass(frozen=True)
class Dialect:
    """A way to write the names, dates and numbers of tools, and the words of pages.

    Attributes:
        names: The style of names.
        other_words: Whether names have other words.
        dates: The last day of 2026 in the results' format.
        numbers: 12345 in the results' format.
        words: The words of pages that others stand for.
        tools: The tools as they are, all that any session has.
    """

    names: str
    other_words: bool
    dates: str
    numbers: str
    words: tuple[str, ...]
    tools: tuple[ToolSpec, ...]

    @classmethod
    def drawn(cls, perturbation: Perturbation, tools: Sequence[ToolSpec], slots: Sequence[str] | None = None) -> "Dialect":
        """The dialect of a perturbation.

        Where tools act on pages, dates and numbers stay as they are, and the pages' words change instead, by half or all of them:
        but for those in ``slots``, what a goal says exactly and a page has to say so too. Without ``slots`` none change.
        """
        rng, strong = perturbation.rng("interface"), perturbation.strong
        style = _STYLES[int(rng.integers(len(_STYLES)))]
        if any(spec.carries for spec in tools):
            exact = {_stem(word)[0] for text in slots or () for word in _LETTERS.findall(text.lower())}
            free = [word for word, other in _PAIRS.items() if slots is not None and exact.isdisjoint((word, other))]
            chosen = sorted(int(at) for at in rng.permutation(len(free))[: len(free) if strong else len(free) // 2])
            words = [word for at in chosen for word in (free[at], _PAIRS[free[at]])]
            return cls(style, strong, _ISO, _AS_EVER, tuple(words), tuple(tools))
        return cls(style, strong, _OTHER_DATES[int(rng.integers(len(_OTHER_DATES)))], _GROUPS if strong else _AS_EVER, (), tuple(tools))

    @classmethod
    def of(cls, conventions: Mapping[str, Any], tools: Sequence[ToolSpec]) -> "Dialect":
        """The dialect that an observation's conventions say."""
        known = conventions["names"], conventions["other_words"], conventions["dates"], conventions["numbers"]
        return cls(*known, tuple(conventions["words"]), tuple(tools))

    @property
    def conventions(self) -> dict[str, Any]:
        """What an observation says of it."""
        return {key: value for key, value in vars(self).items() if key in ("names", "other_words", "dates", "numbers", "words")}

    # Names.

    def name(self, plain: str) -> str:
        """A name in this dialect; one that is not of small letters and underscores stays as it is. A plural is one still."""
        stem, plural = _stem(plain)
        if not _NAME.fullmatch(stem):
            return plain
        words = stem.split("_")
        if self.other_words:
            words = [_OTHER.get(word, word) for word in words]
        if self.names == "camelCase":
            return words[0] + "".join(map(str.capitalize, words[1:])) + plural
        return ("_" if self.names == "Title_Case" else "").join(map(str.capitalize, words)) + plural

    def plain(self, name: str) -> str:
        """The name that is so in this dialect."""
        stem, plural = _stem(name)
        words = [word.lower() for word in _WORD.findall(stem)]
        if self.other_words:
            words = [_OTHER.get(word, word) for word in words]
        plain = "_".join(words) + plural
        return plain if self.name(plain) == name else name

    # What an agent sees.

    def task(self, task: Task) -> Task:
        """The task, what it asks for under the name that results have for it."""
        if not task.asks:
            return task
        paged = any(spec.carries for spec in self.tools)
        return replace(task, asks=self.page(task.asks.replace("_", " ")).replace(" ", "_") if paged else self.name(task.asks))

    def spec(self, spec: ToolSpec) -> ToolSpec:
        """A tool in this dialect."""
        output = None if spec.output_schema is None else self._schema(spec.output_schema, result=True)
        return replace(spec, parameters=self._schema(spec.parameters), output_schema=output)

    def result(self, result: ToolResult) -> ToolResult:
        """A result in this dialect."""
        if result.structured is None:
            return replace(result, content=self.page(result.content))
        told = self.told(result.structured)
        return replace(result, structured=told, content=orjson.dumps(told).decode() if result.content else "")

    def told(self, value: Any, field: str = "") -> Any:
        """A result's value in this dialect."""
        if isinstance(value, Mapping):
            return {self.name(name): self.told(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.told(part, field) for part in value]
        if self._goes_back(field):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and self.numbers == _GROUPS:
            return f"{value:,}".replace(",", "'")
        return _dated(value, _ISO, self.dates) if isinstance(value, str) else value

    def shown(self, call: ToolCall, asks: str = "") -> ToolCall:
        """A call in this dialect; the answer of a closing one is that to ``asks``."""
        schema, answer = self._parameters.get(call.name), call.arguments.get("answer")
        if schema is None and isinstance(answer, str) and not self._goes_back(asks):
            return ToolCall(call.name, {**call.arguments, "answer": _dated(answer, _ISO, self.dates)})
        if schema is None:
            return call
        return ToolCall(call.name, _renamed(schema, self._on_page(call), lambda name: (name, self.name(name))))

    def view(self, view: Observation) -> Observation:
        """What is to be seen, in this dialect."""
        return replace(view, text=self.page(view.text), data=self.page(view.data)) if self.words else view

    def page(self, value: Any) -> Any:
        """What a page says, in this dialect; from there the same leads back."""
        if not self.words:
            return value
        if isinstance(value, str):
            return _PAGE_WORD.sub(self._page_word, value)
        if isinstance(value, Mapping):
            return {key: part if key in _AS_IS else self.page(part) for key, part in value.items()}
        return [self.page(part) for part in value] if isinstance(value, list | tuple) else value

    # What an agent says.

    def heard(self, value: Any, field: str = "") -> Any:
        """The value that is so in this dialect."""
        if isinstance(value, Mapping):
            return {(plain := self.plain(name)): self.heard(part, plain) for name, part in value.items()}
        if isinstance(value, list):
            return [self.heard(part, field) for part in value]
        if not isinstance(value, str) or self._goes_back(field):
            return value
        if self.numbers == _GROUPS and _GROUPED.fullmatch(value):
            return int(value.replace("'", ""))
        return _dated(value, self.dates, _ISO)

    def call(self, call: ToolCall) -> ToolCall:
        """The call that is so in this dialect."""
        schema = self._parameters.get(call.name)
        if schema is None:
            return call
        meant = ToolCall(call.name, _renamed(schema, call.arguments, lambda name: (self.name(name), name)))
        return ToolCall(meant.name, self._on_page(meant))

    def closing(self, call: ToolCall) -> ToolCall:
        """A closing call; its answer is a value of a result, or several, as they were read."""
        answer = call.arguments.get("answer")
        if not isinstance(answer, str):
            return call
        if self.numbers == _GROUPS:
            answer = re.sub(r"(?<=\d)'(?=\d{3}(?!\d))", "", answer)
        answer = self.page(answer)
        return ToolCall(call.name, {**call.arguments, "answer": _DATES[self.dates].sub(partial(_written, _ISO), answer)})

    def observation(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """An observation as it would be without this dialect, its text left out."""
        data = {key: value for key, value in observation["data"].items() if key != "conventions"}
        data["view"] = self.page(data["view"])
        if (last := data["last"]) is not None and last["tool"] in self._parameters:
            given = self.call(ToolCall(last["tool"], last["arguments"]))
            data["last"] = {**last, "arguments": dict(given.arguments), "result": self.heard(last["result"])}
        return {**observation, "data": data}

    # Inside.

    def _page_word(self, found: re.Match[str]) -> str:
        word = found[0]
        stem, plural = _stem(word)
        if stem.lower() not in self.words or stem not in (stem.lower(), stem.capitalize()):
            return word
        other = _OTHER[stem.lower()]
        return (other if stem.islower() else other.capitalize()) + plural

    def _on_page(self, call: ToolCall) -> dict[str, Any]:
        """A call's arguments, as they are to be read if they were read off a page."""
        return dict(self.page(call.arguments) if call.name in self._acts else call.arguments)

    @cached_property
    def _acts(self) -> frozenset[str]:
        return frozenset(spec.name for spec in self.tools if spec.carries)

    @cached_property
    def _parameters(self) -> dict[str, Mapping[str, Any]]:
        return {spec.name: spec.parameters for spec in self.tools}

    @cached_property
    def _taken(self) -> frozenset[str]:
        return frozenset(name for schema in self._parameters.values() for name in _names(schema))

    def _goes_back(self, field: str) -> bool:
        """Whether a field's value is one that calls take."""
        return field in self._taken or _stem(field)[0] in self._taken

    def _schema(self, schema: Mapping[str, Any], field: str = "", result: bool = False) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "properties":
                made[key] = {self.name(name): self._schema(value[name], name, result) for name in reversed(value)}
            elif key == "required":
                made[key] = [self.name(name) for name in reversed(value)]
            elif key == "items" and isinstance(value, Mapping):
                made[key] = self._schema(value, field, result)
            elif key == "x-entity":
                made[key] = value if value in _SHOWN else self.name(value)
            else:
                made[key] = value
        if result and field and not self._goes_back(field) and schema.get("type") not in ("object", "array"):
            return {}  # its form is another one
        return made


def ask_plainly(
    oracle: Callable[[Sequence[Mapping[str, Any]]], ToolCall], observations: Sequence[Mapping[str, Any]], tools: Sequence[ToolSpec]
) -> ToolCall:
    """What an oracle says when it is asked without perturbations of wording and interface, said so that it holds with them.

    Args:
        oracle: From the observations of an episode to the next call.
        observations: What was observed in truth.
        tools: All the tools of the environment, as they are.
    """
    first = observations[0]["data"]
    goal, conventions = plain_words(first["goal"]), first.get("conventions")
    if conventions is None and goal == first["goal"]:
        return oracle(observations)
    dialect = None if conventions is None else Dialect.of(conventions, tools)
    plain = observations if dialect is None else [dialect.observation(observation) for observation in observations]
    call = oracle([{**observation, "data": {**observation["data"], "goal": goal}} for observation in plain])
    return call if dialect is None else dialect.shown(call, dialect.plain(first.get("asks", "")))


def _stem(name: str) -> tuple[str, str]:
    return (name[:-1], "s") if name.endswith("s") else (name, "")


def _dated(text: str, form: str, wanted: str) -> str:
    """A text that begins with a date, with it in another format; any other as it is."""
    date = None if form == wanted else _DATES[form].match(text)
    return text if date is None else _written(wanted, date) + text[date.end() :]


def _written(form: str, date: re.Match[str]) -> str:
    return re.sub(r"\d+", lambda part: date[{"2026": "y", "12": "m", "31": "d"}[part[0]]], form)


def _renamed(schema: Mapping[str, Any], value: Any, pair: Callable[[str], tuple[str, str]]) -> Any:
    """Arguments under other names, as their schema knows them; ``pair`` gives of a parameter's name the one there and the one wanted."""
    if isinstance(value, Mapping):
        known = {pair(name)[0]: (pair(name)[1], part) for name, part in schema.get("properties", {}).items()}
        return {
            known[name][0] if name in known else name: _renamed(known[name][1], part, pair) if name in known else part
            for name, part in value.items()
        }
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_renamed(schema["items"], part, pair) for part in value]
    return value


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    """The parameters and the kinds of things that a schema names."""
    if "x-entity" in schema:
        yield schema["x-entity"]
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from _names(part)
    if isinstance(schema.get("items"), Mapping):
        yield from _names(schema["items"])
