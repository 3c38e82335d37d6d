"""The in-process engine: answers, history, tabs, downloads, ids, and what it says when it won't."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import orjson
import pytest
from werkzeug.wrappers import Request, Response

from agent_gym.browser import Blocked, InProcessPage, NoSuchElement, PageError
from agent_gym.browser.inprocess.site import Interrupted
from agent_gym.errors import InfrastructureError
from tests.browser.toy_site import ORIGIN, Answer, Site, bid, html, redirect, refused

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# --- Answers ---


@pytest.mark.parametrize(("status", "becomes"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_redirects(status: int, becomes: str) -> None:
    site = Site(
        form="<form method=post action='/old#top'><input name=a value=1><button>Go</button></form>", old=redirect("/new?x=1", status)
    )
    site.pages["/new"] = lambda request: html(f"<p>{request.method} {dict(request.form)}</p>")
    page = site.open("/form")
    page.click(bid(page, "Go"))
    assert site.asked == ["POST /old", f"{becomes} /new?x=1"]
    snapshot = page.snapshot()
    assert snapshot.url == f"{ORIGIN}/new?x=1#top"
    assert snapshot.outline == (f"{becomes} " + ("{'a': '1'}" if becomes == "POST" else "{}"))


def test_redirects_end() -> None:
    site = Site(loop=redirect("/loop"), hop=redirect("a"), bare=lambda _: Response(status=302))
    page = site.open()
    assert "redirects without an end" in refused(page, lambda: page.goto("/loop"), PageError)
    assert len(site.asked) == 21
    page.goto("/hop")
    assert page.snapshot().url == f"{ORIGIN}/a"
    page.goto("/bare")
    assert (page.snapshot().title, page.snapshot().status) == ("302 Found", 302)


def test_errors_are_pages() -> None:
    site = Site(empty=lambda _: html("", 404), gone=lambda _: html("<h1>It is gone</h1>", 410), broken=lambda _: html("", 599))
    page = site.open()
    page.goto("/empty")
    assert (page.snapshot().outline, page.snapshot().status, page.snapshot().error) == ("# 404 Not Found", 404, "")
    page.goto("/gone")
    assert (page.snapshot().outline, page.snapshot().status) == ("# It is gone", 410)
    page.goto("/broken")
    assert page.snapshot().title == "599 Unknown Status"


@pytest.mark.parametrize("status", [204, 205])
def test_nothing_to_show_leaves_the_page(status: int) -> None:
    site = Site(save=lambda _: Response(status=status))
    page = site.open()
    before = page.snapshot()
    page.goto("/save")
    assert page.snapshot() == before
    refused(page, page.go_back, Blocked)


@pytest.mark.parametrize(
    ("kind", "body", "outline"),
    [
        ("text/plain", "a <b>\n  c", "a <b> c"),
        ("application/json", '{"a": 1}', '{"a": 1}'),
        ("application/xhtml+xml", "<p>x</p>", "x"),
        ("text/html", "<!-- nothing -->", ""),
        ("text/html", "a\0b", "a�b"),
        ("TEXT/HTML; charset=utf-8", b"\xff<p>\xc3\xa9", "�\né"),
    ],
)
def test_kinds_of_text(kind: str, body: str | bytes, outline: str) -> None:
    page = Site(x=lambda _: Response(body, headers={"Content-Type": kind})).open("/x")
    assert page.snapshot().outline.split() == outline.split()


def test_what_is_too_large() -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"<p>" + b"x" * 99_997

    site = Site(endless=lambda _: Response(endless(), content_type="text/html"), many=lambda _: html("<p>x" * 11_000))
    page = site.open("/endless")
    assert sent == 21
    assert page.snapshot().title.startswith("This page is too large to show")
    page.goto("/many")
    assert page.snapshot().title.startswith("This page is too large to show")


def test_a_long_page_is_shown_in_parts_by_scrolling() -> None:
    page = Site(a="".join(f"<p><a href=/{number}>link {number}</a></p>" for number in range(900))).open("/a")
    seen: dict[str, None] = {}
    for _ in range(20):
        snapshot = page.snapshot()
        assert snapshot.notes[0].startswith("the page is too long to show at once: these are lines ")
        assert [element.bid for element in snapshot.elements] == re.findall(r"\[(\d+)\]", snapshot.outline)
        seen |= dict.fromkeys(element.name for element in snapshot.elements)
        page.scroll(0, 20 * len(snapshot.elements))
    assert list(seen) == [f"link {number}" for number in range(900)]
    page.scroll(0, 1e300)
    assert "link 899" in page.snapshot().outline
    page.scroll(0, -1e300)
    assert "link 0" in page.snapshot().outline


@pytest.mark.parametrize(
    "markup",
    [
        "<table>" + "".join(f"<tr><td><a href=/{n}>shoes</a><td><button>Add {n}</button>" for n in range(300)) + "</table>",
        "<p>" + "word " * 20_000 + "<a href=/>x</a>",
        "é" * 100_000,
        "<select>" + "<option>" + ("\U0001f600" * 500 + "<option>") * 300 + "</select>",
        "<datalist id=d>" + ("<option value='" + "a" * 500 + "'>") * 5_000 + "</datalist>" + "<input list=d>" * 1_000,
        "<p>" + f"<a href='/{'x' * 3_000}'>{'y' * 3_000}</a>" * 40,
        f"<title>{'t' * 90_000}</title><p><textarea>{'v' * 90_000}</textarea><input value='{'w' * 90_000}'>",
        "<p id=b>" + "x <i>y</i> " * 2_000 + "</p>" + f"<button aria-labelledby='{'b ' * 5_000}'>k</button>" * 300,
        "<table><tr><td rowspan=0>a" + "<tr><td>b" * 3_000 + "</table>",
    ],
)
def test_no_page_is_too_large_for_a_snapshot(markup: str) -> None:
    page = Site(a=markup).open("/a?" + "q" * 6_000)
    for _ in range(19):
        page.new_tab()
        page.goto("/a?" + "q" * 6_000)
    for by in (0.0, 1e300):
        page.scroll(0, by)
        snapshot = page.snapshot()
        assert 0 < len(orjson.dumps(snapshot.to_dict())) <= 48_000
        assert snapshot.outline


@pytest.mark.parametrize("tag", ["div", "div role=combobox", "div role=textbox", "ul><li", "table><tr><td", "dl><dd", "details open"])
def test_deep_pages(tag: str) -> None:
    page = Site(a=f"<a href=/>{f'<{tag}>' * 30}x", deep=f"<a href=/>{f'<{tag}>' * 240}x").open("/a")
    assert page.snapshot().title == ""
    assert "x" in page.snapshot().outline
    page.goto("/deep")
    assert page.snapshot().title == "This page is nested too deeply to show: more than 120 levels"


def test_a_tabs_number_may_be_a_whole_float() -> None:
    page = Site().open("/")
    page.new_tab()
    page.focus_tab(0.0)  # type: ignore[arg-type] # as JSON Schema lets it through
    assert page.snapshot().title == "Home"


def test_notes_say_what_is_left_out() -> None:
    page = Site(a="<script>x</script><a href=/ onclick='x()'>x</a><iframe src=/></iframe>").open("/a")
    assert page.snapshot().notes == (
        "scripts are not run by this engine",
        "event handlers such as onclick are not run by this engine",
        "embedded frames and objects are not shown by this engine",
    )
    page = Site(a="<META HTTP-EQUIV=Refresh content='0;url=/b'><button popovertarget=x>x</button><div id=x popover>y</div>").open("/a")
    assert page.snapshot().notes == (
        "the page would load another by itself (meta refresh), which this engine does not do",
        "popovers are not opened by this engine",
    )


def test_cookies() -> None:
    def sign_in(_: Request) -> Response:
        response = html("in")
        response.set_cookie("who", "ann", httponly=True, secure=True)
        return response

    site = Site(login=sign_in, me=lambda request: html(f"<p>{request.cookies.get('who')}</p>"))
    page, other = site.open("/login"), site.open("/me")
    page.goto("/me")
    assert page.snapshot().outline == "ann"
    assert other.snapshot().outline == "None"


def test_a_site_that_raises_is_no_fault_of_the_agents() -> None:
    def broken(_: Request) -> Response:
        raise PageError("a bug of ours")

    page = Site(broken=broken, status=lambda _: Response(status="700 Odd")).open()
    before = page.snapshot()
    with pytest.raises(InfrastructureError, match="the site failed at GET /broken: PageError") as raised:
        page.goto("/broken")
    assert type(raised.value.__cause__) is PageError
    with pytest.raises(InfrastructureError, match="700 Odd"):
        page.goto("/status")
    assert page.snapshot() == before


def test_interrupt_stops_before_the_next_request() -> None:
    site = Site(next=redirect("/a"))
    page = site.open()

    def slow(request: Request) -> "WSGIApplication":
        page.interrupt()
        return redirect("/next")(request)

    site.pages["/slow"] = slow
    assert refused(page, lambda: page.goto("/slow"), Interrupted) == "interrupted before the page had come"
    assert site.asked == ["GET /slow"]
    page.interrupt()
    page.goto("/a")  # what comes after is not stopped
    assert page.snapshot().url == f"{ORIGIN}/a"


def test_close() -> None:
    page = Site().open()
    page.close()
    page.close()
    page.interrupt()
    with pytest.raises(InfrastructureError, match="closed"):
        page.goto("/")
    with pytest.raises(InfrastructureError, match="closed"):
        page.snapshot()


# --- History ---


def test_history() -> None:
    site = Site(a="<a href=/b>b</a>", b="<a href=/c>c</a>")
    page = site.open("/a")
    assert refused(page, page.go_back, Blocked) == "there is no page to go back to"
    page.click(bid(page, "b"))
    page.click(bid(page, "c"))
    page.go_back()
    page.go_back()
    assert page.snapshot().url == f"{ORIGIN}/a"
    page.go_forward()
    assert page.snapshot().url == f"{ORIGIN}/b"
    page.goto("/d")
    assert refused(page, page.go_forward, Blocked) == "there is no page to go forward to"
    assert site.asked == ["GET /b", "GET /c", "GET /b", "GET /a", "GET /b", "GET /d"]


def test_an_answer_to_a_post_is_never_sent_again() -> None:
    site = Site(form="<form method=post action=/done><input name=a><button>Go</button></form>", done="<p>Thanks</p><input aria-label=more>")
    page = site.open("/form")
    page.click(bid(page, "Go"))
    page.fill(bid(page, "more"), "kept")
    page.goto("/a")
    page.go_back()
    assert site.asked == ["POST /done", "GET /a"]
    assert page.snapshot().elements[-1].value == "kept"
    page.go_back()
    page.go_forward()
    assert site.asked == ["POST /done", "GET /a", "GET /form"]


def test_history_is_bounded() -> None:
    site = Site(
        form="<form method=post action=/done><button>Go</button></form>", done="<form method=post action=/done><button>Go</button></form>"
    )
    page = site.open("/form")
    for _ in range(60):
        page.click("1")
    for _ in range(49):
        page.go_back()
    refused(page, page.go_back, Blocked)
    assert site.asked[60:] == ["GET /done"] * (50 - 8)


def test_places_within_a_page() -> None:
    site = Site(a="<a href='#x'>x</a><a href='/a#y'>y</a><a href='#'>top</a><input aria-label=f><a href=/a>self</a>")
    page = site.open("/a")
    page.fill(bid(page, "f"), "kept")
    for name, url in (("x", "#x"), ("y", "#y"), ("y", "#y"), ("top", "#")):
        page.click(bid(page, name))
        assert page.snapshot().url == f"{ORIGIN}/a{url}"
    page.goto("#z")
    page.go_back()
    page.go_back()
    assert page.snapshot().url == f"{ORIGIN}/a#y"
    assert page.snapshot().elements[3].value == "kept"
    assert site.asked == []
    page.click(bid(page, "self"))
    assert site.asked == ["GET /a"]
    page.go_back()
    assert (page.snapshot().url, site.asked) == (f"{ORIGIN}/a#y", ["GET /a", "GET /a"])
    page.go_back()
    assert (page.snapshot().url, site.asked) == (f"{ORIGIN}/a#x", ["GET /a", "GET /a"])


def test_the_same_page_again_takes_the_place_of_the_entry() -> None:
    site = Site()
    page = site.open("/b")
    page.goto("/a")
    page.goto("/a")
    page.go_back()
    assert page.snapshot().url == f"{ORIGIN}/b"


# --- Tabs and downloads ---


def test_tabs() -> None:
    site = Site(a="<title>A</title><a href=/b target=_blank>new</a><a href=/c target=side>side</a>", b="<title>B</title>")
    page = site.open("/a")
    page.click(bid(page, "new"))
    assert [(tab["title"], tab["active"]) for tab in page.snapshot().tabs] == [("A", False), ("B", True)]
    refused(page, page.go_back, Blocked)
    page.focus_tab(0)
    page.click(bid(page, "side"))
    page.focus_tab(0)
    page.click(bid(page, "side"))
    assert [tab["url"] for tab in page.snapshot().tabs] == [f"{ORIGIN}/a", f"{ORIGIN}/b", f"{ORIGIN}/c"]
    assert "no tab 3" in refused(page, lambda: page.focus_tab(3), NoSuchElement)
    refused(page, lambda: page.focus_tab(-1), NoSuchElement)
    page.close_tab()
    assert page.snapshot().url == f"{ORIGIN}/b"
    page.close_tab()
    page.close_tab()
    blank = page.snapshot()
    assert (blank.url, blank.title, blank.status, blank.outline) == ("about:blank", "", 0, "")
    page.goto("/a")
    refused(page, page.go_back, Blocked)
    page.goto("about:blank")
    page.go_back()
    assert page.snapshot().title == "A"


def test_new_tabs_share_the_site_and_are_bounded() -> None:
    page = Site(a="<a href=/b target=_blank>new</a>").open("/a")
    for _ in range(19):
        page.new_tab()
    assert "20 tabs are open" in refused(page, page.new_tab, Blocked)
    page.focus_tab(0)
    assert "20 tabs are open" in refused(page, lambda: page.click("1"), Blocked)


def test_downloads() -> None:
    def offered(name: str) -> Answer:
        return lambda _: Response(
            b"%PDF", content_type="application/pdf", headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )

    site = Site(
        invoice=offered("invoice.pdf"),
        evil=offered("../../etc/passwd"),
        logo=lambda _: Response(b"\x89PNG", content_type="image/png"),
        a="<a href=/b download=mine.html>save</a><a href=/logo target=_blank>logo</a><a href=/lost download>lost</a>",
        b="<p>b</p>",
    )
    page = site.open("/a")
    for url in ("/invoice", "/invoice", "/evil"):
        page.goto(url)
    page.click(bid(page, "save"))
    page.click(bid(page, "logo"))
    assert "status 404" in refused(page, lambda: page.click(bid(page, "lost")), Blocked)
    snapshot = page.snapshot()
    assert snapshot.downloads == ("invoice.pdf", "invoice (1).pdf", "passwd", "mine.html", "logo")
    assert page.downloads["logo"] == b"\x89PNG"
    assert (snapshot.url, len(snapshot.tabs)) == (f"{ORIGIN}/a", 1)
    for _ in range(15):
        page.goto("/invoice")
    assert "too many downloads" in refused(page, lambda: page.goto("/invoice"), Blocked)


# --- Elements ---


def test_refusals_say_why() -> None:
    site = Site(
        a="<button disabled>off</button><details><summary>more</summary><a href=/b>inside</a></details><p tabindex=0>text</p>"
        "<input aria-label=field><a href=/b>b</a>",
        b="<p>nothing here</p>",
    )
    page = site.open("/a")
    assert refused(page, lambda: page.click("99"), NoSuchElement) == "no element '99' on this page"
    assert refused(page, lambda: page.click("x" * 1_000), NoSuchElement).startswith("no element 'xxx")
    assert refused(page, lambda: page.click(bid(page, "off")), Blocked) == "the button is disabled"
    page.click(bid(page, "more"))
    inside = bid(page, "inside")
    page.click(bid(page, "more"))
    assert refused(page, lambda: page.click(inside), Blocked) == f"element {inside} is hidden"
    refused(page, lambda: page.focus(bid(page, "off")), Blocked)
    page.click(bid(page, "b"))
    assert refused(page, lambda: page.click(inside), NoSuchElement) == f"stale: element {inside} was on an earlier page"
    page.goto("/a")
    assert page.snapshot().error == ""


def test_details() -> None:
    page = Site(
        a="<details name=g open><summary>one</summary>1</details><details name=g><summary>two</summary>2</details>"
        "<details><summary>three <b>bold</b></summary>3</details>"
    ).open("/a")
    page.click(bid(page, "two"))
    page.press(bid(page, "three bold"), "Space")
    states = {element.name: element.states[0] for element in page.snapshot().elements}
    assert states == {"one": "collapsed", "two": "expanded", "three bold": "expanded"}
    page.dblclick(bid(page, "two"))
    assert "expanded" in page.snapshot().elements[1].states


def test_a_dialog_is_closed_by_its_form() -> None:
    page = Site(a="<dialog open>Hi <form method=dialog><button>Close</button></form></dialog>there").open("/a")
    page.click("1")
    assert (page.snapshot().outline, page.snapshot().elements, page.snapshot().focused) == ("there", (), "")


def test_a_key_that_is_refused_changes_nothing_and_a_text_that_is_too_long_can_be_shortened() -> None:
    page = Site(
        a="<input name=a readonly value=x><input name=b><input name=c maxlength=3 value=abcdef><textarea maxlength=1>a</textarea>"
    ).open("/a")
    page.focus("2")
    for number, key in (("1", "x"), ("1", "Backspace"), ("3", "g"), ("4", "Enter")):
        refused(page, lambda number=number, key=key: page.press(number, key), Blocked)  # type: ignore[misc]
        assert page.snapshot().focused == "2"
    page.press("3", "Backspace")
    assert page.snapshot().elements[2].value == "abcde"


def test_focus() -> None:
    page = Site(
        a="<input aria-label=one><input aria-label=two tabindex=1><input aria-label=three disabled><button>four</button>"
        "<a href=/ tabindex=-1>five</a><input aria-label=six autofocus>"
    ).open("/a")
    names = {element.bid: element.name for element in page.snapshot().elements}

    def focused() -> str:
        return names.get(page.snapshot().focused, "")

    assert focused() == "six"
    seen = []
    page.press(bid(page, "two"), "Tab")
    for _ in range(3):
        seen.append(focused())
        if page.snapshot().focused:
            page.press(page.snapshot().focused, "Tab")
    assert seen == ["one", "four", "six"]
    assert focused() == ""
    page.press(bid(page, "one"), "Shift+Tab")
    assert focused() == "two"
    page.focus(bid(page, "five"))
    assert focused() == "five"


def test_what_has_no_effect() -> None:
    page = Site(a="<p tabindex=0>text</p><a href=/>x</a>").open("/a")
    before = page.snapshot()
    page.hover("1")
    page.scroll(0, 1e300)
    assert page.snapshot() == before
    page.click("1")
    assert page.snapshot().focused == "1"


@pytest.mark.parametrize("token", ["csrf_token", "_xsrf", "__VIEWSTATE", "__EVENTVALIDATION"])
def test_a_token_that_changes_changes_no_id(token: str) -> None:
    numbers = iter(range(9))
    page = Site(a=lambda _: html(f"<form><input type=hidden name={token} value={next(numbers)}><button>Go</button></form>")).open("/a")
    first = page.snapshot().elements
    page.goto("/a")
    assert page.snapshot().elements == first


@pytest.mark.parametrize("row", ["<p>{} <input name=q></p>", "<li>{} <input name=q></li>", "<tr><td>{}<td><button>Go</button></tr>"])
def test_equal_controls_are_told_apart_by_their_rows(row: str) -> None:
    things = ["lamp", "desk"]
    tag = "table" if "<tr>" in row else "form"
    page = Site(a=lambda _: html(f"<{tag}>{''.join(map(row.format, things))}</{tag}>")).open("/a")
    _, desk = page.snapshot().elements
    things.remove("lamp")
    page.goto("/a")
    assert [element.bid for element in page.snapshot().elements] == [desk.bid]


def test_ids_stay_with_things() -> None:
    rows = {"rows": "123"}

    def orders(_: Request) -> Response:
        return html(
            "<nav><a href=/>Home</a><a href=/a>A</a></nav>"
            + "".join(f"<form action=/cancel><input type=hidden name=id value={row}><button>Cancel</button></form>" for row in rows["rows"])
            + "<button>Same</button><button>Same</button><input type=radio name=r value=1><input type=radio name=r value=2>"
        )

    page = Site(orders=orders, a="<a href=/a>A</a><a href=/new>New</a><a href=/>Home</a>").open("/orders")
    first = [element.bid for element in page.snapshot().elements]
    assert first == [str(number) for number in range(1, 10)]
    page.goto("/a")
    assert [element.bid for element in page.snapshot().elements] == ["2", "10", "1"]
    page.goto("/orders")
    assert [element.bid for element in page.snapshot().elements] == first
    rows["rows"] = "23"
    page.goto("/orders")
    assert [element.bid for element in page.snapshot().elements] == [*first[:2], *first[3:]]


def test_relative_links_are_told_apart_by_where_they_lead() -> None:
    row = "<a href=edit>Edit</a><form><input aria-label=Find></form><form method=post><button>Save</button></form>"
    site = Site()
    site.pages |= {"/orders/1/": row, "/orders/2/": row}
    page = site.open("/orders/1/")
    first = [element.bid for element in page.snapshot().elements]
    page.goto("/orders/2/")
    assert not set(first) & {element.bid for element in page.snapshot().elements}
    page.goto("/orders/1/?Find=x")
    assert [element.bid for element in page.snapshot().elements] == [*first[:2], "7"]


def test_odd_file_names_are_refused() -> None:
    with pytest.raises(ValueError, match="printable"):
        InProcessPage(Site(), files={"a\nb": b""})
