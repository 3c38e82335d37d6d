"""The Chromium engine: the contract of a page, kept by a real browser."""

from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from agent_gym.browser import Blocked, NoSuchElement, NotAllowed, Page, PageError
from agent_gym.browser.chromium import ChromiumPage
from agent_gym.errors import InfrastructureError
from tests.browser.chromium.conftest import Open
from tests.browser.toy_site import ORIGIN, Site, html, redirect

FORM = """<title>Form</title><form method=post action=/sent enctype=multipart/form-data>
<label>Name <input name=name required maxlength=9></label> <label>Day <input type=date name=day></label>
<label>Size <select name=size><option>small<option>large<option disabled>huge</select></label>
<label><input type=checkbox name=gift> Gift</label>
<label><input type=radio name=pay value=cash checked> Cash</label> <label><input type=radio name=pay value=card> Card</label>
<label>Note <textarea name=note></textarea></label> <label>Photo <input type=file name=photo></label>
<button>Send</button> <button disabled>Never</button></form>"""


def bid(page: Page, name: str) -> str:
    return next(element.bid for element in page.snapshot().elements if element.name == name)


def value(page: Page, name: str) -> str:
    return next(element.value for element in page.snapshot().elements if element.name == name)


def states(page: Page, name: str) -> tuple[str, ...]:
    return next(element.states for element in page.snapshot().elements if element.name == name)


def test_a_form_is_filled_and_sent(open_page: Open) -> None:
    def sent(request: Request) -> Response:
        photo = request.files["photo"]
        content = photo.read()
        request.close()
        return html(f"<p>{dict(request.form)}</p><p>{photo.filename} {content.hex()}</p>")

    site = Site(form=FORM, sent=sent)
    page = open_page(site, "/form", **{"me.png": b"\x89PNG"})
    page.fill(bid(page, "Name"), "Ann")
    page.fill(bid(page, "Day"), "2026-02-03")
    page.fill(bid(page, "Note"), "one\ntwo")
    page.select(bid(page, "Size"), ["large"])
    page.check(bid(page, "Gift"), True)
    page.check(bid(page, "Card"), True)
    page.upload(bid(page, "Photo"), ["me.png"])
    assert [value(page, name) for name in ("Name", "Day", "Note", "Size", "Photo")] == ["Ann", "2026-02-03", "one\ntwo", "large", "me.png"]
    assert "checked" in states(page, "Card")
    assert "checked" not in states(page, "Cash")
    page.click(bid(page, "Send"))
    said = page.snapshot()
    assert said.url == f"{ORIGIN}/sent"
    told = {"name": "Ann", "day": "2026-02-03", "size": "large", "gift": "on", "pay": "card", "note": "one\r\ntwo"}
    assert said.outline == f"{told}\nme.png 89504e47"


@pytest.mark.parametrize(
    ("act", "kind", "said"),
    [
        (lambda page: page.click(bid(page, "Send")), Blocked, 'validation message "Please fill out this field."'),
        (lambda page: page.click(bid(page, "Never")), Blocked, "disabled"),
        (lambda page: page.fill(bid(page, "Name"), "much too long"), Blocked, "at most 9"),
        (lambda page: page.fill(bid(page, "Day"), "tomorrow"), Blocked, "takes"),
        (lambda page: page.fill(bid(page, "Size"), "large"), Blocked, "select_option"),
        (lambda page: page.select(bid(page, "Size"), ["huge"]), Blocked, "disabled"),
        (lambda page: page.select(bid(page, "Size"), ["tiny"]), NoSuchElement, "tiny"),
        (lambda page: page.check(bid(page, "Cash"), False), Blocked, "unchecked"),
        (lambda page: page.upload(bid(page, "Photo"), ["/etc/passwd"]), NoSuchElement, "no file"),
        (lambda page: page.press(bid(page, "Name"), "Fly"), PageError, "no key"),
        (lambda page: page.click("999"), NoSuchElement, "999"),
        (lambda page: page.focus_tab(3), NoSuchElement, "no tab 3"),
        (lambda page: page.go_back(), Blocked, "no page to go back"),
        (lambda page: page.goto("https://elsewhere.example/"), NotAllowed, "outside"),
        (lambda page: page.goto("file:///etc/passwd"), NotAllowed, "no place"),
        (lambda page: page.goto("data:text/html,hi"), NotAllowed, "no place"),
        (lambda page: page.goto("javascript:alert(1)"), NotAllowed, "no place"),
        (lambda page: page.goto("view-source:https://retail.example/"), NotAllowed, "no place"),
        (lambda page: page.goto("blob:https://retail.example/x"), NotAllowed, "no place"),
        (lambda page: page.goto("chrome://version"), NotAllowed, "no place"),
    ],
)
def test_what_cannot_be_done_says_why(open_page: Open, act: Callable[[Page], None], kind: type[PageError], said: str) -> None:
    page = open_page(Site(form=FORM), "/form")
    with pytest.raises(PageError, match=said) as raised:
        act(page)
    assert type(raised.value) is kind
    assert page.snapshot().error == str(raised.value)
    assert page.snapshot().url == f"{ORIGIN}/form"


