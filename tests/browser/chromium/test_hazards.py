"""What pages, browsers and machines do to an episode: nothing hangs, nothing leaks, nothing is left behind."""

import asyncio
import contextlib
import itertools
import multiprocessing
import re
import socket
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from werkzeug.wrappers import Response

from agent_gym.browser import Blocked, NotAllowed, PageError
from agent_gym.errors import InfrastructureError
from tests.browser.chromium.conftest import Open, browsers, kill_browsers
from tests.browser.chromium.test_engine import bid
from tests.browser.toy_site import ORIGIN, Site, html

DIALOGS = """<button onclick="this.textContent=confirm('Really?')?'Yes':'No'">Ask</button>
<button onclick="this.textContent=prompt('Name?','Bo')">Name</button><button onclick="alert('Hi')">Tell</button>"""


def test_dialogs_stop_the_page_until_they_are_answered(open_page: Open) -> None:
    page = open_page(Site(a=DIALOGS), "/a")
    ask, name, tell = bid(page, "Ask"), bid(page, "Name"), bid(page, "Tell")
    page.click(ask)
    assert page.snapshot().outline == '! confirm dialog: "Really?" (accept_dialog or dismiss_dialog)'
    with pytest.raises(Blocked, match="a confirm dialog is open"):
        page.click(name)
    page.accept_dialog()
    assert bid(page, "Yes") == ask
    page.click(ask)
    page.dismiss_dialog()
    assert bid(page, "No") == ask
    page.click(name)
    page.accept_dialog("Ann")
    assert bid(page, "Ann") == name
    page.click(tell)
    page.accept_dialog()
    with pytest.raises(Blocked, match="no dialog is open"):
        page.dismiss_dialog()


def test_a_dialog_while_loading(open_page: Open) -> None:
    page = open_page(Site(a="<title>A</title><script>alert('Hi')</script><p>after"))
    page.goto("/a")
    assert "alert dialog" in page.snapshot().outline
    page.dismiss_dialog()
    assert page.snapshot().outline == "after"
    page.goto("/")
    assert page.snapshot().title == "Home"


@pytest.mark.parametrize("script", ["while(true){}", "setInterval(()=>{while(true){}},1)"])
def test_an_endless_script_is_given_up(open_page: Open, script: str) -> None:
    page = open_page(Site(a=f"<button onclick='{script}'>Go</button>"), "/a", deadline_s=3.0)
    other = open_page(Site())
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match="did not come to an end in 3 s"):
        page.click(bid(page, "Go"))
    assert time.monotonic() - started < 10
    with pytest.raises(InfrastructureError, match="closed"):
        page.goto("/")
    other.goto("/a")
    assert open_page(Site()).snapshot().title == "Home"


def test_pages_that_never_rest_do_not_hang(open_page: Open) -> None:
    site = Site(
        reload="<p>again<script>setTimeout(()=>location.reload(),1)</script>",
        poll="<p>polls<script>setInterval(()=>fetch('/x'),1)</script>",
        frames="<p>moves<script>(function f(){document.title+='.';requestAnimationFrame(f)})()</script>",
    )
    page = open_page(site, deadline_s=20.0)
    for path, text in (("/reload", "again"), ("/poll", "polls"), ("/frames", "moves")):
        page.goto(path)
        assert page.snapshot().outline == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "<script>location.reload()</script>",
        "<script>location='/a?'+Math.random()</script>",
        "<script>window.open('/a?'+Math.random())</script>",
        "<script>setInterval(()=>window.open('/b'),1)</script>",
        "<script>document.write('<iframe src=/a?'+Math.random()+'></iframe>')</script>",
        "<script>(function f(){const t=performance.now();while(performance.now()-t<300);requestAnimationFrame(f)})()</script>",
        "<script>for(let i=0;i<10;i++)(async()=>{for(;;)await fetch('/b?'+i+Math.random())})()</script>",
    ],
    ids=["reloads", "leads on", "popups of popups", "popups by a timer", "frames in frames", "frames that take long", "requests"],
)
def test_what_goes_on_for_ever_is_given_up_or_left(open_page: Open, body: str) -> None:
    page = open_page(Site(a=f"<p>x{body}"), deadline_s=2.0)
    started = time.monotonic()
    with contextlib.suppress(InfrastructureError):
        page.goto("/a")
        assert len(page.snapshot().tabs) <= 20
    assert time.monotonic() - started < 2 + 5
    assert open_page(Site()).snapshot().title == "Home"


