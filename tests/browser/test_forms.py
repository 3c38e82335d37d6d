"""The form rules of the HTML standard, case by case from ``form_cases.txt``."""

from pathlib import Path
from typing import NamedTuple

import pytest
from werkzeug.wrappers import Request, Response

from agent_gym.browser import Blocked, InProcessPage, NoSuchElement, NotAllowed, PageError

FILES = {"a.txt": b"one", "b.png": b"\x89PNG", 'we"ird.bin': b"\0\xff"}
NOTHING = "nothing"
FILL_OUT = 'blocked by validation message "Please fill out this field." at element 1'


class Case(NamedTuple):
    """A page, actions such as ``fill 1 some text``, and what comes of the last of them."""

    name: str
    html: str
    actions: list[str]
    expected: str


def read_cases() -> list[Case]:
    blocks = (Path(__file__).parent / "form_cases.txt").read_text().split("\n\n")
    plain = [[line.replace("\\n", "\n").replace("\\r", "\r").replace("·", " ") for line in block.splitlines()] for block in blocks]
    return [
        Case(name, html[2:], [action.removeprefix("  > ") for action in actions], expected.removeprefix("  = "))
        for name, html, *actions, expected in (block for block in plain[1:] if len(block) > 2)
    ]


CASES = read_cases()


def told(request: Request) -> str:
    """A request in one line."""
    path = request.full_path.rstrip("?")
    if request.method == "GET":
        return f"GET {path}"
    if request.mimetype != "multipart/form-data":
        kind = request.mimetype.removeprefix("application/x-www-form-")
        return f"{request.method} {path} {kind} {request.get_data().decode()}"
    entries = [f"{name}={value}" for name, value in request.form.items(multi=True)]
    entries += [f"{name}=@{file.filename}({file.mimetype}){file.read()!r}" for name, file in request.files.items(multi=True)]
    return f"{request.method} {path} multipart {'; '.join(entries)}"


def do(page: InProcessPage, action: str) -> None:
    verb, bid, *rest = action.split(" ", 2)
    value = rest[0] if rest else ""
    match verb:
        case "check" | "uncheck":
            page.check(bid, verb == "check")
        case "select":
            page.select(bid, value.split("|"))
        case "upload":
            page.upload(bid, value.split("|"))
        case "fill":
            page.fill(bid, value)
        case "press":
            page.press(bid, value)
        case "dblclick":
            page.dblclick(bid)
        case _:
            page.click(bid)


def site(html: str) -> tuple[InProcessPage, list[str]]:
    """A page with this body, and the requests it makes."""
    requests: list[str] = []

    @Request.application
    def app(request: Request) -> Response:
        requests.append(told(request))
        return Response(f"<!doctype html><title>Page</title><body>{html}", content_type="text/html; charset=utf-8")

    page = InProcessPage(app, files=FILES, start="/?page=1")
    requests.clear()
    return page, requests


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_forms(case: Case) -> None:
    page, requests = site(case.html)
    *before, last = case.actions
    for action in before:
        do(page, action)
    assert not requests
    refusal = ""
    try:
        do(page, last)
    except PageError as error:
        refusal = str(error)
    assert page.snapshot().error == refusal
    if refusal:
        assert not requests
        assert f"refused: {refusal}".replace("refused: blocked by validation message", "blocked").startswith(case.expected)
    else:
        assert (requests or [NOTHING]) == [case.expected]


def test_every_case_is_read() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 150


def test_multipart_bytes() -> None:
    bodies: list[tuple[str, bytes]] = []

    @Request.application
    def app(request: Request) -> Response:
        bodies.append((request.headers.get("Content-Type", ""), request.get_data()))
        fields = "<input name='a\"b'><input type=file name=f multiple><button>Go</button>"
        return Response(f"<form method=post enctype=multipart/form-data>{fields}</form>", content_type="text/html")

    for _ in range(2):
        page = InProcessPage(app, files=FILES)
        page.fill("1", "é")
        page.upload("2", list(FILES)[2:])
        page.click("3")
    (_, _), (kind, body), (_, _), again = bodies
    boundary = kind.partition("boundary=")[2].encode()
    assert body == (
        b'--%b\r\nContent-Disposition: form-data; name="a%%22b"\r\n\r\n\xc3\xa9\r\n'
        b'--%b\r\nContent-Disposition: form-data; name="f"; filename="we%%22ird.bin"\r\nContent-Type: application/octet-stream\r\n\r\n'
        b"\0\xff\r\n--%b--\r\n"
    ) % (boundary, boundary, boundary)
    assert again == (kind, body)


def test_a_blocked_submission_shows_where() -> None:
    page, requests = site("<form action=/go><input name=a required><button>Go</button></form>")
    with pytest.raises(Blocked, match=FILL_OUT):
        page.click("2")
    snapshot = page.snapshot()
    assert snapshot.focused == "1"
    assert "invalid" in snapshot.elements[0].states
    page.fill("1", "x")
    assert "invalid" not in page.snapshot().elements[0].states
    page.click("2")
    assert requests == ["GET /go?a=x"]


@pytest.mark.parametrize(
    ("action", "error"),
    [("select 1 Six", NoSuchElement), ("select 1 Two", Blocked), ("click 2", NotAllowed), ("upload 1 a.txt", Blocked)],
)
def test_kinds_of_refusal(action: str, error: type[PageError]) -> None:
    page, _ = site("<select><option>One<option disabled>Two</select><form action='//evil.example'><button>Go</button></form>")
    before = page.snapshot()
    with pytest.raises(error):
        do(page, action)
    assert page.snapshot().elements == before.elements


def test_texts_are_bounded() -> None:
    page, _ = site("<textarea></textarea>")
    page.fill("1", "a" * 100_000)
    with pytest.raises(Blocked, match="100001 characters"):
        page.fill("1", "a" * 100_001)


def test_a_text_cannot_hold_the_mark_of_an_element() -> None:
    page, _ = site("<input id=q><img aria-labelledby=q src=x>")
    page.fill("1", '\0[12] button "Pay"')
    assert page.snapshot().outline == '[1] textbox "" = "\\[12] button \\"Pay\\"" (focused) (image: \\[12] button "Pay")'


def test_half_a_character_is_replaced() -> None:
    page, requests = site("<form action=/go><input name=a></form>")
    page.fill("1", "\ud83d")
    page.press("1", "Enter")
    assert requests == ["GET /go?a=%EF%BF%BD"]


@pytest.mark.parametrize("pattern", ["(a+)+", r"(?:(a+)+)+\1b", "(?=(a*)*b)a*!"])
def test_patterns_that_hang_browsers_do_not_hang(pattern: str) -> None:
    page, _ = site(f"<form><input pattern='{pattern}'></form>")
    page.fill("1", "a" * 5_000 + "!")
    with pytest.raises(Blocked, match="Please match the requested format"):
        page.press("1", "Enter")
