"""The site as a WSGI application. Every fact on a page is what an operation gave, and nothing changes but by one."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException

from agent_gym.core import ToolResult
from agent_gym.world.site.acts import Act, typed
from agent_gym.world.site.plan import Place, Plan
from agent_gym.world.site.rendering import Form, finder_of, flash_of, form_of, record_of
from agent_gym.world.site.values import told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["NOT_DONE", "REFUSALS", "Operate", "Shell", "application", "clear_caches", "done"]

Operate = Callable[[str, Mapping[str, Any]], ToolResult]
"""Carries out one operation of the world, by its name and with arguments that fit its schema."""

_HERE = Path(__file__).parent
_SAID = "said"
"""The cookie that takes what was done to the page that tells it, once."""
_MOST_SAID = 3_500
"""Characters that a cookie may have; what is longer is told at once."""
_DO, _UNDO = "do", "undo"
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


_NOTHING: Mapping[str, Any] = {"shown": "", "finders": (), "forms": (), "turns": {}, "related": {}, "fronts": {}}
NOT_DONE = "Not done"
"""How a page begins that tells what was not done."""
REFUSALS = {404: "not_found", 409: "conflict", 403: "forbidden"}
"""By HTTP status, the status of an operation that was refused: as things are, it would be again."""


class Shell(NamedTuple):
    """What is around every page.

    Attributes:
        name: The site's name.
        about: What it is, in a line.
        accent: Its colour, as CSS has it.
    """

    name: str
    about: str
    accent: str


class _Said(NamedTuple):
    """Something that was done."""

    act: Act
    arguments: dict[str, Any]
    result: dict[str, Any]


def done(plan: Plan, act: Act, arguments: Mapping[str, Any], what: str = "Done") -> str:
    """What a page says of something that was done, or was not."""
    said = told(act.meant(arguments), act.spec.parameters, "", plan.label, inner=True)
    return f"{what}: {act.title} {said}" if arguments else f"{what}: {act.title}"


def application(plan: Plan, shell: Shell, operate: Operate) -> "WSGIApplication":
    """The site of one world.

    Args:
        plan: The site.
        shell: What is around every page.
        operate: Carries out an operation of the world.
    """

    def respond(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        return _Visit(plan, shell, operate, Request(environ)).answer()(environ, start_response)

    return respond


class _Visit:
    """One request."""

    def __init__(self, plan: Plan, shell: Shell, operate: Operate, request: Request) -> None:
        self.plan = plan
        self.shell = shell
        self.operate = operate
        self.request = request
        self.place = plan.by_path.get(request.path)
        self.asked = request.args.to_dict()
        known = self.place is not None or request.path in plan.fronts
        self.url = request.full_path.removesuffix("?") if known else "/"
        self.said: _Said | None = None
        self.status, self.problem = 200, ""
        self.filled: dict[str, dict[str, str]] = {}  # what fields hold that were sent and not taken, by form

    def answer(self) -> Response:
        """The response."""
        path, method = self.request.path, self.request.method
        if path == "/static/site.css":
            return Response(f":root {{ --brand: {self.shell.accent}; }}\n{_css()}", content_type="text/css; charset=utf-8")
        if self.url == "/" != path:
            return self._show("Not found", status=404, problem="There is no such page here.")
        if method not in ("GET", "HEAD", "POST"):
            return self._show("Not possible", status=405, problem="Pages are only looked at, and forms sent.")
        if method == "POST":
            turned = self._post()
            if turned is not None:
                return turned
        else:
            self.said = self._told_before()
        if self.place is not None:
            return self._page(self.place)
        front = self.plan.fronts.get(path)
        if front is None:
            return self._show(self.shell.name, around=[self.asked], fronts=self.plan.fronts)
        places = [place for place in self.plan.places.values() if place.section == front.title and place.page.finds and place.finder]
        finders = [finder_of(self.plan, place, self.asked, {}, {}) for place in places]
        return self._show(front.title, section=front.title, finders=finders, around=[self.asked], fronts={path: front})

    # --- Changing ---

    def _post(self) -> Response | None:
        """Carries out what a form asks for, and goes on to the page that tells of it; None to show the form's page again."""
        try:
            form = self.request.form.to_dict()
        except HTTPException as error:
            self.status, self.problem = error.code or 400, error.description or ""
            return None
        act = next((act for act in self._acts() if act.spec.name == form.get(_DO)), None)
        if act is None:
            self.status, self.problem = 400, "This page has no such form."
            return None
        fields = {**form, **self._known(act)}
        self.filled[act.spec.name] = form
        try:
            arguments = act.meaning(fields, self.plan.label)
        except ValueError as error:
            self.status, self.problem = 400, str(error)
            return None
        result = self.operate(act.spec.name, arguments)
        if result.failed:
            self.status = _status_of(result)
            self.problem = f"{done(self.plan, act, arguments, NOT_DONE)}: {result.content}"
            return None
        said = _Said(act, arguments, result.structured)
        onward = self._onward(said)
        cookie = base64.urlsafe_b64encode(orjson.dumps([onward, act.spec.name, arguments, result.structured])).decode()
        if len(cookie) > _MOST_SAID:
            self.said = said
            del self.filled[act.spec.name]
            return None
        response = Response(status=303, headers={"Location": onward})
        response.set_cookie(_SAID, cookie, httponly=True, samesite="Lax")
        return response

    def _onward(self, said: _Said) -> str:
        """The page that tells of it: the one with the form, or of what has come of it."""
        if self.place is None or self.place.reads or said.act.spec.name == _UNDO:
            return self.url
        around = [said.result, said.arguments, self.asked]
        for kind in said.result:
            target = self.plan.showing.get(kind)
            if target is not None and target.act.required == (kind,):
                return self.plan.address(target, {kind: said.result[kind]}, around)
        return self.plan.address(self.place, {}, [self.asked])

    def _acts(self) -> list[Act]:
        """What the forms of this page do."""
        undo = self.plan.acts.get(_UNDO)
        forms = [*self.place.forms, *self.place.continues] if self.place is not None else []
        return [*forms, *([undo] if undo else [])]

    def _known(self, act: Act) -> dict[str, str]:
        """The parameters of a form that the page's address says."""
        return {name: self.asked[name] for name in act.entities if self.asked.get(name)} if self.place is not None else {}

    def _told_before(self) -> _Said | None:
        """What the request before this one did, if this page is to tell it."""
        try:
            url, name, arguments, result = orjson.loads(base64.urlsafe_b64decode(self.request.cookies[_SAID]))
            act = self.plan.acts[name]
            fits = url == self.url and act.validator.is_valid(arguments) and act.result_validator.is_valid(result)
        except (KeyError, TypeError, ValueError, binascii.Error):
            return None
        return _Said(act, arguments, result) if fits else None

    # --- Showing ---

    def _page(self, place: Place) -> Response:
        plan, act, finder = self.plan, place.act, place.finder
        record: dict[str, Any] = {}
        own: dict[str, Any] = {}
        title = place.title
        if place.reads:
            asked = {name: self.asked[name] for name in place.own if name in self.asked}
            try:
                own = act.meaning(asked, plan.label)
            except ValueError as error:
                if any(asked.values()) or not finder:
                    self._fail(400, str(error))
            else:
                title = " ".join([title, *(typed(own[name], name) for name in act.required)])
                result = self.operate(act.spec.name, own)
                if not result.failed:
                    record = result.structured
                elif self.said is None:  # what was done may have done away with what the page showed
                    self._fail(_status_of(result), result.content)
                if not act.fields.keys() - {"page"} - act.entities.keys():
                    finder = None
        flat = {name: value for name, value in record.items() if isinstance(value, str | int) and not isinstance(value, bool)}
        finders = [finder_of(plan, place, self._but(place), {}, self.asked)] if finder else []
        if record:
            known = {**self._but(place), **{name: value for name, value in flat.items() if value != ""}, **own}
            finders += [finder_of(plan, plan.places[name], known, record, {}) for name in place.page.leads]
        return self._show(
            title,
            section=place.section,
            around=[own, flat, self.asked],
            shown=record_of(plan, place, record, [own, self.asked]) if record else "",
            finders=finders,
            forms=[self._form(form, record) for form in self._standing(place, record)],
            turns=self._turns(place, own, record),
            related=self._related(place, {**flat, **own}, [own, flat, self.asked]),
        )

    def _fail(self, status: int, problem: str) -> None:
        """Notes what went wrong first."""
        if not self.problem:
            self.status, self.problem = status, problem

    def _but(self, place: Place) -> dict[str, str]:
        """What the address says beside what the page shows."""
        return {name: value for name, value in self.asked.items() if name not in place.own or name in self.plan.keeps}

    def _standing(self, place: Place, record: Mapping[str, Any]) -> list[Act]:
        """The forms that stand on the page now."""
        if place.reads and not record:
            return []
        brought = {name for name, value in self.asked.items() if value and name not in (*place.own, *self.plan.keeps)}
        return [*place.forms, *(form for form in place.continues if brought & form.entities.keys())]

    def _form(self, act: Act, record: Mapping[str, Any]) -> Form:
        filled = self.filled.get(act.spec.name, self.asked)
        return form_of(self.plan, act, self.url, self._known(act), record, filled)

    def _turns(self, place: Place, own: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, str]:
        """Links to the pages of a list before and after this one, by what they say."""
        if "page" not in place.own:
            return {}
        number = own.get("page", 1)
        near = {"Previous page": number - 1, "Next page": number + 1 if record.get("more") else 0}
        return {label: self.plan.address(place, {**own, "page": page}, [self.asked]) for label, page in near.items() if page}

    def _related(self, place: Place, known: Mapping[str, Any], around: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Links to other pages about the same things, by their titles."""
        linked = [self.plan.showing[name] for name in known if name in self.plan.showing]
        known = {**{name: value for name, value in self.asked.items() if value}, **known}
        found = {}
        for other in self.plan.places.values():
            needed = other.act.required
            if other.reads and other not in (place, *linked) and needed and set(needed) <= known.keys() & other.act.entities.keys():
                found[other.title] = self.plan.address(other, {name: known[name] for name in needed}, around)
        return found

    def _show(
        self, title: str, *, status: int = 0, problem: str = "", section: str = "", around: Sequence[Mapping[str, Any]] = (), **facts: Any
    ) -> Response:
        plan, said = self.plan, self.said
        html = _template().render(
            _NOTHING,
            shell=self.shell,
            title=title,
            section=section,
            home=plan.front("/", around),
            sections=[(front.title, plan.front(path, around)) for path, front in plan.fronts.items()],
            leads={front.title: plan.leads(front.title, around) for front in facts.get("fronts", {}).values()},
            url=self.url,
            problem=problem or self.problem,
            flash="" if said is None else done(plan, said.act, said.arguments),
            result="" if said is None else flash_of(plan, said.act, said.result),
            undo=plan.acts.get(_UNDO),
            **facts,
        )
        response = Response(html, status or self.status, content_type="text/html; charset=utf-8")
        if _SAID in self.request.cookies:
            response.set_cookie(_SAID, max_age=0, httponly=True, samesite="Lax")
        if status == 405:
            response.headers["Allow"] = "GET, HEAD, POST"
        return response


def _status_of(result: ToolResult) -> int:
    return _STATUS.get(result.status, _BAD_GATEWAY)


def clear_caches() -> None:
    """Forgets the templates; the next page is made from the files."""
    _css.cache_clear()
    _template.cache_clear()


@lru_cache(maxsize=1)
def _css() -> str:
    return (_HERE / "static" / "site.css").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _template() -> Any:
    folder = FileSystemLoader(_HERE / "templates")
    made = Environment(loader=folder, autoescape=True, auto_reload=False, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    return made.get_template("page.html")
