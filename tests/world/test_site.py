"""The site kit: whatever operations give is shown and can be read back; forms do what operations do; a shop's oracle finds its way."""

import base64
import dataclasses
import io
import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html
from werkzeug.test import Client, run_wsgi_app

from agent_gym.browser import InProcessPage
from agent_gym.core import ToolCall, ToolResult, ToolSpec
from agent_gym.core.tool import CALL_FAILED
from agent_gym.envs.web_task.tools import DEEDS
from agent_gym.envs.worlds import retail
from agent_gym.errors import ConfigurationError
from agent_gym.world import UNDO, Operation, World, carry_out
from agent_gym.world.grading import same
from agent_gym.world.site import Page, Section, Site
from agent_gym.world.specs import TEXT, TEXTS, WHOLE, choice, record, rows, tool
from tests.world.shop import SITE as SHOP

HOSTILE = """<b onclick="x">O'Neil & "Sons" {{ 7 * 7 }} [1] link "x" | — # \\</b>"""
THING: dict[str, Any] = {"type": "string", "pattern": "^T[0-9]{3}$", "x-entity": "thing_id"}
FLAG: dict[str, Any] = {"type": "boolean"}
NUMBER: dict[str, Any] = {"type": "number"}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}
ANYHOW: dict[str, Any] = {"type": ["string", "integer", "boolean", "null"]}
ROW = {
    "thing_id": TEXT,
    "thing_ids": TEXTS,
    "name": TEXT,
    "price_cents": WHOLE,
    "flag": FLAG,
    "tags": TEXTS,
    "parts": rows(name=TEXT, size=WHOLE),
}
RESULT = record(
    {"maybe": MAYBE},
    thing_id=TEXT,
    text=TEXT,
    anyhow=ANYHOW,
    count=WHOLE,
    total_cents=WHOLE,
    share=NUMBER,
    flag=FLAG,
    tags=TEXTS,
    numbers={"type": "array", "items": WHOLE},
    place=record({"floor": WHOLE}, street=TEXT, tags=TEXTS),
    lines=rows(**ROW),
    letters=rows(**ROW),
)
MARK = record(
    {"note": {"type": "string", "maxLength": 500}, "loud": FLAG, "times": {"type": "integer", "minimum": 1, "maximum": 9}},
    thing_id=THING,
    colour=choice(("dark_red", "blue")),
    price_cents={"type": "integer", "minimum": 0},
    names={"type": "array", "items": {"type": "string"}},
)
SPECS = (
    tool("get_thing", "Reads a thing.", record(thing_id=THING), RESULT),
    tool("find_things", "Finds things.", record({"page": {**WHOLE, "minimum": 1}}, query=TEXT), record(found=rows(**ROW), more=FLAG)),
    tool("mark_thing", "Marks a thing.", MARK, record(thing_id=TEXT, text=TEXT, marks=rows(name=TEXT)), writes=True),
    tool("make_thing", "Makes a thing.", record(name=TEXT), record(thing_id=TEXT), writes=True, destroys=True),
)
OPERATIONS = {spec.name: Operation(spec, lambda _: {}) for spec in (*SPECS, UNDO.spec)}
SECTIONS = (
    Section(title="Things", pages=(Page(operation="get_thing", cards=("letters",)), "find_things", "make_thing"), about="All of them."),
)
SITE = Site(name="Store & Co", origin="https://store.example", operations=OPERATIONS, sections=SECTIONS)
THING_PAGE = "/things/thing?thing_id=T001"


def parsed(text: str) -> Any:
    return html.document_fromstring(text)


