"""One request to the site: what was asked, what the operations answer, and the page that is shown."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from werkzeug import Request, Response
from werkzeug.exceptions import abort

from agent_gym.core import ToolResult
from agent_gym.envs.worlds.retail.tools import PATTERNS

__all__ = ["Operate", "Person", "Visit", "clear_caches", "fits", "redirect", "status_of", "whole"]

Operate = Callable[[str, Mapping[str, Any]], ToolResult]
"""Carries out one operation of the world, by its name and with arguments that fit its schema."""

_COOKIE = "helping"
_SAID = "said"
"""The cookie that takes what was done to the page that tells it, once."""
_STATUS = {
    "not_found": 404,
    "conflict": 409,
    "invalid_arguments": 400,
    "forbidden": 403,
    "rate_limited": 429,
    "unavailable": 503,
    "timeout": 504,
}
_BAD_GATEWAY = 502
"""The HTTP status of any other failure: what stands behind the site did not answer as it should."""
_SHAPES = {kind: re.compile(pattern.removeprefix("^").removesuffix("$"), re.ASCII) for kind, pattern in PATTERNS.items()}


class Person(NamedTuple):
    """The customer who is being helped."""

    user_id: str
    name: str


class Visit:
    """One request.

    Args:
        operate: Carries out operations.
        request: The request.

    Attributes:
        request: The request.
        helping: The customer who is being helped, or None.
        operate: Carries out operations.
        said: What the request before it did that this page tells, or nothing.
    """

    def __init__(self, operate: Operate, request: Request) -> None:
        self.operate = operate
        self.request = request
        self.helping = _helping(request.cookies.get(_COOKIE, ""))
        path, _, said = unquote(request.cookies.get(_SAID, "")).partition(" ")
        self.said = said if path == request.path else ""
        self._remembers = False

    def read(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """The record that an operation gives.

        Raises:
            werkzeug.exceptions.HTTPException: It failed.
        """
        result = self.operate(operation, arguments)
        if result.failed:
            abort(status_of(result), result.content)
        record: dict[str, Any] = result.structured
        return record

    def asked(self, name: str) -> str:
        """A parameter of the address, blanks collapsed; empty where it is missing."""
        return " ".join(self.request.args.get(name, "").split())

    def sent(self, name: str) -> str:
        """A field of the form that was sent; empty where it is missing."""
        return self.request.form.get(name, "").strip()

    def page(self) -> int:
        """Which page of a list is asked for.

        Raises:
            werkzeug.exceptions.BadRequest: It is no number from 1 to 100.
        """
        number = whole(self.asked("page") or "1", 1, 100)
        return abort(400, "There is no such page of this list.") if number is None else number

    def turns(self, more: bool, **asked: str) -> dict[str, str]:
        """Links to the pages before and after this one, by what they say.

        Args:
            more: Whether one comes after.
            **asked: The other parameters of the address.
        """
        number = self.page()
        near = {"Previous page": number - 1, "Next page": number + 1 if more else 0}
        return {label: f"{self.request.path}?{urlencode({**asked, 'page': page})}" for label, page in near.items() if page}

    def help(self, person: Person) -> None:
        """Makes somebody the customer who is being helped, from this page on."""
        self.helping = person
        self._remembers = True

    def show(self, template: str, title: str, *, status: int = 200, problem: str = "", done: str = "", **facts: Any) -> Response:
        """A page.

        Args:
            template: Its template.
            title: Its title and heading.
            status: The HTTP status.
            problem: What went wrong, or nothing.
            done: What was done, or nothing.
            **facts: What the template shows.
        """
        shell = {"title": title, "problem": problem, "done": done, "helping": self.helping}
        response = Response(_template(template).render(shell, **facts), status, content_type="text/html; charset=utf-8")
        if self._remembers and self.helping is not None:
            response.set_cookie(_COOKIE, f"{self.helping.user_id}:{quote(self.helping.name)}", httponly=True, samesite="Lax")
        if done:
            response.set_cookie(_SAID, max_age=0, httponly=True, samesite="Lax")
        return response


def fits(kind: str, text: str) -> bool:
    """Whether a text is of a kind that the tools know, such as ``order_id``."""
    return _SHAPES[kind].fullmatch(text) is not None


def whole(text: str, low: int, high: int) -> int | None:
    """A whole number within bounds, or None."""
    number = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else -1
    return number if low <= number <= high else None


def status_of(result: ToolResult) -> int:
    """The HTTP status of an operation's result."""
    return _STATUS.get(result.status, _BAD_GATEWAY) if result.failed else 200


def redirect(path: str, said: str = "") -> Response:
    """Sends the browser to another page of the site, there to be got.

    Args:
        path: The page.
        said: What it tells there, once.
    """
    response = Response(status=303, headers={"Location": path})
    if said:
        response.set_cookie(_SAID, quote(f"{path} {said}"), httponly=True, samesite="Lax")
    return response


def _helping(cookie: str) -> Person | None:
    user_id, _, name = cookie.partition(":")
    return Person(user_id, unquote(name)) if fits("user_id", user_id) and name else None


def _money(cents: int) -> str:
    return f"${cents // 100}.{cents % 100:02d}"


def clear_caches() -> None:
    """Forgets the templates; the next page is made from the files."""
    _templates.cache_clear()


@lru_cache(maxsize=1)
def _templates() -> Environment:
    folder = FileSystemLoader(Path(__file__).parent / "templates")
    made = Environment(loader=folder, autoescape=True, auto_reload=False, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    made.filters["money"] = _money
    return made


def _template(name: str) -> Any:
    return _templates().get_template(name)