def test_a_flood_of_dialogs_is_answered_one_by_one(open_page: Open) -> None:
    page = open_page(Site(a="<p>x<script>for(let i=0;i<5;i++)alert(i)</script>"))
    page.goto("/a")
    for number in range(5):
        assert page.snapshot().outline.startswith(f'! alert dialog: "{number}"')
        page.accept_dialog()
    assert page.snapshot().outline == "x"


def test_a_page_that_would_not_be_left_is_left(open_page: Open) -> None:
    stay = "addEventListener('beforeunload',e=>{e.preventDefault();e.returnValue='no'});addEventListener('pagehide',()=>alert(1))"
    page = open_page(Site(stay=f"<button>Stay</button><script>{stay}</script>"), "/stay")
    page.click(bid(page, "Stay"))  # else no page may ask
    page.goto("/")
    assert page.snapshot().title == "Home"
    page.go_back()
    page.click(bid(page, "Stay"))
    page.close_tab()
    assert page.snapshot().url == "about:blank"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<b>x</b>" * 300_000, "too large to show: more than 2,000,000 bytes"),
        ("<b>x</b>" * 12_000, "10,000 elements"),
        ("<div>" * 5_000, "nested too deeply to show"),
    ],
)
def test_huge_pages_say_so(open_page: Open, body: str, said: str) -> None:
    page = open_page(Site(a=body), "/a")
    assert said in page.snapshot().outline
    page.goto("/")
    assert page.snapshot().title == "Home"


def test_an_answer_without_an_end_is_too_large(open_page: Open) -> None:
    page = open_page(Site(a=lambda _: Response(itertools.repeat(b"x" * 10_000), content_type="text/html")), "/a")
    assert "too large to show" in page.snapshot().outline


ASKS = {
    "notify": "Notification.requestPermission()",
    "where": "new Promise((yes,no)=>navigator.geolocation.getCurrentPosition(yes,no))",
    "camera": "navigator.mediaDevices.getUserMedia({video:true})",
    "midi": "navigator.requestMIDIAccess()",
    "persist": "navigator.storage.persist()",
    "read": "navigator.clipboard.readText()",
    "write": "navigator.clipboard.writeText('x')",
    "file": "showOpenFilePicker()",
    "lock": "document.body.requestPointerLock()",
}


def test_pages_ask_for_permissions_in_vain(open_page: Open) -> None:
    tell = "const ask=(e,f)=>Promise.resolve().then(f).then(t=>t===true||t==='granted'?'granted':'no',()=>'no').then(t=>{e.textContent=t})"
    buttons = "".join(f'<p><button onclick="ask(this,()=>{ask})">{name}</button>' for name, ask in ASKS.items())
    page = open_page(Site(a=f"<script>{tell}</script>{buttons}<p>end"), "/a")
    fresh = page.probes()["permissions"]
    for name in ASKS:
        page.click(bid(page, name))
    for _ in range(200):
        page.scroll(0, 0)
        said = {element.name for element in page.snapshot().elements}
        if said == {"no"}:
            break
    assert said == {"no"}
    assert page.probes()["permissions"] == fresh


def test_service_workers_are_never_there(open_page: Open) -> None:
    way = "ServiceWorkerContainer.prototype.register.call(navigator.serviceWorker,'/w.js')"
    site = Site(a=f"<script>navigator.serviceWorker.register('/w.js');{way}</script><iframe src=/b></iframe>", b=f"<script>{way}</script>")
    page = open_page(site, "/a")
    page.goto("/a")
    assert page.probes()["service_workers"] == []
    assert not any("/w.js" in asked for asked in site.asked)