def test_history_and_redirects(open_page: Open) -> None:
    site = Site(
        a="<title>A</title><form method=post action=/hop><button>Go</button></form>",
        hop=redirect("/b", 303),
        b="<title>B</title><a href=/a>a</a>",
    )
    page = open_page(site, "/a")
    page.click(bid(page, "Go"))
    assert site.asked == ["POST /hop", "GET /b"]
    page.go_back()
    assert page.snapshot().title == "A"
    page.go_forward()
    assert (page.snapshot().title, page.snapshot().status) == ("B", 200)
    page.goto("/nowhere")
    assert page.snapshot().status == 404


def test_the_answer_to_a_post_is_not_sent_twice_when_gone_back_to(open_page: Open) -> None:
    site = Site(a="<form method=post action=/b><button>Go</button></form>", b=lambda request: html(f"<p>{request.method}</p>"))
    page = open_page(site, "/a")
    page.click(bid(page, "Go"))
    page.goto("/")
    site.asked.clear()
    page.go_back()
    assert (page.snapshot().outline, site.asked) == ("POST", [])


def test_cookies_stay_in_the_episode(open_page: Open) -> None:
    def counting(request: Any) -> Response:
        response = html(f"<p>{request.cookies.get('seen', 'new')}</p>")
        response.set_cookie("seen", "seen", httponly=True)
        return response

    site = Site(a=counting)
    page = open_page(site, "/a")
    page.goto("/a")
    assert page.snapshot().outline == "seen"
    assert open_page(site, "/a").snapshot().outline == "new"


@pytest.mark.parametrize("link", ["<a href=/pop target=_blank>Go</a>", "<button onclick=\"window.open('/pop')\">Go</button>"])
def test_popups_are_tabs(open_page: Open, link: str) -> None:
    page = open_page(Site(a=f"<title>A</title>{link}", pop="<title>Pop</title><p>here"), "/a")
    page.click(bid(page, "Go"))
    said = page.snapshot()
    assert [(tab["title"], tab["active"]) for tab in said.tabs] == [("A", False), ("Pop", True)]
    page.focus_tab(0)
    assert page.snapshot().title == "A"
    page.focus_tab(1)
    page.close_tab()
    page.close_tab()
    assert (page.snapshot().url, len(page.snapshot().tabs)) == ("about:blank", 1)
    page.new_tab()
    page.goto("/pop")
    assert [tab["url"] for tab in page.snapshot().tabs] == ["about:blank", f"{ORIGIN}/pop"]


def test_a_page_cannot_lead_out(open_page: Open) -> None:
    site = Site(
        a="<a href=https://elsewhere.example/>Out</a> <button onclick=\"location='https://elsewhere.example/x'\">By script</button>"
        "<a href=/hop>By redirect</a><a href=https://elsewhere.example target=_blank>New</a><a href=mailto:a@b.c>Mail</a>"
        "<button onclick=\"fetch('https://elsewhere.example/').catch(()=>this.textContent='none')\">Fetch</button>",
        hop=redirect("https://elsewhere.example/"),
    )
    page = open_page(site, "/a")
    for name in ("Out", "By script", "By redirect", "New", "Mail"):
        with pytest.raises(NotAllowed):
            page.click(bid(page, name))
        assert page.snapshot().url == f"{ORIGIN}/a"
        assert len(page.snapshot().tabs) == 1
    page.click(bid(page, "Fetch"))
    assert bid(page, "none")