class Store:
    """A browser's worth of a site whose operations give what is asked of them."""

    def __init__(self, site: Site = SITE) -> None:
        self.site = site
        self.gives: dict[str, Any] = {}
        self.calls: list[ToolCall] = []
        self.application = site.application(self.operate)
        self.client = Client(self.application)
        self.page = InProcessPage(self.application, site.ORIGIN)

    def operate(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.calls.append(ToolCall(name, dict(arguments)))
        given_ = self.gives.get(name, {})
        return given_ if isinstance(given_, ToolResult) else ToolResult(status="ok", structured=given_)

    def view(self, path: str) -> dict[str, Any]:
        self.page.goto(path)
        return self.page.snapshot().to_dict()

    def act(self, call: ToolCall) -> dict[str, Any]:
        DEEDS[call.name](self.page, **call.arguments)
        return self.page.snapshot().to_dict()

    def do(self, call: ToolCall, path: str = "/", most: int = 12) -> tuple[Any, list[ToolCall]]:
        """Goes the site's way until a call is answered: the answer, and the actions it took."""
        views, actions = [self.view(path)], list[ToolCall]()
        while (found := self.site.answer(call, views[-1])) is None:
            actions.append(self.site.way(call, views))
            views.append(self.act(actions[-1]))
            assert len(actions) < most, actions
        return found, actions


ODD = (
    "", "—", "(empty)", "(none)", "yes", "12", "012", "-1", "1e5", '"quoted', '"quoted"', "a; b", "(x)", "a: b", "two\nlines", "\n", " ¶ ",
    "- item", "\\- x", "# head", "| cell |", "a | b", "\\|", "[12] link", "\\[1]", HOSTILE, "$1.00", "a  b", " edge ", "tab\t", "\u2028",
    "ze\u200dro", "Done: x",
)  # fmt: skip
WORDS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(ODD)
INTEGERS = st.integers(-(2**53), 2**53)


def rows_of(words: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    parts = st.lists(st.fixed_dictionaries({"name": words, "size": INTEGERS}), max_size=2)
    row = {
        "thing_id": words,
        "thing_ids": st.lists(words, max_size=2),
        "name": words,
        "price_cents": INTEGERS,
        "flag": st.booleans(),
        "tags": st.lists(words, max_size=3),
        "parts": parts,
    }
    return st.lists(st.fixed_dictionaries(row), max_size=3)


RECORDS = st.fixed_dictionaries(
    {
        "thing_id": WORDS,
        "text": WORDS,
        "anyhow": WORDS | INTEGERS | st.booleans() | st.none(),
        "count": INTEGERS,
        "total_cents": INTEGERS,
        "share": st.floats(allow_nan=False, allow_infinity=False) | INTEGERS,
        "flag": st.booleans(),
        "tags": st.lists(WORDS, max_size=3),
        "numbers": st.lists(INTEGERS, max_size=3),
        "place": st.fixed_dictionaries({"street": WORDS, "tags": st.lists(WORDS, max_size=2)}, optional={"floor": INTEGERS}),
        "lines": rows_of(WORDS),
        "letters": rows_of(WORDS),
    },
    optional={"maybe": WORDS | st.none()},
)


@settings(max_examples=60, deadline=None)
@given(RECORDS)
def test_whatever_an_operation_gives_is_read_back_exactly(given_record: dict[str, Any]) -> None:
    store = Store()
    store.gives["get_thing"] = given_record
    view = store.view(THING_PAGE)
    found = SITE.answer(ToolCall("get_thing", {"thing_id": "T001"}), view)
    assert same(found, given_record), view["outline"]
    assert SITE.answer(ToolCall("get_thing", {"thing_id": "T002"}), view) is None
    page = parsed(store.client.get(THING_PAGE).text)
    assert not page.xpath("//b | //script | //*[@onclick]")
    assert {link.partition("?")[0] for link in page.xpath("//a/@href")} <= {"/", "/things", "/things/thing"}


@settings(max_examples=60, deadline=None)
@given(WORDS, rows_of(WORDS), WORDS, st.lists(st.sampled_from(["Ana", "Bo", "Çelik Ö"]), max_size=3))
def test_what_was_done_is_told_once_with_its_result(text: str, marks: list[dict[str, Any]], note: str, names: list[str]) -> None:
    store = Store()
    store.gives |= {
        "get_thing": {"thing_id": "T001", "text": HOSTILE},
        "mark_thing": {"thing_id": "T001", "text": text, "marks": [{"name": row["name"]} for row in marks]},
    }
    arguments = {"thing_id": "T001", "colour": "dark_red", "price_cents": 1990, "names": names, "note": note}
    form = {"do": "mark_thing", "colour": "dark_red", "price_cents": "19.90", "names": ", ".join(names), "note": note}
    if not names or not note.strip():
        return
    response = store.client.post(THING_PAGE, data=form)
    assert response.status_code == 303
    assert response.location == THING_PAGE
    (done,) = [call for call in store.calls if call.name == "mark_thing"]
    assert done.arguments == {**arguments, "note": note.replace("\r\n", "\n")}
    said = response.headers["Set-Cookie"].partition(";")[0]
    page = InProcessPage(lambda environ, start: store.application({**environ, "HTTP_COOKIE": said}, start), SITE.ORIGIN)
    page.goto(THING_PAGE)
    view = page.snapshot().to_dict()
    assert same(SITE.answer(done, view), store.gives["mark_thing"]), view["outline"]
    assert SITE.answer(ToolCall("mark_thing", {**done.arguments, "colour": "blue"}), view) is None
    again = store.client.get(THING_PAGE)
    assert "Done: Mark thing" in again.text
    assert "Done: Mark thing" not in store.client.get(THING_PAGE).text


def full(**more: Any) -> dict[str, Any]:
    row = {"thing_id": "T002", "thing_ids": [], "name": "lamp", "price_cents": 5, "flag": True, "tags": [], "parts": []}
    values = {"thing_id": "T001", "text": "x", "anyhow": None, "count": 1, "total_cents": 0, "share": 0.5, "flag": False, "tags": ["a"]}
    return {
        **values,
        "numbers": [],
        "place": {"street": "s", "tags": []},
        "lines": [row, {**row, "thing_id": "T003"}],
        "letters": [],
        **more,
    }


@pytest.fixture
def store() -> Store:
    made = Store()
    made.gives = {"get_thing": full(), "find_things": {"found": full()["lines"], "more": True}, "make_thing": {"thing_id": "T002"}}
    made.gives["mark_thing"] = {"thing_id": "T001", "text": "", "marks": []}
    return made


def test_there_is_a_way_to_everything(store: Store) -> None:
    found, actions = store.do(ToolCall("find_things", {"query": "la mp"}))
    assert found == store.gives["find_things"]
    assert [call.name for call in actions] == ["click", "fill", "click"]
    _, actions = store.do(ToolCall("find_things", {"query": "la mp", "page": 3}), "/things/find-things?query=la+mp")
    assert [call.name for call in actions] == ["click", "click"]
    _, actions = store.do(ToolCall("get_thing", {"thing_id": "T003"}), "/things/find-things?query=x")
    assert [call.name for call in actions] == ["click"]
    _, actions = store.do(ToolCall("get_thing", {"thing_id": "T009"}))
    assert [call.name for call in actions] == ["click", "fill", "click"]
    mark = {"thing_id": "T001", "colour": "dark_red", "price_cents": 1990, "names": ["Ana", "Bo"], "note": "a\nb", "loud": True, "times": 2}
    found, actions = store.do(ToolCall("mark_thing", mark), most=20)
    assert found == store.gives["mark_thing"]
    assert "goto" not in [call.name for call in actions]
    assert ToolCall("mark_thing", mark) in store.calls
    store.gives["make_thing"] = {"thing_id": "T002"}
    found, _ = store.do(ToolCall("make_thing", {"name": HOSTILE}))
    assert found == {"thing_id": "T002"}
    assert store.page.snapshot().url == "https://store.example/things/thing?thing_id=T002"
    store.gives["undo"] = {"undone": [{"thing_id": "T002"}, {"thing_id": "3"}]}
    found, actions = store.do(ToolCall("undo", {}), THING_PAGE)
    assert (found, len(actions)) == (store.gives["undo"], 1)
    with pytest.raises(ValueError, match="fly"):
        SITE.way(ToolCall("fly", {}), [store.view("/")])


def test_forms_have_the_controls_of_their_parameters(store: Store) -> None:
    page = parsed(store.client.get(THING_PAGE).text)
    (form,) = page.xpath("//form[@aria-label='Mark thing']")
    kinds = {control.get("name"): control.get("type") or control.tag for control in form.xpath(".//select|.//input|.//textarea")}
    assert kinds == {
        "do": "hidden",
        "colour": "select",
        "price_cents": "number",
        "names": "text",
        "note": "textarea",
        "loud": "checkbox",
        "times": "number",
    }
    assert form.xpath("string(.//p)") == "Thing: T001"
    assert form.xpath(".//option/text()") == ["choose", "Dark red", "Blue"]
    assert {control.get("name") for control in form.xpath(".//*[@required]")} == {"colour", "price_cents", "names"}
    assert form.xpath(".//*[@name='times']/@max") == ["9"]
    for control in page.xpath("//select | //textarea | //input[not(@type='hidden')]"):
        assert page.xpath(f"//label[@for='{control.get('id')}']"), control.get("name")
    assert len(page.xpath("//@id")) == len(set(page.xpath("//@id")))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Missing: Colour, Price, Names"),
        ({"colour": "green", "price_cents": "1", "names": "a"}, "Colour"),
        ({"colour": "blue", "price_cents": "1e3", "names": "a"}, "Price: '1e3' is no number"),
        ({"colour": "blue", "price_cents": "-1", "names": "a"}, "Price"),
        ({"colour": "blue", "price_cents": "1", "names": "a", "times": "10"}, "Times"),
        ({"colour": "blue", "price_cents": "1", "names": "a", "note": 501 * "x"}, "Note"),
        ({"do": "get_thing"}, "no such form"),
        ({"do": "make_thing"}, "no such form"),
    ],
)
def test_what_does_not_fit_is_not_done(store: Store, fields: dict[str, str], said: str) -> None:
    response = store.client.post(THING_PAGE, data={"do": "mark_thing", **fields})
    assert response.status_code == 400
    assert said in parsed(response.text).xpath("string(//*[@role='alert'])")
    assert {call.name for call in store.calls} == {"get_thing"}


