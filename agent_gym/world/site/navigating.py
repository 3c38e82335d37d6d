"""Finds the way through a site: the next action towards the page that answers a call, or the form that carries it out."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from agent_gym.core import ToolCall
from agent_gym.world.site.acts import Act, typed
from agent_gym.world.site.plan import Place, Plan
from agent_gym.world.site.reading import lines_of, plain
from agent_gym.world.site.values import collapsed, read

__all__ = ["way"]

View = Mapping[str, Any]
_NEAR = 6
"""Steps back that are taken rather than to search for what no more than a link told of."""
_SHOWN = 290
"""Characters of a field's value that a view is sure to show."""
_BLANK = ("", "any", "–", "choose")
"""What a select says of which nothing is chosen."""


def way(plan: Plan, call: ToolCall, views: Sequence[View]) -> ToolCall:
    """The next action on the page.

    Args:
        plan: The site.
        call: The operation that is wanted; none of the pages seen so far has answered it.
        views: The pages seen so far, oldest first; the last is the one that is shown.

    Raises:
        ValueError: The site has no page for the operation.
    """
    act = plan.acts.get(call.name)
    if act is None or (act.spec.read_only and call.name not in plan.places):
        raise ValueError(f"there is no way known to {call}")
    finding = _Way(plan, views)
    meant = act.meant(call.arguments)
    return finding.to_page(plan.places[call.name], meant, {}) if act.spec.read_only else finding.to_deed(act, meant)


class _Form:
    """A form as a view shows it.

    Args:
        plan: The site.
        view: The page.
        title: The form's title, which is its button's too.

    Attributes:
        about: What it is about that need not be filled in.
        fields: Its fields by label.
        button: The button's id; empty if the view has no such form.
    """

    def __init__(self, plan: Plan, view: View, title: str) -> None:
        self._plan = plan
        elements = view["elements"]
        self.button = next((one["bid"] for one in elements if one["role"] == "button" and one.get("name") == title), "")
        self.fields: dict[str, Mapping[str, Any]] = {}
        self.about: dict[str, str] = {}
        if self.button:
            mine = (one for one in elements if title == (one.get("context") or one.get("name")) and one["role"] not in ("button", "link"))
            self.fields = {one["name"]: one for one in mine}
            lines = lines_of(view["outline"])
            at = next((at for at, line in enumerate(lines) if line == f"— {title} —"), len(lines))
            self.about = read(plain(lines[at + 1]), plan.things, "", plan.label) if at + 1 < len(lines) else {}

    def is_about(self, meant: Mapping[str, Any]) -> bool:
        """Whether what it is about is meant."""
        return all(str(meant.get(name)) == value for name, value in self.about.items())

    def takes(self, meant: Mapping[str, Any]) -> bool:
        """Whether it can be filled in so: it is about these things, and has fields and options for the others."""
        fields = {name: self.fields.get(self._plan.label(name), {}) for name in meant if name not in self.about}
        able = all(field and (not _selects(field) or self._labels(field, meant[name])) for name, field in fields.items())
        return bool(self.button) and self.is_about(meant) and able

    def offers(self, name: str, value: Any) -> bool:
        """Whether it has that among the options of a field."""
        field = self.fields.get(self._plan.label(name), {})
        return _selects(field) and bool(self._labels(field, value))

    def next(self, meant: Mapping[str, Any]) -> ToolCall:
        """Fills the first field that does not hold what it should, or pushes the button if all do."""
        texts = {self._plan.label(name): (name, value) for name, value in meant.items() if name not in self.about}
        for label, field in self.fields.items():
            name, value = texts.get(label, ("", None))
            bid, holds = field["bid"], field.get("value", "")
            if field["role"] == "checkbox":
                if ("checked" in field.get("states", ())) != bool(value):
                    return ToolCall("check" if value else "uncheck", {"bid": bid})
            elif _selects(field):
                labels = self._labels(field, value)
                if holds != ", ".join(labels) and not (not labels and holds in _BLANK):
                    blank = next((option for option in field["options"] if option in _BLANK), "")
                    return ToolCall("select_option", {"bid": bid, "options": labels if len(labels) > 1 else [*labels, blank][0]})
            else:
                text = "" if value is None else typed(value, name)
                if collapsed(holds)[:_SHOWN] != collapsed(text)[:_SHOWN]:
                    return ToolCall("fill", {"bid": bid, "value": text})
        return ToolCall("click", {"bid": self.button})

    def _labels(self, field: Mapping[str, Any], value: Any) -> list[str]:
        """The labels of the options that stand for a value."""
        values = value if isinstance(value, list) else [] if value is None else [value]
        labels: list[str] = []
        for one in values:
            ways = (self._plan.option(one), str(one))
            labels += [label for label in field.get("options", ()) if label in ways or label.startswith(f"{one} · ")][:1]
        return labels if len(labels) == len(values) else []