def test_downloads_stay_in_memory(open_page: Open) -> None:
    site = Site(a="<a href=/file>File</a> <a href=/page download=page.html>Page</a>", page="<p>saved")
    site.pages["/file"] = lambda _: Response(b"1,2", content_type="text/csv", headers={"Content-Disposition": "attachment; filename=a.csv"})
    page = open_page(site, "/a")
    page.click(bid(page, "File"))
    page.click(bid(page, "Page"))
    assert page.downloads == {"a.csv": b"1,2", "page.html": b"<p>saved"}
    assert page.snapshot().url == f"{ORIGIN}/a"


@pytest.mark.parametrize("act", [lambda page: page.mouse_click(10, 10), lambda page: page.press(bid(page, "Save"), "Enter")])
def test_a_link_that_saves_does_so_however_it_is_clicked(open_page: Open, act: Callable[[ChromiumPage], None]) -> None:
    link = "<a download{0} href=/file style='position:fixed;left:0;top:0;font-size:50px'>Save</a>"
    site = Site(a=link.format("=b.csv"), b=link.format(""), file=lambda _: Response("1,2", content_type="text/csv"))
    page = open_page(site, "/a")
    act(page)
    page.goto("/b")
    act(page)
    assert page.downloads == {"b.csv": b"1,2", "file": b"1,2"}
    site.pages["/file"] = lambda _: html("lost", 404)
    with pytest.raises(Blocked, match="status 404"):
        act(page)
    assert page.snapshot().url == f"{ORIGIN}/b"
    assert page.probes()["temp_files"] == []


def test_keys(open_page: Open) -> None:
    site = Site(
        a="<form action=/b><label>Q <input name=q></label></form><p id=seen></p>"
        "<script>document.querySelector('input').onkeydown=e=>{document.querySelector('#seen').textContent+=e.key+' '}</script>"
    )
    page = open_page(site, "/a")
    page.fill(bid(page, "Q"), "tea")
    page.press(bid(page, "Q"), "s")
    assert value(page, "Q") == "teas"
    page.press(bid(page, "Q"), "Backspace")
    page.press(bid(page, "Q"), "Control+a")
    page.press(bid(page, "Q"), "x")
    assert value(page, "Q") == "x"
    assert page.snapshot().outline.endswith("a s Backspace Control a x")
    page.press(bid(page, "Q"), "Enter")
    assert page.snapshot().url == f"{ORIGIN}/b?q=x"


def test_what_is_covered_cannot_be_clicked(open_page: Open) -> None:
    page = open_page(Site(a="<button>Under</button><div id=veil style='position:fixed;inset:0;background:#fff'>Wait</div>"), "/a")
    with pytest.raises(Blocked, match='covered by <div id="veil"> "Wait"'):
        page.click(bid(page, "Under"))


def test_what_a_style_sheet_hides_is_not_shown(open_page: Open) -> None:
    page = open_page(
        Site(a="<style>.no{display:none}.un{visibility:hidden}</style><p class=no>a<p class=un>b <b style='visibility:visible'>c</b><p>d"),
        "/a",
    )
    assert page.snapshot().outline == "c\nd"


def test_frames_and_shadows_are_read_and_acted_in(open_page: Open) -> None:
    site = Site(
        a="<iframe src=/inner></iframe><div id=host></div><script>const root=document.querySelector('#host').attachShadow({mode:'open'});"
        "root.innerHTML='<label for=x>Deep</label><input id=x><button>Push</button>';"
        "root.querySelector('button').onclick=e=>{e.target.textContent='Pushed '+root.querySelector('input').value}</script>",
        inner="<label for=x>Inner</label><input id=x><a href=/there>there</a>",
        there="<p>Moved",
    )
    page = open_page(site, "/a")
    page.fill(bid(page, "Inner"), "one")
    page.fill(bid(page, "Deep"), "two")
    page.click(bid(page, "Push"))
    assert (value(page, "Inner"), value(page, "Deep")) == ("one", "two")
    assert bid(page, "Pushed two")
    page.click(bid(page, "there"))
    assert "Moved" in page.snapshot().outline
    assert page.snapshot().url == f"{ORIGIN}/a"


