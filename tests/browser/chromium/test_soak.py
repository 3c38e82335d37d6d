"""Many episodes in one process: nothing of the browser's piles up."""

import contextlib
import time
from typing import Any

import psutil
import pytest

from agent_gym.browser.chromium import ChromiumPage
from agent_gym.browser.chromium.host import Host
from tests.browser.chromium.conftest import browsers
from tests.browser.chromium.test_engine import bid
from tests.browser.toy_site import ORIGIN, Site

EPISODES = 40
"""Also run by hand with 500."""
PAGES = {
    "a": "<title>A</title><a href=/b target=_blank>Go</a><iframe src=/c></iframe>"
    "<script>localStorage.a='x'.repeat(1e5);indexedDB.open('a');window.kept=new Array(1e6).fill(1)</script>",
    "b": "<title>B</title><button onclick=\"this.textContent=confirm('Sure?')\">Ask</button>",
    "c": "<p>c",
}


def episode() -> None:
    """One with a second tab, storage, a frame, and a dialog that nobody answers."""
    page = ChromiumPage(Site(**PAGES), ORIGIN, start="/a")
    page.click(bid(page, "Go"))
    page.click(bid(page, "Ask"))
    page.close()


def figures() -> dict[str, float]:
    """What the browser holds, and what this process and the browser's hold for it; memory in MB, each process's own."""
    host = Host.shared()
    requests: Any = host._requests
    contexts = host.submit(requests.send("Target.getBrowserContexts")).result(30)["browserContextIds"]
    targets = host.submit(requests.send("Target.getTargets")).result(30)["targetInfos"]
    (browser,) = browsers()
    driver = psutil.Process(browser).parent()
    assert driver is not None
    processes, fds, memory = 0, psutil.Process().num_fds(), 0
    for each in (driver, *driver.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            fds += each.num_fds()
            memory += each.memory_full_info().uss
            processes += 1
    return {"contexts": len(contexts), "pages": len(targets), "processes": processes, "fds": fds, "memory": memory / 2**20}


def settled() -> dict[str, float]:
    """The figures once the last episode is gone and the next context is warm."""
    last: list[dict[str, float]] = []
    for _ in range(100):
        last.append(figures())
        if len(last) > 5 and all(each["fds"] == last[-1]["fds"] for each in last[-5:]):
            break
        time.sleep(0.2)
    return last[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("needs_chromium")
def test_nothing_piles_up() -> None:
    for _ in range(5):
        episode()
    before = settled()
    for _ in range(EPISODES):
        episode()
    after = settled()
    assert (after["contexts"], after["pages"]) == (before["contexts"], before["pages"]) == (1, 1)
    assert after["processes"] <= before["processes"] + 2  # one or two that the browser keeps for later
    assert after["fds"] < before["fds"] + EPISODES
    assert after["memory"] < before["memory"] + 3 * EPISODES
