"""The elements of a page: what is told of each that can be acted upon, kept to a length that a reader can take."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice

from agent_gym.browser.accessibility import Attributes, actions_of, states_of, value_shown
from agent_gym.browser.lines import Lines, quoted, short
from agent_gym.browser.live import BOX, LABEL, Live, Node, is_disabled, labels_of, options_of, value_of
from agent_gym.browser.names import Names
from agent_gym.browser.snapshot import Element

__all__ = ["Elements", "clear_caches"]

_LONGEST = 300
"""Characters of a name, a value or a URL."""
_CONTEXT = 120
"""Characters of `Element.context`."""
_HINT = 60
"""Characters of a hint."""
_MOST_OPTIONS, _MOST_LABELS = 100, 4_000
"""Options that are told, and the characters of all of them."""
_FIELDS = frozenset({"button", "input", "select", "textarea"})

_Facts = tuple[str, str, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...], str, str, str]
"""Of an element: bid, role, name, value, states, options, actions, url, the part of the page it is in, and its box."""


@lru_cache(maxsize=4096)
def _element(
    context: str,
    bid: str,
    role: str,
    name: str,
    value: str,
    states: tuple[str, ...],
    options: tuple[str, ...],
    actions: tuple[str, ...],
    url: str,
    section: str,
    box: str,
) -> Element:
    """An element of its facts. Most of a page is as it was one step before."""
    context = short(context or (section if section != name else ""), _CONTEXT)
    return Element(
        bid=bid,
        role=role,
        name=name,
        context=context,
        value=value,
        states=states,
        options=options,
        actions=actions,
        url=url,
        box=tuple(map(int, box.split())),
    )


def clear_caches() -> None:
    """Forgets the pages seen."""
    _element.cache_clear()


class Elements(Lines):
    """Lines of a page, and the elements found in it.

    Args:
        body: The document's body.
        live: The state of its controls.
        give_id: Gives the bid of an element from itself, its role and its name. Called once an element, in document order.
        locate: Gives what `Element.url` shows for an ``href``.
    """

    def __init__(self, body: Node, live: Live, give_id: Callable[[Node, str, str], str], locate: Callable[[str], str]) -> None:
        super().__init__()
        self._found: list[_Facts] = []
        self._contexts: list[str] = []  # of each found: what its row or item says
        self._live = live
        self._names = Names(body, live)
        self._give_id = give_id
        self._locate = locate
        self._offered: dict[str, tuple[str, ...]] = {}  # by each datalist
        self._disabled = False  # by a fieldset around
        self._section = ""  # what elements here belong to
        self._nav = False

    def elements(self) -> tuple[Element, ...]:
        """What was found, in document order."""
        return tuple([_element(context, *facts) for context, facts in zip(self._contexts, self._found, strict=True)])

    def add_control(self, node: Node, tag: str, role: str, attributes: Attributes) -> None:
        """Adds what can be acted upon."""
        live = self._live
        name = short(self._names.of(node, tag, role, attributes), _LONGEST)
        disabled = (self._disabled or "disabled" in attributes) if tag in _FIELDS else tag != "a" and is_disabled(node)
        states = states_of(node, tag, attributes, live, disabled)
        value = hint = ""
        options: tuple[str, ...] = ()
        if tag == "select":
            labels = labels_of(node)
            options = _told(label for option, label in labels.items() if not is_disabled(option))
            value = short(", ".join([labels[option] for option in live.selected(node)]), _LONGEST)
        elif tag != "a" and tag != "button":
            value = short(value_shown(node, tag, attributes, live), _LONGEST)
            hint = "" if value else _hint(name, attributes)
        if "list" in attributes:
            options = self._offers(attributes["list"])
        bid = self._give_id(node, role, name)
        url = short(self._locate(attributes["href"]), _LONGEST) if "href" in attributes and (tag == "a" or tag == "area") else ""
        actions, box = actions_of(tag, attributes, states), attributes.get(BOX, "")
        self._found.append((bid, role, name, value, states, options, actions, url, self._section, box))
        self._contexts.append("")
        text = f"{role} {quoted(name)}"
        if value:
            text += f" = {quoted(value)}"
        if states:
            text += f" ({', '.join(states)})"
        if hint:
            text += f" hint: {quoted(hint)}"
        if options:
            text += f" options: {' | '.join(map(quoted, options))}"
        self.add_element(bid, text, alone=self._nav or tag != "a")

    def _offers(self, identity: str) -> tuple[str, ...]:
        """What a datalist offers."""
        if identity not in self._offered:
            offered = self._names.by_id.get(identity)
            values = (
                [] if offered is None else [short(value_of(option), LABEL) for option in options_of(offered) if not is_disabled(option)]
            )
            self._offered[identity] = _told(values)
        return self._offered[identity]


def _told(options: Iterable[str]) -> tuple[str, ...]:
    """The options that are told: the first."""
    told: list[str] = []
    room = _MOST_LABELS
    for option in islice(options, _MOST_OPTIONS):
        room -= len(option)
        if room < 0:
            break
        told.append(option)
    return tuple(told)


def _hint(name: str, attributes: Attributes) -> str:
    """What an empty field takes, if its name does not say it: its placeholder, or its least and most."""
    hint = " ".join(attributes.get("placeholder", "").split())
    if not hint and ("min" in attributes or "max" in attributes):
        hint = f"{attributes.get('min', '')} to {attributes.get('max', '')}".strip()
    return "" if hint == name else short(hint, _HINT)