def test_what_a_script_saves_never_reaches_the_disk(open_page: Open) -> None:
    save = "const a=document.createElement('a');a.download='a.txt';a.href={};a.click()"
    for href in ("'data:text/plain,a'", "URL.createObjectURL(new Blob(['a']))", "'/b'"):
        page = open_page(Site(a=f"<p>here<script>{save.format(href)}</script>"), "/a")
        page.scroll(0, 0)
        assert (page.snapshot().outline, page.probes()["temp_files"]) == ("here", [])


def test_what_is_asked_for_when_interrupted_is_refused(open_page: Open) -> None:
    def slow(_: object) -> Response:
        time.sleep(0.5)  # the others have been asked for by then
        page.interrupt()
        return html("slow")

    fetch = "fetch('/{0}').then(()=>{{said.textContent+='{0} '}},()=>{{said.textContent+='no {0} '}});"
    site = Site(a=f'<button onclick="{fetch.format("slow")}{fetch.format("b")}{fetch.format("c")}">Go</button><p id=said>', slow=slow)
    page = open_page(site, "/a", deadline_s=5.0)
    with pytest.raises(PageError, match="interrupted"):
        page.click(bid(page, "Go"))
    assert bid(page, "Go") in page.boxes()
    page.interrupt()  # too late: nothing is under way
    assert page.picture().any()
    assert page.probes()["tabs"] == [f"{ORIGIN}/a"]
    page.scroll(0, 0)
    assert {"slow", "no b", "no c"} <= set(re.findall("(?:no )?[a-z]+", page.snapshot().outline.rpartition("\n")[2]))
    page.goto("/")
    assert page.snapshot().title == "Home"


def test_many_popups_are_bounded(open_page: Open) -> None:
    page = open_page(Site(a="<button onclick='for(let i=0;i<30;i++)window.open(\"/b\"+i)'>Go</button>"), "/a")
    page.click(bid(page, "Go"))
    assert 1 < len(page.snapshot().tabs) <= 20


def test_a_script_can_close_its_tab(open_page: Open) -> None:
    page = open_page(Site(a="<a href=/b target=_blank>Go</a>", b="<button onclick='window.close()'>Close</button>"), "/a")
    page.click(bid(page, "Go"))
    page.click(bid(page, "Close"))
    assert [tab["url"] for tab in page.snapshot().tabs] == [f"{ORIGIN}/a"]


def test_an_element_that_is_replaced_before_the_action_is_stale(open_page: Open) -> None:
    site = Site(
        a="<button onmouseover=\"this.outerHTML='<button>Other</button>'\">One</button><button>Two</button>"
        "<script>setTimeout(()=>{document.querySelectorAll('button')[1].remove()},700)</script>"
    )
    page = open_page(site, "/a")
    two = bid(page, "Two")
    page.hover(bid(page, "One"))
    assert bid(page, "Other")
    with pytest.raises(PageError, match="stale"):
        page.click(two)


def test_a_crashed_tab_ends_the_episode(open_page: Open) -> None:
    page = open_page(Site(), deadline_s=10.0)
    page._host.submit(page._episode.tab.session.send("Page.crash"))
    with pytest.raises(InfrastructureError):
        page.goto("/a")
    assert open_page(Site()).snapshot().title == "Home"


@pytest.mark.parametrize("after_s", [0.0, 1.0])
def test_a_killed_browser_is_replaced(open_page: Open, after_s: float) -> None:
    page = open_page(Site(), deadline_s=10.0)
    kill_browsers()
    time.sleep(after_s)  # its end is known by then, or not yet
    with pytest.raises(InfrastructureError):
        page.goto("/a")
    assert open_page(Site()).snapshot().title == "Home"


