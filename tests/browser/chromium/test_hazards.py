"""What pages, browsers and machines do to an episode: nothing hangs, nothing leaks, nothing is left behind."""

import asyncio
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from agent_gym.browser import Blocked, PageError
from agent_gym.browser.chromium import ChromiumPage
from agent_gym.errors import InfrastructureError
from tests.browser.chromium.conftest import Open, kill_browsers
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


def test_a_killed_browser_is_replaced(open_page: Open) -> None:
    page = open_page(Site(), deadline_s=10.0)
    kill_browsers()
    with pytest.raises(InfrastructureError):
        page.goto("/a")
    assert open_page(Site()).snapshot().title == "Home"


def test_a_killed_python_leaves_no_browser(needs_chromium: None) -> None:  # noqa: ARG001 - pytest's way to need it
    program = (
        "import time\nfrom tests.browser.toy_site import Site\nfrom agent_gym.browser.chromium import ChromiumPage\n"
        "page = ChromiumPage(Site())\nprint('up', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as python:
        assert python.stdout is not None
        assert python.stdout.readline() == b"up\n"
        children = psutil.Process(python.pid).children(recursive=True)
        assert any("--remote-debugging-pipe" in child.cmdline() for child in children)
        python.kill()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


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


@pytest.mark.slow
def test_episodes_leave_nothing_behind(open_page: Open) -> None:
    site = Site(a="<a href=/b target=_blank>Go</a>", b="<p>b")

    def episode() -> None:
        page = ChromiumPage(site, ORIGIN, start="/a")
        page.click(bid(page, "Go"))
        page.close()

    def used() -> tuple[int, int]:
        process = psutil.Process()
        return process.num_fds(), len(process.children(recursive=True))

    open_page(site)
    for _ in range(10):
        episode()
    time.sleep(2)
    before = used()
    for _ in range(40):
        episode()
    time.sleep(2)
    after = used()
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 2


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
