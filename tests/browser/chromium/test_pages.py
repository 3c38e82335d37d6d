"""What is on a page: names that get in the way, frames, what nobody can see, scripts that change what scripts rely on."""

import time

import pytest

from agent_gym.browser import Blocked
from tests.browser.chromium.conftest import Open
from tests.browser.chromium.test_engine import bid, value
from tests.browser.toy_site import Site

FIELDS = ["attributes", "childNodes", "checkVisibility", "isConnected", "localName", "ownerDocument", "parentNode", "shadowRoot"]
FORMS = ["activeElement", "body", "defaultView", "documentElement", "elementFromPoint", "querySelector", "readyState", "title"]


def test_forms_and_fields_may_have_any_name(open_page: Open) -> None:
    fields = "".join(f"<input name={name} aria-label={name}>" for name in FIELDS)
    forms = "".join(f"<form name={name}><button type=button>{name}</button></form>" for name in FORMS)
    page = open_page(Site(a=f"<title>T</title><form tabindex=0 aria-label=Form>{fields}</form>{forms}"), "/a")
    page.click(bid(page, "Form"))
    page.fill(bid(page, "childNodes"), "x")
    page.click(bid(page, "body"))
    assert (value(page, "childNodes"), page.snapshot().title) == ("x", "T")
    assert {element.name for element in page.snapshot().elements} == {"Form", *FIELDS, *FORMS}
    assert bid(page, "body") in page.boxes()


CHANGES = """let frames, length = 7, globalThis; Array.from = () => null; Array.prototype.push = Symbol = null;
String = Number = Math = Reflect = Object.prototype.pass = Promise = Map = 1; Promise.prototype.then = () => 0;
Function.prototype.call = Function.prototype.apply = MessagePort.prototype.postMessage = reportError = null;"""


def test_a_page_may_change_what_scripts_rely_on(open_page: Open) -> None:
    button = "<button onclick=\"setTimeout(()=>{this.textContent='Done'},400)\">Go</button>"
    page = open_page(Site(a=f"{button}<script>{CHANGES}</script>"), "/a")
    page.click(bid(page, "Go"))
    assert bid(page, "Done")


def test_time_passes_in_frames_that_go(open_page: Open) -> None:
    inner = "<p>in<script>setInterval(()=>0,50);setTimeout(()=>frameElement.remove(),{})</script>"
    site = Site(
        a="<iframe src=/b></iframe><iframe src=/c></iframe><p>out<script>setTimeout(()=>frames[0].frameElement.remove(),700)</script>"
    )
    site.pages |= {"/b": inner.format(9000), "/c": inner.format(800)}
    page = open_page(site, "/a", deadline_s=8.0)
    page.scroll(0, 0)
    assert page.snapshot().outline == "out"


TIMERS = """const ran = [], asked = [];
for (let i = 0; i < 2000; i++) {
  const wait = i * 7919 % 401, id = setTimeout(() => ran.push(i), wait);
  if (i % 5) asked.push([Math.max(1, wait), i]); else clearTimeout(id);
}
const beat = setInterval(() => { if (ran.push(-1) && ran.filter(i => i < 0).length == 3) clearInterval(beat) }, 405);
const right = () => asked.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(each => each[1]).concat(-1, -1, -1).join() == ran.join();"""


def test_timers_run_in_the_order_of_their_time(open_page: Open) -> None:
    page = open_page(Site(a=f"<button onclick='this.textContent=right()'>Go</button><script>{TIMERS}</script>"), "/a")
    for _ in range(3):
        page.scroll(0, 0)
    page.click(bid(page, "Go"))
    assert bid(page, "true")


@pytest.mark.parametrize(
    "style", ["padding:40px", "border:9px solid;padding:5% 0 0 3em", "transform:scale(0.5) translate(30px,50px);padding:40px"]
)
def test_what_is_clicked_in_a_frame_is_what_was_meant(open_page: Open, style: str) -> None:
    names = ("One", "Two", "Three", "Four")
    rows = "".join(
        f"<button style='display:block;height:40px' onclick='parent.document.title=this.textContent'>{name}</button>" for name in names
    )
    page = open_page(Site(a=f"<iframe src=/b style='width:300px;height:300px;{style}'></iframe>", b=rows), "/a")
    for name in names:
        page.click(bid(page, name))
        assert page.snapshot().title == name
        x, y, width, height = page.boxes()[bid(page, name)]["box"]
        page.mouse_click(1, 1)
        page.mouse_click(x + width - 2, y + height - 2)
        assert page.snapshot().focused == bid(page, name)


