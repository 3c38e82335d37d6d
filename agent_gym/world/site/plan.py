"""What a site is declared by, and what follows from it: pages with their addresses, and which forms stand where."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from agent_gym.errors import ConfigurationError
from agent_gym.world.operations import Operation
from agent_gym.world.site.acts import Act, Arguments, typed
from agent_gym.world.site.values import Schema, part, types_of

__all__ = ["Page", "Place", "Plan", "Section"]

_VERBS = ("get_", "list_", "read_")


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page of one operation. Of one that reads it shows the result; of one that writes it is a form of its own.

    Attributes:
        operation: The operation.
        title: Its title; from the operation's name by default.
        forms: The operations that write whose forms stand on it. None for those that are about the one thing that it shows and that
            no page names.
        continues: Further such operations: their forms stand on it once the way to it has said what they are about, as a link from
            that thing's row does, or a form of ``leads``.
        leads: The operations whose pages forms on this one lead to, with what this page is about.
        cards: Lists in the result whose rows are shown one by one, each with all its fields below each other, not in a table.
        finds: Whether its section has a form that leads to it, if it takes arguments.
    """

    operation: str
    title: str = ""
    forms: Sequence[str] | None = None
    continues: Sequence[str] = ()
    leads: Sequence[str] = ()
    cards: Sequence[str] = ()
    finds: bool = True


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the site.

    Attributes:
        title: Its title.
        pages: Its pages; a name alone stands for the page of that operation.
        about: A line on what is in it.
    """

    title: str
    pages: Sequence[Page | str]
    about: str = ""


@dataclass(frozen=True)
class Place:
    """A page of the site, as it follows from the declaration.

    Attributes:
        path: Its path.
        title: Its title.
        section: The title of its section; empty for one that no section lists.
        act: What it reads, or what its form does.
        page: Its declaration.
        forms: The forms that always stand on it.
        continues: The forms that stand on it once its address says what they are about.
    """

    path: str
    title: str
    section: str
    act: Act
    page: Page
    forms: tuple[Act, ...]
    continues: tuple[Act, ...]

    @property
    def reads(self) -> bool:
        """Whether it shows a result."""
        return self.act.spec.read_only

    @cached_property
    def own(self) -> frozenset[str]:
        """The parameters of its address that say what it shows."""
        return frozenset(self.act.fields if self.reads else ())

    @cached_property
    def finder(self) -> Act | None:
        """The form that leads to it; None if it takes no arguments."""
        if not self.reads or not (self.act.fields.keys() - {"page"}):
            return None
        verb = "Open" if tuple(self.act.entities) == self.act.required != () else "Show"
        title = self.title if self.title.startswith(("Find", "Search")) else f"{verb} {self.title[0].lower()}{self.title[1:]}"
        return Act(self.act.spec, title)


class Plan:
    """Everything that follows from a site's declaration.

    Args:
        operations: The operations by name.
        sections: The sections.
        labels: What fields, operations and fixed values are called, where their names do not say it.
        keeps: Parameters that every link carries on, once they are known: as whom or for whom one goes about.
        types: Parameters that are typed, though a page may show what they could be.

    Attributes:
        acts: The operations by name.
        places: The pages by operation.
        by_path: The pages by path.
        fronts: The sections by the path of their front page.
        showing: By kind of thing, the page that shows one of that kind.
        things: The schema of what a form is about.
        carried: By operation of a page, the parameters of its address that say what forms on it, or behind it, are about.

    Raises:
        ConfigurationError: A section names no such operation, two pages have one path, or a result is not described in full.
    """

    def __init__(
        self,
        operations: Mapping[str, Operation],
        sections: Sequence[Section],
        labels: Mapping[str, str],
        keeps: Sequence[str],
        types: Sequence[str],
    ) -> None:
        self.keeps, self.types = tuple(keeps), frozenset(types)
        self._labels = dict(labels)
        for operation in operations.values():
            self._tell_apart(operation.spec.name, operation.spec.parameters)
            self._tell_apart(operation.spec.name, operation.spec.output_schema or {})
        self.acts = {name: Act(operation.spec, self._title(name)) for name, operation in operations.items()}
        declared = [
            (section.title, page if isinstance(page, Page) else Page(operation=page)) for section in sections for page in section.pages
        ]
        for _, page in declared:
            for name in (page.operation, *(page.forms or ()), *page.continues, *page.leads):
                if name not in operations:
                    raise ConfigurationError(f"the site names the operation {name!r}; there are: {', '.join(operations)}")
        reads = [self.acts[page.operation] for _, page in declared if self.acts[page.operation].spec.read_only]
        self._showing = {
            act.entities[act.required[0]]: act.spec.name for act in reversed(reads) if len(act.required) == 1 == len(act.entities)
        }
        adrift = self._adrift([page for _, page in declared])
        places = [self._place(section, page, adrift) for section, page in declared]
        placed = {place.act.spec.name for place in places}
        places += [
            Place("/forms" + _path(act.title), act.title, "", act, Page(operation=name), (act,), ())
            for name, act in self.acts.items()
            if not act.spec.read_only and name not in placed and act.fields
        ]
        self.fronts = {_path(section.title): section for section in sections}
        paths = [*(place.path for place in places), *map(_path, (section.title for section in sections))]
        if twice := next((path for path in paths if paths.count(path) > 1), ""):
            raise ConfigurationError(f"two pages of the site have the path {twice}: give one another title")
        self.places = {place.act.spec.name: place for place in places}
        self.by_path = {place.path: place for place in places}
        self.showing = {kind: self.places[operation] for kind, operation in self._showing.items()}
        for act in reads:  # what takes nothing but things is linked wherever the last of them is named
            if set(act.required) == act.entities.keys() and act.required:
                self.showing.setdefault(act.entities[act.required[-1]], self.places[act.spec.name])
        self.carried = self._carry(places)
        text = {"type": "string"}
        names = sorted({name for act in self.acts.values() for name in act.entities})
        self.things: Schema = {"type": "object", "properties": dict.fromkeys(names, text)}

    # --- Names ---

    def label(self, name: str) -> str:
        """What a field is called."""
        return self._labels.get(name) or _words(name.removesuffix("_id").removesuffix("_cents"))

    def option(self, code: object) -> str:
        """What one of several fixed values is called."""
        return self._labels.get(str(code)) or _words(str(code)) or str(code)

    def _title(self, name: str) -> str:
        verb = next((verb for verb in _VERBS if name.startswith(verb)), "")
        return self._labels.get(name) or _words(name.removeprefix(verb))

    def _tell_apart(self, operation: str, schema: Schema) -> None:
        """Sees to it that no two fields of an object are called alike, and that every list says what is in it."""
        if "array" in types_of(schema) and not part(schema, "items"):
            raise ConfigurationError(f"{operation}: a site needs every field of a result with its type, and every list with its items")
        called: dict[str, str] = {}
        for name, inner in part(schema, "properties").items():
            other = called.setdefault(self.label(name), name)
            if other != name:
                self._labels |= {other: _words(other), name: _words(name)}
            self._tell_apart(operation, inner)
        if items := part(schema, "items"):
            self._tell_apart(operation, items)

    # --- Places ---

    def hosts(self, operation: str) -> list[Place]:
        """The pages that have an operation's form, its own page last."""
        found = [place for place in self.places.values() if any(form.spec.name == operation for form in (*place.forms, *place.continues))]
        return sorted(found, key=lambda place: place.act.spec.name == operation)

    def address(self, place: Place, arguments: Mapping[str, Any], around: Sequence[Mapping[str, Any]] = ()) -> str:
        """The address of a page.

        Args:
            place: The page.
            arguments: What it shows.
            around: Records around what leads there, the innermost first: they say what its forms are about.
        """
        told = {name: typed(value, name) for name, value in place.act.meant(arguments).items()}
        return _address(place.path, told | self._known(self.carried[place.act.spec.name], told, around))

    def front(self, path: str, around: Sequence[Mapping[str, Any]] = ()) -> str:
        """The address of a section's front page."""
        return _address(path, self._known(self.keeps, {}, around))

    def leads(self, section: str, around: Sequence[Mapping[str, Any]] = ()) -> dict[str, str]:
        """Where a section leads without anything being filled in: addresses, by what their links say."""
        listed = [place for place in self.places.values() if place.section == section and not (place.reads and place.act.required)]
        return {place.title: self.address(place, {}, around) for place in listed}

    def _known(self, names: Sequence[str], told: Mapping[str, str], around: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        known = {}
        for name in names:
            value = None if name in told else next((record[name] for record in around if isinstance(record.get(name), str | int)), None)
            if value is not None and value != "":
                known[name] = str(value)
        return known

    def at(self, url: str) -> tuple[Place | None, Arguments, dict[str, str]]:
        """Which page an address is of, what it shows, and what else it says.

        Returns:
            None for the page where it is none, or where what it says does not fit.
        """
        split = urlsplit(url)
        asked = dict(parse_qsl(split.query, keep_blank_values=True)) if split.query else {}
        place = self.by_path.get(split.path)
        if place is None:
            return None, {}, asked
        try:
            own = place.act.meaning({name: asked[name] for name in place.own if name in asked}, self.label) if place.reads else {}
        except ValueError:
            return None, {}, asked
        return place, own, {name: value for name, value in asked.items() if value and name not in place.own}

    def _adrift(self, pages: Sequence[Page]) -> list[Act]:
        """The operations that write and that no page names."""
        named = {name for page in pages for name in (page.operation, *(page.forms or ()), *page.continues)}
        return [act for name, act in self.acts.items() if not act.spec.read_only and name not in named and act.fields]

    def _place(self, section: str, page: Page, adrift: Sequence[Act]) -> Place:
        act = self.acts[page.operation]
        forms = [act]
        if act.spec.read_only and page.forms is not None:
            forms = [self.acts[name] for name in page.forms]
        elif act.spec.read_only:
            mine = {kind for kind, operation in self._showing.items() if operation == page.operation}
            shown = set(_names(act.spec.output_schema or {}))
            forms = [
                other
                for other in adrift
                if (kinds := set(other.entities.values()))
                if mine & kinds or (self._showing.keys().isdisjoint(kinds) and shown & kinds)
            ]
        title = page.title or act.title
        continues = tuple(self.acts[name] for name in page.continues)
        return Place(_path(section) + _path(title), title, section, act, page, tuple(forms), continues)

    def _carry(self, places: Sequence[Place]) -> dict[str, tuple[str, ...]]:
        """What each page's address may say beside what it shows: what its forms are about, and those of the pages that it links."""
        direct = {
            place.act.spec.name: [name for form in (*place.forms, *place.continues) for name in form.entities if name not in place.own]
            for place in places
        }
        carried = {}
        for place in places:
            name = place.act.spec.name
            linked = [self.showing[kind] for kind in _names(place.act.spec.output_schema or {}) if place.reads and kind in self.showing]
            behind = [other for target in linked for other in direct[target.act.spec.name]]
            names = dict.fromkeys([*direct[name], *behind, *self.keeps])
            carried[name] = tuple(name for name in names if name not in place.own)
        return carried


def _address(path: str, told: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(told)}" if told else path


def _names(schema: Schema) -> Iterator[str]:
    for name, inner in part(schema, "properties").items():
        yield name
        yield from _names(inner)
    if items := part(schema, "items"):
        yield from _names(items)


def _words(name: str) -> str:
    return name.replace("_", " ").strip().capitalize()


def _path(title: str) -> str:
    return "/" + "-".join("".join(c if c.isalnum() and c.isascii() else " " for c in title.lower()).split())
