"""Pages that are small sites: mail, posts, contacts, a search, flights, a menu, a calendar."""

import re
from collections.abc import Callable, Iterable, Mapping

from agent_gym.core import ToolCall
from agent_gym.envs.miniwob.oracles.seeing import (
    Element,
    Fields,
    NotShown,
    Oracle,
    Script,
    View,
    Walk,
    act,
    all_of,
    asked,
    drag,
    fill,
    find,
    middle,
    number,
    ordinal,
    picked,
    pressed,
    submitted,
)

__all__ = ["SITES"]


def _after(view: View, first: Element, role: str, name: str) -> Element:
    """The first element of that role and name that stands after another."""
    bids = [one["bid"] for one in view["elements"]]
    if first["bid"] not in bids:
        raise NotShown(first["bid"])
    return find({"elements": view["elements"][bids.index(first["bid"]) :]}, role, name)


# --- Mail ---


def _mail(goal: str, fields: Fields, view: View) -> Script:
    sender = fields.get("by") or asked(r"(?:by|Get) (\S+)", goal)[0]
    thread = find(view, "generic", sender)
    for word, icon in (("star", "star"), ("trash", "trash")):
        if f"{word} icon" in goal:
            yield pressed(_after(view, thread, "img", icon))
    view = yield pressed(thread)
    if "reply" not in goal:
        receiver = fields.get("to") or asked(r"to (\S+?)(?: please)?\.$", goal)[0]
        view = yield pressed(find(view, "generic", "Forward"))
        view = yield fill(find(view, "textbox", "forward-sender"), receiver)
        yield pressed(find(view, "img", "send-forward"))
    view = yield pressed(find(view, "generic", "Reply"))
    view = yield fill(find(view, "textbox"), asked('"(.*)"', goal)[0])
    yield pressed(find(view, "img", "send-reply"))


# --- Posts ---


def _push(icon: Element) -> Walk:
    """Clicks an icon. Under the pointer it is another picture, which takes a moment to come."""
    yield act("hover", icon)
    return (yield pressed(icon))


def _post(goal: str, _fields: Fields, view: View) -> Script:
    user, action = asked(r'user (\S+), click on the "(.*)" button', goal)
    by = find(view, "generic", user)
    if action in ("Reply", "Retweet", "Like"):
        yield from _push(_after(view, by, "img", action.lower()))
    view = yield from _push(_after(view, by, "img", "more"))
    yield pressed(find(view, "generic", match=f"^{action}"))


def _posts(goal: str, _fields: Fields, view: View) -> Script:
    action, many, user = asked(r'"(.*)" button on (\w+) posts? by (\S+)', goal)
    posts = list(all_of(view, "generic", user))
    for by in posts if many == "all" else posts[: int(many)]:
        view = yield from _push(_after(view, by, "img", action.lower()))
    yield from submitted(view)


# --- Looking things up ---


def _contact(goal: str, _fields: Fields, view: View) -> Script:
    name, what = asked(r"Find (.*) in the contact book and click on their (\w+)", goal)
    while find(view, "generic")["name"] != name:
        view = yield pressed(find(view, "link", ">"))
    told = list(all_of(view, "generic"))
    yield pressed(told[told.index(find(view, "generic", f"{what.capitalize()}:")) + 1])


def _search(goal: str, _fields: Fields, view: View) -> Script:
    page, position = divmod(ordinal(goal) - 1, 3)
    view = yield fill(find(view, "textbox"), asked('enter "(.*)" and press', goal)[0])
    view = yield pressed(find(view, "button", "Search"))
    if page:
        view = yield pressed(find(view, "link", str(page + 1)))
    links = (one for one in all_of(view, "link") if one["name"] not in ("<", ">"))
    yield pressed(picked(links, position + 1))


# --- Dates and flights ---

_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]


def _choose(view: View, date: tuple[str, ...]) -> Walk:
    """Picks a date, as month, day and year, in the calendar that comes with its field."""
    month, day, year = map(int, date)
    view = yield pressed(find(view, "textbox", match="datepicker"))
    while True:
        shown = _MONTHS.index(find(view, match=f"^(?:{'|'.join(_MONTHS)})$")["name"]) + 12 * number(find(view, match=r"^\d{4}$")["name"])
        if shown == month - 1 + 12 * year:
            return (yield pressed(find(view, "link", str(day))))
        view = yield pressed(find(view, name="Prev" if shown > month - 1 + 12 * year else "Next"))


def _date(goal: str, _fields: Fields, view: View) -> Script:
    view = yield from _choose(view, asked(r"(\d+)/(\d+)/(\d+)", goal))
    yield from submitted(view)