@pytest.mark.parametrize("status", sorted(CALL_FAILED))
def test_whatever_an_operation_answers_is_a_page(store: Store, status: str) -> None:
    codes = {
        "not_found": 404,
        "conflict": 409,
        "forbidden": 403,
        "invalid_arguments": 400,
        "rate_limited": 429,
        "unavailable": 503,
        "timeout": 504,
    }
    why = f"It <did> not work: {HOSTILE}"
    store.gives["mark_thing"] = ToolResult(status=status, content=why)
    mark = ToolCall("mark_thing", {"thing_id": "T001", "colour": "blue", "price_cents": 1, "names": ["a"]})
    view = store.view(THING_PAGE)
    while "status" not in view or view["status"] == 200:
        view = store.act(SITE.way(mark, [view]))
    assert view["status"] == codes.get(status, 502)
    refused = {"refused": status, "why": why} if status in ("not_found", "conflict", "forbidden") else None
    assert SITE.answer(mark, view) == refused
    assert SITE.answer(ToolCall("mark_thing", {**mark.arguments, "price_cents": 2}), view) is None
    assert "Blue" in [element.get("value") for element in view["elements"]]  # what was sent is still there
    store.gives["get_thing"] = ToolResult(status=status, content=why)
    view = store.view(THING_PAGE)
    assert view["status"] == codes.get(status, 502)
    assert SITE.answer(ToolCall("get_thing", {"thing_id": "T001"}), view) == refused


