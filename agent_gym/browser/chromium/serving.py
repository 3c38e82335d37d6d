"""The site behind the browser: every request that Chromium makes is answered here, in the thread of whoever plays the episode."""

import base64
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from werkzeug.http import parse_options_header
from werkzeug.test import EnvironBuilder, run_wsgi_app

from agent_gym.browser.downloads import Downloads
from agent_gym.browser.inprocess.document import presentable
from agent_gym.browser.inprocess.site import BLANK, MAX_BYTES, Response, Site, quoted, read
from agent_gym.browser.page import Blocked, PageError
from agent_gym.errors import InfrastructureError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

__all__ = ["NOTHING_TO_SHOW", "TAG", "Answer", "Server"]

TAG = "x-agent-gym-episode"
"""The header by which the browser tells whose request it is. Sites do not see it."""

NOTHING_TO_SHOW = (204, 205)
"""Statuses for which a browser stays where it is."""

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 20
_MAX_KEPT = 8
_MAX_NOTES = 5
_NOT_MODIFIED = 304
_HTML = "text/html; charset=utf-8"


class Answer(NamedTuple):
    """What a request is answered with."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


_STAY = Answer(204)
"""What a browser does not leave its page for."""


class Server:
    """One site for one episode.

    Args:
        app: What answers.
        site: What says which URLs are within it.

    Attributes:
        downloads: What was downloaded.
        refused: Why the last page asked for was not loaded, or None.
        notes: What else was not loaded.
        status: The status of the last page that was.
        save_as: Set by an action that saves what it leads to: the file name, maybe empty.
        traversing: Whether pages are asked for by going back or forward, which sends nothing twice.
        clock: What the clock and the chance of a page begin with.
    """

    def __init__(self, app: "WSGIApplication", site: Site) -> None:
        self.downloads = Downloads()
        self.refused: PageError | None = None
        self.notes: list[str] = []
        self.status: dict[str, int] = {}
        self.save_as: str | None = None
        self.traversing = False
        self.clock = ""
        self._app = app
        self._site = site
        self._hops: dict[str, int] = {}  # of redirects, by the request they go on as
        self._posted: dict[tuple[str, bytes], Answer] = {}  # the last pages that answered a POST

    def answer(self, event: Mapping[str, Any]) -> Answer | None:
        """Answers a paused request; None refuses it.

        Args:
            event: The request as the DevTools protocol tells it, and ``page``: whether it is for what a tab shows or saves.

        Raises:
            InfrastructureError: The site failed.
        """
        request, document = event["request"], event.get("resourceType") == "Document"
        url = request["url"] + request.get("urlFragment", "")
        try:
            url = self._site.resolve(BLANK, url)
            hops = self._hops.pop(event.get("redirectedRequestId", ""), 0)
            if hops > _MAX_REDIRECTS:
                raise PageError(f"the page redirects without an end: {_MAX_REDIRECTS} redirects, the last to {quoted(url)}")
            answer = self._exchange(url, request, document)
            location = next((value for name, value in answer.headers if name.lower() == "location"), "")
            if answer.status in _REDIRECTS and location:
                self._site.resolve(url, location)
                self._hops[event["requestId"]] = hops + 1
                return answer
            if document:
                status, answer = answer.status, self._shown(url, request, answer, event["page"])
                if answer is not _STAY:
                    self.status[event["frameId"]] = status
            elif len(answer.body) > MAX_BYTES:
                self.note(f"{quoted(url)} was not loaded: more than {MAX_BYTES:,} bytes")
                return None
        except PageError as error:
            if event["page"]:
                self.refused = error
            elif document:
                self.note(f"a frame was not loaded: {error}")
            return None
        return answer

    def note(self, text: str) -> None:
        """Notes what a page lacks."""
        if text not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(text)

    def save(self, name: str, content: str | None) -> None:
        """Saves what a page has made, in base64; None is too large.

        Raises:
            Blocked: It cannot be saved.
        """
        body = base64.b64decode(content or "")
        self.downloads.add(Response(f"{self._site.origin}/", "GET", 200, "", body, content is None, None), name)

    def _exchange(self, url: str, request: Mapping[str, Any], document: bool) -> Answer:
        body = b"".join(base64.b64decode(entry.get("bytes", "")) for entry in request.get("postDataEntries", ()))
        method, key = request["method"], (url.partition("#")[0], body)
        if self.traversing and document and method == "POST":
            if key in self._posted:
                return self._posted[key]
            method, body = "GET", b""
        headers = {name: value for name, value in request["headers"].items() if name.lower() not in (TAG, "content-length")}
        if not body:
            headers.pop("Content-Type", None)
        builder = EnvironBuilder(
            method=method, headers=headers, input_stream=BytesIO(body), content_length=len(body), base_url=self._site.origin
        )
        path, _, query = url.removeprefix(self._site.origin).partition("#")[0].partition("?")
        builder.path, builder.query_string = path or "/", query
        environ = builder.get_environ()
        builder.close()
        environ["REQUEST_URI"] = environ["RAW_URI"] = f"{path}?{query}" if query else path
        try:
            chunks, status, given = run_wsgi_app(self._app, environ)
            content, code = read(chunks), int(status[:3])
        except InfrastructureError:
            raise
        except Exception as error:
            raise InfrastructureError(f"the site failed at {method} {path}: {error!r}") from error
        if not 200 <= code <= 599:
            raise InfrastructureError(f"the site failed at {method} {path}: it answered with status {status!r}")
        answer = Answer(code, tuple((name, value) for name, value in given.items()), content)
        if document and request["method"] == "POST" and not 300 <= answer.status < 400:
            self._posted[key] = answer
            for old in list(self._posted)[:-_MAX_KEPT]:
                del self._posted[old]
        return answer

    def _shown(self, url: str, request: Mapping[str, Any], answer: Answer, page: bool) -> Answer:
        """An answer as the page that is shown of it; what can only be saved is a download, and the browser stays where it is.

        Raises:
            Blocked: It cannot be saved, or not be shown in a frame.
        """
        if answer.status in NOTHING_TO_SHOW:
            return _STAY
        named = {name.lower(): value for name, value in answer.headers}
        kind = named.get("content-type", "text/html").partition(";")[0].strip().lower()
        disposition, options = parse_options_header(named.get("content-disposition"))
        attachment = options.get("filename", "") if disposition.lower() == "attachment" else None
        body = answer.body if len(answer.body) <= MAX_BYTES else b""
        response = Response(url, request["method"], answer.status, kind, body, len(answer.body) > MAX_BYTES, attachment)
        save = None
        if page:
            save, self.save_as = self.save_as, None
        markup = presentable(response) if save is None and attachment is None else None
        if markup is None and attachment is None and not page:
            raise Blocked(f"{quoted(url)} is {quoted(kind)}, which is not shown in frames")
        if markup is None:
            self.downloads.add(response, save or attachment or "")
            return _STAY
        dropped = ("content-type", "content-length", "content-encoding", "content-disposition")
        kept = tuple((name, value) for name, value in answer.headers if name.lower() not in dropped)
        told = (("Content-Type", _HTML), ("Server-Timing", f'agent-gym;desc="{self.clock}"'))
        status = 200 if answer.status == _NOT_MODIFIED else answer.status  # for which a browser would look into its cache
        return Answer(status, (*kept, *told), markup)