def test_a_frame_that_does_not_come_is_a_note(open_page: Open) -> None:
    file = {"Content-Disposition": "attachment; filename=a.csv"}
    site = Site(
        a="<p>here<iframe src=https://elsewhere.example/></iframe><iframe src=/lost></iframe><iframe src=/photo></iframe>"
        "<iframe src=/file></iframe>",
        lost=lambda _: Response("1", 404, headers=file, content_type="text/csv"),
        photo=lambda _: Response("1", content_type="image/png"),
        file=lambda _: Response("1", headers=file, content_type="text/csv"),
    )
    page = open_page(site)
    page.goto("/a")
    said = page.snapshot()
    assert (said.url, said.outline, said.status, said.error) == (f"{ORIGIN}/a", "here", 200, "")
    for text in ("is outside https://retail.example", "cannot be downloaded: status 404", "is 'image/png', which is not shown in frames"):
        assert any(note.startswith("a frame was not loaded:") and text in note for note in said.notes)
    assert page.downloads == {"a.csv": b"1"}
    page.goto("/")
    assert page.snapshot().notes == ()


def test_a_script_that_is_too_large_is_not_cut_but_left_out(open_page: Open) -> None:
    script = b"document.title='ran';" + b" " * 2_000_001
    page = open_page(
        Site(
            a="<p>x<script src=/big onerror=\"document.title='failed'\"></script>",
            big=lambda _: Response(script, mimetype="text/javascript"),
        )
    )
    page.goto("/a")
    assert (page.snapshot().title, page.snapshot().notes) == ("failed", (f"'{ORIGIN}/big' was not loaded: more than 2,000,000 bytes",))


def test_a_form_in_a_frame_or_shadow_says_what_it_lacks(open_page: Open) -> None:
    form = "<form><input required aria-label={0}><button>Send {0}</button></form>"
    root = "document.querySelector('#host').attachShadow({mode:'open'}).innerHTML"
    site = Site(
        a=f"<iframe src=/inner></iframe><div id=host></div><script>{root}='{form.format('there')}'</script>", inner=form.format("here")
    )
    page = open_page(site, "/a")
    for where in ("here", "there"):
        with pytest.raises(Blocked, match=f"fill out this field.* at element {bid(page, where)}"):
            page.click(bid(page, f"Send {where}"))


def test_a_site_that_fails_is_ours_to_mend(open_page: Open) -> None:
    def broken(_: Any) -> Any:
        raise KeyError("lost")

    page = open_page(Site(broken=broken))
    with pytest.raises(InfrastructureError, match="the site failed at GET /broken"):
        page.goto("/broken")


@pytest.mark.parametrize("status", [101, 600, 999])
def test_a_status_that_is_none_is_ours_to_mend(open_page: Open, status: int) -> None:
    page = open_page(Site(a=lambda _: Response("x", status)), deadline_s=10.0)
    with pytest.raises(InfrastructureError, match=f"the site failed at GET /a: it answered with status '{status}"):
        page.goto("/a")


def test_an_answer_that_the_browser_does_not_take_is_ours_to_mend(open_page: Open) -> None:
    page = open_page(Site(a=lambda _: Response("x", headers={"a b": "c"})), deadline_s=10.0)
    with pytest.raises(InfrastructureError, match="does not take an answer"):
        page.goto("/a")


def test_statuses_are_shown_as_they_are(open_page: Open) -> None:
    page = open_page(Site(a=lambda _: Response(status=304), b=lambda _: html("<p>choose", 300), c=lambda _: Response(status=204)))
    for path, status, outline in (("/a", 304, "# 304 Not Modified"), ("/b", 300, "choose"), ("/c", 300, "choose")):
        page.goto(path)
        assert (page.snapshot().status, page.snapshot().outline) == (status, outline)


def test_closed_pages_say_so(open_page: Open) -> None:
    page: ChromiumPage = open_page(Site())
    page.close()
    page.close()
    with pytest.raises(InfrastructureError, match="closed"):
        page.goto("/")
