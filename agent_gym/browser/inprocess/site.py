"""The site behind the page: requests to a WSGI app through werkzeug's client, and nothing outside its origin, ever."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from werkzeug.datastructures import Headers
from werkzeug.http import parse_options_header
from werkzeug.test import Client, EnvironBuilder

from agent_gym.browser.page import Blocked, NotAllowed, PageError
from agent_gym.errors import InfrastructureError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

__all__ = ["BLANK", "MAX_BYTES", "Interrupted", "Request", "Response", "Site", "quoted", "read"]

BLANK = "about:blank"
MAX_BYTES = 2_000_000
"""Of a response; what is longer is not shown."""

_MAX_URL = 8_192
_MAX_REDIRECTS = 20
_REDIRECTS = {301: False, 302: False, 303: False, 307: True, 308: True}
"""Whether a redirect keeps the method and the body."""

_EDGES = "".join(map(chr, range(0x21)))
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]|^(?:https?:)?/{2,}(?:[?#]|$)", re.IGNORECASE)
_SLASHES = re.compile(r"^((?:https?:)?)/{2,}", re.IGNORECASE)  # browsers take any number of slashes for two
_PLAIN = re.compile(r"/(?!/)[A-Za-z0-9\-_~!$&()*+,;=:@/?%.#]*")
_KEPT = "%/:;@!$&()*+,=~|^"  # what stays as it is in a path; in a query also what follows
_KEPT_IN_QUERY = _KEPT + "?`{}[]"


class Interrupted(PageError):
    """The action was stopped."""

    status = "timeout"


class Request(NamedTuple):
    """One request, for a URL within the site."""

    url: str
    method: str = "GET"
    content_type: str = ""
    body: bytes = b""
    referrer: str = ""


class Response(NamedTuple):
    """What came at the end of all redirects.

    Attributes:
        url: Where it came from, with the fragment.
        method: How it was asked for in the end.
        status: The HTTP status.
        kind: The media type, lower-case, without parameters.
        body: The body; empty if it was larger than `MAX_BYTES`.
        too_large: Whether it was.
        attachment: The file name under which it wants to be saved (maybe empty); None for what wants to be shown.
    """

    url: str
    method: str
    status: int
    kind: str
    body: bytes
    too_large: bool
    attachment: str | None


def quoted(text: str) -> str:
    """A text for a message: in quotes, and not long."""
    return repr(text if len(text) <= 100 else text[:99] + "…")


class Site:
    """One origin, and the cookies of one browser.

    Args:
        app: What answers.
        origin: Scheme and host under which it is reached, such as ``https://retail.example``.

    Attributes:
        locate: Where a link leads, for a reader, from the page's base and the ``href``: the path within the site, or the whole URL.
        interrupted: Set from any thread: nothing more is asked for until it is cleared.
    """

    def __init__(self, app: "WSGIApplication", origin: str) -> None:
        self.origin = origin.rstrip("/")
        self.locate: Callable[[str, str], str] = lru_cache(maxsize=4_096)(self._locate)
        self.interrupted = False
        self._scheme, _, self._host = self.origin.partition("://")
        self._default_port = {"http": ":80", "https": ":443"}[self._scheme]
        self._client = Client(app)
        builder = EnvironBuilder(base_url=self.origin, headers=Headers({"Accept": "text/html,*/*", "Accept-Language": "en"}))
        self._environ = builder.get_environ()
        builder.close()

    def resolve(self, base: str, text: str) -> str:
        """The URL that a text means on a page, in its normal form.

        Raises:
            Blocked: It is no URL.
            NotAllowed: It is outside the site.
        """
        text = text.strip(_EDGES).encode(errors="replace").decode()  # half a character cannot be sent
        if len(text) > _MAX_URL:
            raise Blocked(f"the URL is longer than {_MAX_URL} characters")
        within = base == BLANK or base.startswith(self.origin + "/")
        if within and _PLAIN.fullmatch(text) and "/." not in text and "/%2" not in text:
            return self.origin + text
        if _FORBIDDEN.search(text):
            raise Blocked(f"{quoted(text)} is not a URL: it has no host, or a backslash or control character")
        text, hash_mark, fragment = _SLASHES.sub(r"\1//", text).partition("#")
        base = self.origin + "/" if base == BLANK else base.partition("#")[0]
        if text == "?":  # no query, which Python takes for the base's
            base = base.partition("?")[0]
        try:
            url = urlsplit(urljoin(base, text))
        except ValueError:
            raise Blocked(f"{quoted(text)} is not a URL") from None
        if url.scheme not in ("http", "https"):
            raise NotAllowed(f"{quoted(text)} is no place to go to: only the pages of {self.origin} are")
        if url.scheme != self._scheme or url.netloc.lower().removesuffix(self._default_port) != self._host:
            raise NotAllowed(f"{quoted(text)} is outside {self.origin}")
        query = f"?{quote(url.query, safe=_KEPT_IN_QUERY)}" if url.query else ""
        return self.origin + quote(_without_dots(url.path), safe=_KEPT) + query + hash_mark + quote(fragment, safe=_KEPT_IN_QUERY)

    def cookies(self) -> list[dict[str, str]]:
        """The cookies that are kept, each with ``name``, ``value``, ``domain`` and ``path``."""
        kept = (self._client._cookies or {}).values()
        return [{"name": each.key, "value": each.value, "domain": each.domain, "path": each.path} for each in kept]

    def _locate(self, base: str, href: str) -> str:
        try:
            return self.resolve(base, href).removeprefix(self.origin)
        except PageError:
            pass
        try:
            return urljoin(base, href.strip(_EDGES))
        except ValueError:
            return href

    def fetch(self, request: Request) -> Response:
        """Sends a request and follows redirects within the site.

        Raises:
            Blocked: A redirect leads to no URL.
            NotAllowed: A redirect leads out of the site.
            PageError: There is no end of redirects.
            Interrupted: `interrupted` was set.
            InfrastructureError: The app raised or broke WSGI's rules.
        """
        for _ in range(_MAX_REDIRECTS + 1):
            if self.interrupted:
                raise Interrupted("interrupted before the page had come")
            response, location = self._send(request)
            if response.status not in _REDIRECTS or not location:
                return response
            url = self.resolve(request.url, location)
            if "#" not in url and "#" in request.url:
                url += "#" + request.url.partition("#")[2]
            request = request._replace(url=url) if _REDIRECTS[response.status] else Request(url, referrer=request.referrer)
        raise PageError(f"the page redirects without an end: {_MAX_REDIRECTS} redirects, the last to {quoted(request.url)}")

    def _send(self, request: Request) -> tuple[Response, str]:
        """One exchange: the response, and where it redirects to."""
        path, _, query = request.url.removeprefix(self.origin).partition("#")[0].partition("?")
        path = path or "/"
        environ = self._environ | {
            "REQUEST_METHOD": request.method,
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "REQUEST_URI": f"{path}?{query}" if query else path,
            "RAW_URI": f"{path}?{query}" if query else path,
            "CONTENT_LENGTH": str(len(request.body)) if request.method == "POST" else "0",
            "wsgi.input": BytesIO(request.body),
        }
        if request.content_type:
            environ["CONTENT_TYPE"] = request.content_type
        if request.referrer:
            environ["HTTP_REFERER"] = request.referrer
        try:
            chunks, status, headers = self._client.run_wsgi_app(environ)
            body = read(chunks)
            code, attachment = int(status[:3]), _attachment(headers)
        except InfrastructureError:
            raise
        except Exception as error:
            raise InfrastructureError(f"the site failed at {request.method} {path}: {error!r}") from error
        if not 200 <= code <= 599:
            raise InfrastructureError(f"the site failed at {request.method} {path}: it answered with status {status!r}")
        kind = (headers.get("Content-Type") or "text/html").partition(";")[0].strip().lower()
        location = headers.get("Location", "").encode("latin-1", "replace").decode("utf-8", "replace")
        too_large = len(body) > MAX_BYTES
        return Response(request.url, request.method, code, kind, b"" if too_large else body, too_large, attachment), location


def read(chunks: Iterable[bytes]) -> bytes:
    """A body; of one that is longer than `MAX_BYTES`, and may have no end, a beginning that is longer, too."""
    taken: list[bytes] = []
    size = 0
    try:
        for chunk in chunks:
            taken.append(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                break
        return b"".join(taken)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def _attachment(headers: Headers) -> str | None:
    given = headers.get("Content-Disposition")
    if given is None:
        return None
    disposition, options = parse_options_header(given)
    return options.get("filename", "") if disposition.lower() == "attachment" else None


def _without_dots(path: str) -> str:
    """A path without ``.`` and ``..``, written out or percent-encoded."""
    if not path:
        return "/"
    if "/." not in path and "/%2" not in path:
        return path
    kept: list[str] = []
    steps = path.split("/")[1:]
    for place, step in enumerate(steps):
        plain = step.lower().replace("%2e", ".")
        if plain == "..":
            del kept[-1:]
        elif plain != ".":
            kept.append(step)
        if plain in (".", "..") and place == len(steps) - 1:
            kept.append("")
    return "/" + "/".join(kept)
