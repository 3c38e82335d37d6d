"""The gallery's web site: a page a widget, whose scripts show what ``look`` gave and save by ``keep``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException, NotFound, UnprocessableEntity

from agent_gym.core import ToolCall, ToolResult
from agent_gym.envs.worlds.widgets.families import BY_NAME, FILES
from agent_gym.envs.worlds.widgets.widget import Seen

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["FILES", "ORIGIN", "answer", "application", "clear_caches", "way"]

ORIGIN = "https://widgets.example"
"""Where the site is reached."""

_HERE = Path(__file__).parent
_STATIC = {"gallery.css": "text/css; charset=utf-8", "gallery.js": "text/javascript; charset=utf-8"}
_Operate = Callable[[str, Mapping[str, Any]], ToolResult]


def application(operate: _Operate) -> "WSGIApplication":
    """The site of one gallery.

    Args:
        operate: Carries out an operation. Every fact on a page is from what it gave, and nothing changes but by it.
    """

    def respond(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        with Request(environ) as request:
            try:
                response: Response | HTTPException = _respond(operate, request)
            except HTTPException as error:
                response = error
        return response(environ, start_response)

    return respond


def _respond(operate: _Operate, request: Request) -> Response:
    """Answers one request.

    Raises:
        werkzeug.exceptions.HTTPException: There is no such page, or an operation failed.
    """
    name, _, part = request.path[1:].partition("/")
    if name == "static" and part in _STATIC:
        return Response((_HERE / "static" / part).read_bytes(), content_type=_STATIC[part])
    if not name:
        return _page("index.html", title="Gallery", widgets=BY_NAME.values())
    if name not in BY_NAME:
        raise NotFound
    if request.method == "POST":
        return _saved(operate, name, request)
    record = _result(operate("look", {"widget": name}))
    return _page(f"{name}.html", title=BY_NAME[name].title, part=part, given=record["given"], saved=record["value"])


def _saved(operate: _Operate, name: str, request: Request) -> Response:
    """Saves what a page sent: the fields of a form, the name and content of a file. The answer says what is saved now."""
    said = [*request.form.values(), *(f"{file.filename}: {file.read().decode(errors='replace')}" for file in request.files.values())]
    value = _result(operate("keep", {"widget": name, "value": ", ".join(said)}))["value"]
    response = Response(value, content_type="text/plain; charset=utf-8")
    if "file" in request.form:  # what the page asks to be sent
        response.headers.set("Content-Disposition", "attachment", filename=value)
    return response


def _result(result: ToolResult) -> dict[str, Any]:
    if result.failed:
        raise UnprocessableEntity(result.content)
    record: dict[str, Any] = result.structured
    return record


def _page(template: str, **facts: Any) -> Response:
    markup = _templates().get_template(template).render({"given": {}, "saved": "", **facts})
    return Response(markup, content_type="text/html; charset=utf-8")


@lru_cache(maxsize=1)
def _templates() -> Environment:
    folder = FileSystemLoader(_HERE / "templates")
    return Environment(loader=folder, autoescape=True, auto_reload=False, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def answer(call: ToolCall, view: Mapping[str, Any]) -> None:
    """Nothing: the one wish of an oracle here is fulfilled on the way, which ends by itself."""


def way(call: ToolCall, views: Sequence[Mapping[str, Any]]) -> ToolCall:
    """The next action towards a widget that is as the goal says; ``finish`` when it is."""
    widget, seen = BY_NAME[call.name], Seen(views)
    if seen.path.split("/")[1] == widget.name or seen.dialog:
        return widget.way(seen, call.arguments)
    return seen.click(widget.title) if seen.has(widget.title) else ToolCall("goto", {"url": f"/{widget.name}"})


def clear_caches() -> None:
    """Forgets the templates; pages are read anew each time."""
    _templates.cache_clear()
