"""The site as a WSGI application: finds the page for an address, and answers where there is none."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map, Rule

from agent_gym.envs.worlds.retail.site import visit
from agent_gym.envs.worlds.retail.site.pages import ROUTES
from agent_gym.envs.worlds.retail.site.visit import Operate, Visit
from agent_gym.envs.worlds.retail.tools import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["application", "clear_caches"]


class _Id(BaseConverter):
    """A part of an address that must be an id as the tools know it."""

    def __init__(self, url_map: Map, kind: str) -> None:
        super().__init__(url_map)
        self.regex = PATTERNS[kind].removeprefix("^").removesuffix("$").replace(r"\d", "[0-9]")


def clear_caches() -> None:
    """Forgets the templates; the next page is made from the files."""
    visit.clear_caches()
    _css.cache_clear()


@lru_cache(maxsize=1)
def _css() -> bytes:
    return (Path(__file__).parent / "static" / "shop.css").read_bytes()


def _stylesheet(_: Visit) -> Response:
    return Response(_css(), content_type="text/css; charset=utf-8")


_RULES = [Rule(path, endpoint=page, methods=[method]) for method, path, page in ROUTES]
_RULES.append(Rule("/static/shop.css", endpoint=_stylesheet, methods=["GET"]))
_ADDRESSES = Map(_RULES, converters={"id": _Id}, merge_slashes=False).bind("")


def application(operate: Operate) -> "WSGIApplication":
    """The site of one world.

    Args:
        operate: Carries out an operation of the world. Every fact on a page is from what it gave, and nothing changes but by it.
    """

    def respond(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        return _answer(Visit(operate, Request(environ)))(environ, start_response)

    return respond


def _answer(visit: Visit) -> Response:
    try:
        page, arguments = _ADDRESSES.match(visit.request.path, visit.request.method)
        response: Response = page(visit, **arguments)
    except HTTPException as error:
        response = visit.show("base.html", error.name, status=error.code or 500, problem=error.description or "")
        response.headers.extend(header for header in error.get_headers() if header[0] == "Allow")
    return response
