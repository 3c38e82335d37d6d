"""Pointer and keyboard by themselves, and dragging, in the real browser."""

from agent_gym.browser.chromium import ChromiumPage
from tests.browser.chromium.conftest import Open
from tests.browser.chromium.test_engine import bid, value
from tests.browser.toy_site import Site

SORT = """<ul><li draggable=true id=a tabindex=0 role=button>one<li id=b tabindex=0 role=button>two</ul><p id=said></p><script>
a.ondragstart=e=>e.dataTransfer.setData('text/plain','one');b.ondragover=e=>e.preventDefault();
b.ondrop=e=>{e.preventDefault();said.textContent='dropped '+e.dataTransfer.getData('text/plain')}</script>"""
PAD = """<div style='position:absolute;left:0;top:0;width:300px;height:300px' id=pad></div><p id=said></p><script>
for(const kind of ['mousedown','mouseup','click','dblclick','contextmenu'])
pad.addEventListener(kind,e=>{said.textContent+=kind+e.clientX+' '})</script>"""
KEYS = """<input aria-label=Field autofocus><p id=said></p><script>
for(const kind of ['keydown','keyup'])onkeydown=onkeyup=e=>{said.textContent+=e.type[3]+e.key+' '}</script>"""
INNER = """<div style='height:100px;overflow:auto' onscroll="said.textContent='scrolled '+(this.scrollTop>0)">
<p style='height:900px'>x</p></div><p id=said></p>"""


def said(page: ChromiumPage) -> str:
    return page.snapshot().outline.rpartition("\n")[2]


def test_dragging_an_element_onto_another(open_page: Open) -> None:
    page = open_page(Site(a=SORT), "/a")
    page.drag_and_drop(bid(page, "one"), bid(page, "two"))
    assert said(page) == "dropped one"


def test_the_pointer_by_coordinates(open_page: Open) -> None:
    page = open_page(Site(a=PAD), "/a")
    page.mouse_move(10, 10)
    page.mouse_down(20, 20)
    assert page.probes()["pressed"] == ["mouse left"]
    page.mouse_up(30, 30)
    assert page.probes()["pressed"] == []
    page.mouse_click(40, 40)
    page.mouse_click(50, 50, "right")
    told = said(page)
    assert told.startswith("mousedown20 mouseup30 click30 mousedown40 mouseup40 click40 mousedown50")
    assert "contextmenu50" in told
    page.mouse_click(60, 60, count=2)
    assert said(page).endswith("dblclick60")


def test_the_keyboard_alone(open_page: Open) -> None:
    page = open_page(Site(a=KEYS), "/a")
    page.keyboard("Shift", True)
    assert page.probes()["pressed"] == ["key Shift"]
    page.keyboard("Shift", False)
    page.keyboard_type("ab")
    page.keyboard_type("cd", keys=False)
    assert said(page) == "dShift uShift da ua db ub"
    page.keyboard("Backspace")
    assert page.snapshot().elements[0].value == "abc"


def test_keys_that_are_held_are_held_while_clicking(open_page: Open) -> None:
    page = open_page(Site(a="<button onclick='this.textContent=[event.ctrlKey,event.shiftKey]'>Go</button>"), "/a")
    page.keyboard("Control", True)
    page.keyboard("ShiftLeft", True)
    page.click(bid(page, "Go"))
    page.keyboard("ShiftLeft", False)
    page.click(bid(page, "true,true"))
    page.click(bid(page, "true,false"))
    page.keyboard("Control", False)
    page.click(bid(page, "true,false"))
    assert bid(page, "false,false")


def test_every_episode_has_a_clipboard_of_its_own(open_page: Open) -> None:
    site = Site(
        a="<label>One <input></label> <label>Two <textarea></textarea></label> <iframe src=/b></iframe><p id=said></p>"
        "<script>document.querySelector('textarea').onpaste=e=>{said.textContent=e.clipboardData.getData('text/plain')}</script>",
        b="<label>Three <input></label>",
        c="<button onclick=\"document.execCommand('copy')\">Copy</button>"
        "<script>document.oncopy=e=>{e.preventDefault();e.clipboardData.setData('text/plain','by script')}</script>",
    )
    page, other = open_page(site, "/a"), open_page(site, "/a")

    def pasted(at: ChromiumPage, name: str) -> str:
        at.press(bid(at, name), "Control+a")
        at.press(bid(at, name), "Control+v")
        return value(at, name)

    page.fill(bid(page, "One"), "mine")
    page.press(bid(page, "One"), "Control+a")
    page.press(bid(page, "One"), "Control+x")
    assert value(page, "One") == ""
    assert (pasted(page, "Two"), said(page)) == ("mine", "mine")
    assert pasted(other, "One") == ""
    page.goto("/a")
    assert pasted(page, "Three") == "mine"
    page.goto("/c")
    page.click(bid(page, "Copy"))
    page.goto("/a")
    assert pasted(page, "One") == "by script"
    assert (pasted(other, "Three"), pasted(open_page(site, "/a"), "One")) == ("", "")


def test_a_part_of_a_page_scrolls_by_itself(open_page: Open) -> None:
    page = open_page(Site(a=INNER), "/a")
    page.scroll_at(50, 50, 0, 200)
    page.scroll(0, 0)
    assert said(page) == "scrolled true"
