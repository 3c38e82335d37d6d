"""What an episode could leave behind: `probes` tells every channel by its name, and none outlives an episode."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium as gym
import pytest
from werkzeug.wrappers import Response

from agent_gym.browser import InProcessPage
from agent_gym.browser.chromium import ChromiumPage
from agent_gym.browser.chromium.host import Host, Place
from agent_gym.envs.web_task.session import ENGINES
from agent_gym.wrappers import StateLeakCheck
from tests.browser.chromium.conftest import Open
from tests.browser.chromium.test_engine import bid
from tests.browser.toy_site import ORIGIN, Site, html

CLEAN = "<title>Clean</title><p style='height:3000px'>long"
SCRIPTS = {
    "local_storage": "localStorage.a = 1",
    "session_storage": "sessionStorage.a = 1",
    "window_name": "window.name = 'a'",
    "indexed_db": "indexedDB.open('a').onsuccess = event => { event.target.result.close(); document.title = 'Done' }",
    "caches": "caches.open('a').then(() => { document.title = 'Done' })",
    "tabs": "window.open('/')",
    "temp_files": "const a = document.createElement('a'); a.download = 'a'; a.href = 'data:text/plain,a'; a.click()",
}


def _with_cookie(_: object) -> Response:
    response = html(CLEAN)
    response.set_cookie("a", "1")
    return response


def _file(_: object) -> Response:
    return Response(b"a", content_type="text/csv", headers={"Content-Disposition": "attachment; filename=a.csv"})


def site() -> Site:
    pages = {name: f"<title>{'Busy' if 'Done' in script else 'Done'}</title><script>{script}</script>" for name, script in SCRIPTS.items()}
    made = Site(
        **pages, cookies=_with_cookie, file=_file, field="<input aria-label=Field>", alert="<script>setTimeout(alert, 700)</script>"
    )
    made.pages["/"] = CLEAN
    made.pages["/worker.js"] = lambda _: Response("", content_type="text/javascript")
    return made


def visit(page: ChromiumPage, name: str) -> None:
    """Goes to a page that does something, and waits for it to be done."""
    page.goto(f"/{name}")
    for _ in range(200):
        if page.snapshot().title == "Done":
            return
        page.scroll(0, 0)
    raise AssertionError(f"{name} was not done")


def copy(page: ChromiumPage) -> None:
    page.goto("/field")
    page.fill(bid(page, "Field"), "a")
    page.press(bid(page, "Field"), "Control+a")
    page.press(bid(page, "Field"), "Control+c")


def grant(page: ChromiumPage) -> None:
    assert page._place is not None
    page._host.submit(page._place.context.grant_permissions(["geolocation"])).result(10)


def save(page: ChromiumPage) -> None:
    """Has the browser save what a script makes, which no context of ours allows."""
    session = page._episode.tab.session

    async def allow() -> None:
        target = (await session.send("Target.getTargetInfo"))["targetInfo"]
        requests = page._host._requests
        assert requests is not None
        told = {"behavior": "allow", "browserContextId": target["browserContextId"], "downloadPath": str(page._host._folder)}
        await requests.send("Browser.setDownloadBehavior", told)

    page._host.submit(allow()).result(10)
    visit(page, "temp_files")


def register(page: ChromiumPage) -> None:
    """Registers a service worker as no page of ours can: where the protocol does not keep it from that, and with its script served."""
    tab, host = page._episode.tab, page._host
    assert page._place is not None
    host._places[""] = page._place
    told = {"expression": "navigator.serviceWorker.register('/worker.js')", "uniqueContextId": tab.world}
    host.submit(tab.session.send("Runtime.evaluate", told)).result(10)
    for _ in range(200):
        page.scroll(0, 0)
        if page.probes()["service_workers"]:
            break
    del host._places[""]


def hold(page: ChromiumPage) -> None:
    page.keyboard("Shift", True)
    page.mouse_down(5, 5)


Deed = Callable[[ChromiumPage], None]
LASTING: dict[str, Deed] = {
    **{name: partial(visit, name=name) for name in SCRIPTS},
    "cookies": lambda page: page.goto("/cookies"),
    "history": lambda page: page.goto("/?a"),
    "clipboard": copy,
    "permissions": grant,
    "pressed": hold,
    "service_workers": register,
    "tabs": lambda page: page.goto("/tabs"),
    "temp_files": save,
}
"""What outlives an episode if its context does, and what does it."""
PASSING: dict[str, tuple[str, Deed]] = {
    "downloads": ("/", lambda page: page.goto("/file")),
    "focus": ("/field", lambda page: page.focus(bid(page, "Field"))),
    "scroll": ("/", lambda page: page.scroll(0, 50)),
    "dialog": ("/alert", lambda page: page.scroll(0, 0)),
}
"""What ends with the page at the latest: where, and what does it."""


@contextmanager
def one_context(keeps_history: bool) -> Iterator[None]:
    """Gives every episode the context of the one before; but the tab's history begins anew, unless it is to be kept."""
    host, used = Host.shared(), list[Place]()

    async def place() -> Place:
        if not used:
            used.append(await Host.place(host))
        elif not keeps_history:
            await used[0].tab.page.goto("about:blank")
            await used[0].tab.session.send("Page.resetNavigationHistory")
        return used[0]

    async def stays(_: Place, at_once: bool = False) -> None:
        pass

    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(host, "place", place)
            patched.setattr(host, "leave", stays)
            yield
    finally:
        for each in used:
            host.submit(host.leave(each)).result(10)
        for name in host.temp_files():
            (host._folder / name).unlink()