def _flight(goal: str, _fields: Fields, view: View) -> Script:
    """Places are known by their city or by the letters of their airport, and taken from what is offered."""
    which, start, end, *date = asked(r"the (\w+) one-way flight from: (.*) to: (.*) on (\d+)/(\d+)/(\d+)", goal)
    for label, place in (("From:", start), ("To:", end)):
        view = yield fill(find(view, "textbox", label), place)
        name = re.escape(place)
        for _ in range(3):  # what is offered may take some time
            if next(all_of(view, "generic", match=rf"^{name} \(|\({name}\)$"), None):
                break
            view = yield ToolCall("noop", {})
        view = yield pressed(find(view, "generic", match=rf"^{name} \(|\({name}\)$"))
    view = yield from _choose(view, tuple(date))
    view = yield pressed(find(view, "button", "Search"))
    yield _book(view, "cost" if which == "cheapest" else "duration", min)


def _ticket(goal: str, _fields: Fields, view: View) -> Script:
    which, what = asked(r"with the (.*) (cost|duration)\.", goal)
    yield _book(view, what, max if which in ("most expensive", "longest") else min)


def _book(view: View, what: str, best: Callable[[list[tuple[int, str]]], tuple[int, str]]) -> ToolCall:
    """Books what is best by cost or duration: of each flight the duration is shown, and then a button with the price."""
    flights = []
    minutes = 0
    for one in view["elements"]:
        if found := re.fullmatch(r"(\d+)h (\d+)m", one.get("name", "")):
            minutes = int(found[1]) * 60 + int(found[2])
        elif found := re.fullmatch(r"Book.* for \$(\d+)", one.get("name", "")):
            flights.append((int(found[1]) if what == "cost" else minutes, one["bid"]))
    if not flights:
        raise NotShown("flights")
    return ToolCall("click", {"bid": best(flights)[1]})


# --- Ordering ---


def _food(goal: str, _fields: Fields, view: View) -> Script:
    """By name one of each; by kind as many as are wanted of the first dish of that kind."""
    if names := re.findall(r"each item: (.*)", goal):
        dishes: Iterable[Element] = [find(view, "generic", name.strip()) for name in names[0].split(",")]
    else:
        many, kind = asked(r"Order (\d+) items that are (\S+)", goal)
        dishes = [find(view, "img", kind)] * int(many)
    for dish in dishes:
        view = yield pressed(_after(view, find(view, dish["role"], dish["name"]), "generic", "+"))
    yield from submitted(view)


def _agreement(goal: str, _fields: Fields, view: View) -> Script:
    if "cancel button" in goal:
        yield pressed(find(view, "button", "Cancel"))
    name, button = asked('name "(.*)" then press "(.*)"', goal)
    x, y = middle(find(view, "textbox", "text-area"))
    view = yield ToolCall("scroll_at", {"x": x, "y": y, "dx": 0, "dy": 10_000})
    view = yield fill(find(view, "textbox", "Name"), name)
    yield pressed(find(view, "button", button))


# --- A calendar ---


def _event(goal: str, _fields: Fields, view: View) -> Script:
    """Draws the event over free half hours; a label on the left names each hour, and is two of them high."""
    length, unit, name, start, end = asked(r'a ([\d.]+) (hour|min)s? event named "(.*)", between (\w+) and (\w+)', goal)
    halves = round(float(length) * 2) if unit == "hour" else int(length) // 30
    first = find(view, "generic", start.lower())
    view = yield ToolCall("scroll_at", {"x": middle(first)[0], "y": 100, "dx": 0, "dy": first["box"][1] - 55})
    top, bottom = (find(view, "generic", one.lower())["box"][1] for one in (start, end))
    half = find(view, "generic", start.lower())["box"][3] / 2 + 0.4
    events = [one["box"] for one in all_of(view, "generic") if one["box"][2] > 60]
    column = middle(find(view, "img"))[0]
    at = top
    while any(box[1] < at + half * halves - 3 and at + 3 < box[1] + box[3] for box in events):
        at += half
    if at + half * halves > bottom + 3:
        raise NotShown("free time")
    view = yield drag((column, at + half / 2), (column + 3, at + half * (halves - 0.5) + 2))
    view = yield fill(find(view, "textbox"), name)
    yield pressed(find(view, "button", "Create"))


SITES: Mapping[str, Oracle] = {
    "book-flight": _flight,
    "book-flight-nodelay": _flight,
    "buy-ticket": _ticket,
    "choose-date": _date,
    "choose-date-easy": _date,
    "choose-date-medium": _date,
    "choose-date-nodelay": _date,
    "daily-calendar": _event,
    "email-inbox": _mail,
    "email-inbox-delete": _mail,
    "email-inbox-forward": _mail,
    "email-inbox-forward-nl": _mail,
    "email-inbox-important": _mail,
    "email-inbox-noscroll": _mail,
    "email-inbox-reply": _mail,
    "email-inbox-star-reply": _mail,
    "order-food": _food,
    "phone-book": _contact,
    "search-engine": _search,
    "sign-agreement": _agreement,
    "social-media": _post,
    "social-media-all": _posts,
    "social-media-some": _posts,
}
"""The oracles, by the page's name."""