def test_a_page_whose_thing_is_gone_still_tells_what_was_done(store: Store) -> None:
    store.view(THING_PAGE)
    store.gives["undo"] = {"undone": []}
    store.gives["get_thing"] = ToolResult(status="not_found", content="there is no such thing")
    view = store.act(SITE.way(ToolCall("undo", {}), [store.page.snapshot().to_dict()]))
    assert view["status"] == 200
    assert SITE.answer(ToolCall("undo", {}), view) == {"undone": []}
    assert SITE.answer(ToolCall("get_thing", {"thing_id": "T001"}), view) is None


def test_a_result_too_long_for_a_cookie_is_told_at_once(store: Store) -> None:
    store.gives["mark_thing"] = {"thing_id": "T001", "text": " ".join(["word"] * 1_000), "marks": []}
    mark = {"thing_id": "T001", "colour": "blue", "price_cents": 1, "names": ["a"]}
    found, _ = store.do(ToolCall("mark_thing", mark), THING_PAGE)
    assert found == store.gives["mark_thing"]


def test_things_on_a_page_are_chosen_and_their_links_say_what_they_are_about() -> None:
    take = tool(
        "take", "Takes a line.", record(thing_id=THING, line_id={**THING, "x-entity": "line_id"}), record(thing_id=TEXT), writes=True
    )
    read = tool("get_thing", "Reads.", record(thing_id=THING), record(thing_id=TEXT, lines=rows(line_id=TEXT, name=TEXT, part_id=TEXT)))
    part = tool("get_part", "Reads.", record(part_id={**THING, "x-entity": "part_id"}), record(part_id=TEXT))
    fix = tool(
        "fix",
        "Fixes.",
        record(line_id={**THING, "x-entity": "line_id"}, part_id={**THING, "x-entity": "part_id"}),
        record(part_id=TEXT),
        writes=True,
    )
    operations = {spec.name: Operation(spec, lambda _: {}) for spec in (take, read, part, fix)}
    pages = (Page(operation="get_thing", forms=("take",)), Page(operation="get_part", continues=("fix",)))
    store = Store(Site(name="S", origin="https://s.example", operations=operations, sections=(Section(title="All", pages=pages),)))
    lines = [{"line_id": f"T10{number}", "name": "a  <b>", "part_id": f"T20{number}"} for number in range(3)]
    store.gives = {"get_thing": {"thing_id": "T001", "lines": lines}, "get_part": {"part_id": "T201"}, "fix": {"part_id": "T201"}}
    view = store.view("/all/thing?thing_id=T001")
    (select,) = [element for element in view["elements"] if element["role"] == "combobox"]
    assert [option.partition(" · ")[0] for option in select["options"]] == ["choose", "T100", "T101", "T102"]
    store.gives["take"] = {"thing_id": "T001"}
    assert store.do(ToolCall("take", {"thing_id": "T001", "line_id": "T101"}))[0] == {"thing_id": "T001"}
    _, actions = store.do(ToolCall("fix", {"line_id": "T101", "part_id": "T201"}), "/all/thing?thing_id=T001")
    assert [call.name for call in actions] == ["click", "click"]
    assert store.page.snapshot().url.endswith("part_id=T201&line_id=T101")
    assert "Fix" not in store.client.get("/all/part?part_id=T201").text


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ((Section(title="A", pages=("fly",)),), "fly"),
        ((Section(title="A", pages=(Page(operation="get_thing", forms=("fly",)),)),), "fly"),
        ((Section(title="A", pages=("get_thing", Page(operation="find_things", title="Thing"))),), "/a/thing"),
        ((Section(title="A", pages=("get_thing",)), Section(title="a", pages=("find_things",))), "/a"),
    ],
)
def test_a_declaration_that_does_not_hold_is_refused(sections: tuple[Section, ...], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Site(name="S", origin="https://s.example", operations=OPERATIONS, sections=sections)


def test_a_result_that_leaves_open_what_is_in_it_is_refused() -> None:
    spec = ToolSpec(name="get", description="Reads.", output_schema={"type": "object", "properties": {"x": {}}})
    with pytest.raises(ConfigurationError, match="get: a site needs"):
        Site(name="S", origin="https://s.example", operations={"get": Operation(spec, lambda _: {})}, sections=())


FUZZED = Store()
FUZZED.gives = {
    "get_thing": full(),
    "find_things": {"found": [], "more": False},
    "mark_thing": {"thing_id": "T001", "text": "", "marks": []},
}
FIELDS = st.dictionaries(
    st.sampled_from(["thing_id", "query", "page", "do", "colour", "price_cents", "names", "note", "loud", "times", "name"]),
    st.sampled_from(["T001", "mark_thing", "make_thing", "undo", "get_thing", "1", "-1", "9" * 5_000, "blue", "a, b", "٣", ""])
    | st.text(max_size=9),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "HEAD", "PUT", "X"]),
    st.sampled_from(["/", "/things", *SITE.plan.by_path, "//evil.example"]) | st.text(max_size=20),
    FIELDS,
    FIELDS,
    st.text(max_size=20)
    | st.sampled_from(["W10=", "WyIvIiwidW5kbyIse30sMV0=", "WyIvIiwidW5kbyIse30se31d", "WyIvIiwidW5kbyIse30seyJ1bmRvbmUiOjN9XQ=="]),
)
def test_no_request_raises(method: str, path: str, query: dict[str, str], form: dict[str, str], cookie: str) -> None:
    body = urlencode(form).encode()
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path.encode().decode("latin-1"),
        "QUERY_STRING": urlencode(query),
        "SERVER_NAME": "store.example",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/x-www-form-urlencoded",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_COOKIE": f"said={cookie}".encode().decode("latin-1"),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
    }
    pages, status, headers = run_wsgi_app(FUZZED.application, environ)
    text = b"".join(pages).decode()
    assert int(status[:3]) < 500
    assert "\n" not in headers.get("Location", "")
    assert method == "HEAD" or status.startswith("303") or text
    assert not text.startswith("<") or all(to.startswith("/") and not to.startswith("//") for to in parsed(text).xpath("//@action"))
    FUZZED.calls.clear()