def test_a_killed_driver_is_replaced(open_page: Open) -> None:
    page = open_page(Site(), deadline_s=10.0)
    driver = next(psutil.Process(pid).parent() for pid in browsers())
    assert driver is not None
    time.sleep(1.0)  # the next context is warm by then
    driver.kill()
    with pytest.raises(InfrastructureError):
        page.goto("/a")
    for _ in range(2):
        assert open_page(Site()).snapshot().title == "Home"


@pytest.mark.parametrize("forked", ["", "if os.fork() == 0: time.sleep(60)\n"], ids=["alone", "with a forked child"])
def test_a_killed_python_leaves_no_browser(needs_chromium: None, forked: str) -> None:  # noqa: ARG001 - pytest's way to need it
    program = (
        "import os, time\nfrom tests.browser.toy_site import Site\nfrom agent_gym.browser.chromium import ChromiumPage\n"
        f"page = ChromiumPage(Site())\n{forked}print('up', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as python:
        assert python.stdout is not None
        assert python.stdout.readline() == b"up\n"
        children = psutil.Process(python.pid).children(recursive=True)
        browser = [child for child in children if child.cmdline() != psutil.Process(python.pid).cmdline()]
        assert any("--remote-debugging-pipe" in child.cmdline() for child in browser)
        python.kill()
    _, alive = psutil.wait_procs(browser, timeout=20)
    for child in set(children) - set(browser):
        child.kill()
    assert not alive


def test_a_forked_child_has_a_browser_of_its_own(open_page: Open) -> None:
    page = open_page(Site())
    child = multiprocessing.get_context("fork").Process(target=lambda: open_page(Site(a="<p>x")).goto("/a"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are threads: the browser's is not used by the child
        child.start()
    child.join(60)
    assert child.exitcode == 0
    page.goto("/a")
    assert page.snapshot().url == f"{ORIGIN}/a"


def test_nothing_leaves_the_process(open_page: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1.0)
        port = server.getsockname()[1]
        script = (
            f"const u='127.0.0.1:{port}';try{{new WebSocket('ws://'+u)}}catch{{}};fetch('http://'+u).catch(()=>0);"
            f"new Image().src='http://'+u;navigator.sendBeacon('http://'+u);new EventSource('http://'+u);"
        )
        page = open_page(Site(a=f"<link rel=preconnect href=http://127.0.0.1:{port}><p>x<script>{script}</script>"), "/a")
        page.goto("/a")
        with pytest.raises(TimeoutError):
            server.accept()


def test_many_at_once_from_threads(open_page: Open) -> None:
    def play(number: int) -> str:
        page = open_page(Site(a=lambda request: html(f"<p>{request.args['n']}</p><a href=/a?n={number}>Go</a>")), f"/a?n={number}")
        for _ in range(3):
            page.click(bid(page, "Go"))
        return page.snapshot().outline.split()[0]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(play, range(8))) == [str(number) for number in range(8)]


def test_inside_a_running_event_loop(open_page: Open) -> None:
    async def play() -> str:
        return open_page(Site()).snapshot().title

    assert asyncio.run(play()) == "Home"


@pytest.mark.parametrize(
    "way",
    [
        "<button onclick=\"window.open('{url}')\">Go</button>",
        "<button onclick=\"window.open('{url}','_blank','noopener')\">Go</button>",
        "<a href={url} target=_blank>Go</a>",
        "<form target=_blank action={url}><button>Go</button></form>",
    ],
)
def test_a_tab_with_nothing_to_show_does_not_open(open_page: Open, way: str) -> None:
    file = Response("1", content_type="text/csv", headers={"Content-Disposition": "attachment; filename=a.csv"})
    page = open_page(
        Site(a=way.format(url="https://elsewhere.example/"), b=way.format(url="/file"), file=lambda _: file), "/a", deadline_s=10.0
    )
    with pytest.raises(NotAllowed, match="outside"):
        page.click(bid(page, "Go"))
    page.goto("/b")
    page.click(bid(page, "Go"))
    assert (page.downloads, len(page.snapshot().tabs)) == ({"a.csv": b"1"}, 1)
    assert len(page.probes()["tabs"]) == 1