class _Way:
    """Where one is, and where one can go from there."""

    def __init__(self, plan: Plan, views: Sequence[View]) -> None:
        self.plan = plan
        self.views = views
        self.view = views[-1]
        self.behind = _behind(views)

    def to_deed(self, act: Act, meant: Mapping[str, Any]) -> ToolCall:
        """Towards the form that does something, or on in it."""
        form = _Form(self.plan, self.view, act.title)
        things = {name: str(meant[name]) for name in act.entities if name in meant}
        if self._has(self.view, act) and form.takes(meant):
            untold = {
                name: value for name, value in things.items() if name not in form.about and not _selects(form.fields[self.plan.label(name)])
            }
            return self._bring(act, meant, untold) or form.next(meant)
        _, shows, about = self.plan.at(self.view["url"])
        if step := self._bring(act, meant, {name: value for name, value in things.items() if name not in {**shows, **about}}):
            return step
        hosts = [place for place in self.plan.hosts(act.spec.name) if place.reads and not self._in_vain(place, act, meant)]
        for place in hosts:
            if set(place.act.required) <= meant.keys():
                return self.to_page(place, {name: meant[name] for name in place.act.required}, things)
        for steps, view in enumerate((self.view, *self.behind)):
            if steps and self._has(view, act) and _Form(self.plan, view, act.title).takes(meant) and not self.view["error"]:
                return ToolCall("go_back")
            for place in hosts:
                link = self._link(view, place, None, things)
                finder = None if link else self._finder(view, place, self._seen(place, act, meant), things)
                if steps and (link or finder) and not self.view["error"]:
                    return ToolCall("go_back")
                if not steps and (link or finder):
                    return finder or ToolCall("click", {"bid": link})
        return ToolCall("goto", {"url": self.plan.address(self.plan.places[act.spec.name], {}, [meant])})

    def _bring(self, act: Act, meant: Mapping[str, Any], untold: Mapping[str, str]) -> ToolCall | None:
        """On in a form, here or on a page before, that leads on and in which something can be chosen that no page on the way has said."""
        for steps, view in enumerate((self.view, *self.behind)):
            place, _, _ = self.plan.at(view["url"])
            for lead in (self.plan.places[name] for name in (place.page.leads if place is not None else ())):
                form = _Form(self.plan, view, lead.finder.title if lead.finder is not None else "")
                offered = {name: value for name, value in untold.items() if form.offers(name, value)}
                if offered and (step := self._finder(view, lead, self._seen(lead, act, meant), offered)):
                    return ToolCall("go_back") if steps else step
        return None

    def to_page(self, place: Place, own: Mapping[str, Any], things: Mapping[str, str]) -> ToolCall:
        """By a link that leads there; back, if a page before had it; by a form here or in its section; else by the address itself."""
        if link := self._link(self.view, place, own, things):
            return ToolCall("click", {"bid": link})
        here, shows, _ = self.plan.at(self.view["url"])
        if here is place and "page" in place.own and _but_page(shows) == _but_page(place.act.meant(own)):
            number = shows.get("page", 1)
            near = number + (1 if own.get("page", 1) > number else -1)
            if link := self._link(self.view, place, {**own, "page": near}, things):
                return ToolCall("click", {"bid": link})
            return ToolCall("goto", {"url": self.plan.address(place, own, [things])})
        back = next((steps for steps, view in enumerate(self.behind, 1) if self._link(view, place, own, things)), 0)
        again = self._again(place, own, things)
        if again is not None and again.name == "click" and back != 1:
            return again
        if back and not self.view["error"] and (back <= _NEAR or place.finder is None):
            return ToolCall("go_back")
        if again is not None:
            return again
        if place.finder is not None and things.keys() <= own.keys():
            if finder := self._finder(self.view, place, own, things):
                return finder
            if place.page.finds and (link := self._front(place, own)):
                return ToolCall("click", {"bid": link})
        return ToolCall("goto", {"url": self.plan.address(place, own, [things])})

    def _again(self, place: Place, own: Mapping[str, Any], things: Mapping[str, str]) -> ToolCall | None:
        """Towards a page that has been seen with a link that leads there, if a link leads to that one, here or on a page before."""
        for view in reversed(self.views):
            there, shows, _ = self.plan.at(view["url"])
            if there is None or not there.reads or there is place or not self._link(view, place, own, things):
                continue
            if link := self._link(self.view, there, shows, {}):
                return ToolCall("click", {"bid": link})
            if not self.view["error"] and any(self._link(one, there, shows, {}) for one in self.behind):
                return ToolCall("go_back")
        return None

    # --- What there is on a page ---

    def _has(self, view: View, act: Act) -> bool:
        """Whether a page has an operation's form."""
        if not act.fields:
            return True
        place, _, _ = self.plan.at(view["url"])
        return place is not None and act in (*place.forms, *place.continues)

    def _in_vain(self, place: Place, act: Act, meant: Mapping[str, Any]) -> bool:
        """Whether the page that is shown has the form, about these things, and it cannot be filled in so."""
        here, _, _ = self.plan.at(self.view["url"])
        form = _Form(self.plan, self.view, act.title)
        return here is place and bool(form.button) and form.is_about(meant) and not form.takes(meant)

    def _seen(self, place: Place, act: Act, meant: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a page showed when it was seen with something that is wanted."""
        wanted = {str(meant[name]) for name in act.entities if name in meant and name not in place.own}
        for view in reversed(self.views):
            there, own, _ = self.plan.at(view["url"])
            if there is place and any(value in view["outline"] for value in wanted):
                return own
        return {}

    def _link(self, view: View, place: Place, own: Mapping[str, Any] | None, things: Mapping[str, str]) -> str:
        """A link of a view that leads to a page; empty if there is none.

        Args:
            view: The view.
            place: The page.
            own: What it is to show; None for anything, if it brings some of the things along.
            things: What its forms must not be about others of.
        """
        plain_link = ""
        for element in view["elements"]:
            if element.get("url", "").partition("?")[0] != place.path:
                continue
            there, shows, about = self.plan.at(element["url"])
            if there is None or (own is not None and place.act.meant(shows) != place.act.meant(own)):
                continue
            if any(about.get(name, value) != value for name, value in things.items()):
                continue
            if things.keys() & about.keys() or (own is not None and not things):
                return str(element["bid"])
            if own is not None:
                plain_link = plain_link or str(element["bid"])
        return plain_link

    def _finder(self, view: View, place: Place, own: Mapping[str, Any], things: Mapping[str, str]) -> ToolCall | None:
        """On in a form of a view that leads to a page, if it has one that takes what the page shall show and be about."""
        if place.finder is None:
            return None
        form = _Form(self.plan, view, place.finder.title)
        meant = _but_page(place.act.meant(own))
        brings = {name: value for name, value in things.items() if name in form.about or self.plan.label(name) in form.fields}
        if things and not brings:
            return None
        wanted = {**form.about, **brings, **meant}
        return form.next(wanted) if form.takes(wanted) and set(place.act.required) <= wanted.keys() else None

    def _front(self, place: Place, own: Mapping[str, Any]) -> str:
        """A link to the front page of a page's section; where that is about somebody, first to who it must be."""
        kept = {name: str(own[name]) for name in self.plan.keeps if name in own}
        bare = ""
        for element in self.view["elements"]:
            path, _, query = element.get("url", "").partition("?")
            section = self.plan.fronts.get(path)
            if section is not None and section.title == place.section and path != urlsplit(self.view["url"]).path:
                _, _, about = self.plan.at(element["url"])
                if all(about.get(name) == value for name, value in kept.items()):
                    return str(element["bid"])
                if not query:
                    bare = str(element["bid"])
        for name, value in kept.items():
            target = self.plan.showing.get(name)
            if target is not None and (link := self._link(self.view, target, {name: value}, {})):
                return link
        return bare


def _but_page(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "page"}


def _selects(field: Mapping[str, Any]) -> bool:
    return "select_option" in field.get("actions", ())


def _behind(views: Sequence[View]) -> list[View]:
    """The pages that going back leads to, the nearest first."""
    stack: list[View] = []
    for view in views:
        if stack and stack[-1]["url"] == view["url"]:
            stack[-1] = view
        elif len(stack) > 1 and stack[-2]["url"] == view["url"]:
            stack.pop()
            stack[-1] = view
        else:
            stack.append(view)
    return stack[-2::-1]
