"""A site of a few pages for tests of the in-process engine, and what they ask of a page."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest
from werkzeug.wrappers import Request, Response

from agent_gym.browser import InProcessPage, PageError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ORIGIN = "https://retail.example"
Answer = Callable[[Request], "WSGIApplication"]


class Site:
    """A site made of pages by path, which remembers what it was asked."""

    def __init__(self, **pages: str | Answer) -> None:
        self.pages: dict[str, str | Answer] = {
            "/": "<title>Home</title><a href=/a>A</a>",
            **{f"/{name}": page for name, page in pages.items()},
        }
        self.asked: list[str] = []
        self.requests: list[Request] = []

    def open(self, start: str = "/", **files: bytes) -> InProcessPage:
        page = InProcessPage(self, ORIGIN, start=start, files=files)
        self.asked.clear()
        return page

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        request = Request(environ)
        self.asked.append(f"{request.method} {request.full_path.rstrip('?')}")
        self.requests.append(request)
        page = self.pages.get(request.path, f"<title>Lost</title><h1>No page {request.path}</h1>")
        if isinstance(page, str):
            return html(page, 200 if request.path in self.pages else 404)(environ, start_response)
        return page(request)(environ, start_response)


def html(body: str, status: int = 200) -> Response:
    return Response(body, status, content_type="text/html; charset=utf-8")


def redirect(to: str, status: int = 302) -> Answer:
    """A redirect to exactly this, which werkzeug's own responses would tidy up."""

    def answer(_: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        start_response(f"{status} Moved", [("Location", to.encode().decode("latin-1"))])
        return []

    return lambda _: answer


def bid(page: InProcessPage, name: str) -> str:
    return next(element.bid for element in page.snapshot().elements if element.name == name)


def refused(page: InProcessPage, action: Callable[[], None], kind: type[PageError]) -> str:
    """The message of an action that fails, after which everything is as it was."""
    before = page.snapshot()
    with pytest.raises(PageError) as raised:
        action()
    after = page.snapshot()
    assert type(raised.value) is kind
    assert after.error == str(raised.value)
    assert (after.url, after.outline, after.elements, after.tabs) == (before.url, before.outline, before.elements, before.tabs)
    return str(raised.value)