def differing(used: dict[str, Any], fresh: dict[str, Any]) -> set[str]:
    return {name for name in used if used[name] != fresh[name]}


@pytest.mark.parametrize("channel", LASTING)
def test_what_a_reused_context_leaks_is_named(channel: str, open_page: Open) -> None:
    fresh = open_page(site()).probes()
    with one_context(keeps_history=channel == "history"):
        used = open_page(site())
        LASTING[channel](used)
        used.close()
        reused = open_page(site())
        assert differing(reused.probes(), fresh) == {channel}
        assert reused.probes() == reused.probes()


@pytest.mark.parametrize("channel", PASSING)
def test_what_an_episode_does_is_named(channel: str, open_page: Open) -> None:
    path, deed = PASSING[channel]
    page, fresh = open_page(site(), path), open_page(site(), path)
    deed(page)
    assert differing(page.probes(), fresh.probes()) == {channel}


def test_every_channel_is_among_these(open_page: Open) -> None:
    assert set(open_page(site()).probes()) == {*LASTING, *PASSING}


PROGRAM = """
import json
from agent_gym.browser import InProcessPage
from agent_gym.browser.chromium import ChromiumPage
from tests.browser.chromium.test_probes import ORIGIN, site
page = ChromiumPage(site(), ORIGIN)
print(json.dumps(page.probes()))
page.close()
"""


def test_nothing_outlives_an_episode(open_page: Open) -> None:
    used = open_page(site())
    for name, deed in LASTING.items():
        if name not in ("service_workers", "temp_files"):  # which take a hole in the engine
            deed(used)
    for path, deed in PASSING.values():
        used.goto(path)
        deed(used)
    clean = json.loads(subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout)
    assert differing(used.probes(), clean) >= {"clipboard", "cookies", "dialog", "downloads", "pressed", "tabs"}
    assert open_page(site()).probes() == clean  # next to it
    used.close()
    assert open_page(site()).probes() == clean  # and after it


def test_both_engines_begin_with_the_same(open_page: Open) -> None:
    for start in ("/", "/cookies", "/field"):
        ours, told = InProcessPage(site(), ORIGIN, start=start).probes(), open_page(site(), start).probes()
        assert differing(ours, told) == set()


def test_the_engine_without_a_browser_tells_what_it_has() -> None:
    fresh = InProcessPage(site(), ORIGIN).probes()
    for name, path in {"cookies": "/cookies", "downloads": "/file", "history": "/?a"}.items():
        page = InProcessPage(site(), ORIGIN)
        page.goto(path)
        assert name in differing(page.probes(), fresh) <= {name, "history", "tabs"}
    page = InProcessPage(site(), ORIGIN)
    page.new_tab()
    assert page.probes()["tabs"] == [f"{ORIGIN}/", "about:blank"]
    assert InProcessPage(site(), ORIGIN).probes() == fresh


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_tells_of_its_rows_and_its_browser(engine: str, request: pytest.FixtureRequest) -> None:
    if engine == "chromium":
        request.getfixturevalue("needs_chromium")
    made = gym.make("agent_gym:AgentBase/WebTask-v0", interface="text", disable_env_checker=True, engine=engine)
    env = StateLeakCheck(made, every=2, sample=1)
    web: Any = env.unwrapped
    options = {"task_id": "retail/cancel/train/0"}
    seen, done = [env.reset(seed=0, options=options)[0]], False
    before = web.rich.unwrapped.session.probes()
    while not done:
        observation, _, terminated, truncated, _ = env.step(web.oracle(seen))
        seen.append(observation)
        done = terminated or truncated
    after = web.rich.unwrapped.session.probes()
    assert {"digest", "browser"} <= differing(after, before)
    assert {"history", "tabs"} <= differing(after["browser"], before["browser"])
    env.reset(seed=0, options=options)  # compares with a fresh instance
    assert web.rich.unwrapped.session.probes() == before
    env.close()
