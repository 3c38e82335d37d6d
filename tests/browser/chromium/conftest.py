"""What the tests of the Chromium engine share."""

import contextlib
from collections.abc import Callable, Iterator

import psutil
import pytest

from agent_gym.browser.chromium import ChromiumPage
from tests.browser.toy_site import ORIGIN, Site

Open = Callable[..., ChromiumPage]


@pytest.fixture
def open_page(needs_chromium: None) -> Iterator[Open]:  # noqa: ARG001 - pytest's way to need it
    """Opens pages, and closes them at the end."""
    opened: list[ChromiumPage] = []

    def opens(site: Site, start: str = "/", deadline_s: float = 30.0, **files: bytes) -> ChromiumPage:
        opened.append(ChromiumPage(site, ORIGIN, start=start, files=files, deadline_s=deadline_s))
        site.asked.clear()
        return opened[-1]

    yield opens
    for page in opened:
        page.close()


def browsers() -> set[int]:
    """The browsers of this process that run; one may be a script that starts another."""
    parents = {}
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            line = " ".join(child.cmdline())
            if "--remote-debugging-pipe" in line and "--type=" not in line:
                parents[child.pid] = child.ppid()
    return {pid for pid, parent in parents.items() if parent not in parents}


def kill_browsers() -> None:
    """Kills the browsers that this process has started, as a machine short of memory would."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # also a zombie, left by another test
            if "--remote-debugging-pipe" in child.cmdline():
                child.kill()
