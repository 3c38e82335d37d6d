"""The pages of MiniWoB++ as the package `miniwob` brings them, and the app that serves one of them for an episode."""

import importlib.util
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.resources import files
from mimetypes import MimeTypes
from pathlib import Path
from typing import TYPE_CHECKING

from agent_gym.errors import MissingExtra

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["ORIGIN", "folder", "limit_ms", "name_of", "names", "path_of", "serving"]

ORIGIN = "https://miniwob.example"
"""Where the pages stand for the agent."""

_START = files(__package__).joinpath("start.js").read_text("utf-8")
_TYPES = MimeTypes()  # the table in the standard library, not the machine's
_FLIGHT = "flight."
_LIMIT = re.compile(r"EPISODE_MAX_TIME\s*=\s*([0-9]+)")
_DEFAULT_MS = 10_000


@lru_cache(maxsize=1)
def folder() -> Path:
    """Where the pages are. The package is looked for only, not imported: nothing of its Python is needed.

    Raises:
        MissingExtra: It is not installed.
    """
    spec = importlib.util.find_spec("miniwob")
    places = [Path(place) / "html" for place in (spec.submodule_search_locations or ()) if spec is not None] if spec else []
    found = next((place for place in places if (place / "miniwob").is_dir()), None)
    if found is None:
        raise MissingExtra("miniwob", "miniwob")
    return found


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """The names of all pages, in alphabetical order; the flight sites are ``flight.AA`` and so on."""
    flights = (f"{_FLIGHT}{page.parent.name}" for page in folder().glob("flight/*/wrapper.html"))
    return tuple(sorted([*(page.stem for page in folder().glob("miniwob/*.html")), *flights]))


def path_of(name: str) -> str:
    """The path of a page within the site."""
    return f"/flight/{name.removeprefix(_FLIGHT)}/wrapper.html" if name.startswith(_FLIGHT) else f"/miniwob/{name}.html"


def name_of(path: str) -> str:
    """The name of the page that stands at a path, or a URL."""
    *_, above, last = path.split("/")
    return f"{_FLIGHT}{above}" if last == "wrapper.html" else last.removesuffix(".html")


@lru_cache(maxsize=256)
def limit_ms(name: str) -> int:
    """How long an episode on a page lasts, as the page says."""
    found = _LIMIT.search(_content(path_of(name)).decode())
    return int(found[1]) if found else _DEFAULT_MS


@lru_cache(maxsize=512)
def _content(path: str) -> bytes:
    return (folder() / path[1:]).read_bytes()


def serving(name: str, seed: int, mode: str) -> "Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]":
    """An app that serves one page for one episode, which begins as it is loaded.

    No other page is there, and this one is served once: whatever leads away or asks for it again, the browser stays where it is.

    Args:
        name: The page.
        seed: Of the page's problem.
        mode: The distribution that it is drawn from, where a page has several: ``"train"`` or ``"test"``.
    """
    top, started = path_of(name), False
    script = _START.replace("SEED", str(seed)).replace("MODE", f'"{mode}"')

    def app(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        nonlocal started
        path = environ["PATH_INFO"]
        inner = path.startswith(top.rpartition("/")[0]) and name.startswith(_FLIGHT)  # a site in a frame
        if path.endswith(".html") and (started if path == top else not inner):
            start_response("204 No Content", [])
            return []
        within = (folder() / path[1:]).resolve()
        if not within.is_file() or folder().resolve() not in within.parents:
            leads = "HTTP_UPGRADE_INSECURE_REQUESTS" in environ  # as a browser says where it is to go
            start_response("204 No Content" if leads else "404 Not Found", [])
            return []
        body = _content(path)
        if path == top:
            started = True
            body += f"<script>{script}</script>".encode()
        start_response("200 OK", [("Content-Type", _TYPES.guess_type(path)[0] or "application/octet-stream")])
        return [body]

    return app