# --- A whole world ---


def test_a_shops_pages_tell_what_its_operations_give() -> None:
    world = World(retail.RETAIL.schema, retail.RETAIL.build(11))
    page = InProcessPage(
        SHOP.application(lambda name, arguments: carry_out(world, retail.RETAIL.operations[name], arguments, math.inf)),
        SHOP.ORIGIN,
    )
    told = 0
    for name, table in (
        ("get_user", "users"),
        ("list_orders", "users"),
        ("get_cart", "users"),
        ("get_order", "orders"),
        ("get_product", "products"),
    ):
        key = retail.RETAIL.schema.tables[table].key
        for row in world.query(f"SELECT {key} FROM {table} LIMIT 40"):
            call = ToolCall(name, row)
            page.goto(SHOP.plan.address(SHOP.plan.places[name], row))
            found = SHOP.answer(call, page.snapshot().to_dict())
            assert same(found, carry_out(world, retail.RETAIL.operations[name], row, math.inf).structured), call
            told += 1
    assert told > 100


def test_a_shops_oracle_gets_everything_done_on_a_site_of_the_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retail, "RETAIL", dataclasses.replace(retail.RETAIL, site="tests.world.shop"))
    for family in retail.RETAIL.families.values():
        split = "transfer" if family.transfer else "validation"
        env: Any = gym.make(
            "agent_gym:AgentBase/WebTask-v0", interface="text", disable_env_checker=True, worlds=["retail"], split=split
        ).unwrapped
        observation, info = env.reset(seed=0, options={"task_id": f"retail/{family.name}/{split}/0"})
        observations, done = [observation], False
        while not done:
            action = env.oracle(observations)
            assert action.name != "goto", (env.task.goal, action)
            observation, _, terminated, truncated, info = env.step(action)
            observations.append(observation)
            done = terminated or truncated
        assert info["success"], (env.task.goal, env.last_record.checks)
        env.close()


def test_a_cookie_is_believed_only_if_the_site_could_have_written_it(store: Store) -> None:
    mark = {"thing_id": "T001", "colour": "blue", "price_cents": 1, "names": ["a"]}
    told = {"thing_id": "T001", "text": "", "marks": []}
    for arguments, result, believed in (({}, told, False), (mark, {}, False), (mark, {**told, "marks": 3}, False), (mark, told, True)):
        cookie = base64.urlsafe_b64encode(json.dumps([THING_PAGE, "mark_thing", arguments, result]).encode()).decode()
        store.client.set_cookie("said", cookie)
        assert "Done" not in store.client.get("/things/thing?thing_id=T002").text
        store.client.set_cookie("said", cookie)
        assert ("Done" in store.client.get(THING_PAGE).text) == believed