@pytest.mark.parametrize("frame", [False, True])
def test_what_is_outside_the_window_is_said_to_be(open_page: Open, frame: bool) -> None:
    away = "<button style='position:fixed;left:-500px'>Skip</button><p style='height:3000px'></p><button>Below</button>"
    page = open_page(Site(a="<iframe src=/b></iframe>" if frame else away, b=away), "/a")
    with pytest.raises(Blocked, match="the element is outside the window"):
        page.click(bid(page, "Skip"))
    page.click(bid(page, "Below"))


def test_what_is_in_a_frame_does_not_belong_to_what_the_frame_is_in(open_page: Open) -> None:
    inner = "<p>told<label><input type=checkbox> Gift</label><button onclick='this.textContent=\"Hit\"'>Go</button>"
    site = Site(a="<fieldset disabled><input aria-label=Never><label>Pay<iframe src=/b></iframe></label></fieldset>", b=inner)
    page = open_page(site, "/a")
    assert [(each.name, each.states) for each in page.snapshot().elements] == [("Never", ("disabled",)), ("Gift", ()), ("Go", ())]
    assert "told" in page.snapshot().outline
    page.click(bid(page, "Go"))
    page.check(bid(page, "Gift"), True)
    assert [(each.name, each.states) for each in page.snapshot().elements][1:] == [("Gift", ("checked", "focused")), ("Hit", ())]


UNSEEN = """<div style='height:0;overflow:hidden'><button>Folded</button> kept</div>
<div style='clip-path:inset(100%)'><a href=/b>Clipped</a></div>
<div style='opacity:0;pointer-events:none'><button>Clear</button></div>
<div style='opacity:0;position:fixed;top:0'><button>Under</button></div>
<div style='position:fixed;top:0;left:0;width:300px;height:90px;background:#fff'></div><p style='height:99px'></p>"""
SEEN = """<div style='height:0;overflow:hidden'><button style='position:absolute;left:500px'>Out</button></div>
<button style='opacity:0'>Pale</button>
<div style='height:0;overflow:hidden'><label for=box>Box</label><input type=checkbox id=box></div><label for=box>tick</label>
<div style='width:0;overflow:hidden'><input type=file aria-label=File></div><p style='height:2000px'></p>
<button style='opacity:0'>Far</button>"""


def test_what_nobody_can_see_is_not_there_to_act_upon(open_page: Open) -> None:
    page = open_page(Site(a=UNSEEN + SEEN, b=f"<body style='overflow:hidden;height:0'>{SEEN}"), "/a")
    assert [each.name for each in page.snapshot().elements] == ["Out", "Pale", "Box tick", "File", "Far"]
    assert "kept" in page.snapshot().outline
    for name in ("Out", "Pale", "Far"):
        page.click(bid(page, name))
    page.goto("/b")
    assert [each.name for each in page.snapshot().elements] == ["Out", "Pale", "Box tick", "File", "Far"]


TOLD = """const fields = () => [...crypto.getRandomValues(new Uint32Array(2)), crypto.randomUUID(), document.lastModified,
  new File([], "a").lastModified - Date.now(), performance.mark("a").startTime, performance.measure("b").duration,
  JSON.stringify([performance.timing, performance.getEntriesByType("navigation")]),
  document.timeline.currentTime, globalThis.Temporal && String(Temporal.Now.instant())];"""


def test_whatever_tells_time_or_is_left_to_chance_follows_from_seed_and_actions(open_page: Open) -> None:
    site = Site(a=f"<script>{TOLD}</script><button onclick='this.after(fields().join())'>Go</button>")
    told = []
    for _ in range(2):
        page = open_page(site, "/a")
        time.sleep(0.1)
        page.scroll(0, 0)
        page.click(bid(page, "Go"))
        told.append(page.snapshot().outline)
    assert told[0] == told[1]
    assert ",01/01/2026 00:00:00,0,1000,1000," in told[0]
