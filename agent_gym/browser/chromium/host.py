"""The one browser of this process, and the one thread that talks to it.

Everything with Playwright happens on that thread's event loop. The browser asks for every request that any of its pages makes, whatever
opened them; each is handed to the episode that it is tagged for, and refused where there is none: no request ever leaves the process.
"""

import asyncio
import atexit
import base64
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from selectors import DefaultSelector
from typing import TYPE_CHECKING, Any, TypeVar

from agent_gym.browser.chromium.executable import executable
from agent_gym.browser.chromium.serving import TAG, Answer
from agent_gym.browser.chromium.tab import Activity, Tab
from agent_gym.errors import InfrastructureError, MissingExtra

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Playwright

__all__ = ["START_S", "Host", "Place"]

_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-features=Translate,AcceptCHFrame,MediaRouter,OptimizationHints,PaintHolding",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    # What is not asked for through the protocol, such as sockets, finds no host and no way out.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_CLOCK = files(__package__).joinpath("clock.js").read_text("utf-8")
START_S = 60.0
"""Seconds in which a browser and a context must be there."""
_END_S = 5.0
_IDLE_S = 0.02
"""When nobody has wanted anything for so long, old contexts are closed and the next one is made."""
_MOST_LEFT = 2
"""Contexts that wait to be closed."""

_T = TypeVar("_T")


class Place:
    """A context of the browser for one episode, not yet used by any.

    Attributes:
        tag: What its requests carry.
        id: The browser's name for it.
        context: The context.
        activity: What is under way in it.
        tab: Its first tab.
        take: Takes a paused request, on the browser's thread; it ``saves`` what a link leads to, or shows it. Until an episode sets
            it requests are refused.
        pressed: The keys and buttons that are held down.
        clipboard: What was copied.
    """

    def __init__(self, tag: str, id: str, context: "BrowserContext", activity: Activity, tab: Tab) -> None:
        self.tag = tag
        self.id = id
        self.context = context
        self.activity = activity
        self.tab = tab
        self.take: Callable[[Mapping[str, Any]], None] | None = None
        self.pressed: set[str] = set()
        self.clipboard = ""


class Host:
    """The browser. Use `shared`; everything ``async`` here runs on `loop` only.

    Attributes:
        loop: The event loop.
        viewport: Width and height of a page in pixels.
    """

    viewport = (1280, 720)
    _shared: "Host | None" = None
    _guard = threading.Lock()

    def __init__(self) -> None:
        self._pipes = DefaultSelector()  # all that the loop waits for, the driver's pipes among them
        self.loop = asyncio.SelectorEventLoop(self._pipes)
        self._owner = os.getpid()
        self._folder = Path(tempfile.mkdtemp(prefix="agent-gym-chromium-"))
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._requests: CDPSession | None = None
        self._places: dict[str, Place] = {}
        self._ready: asyncio.Task[Place] | None = None
        self._left: list[Place] = []  # to be closed
        self._wanted: set[Future[Any]] = set()  # what somebody waits for
        self._idle: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="agent-gym-chromium", daemon=True)
        self._thread.start()

    @classmethod
    def shared(cls) -> "Host":
        """The one of this process; a forked child has its own."""
        with cls._guard:
            if cls._shared is None or cls._shared._owner != os.getpid():
                cls._shared = cls()
                atexit.register(cls._shared.stop)
            return cls._shared

    @classmethod
    def forked(cls) -> None:
        """Lets go of the driver's pipes in a forked child: the driver ends when nobody holds them any longer."""
        cls._guard = threading.Lock()
        if cls._shared is not None:
            null = os.open(os.devnull, os.O_RDWR)
            for key in (cls._shared._pipes.get_map() or {}).values():
                os.dup2(null, key.fd, inheritable=False)  # not closed: the objects that it belongs to may do that later
            os.close(null)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def submit(self, work: Coroutine[Any, Any, _T]) -> "Future[_T]":
        """Starts work on the browser's thread, from any other."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._wanted.add(future)
        future.add_done_callback(self._got)
        return future

    def _got(self, future: "Future[Any]") -> None:
        self._wanted.discard(future)
        with suppress(RuntimeError):  # the thread has ended
            self.loop.call_soon_threadsafe(self._rest)

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self.loop.call_later(_IDLE_S, self._tidy)

    def _tidy(self) -> None:
        if self._wanted or self._browser is None:
            return
        while self._left:
            self.spawn(self._close(self._left.pop()))
        if self._ready is None:
            self._ready = self.loop.create_task(self._make())
            self._ready.add_done_callback(lambda task: task.cancelled() or task.exception())

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Starts work that nobody waits for, on the browser's thread."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned)

    def _spawned(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whatever it touched is gone; who waits for that learns it elsewhere

    def stop(self) -> None:
        """Ends the browser and the thread."""
        if self._owner != os.getpid() or not self._thread.is_alive():
            return
        with suppress(TimeoutError):  # the browser ends with its driver, which ends with this process
            self.submit(self._end()).result(_END_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_END_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def temp_files(self) -> list[str]:
        """What downloads have left on disk: nothing, since a context of ours saves none."""
        return sorted(path.name for path in self._folder.iterdir())

    # --- The browser ---

    async def place(self) -> Place:
        """A new context, made ready when there was time.

        Raises:
            InfrastructureError: The browser does not start.
            MissingExtra: Playwright is not installed.
        """
        ready, self._ready = self._ready, None
        if ready is not None:
            await self._made(ready)  # it may be starting the browser anew
            alive = self._browser is not None and self._browser.is_connected()
            if alive and not ready.cancelled() and ready.exception() is None and ready.result().tag in self._places:
                with suppress(_error()):  # if the driver has died meanwhile
                    await ready.result().tab.session.send("Target.getTargetInfo")
                    return ready.result()
        making = self.loop.create_task(self._make())
        await self._made(making)
        return making.result()

    async def _made(self, making: "asyncio.Task[Place]") -> None:
        """Waits for a context, which is given up if nobody waits any longer."""
        try:
            await asyncio.wait((making,))
        except asyncio.CancelledError:
            making.add_done_callback(self._unwanted)
            raise

    def _unwanted(self, making: "asyncio.Task[Place]") -> None:
        if not making.cancelled() and making.exception() is None:
            self.spawn(self.leave(making.result()))

    async def _make(self) -> Place:
        await self._start()
        browser = self._browser
        try:
            return await self._new(browser)
        except _error():  # the driver has died: it was the one to tell
            if self._browser is browser:
                await self._end()
            await self._start()
            return await self._new(self._browser)

    async def _new(self, browser: "Browser | None") -> Place:
        if browser is None:
            raise InfrastructureError("the browser is gone")
        tag = secrets.token_hex(16)
        width, height = self.viewport
        context = await browser.new_context(
            accept_downloads=False,
            color_scheme="light",
            extra_http_headers={TAG: tag},
            locale="en-US",
            reduced_motion="reduce",
            service_workers="block",
            timezone_id="UTC",
            viewport={"width": width, "height": height},
        )
        await context.add_init_script(_CLOCK)
        activity = Activity()
        tab = await Tab.attach(await context.new_page(), activity)
        told = await tab.session.send("Target.getTargetInfo")
        place = self._places[tag] = Place(tag, told["targetInfo"]["browserContextId"], context, activity, tab)
        return place

    async def leave(self, place: Place, at_once: bool = False) -> None:
        """Gives a context up; it is closed at once, or when there is time for it or too many wait for that."""
        self._places.pop(place.tag, None)
        self._left.append(place)
        if at_once or len(self._left) > _MOST_LEFT:
            await self._close(self._left.pop(-1 if at_once else 0))

    async def _close(self, place: Place) -> None:
        """Closes a context; if that takes too long, the browser and all that is in it, which the next `place` starts anew."""
        with suppress(_error()):  # it is gone with its browser
            try:
                await asyncio.wait_for(place.context.close(), _END_S)
            except TimeoutError:
                await self.kill()

    async def kill(self) -> None:
        """Ends the browser, and every episode in it with an `InfrastructureError`."""
        browser, self._browser = self._browser, None
        self._ready = None
        if browser is not None:
            self._places.clear()
            try:
                await asyncio.wait_for(browser.close(), _END_S)
            except TimeoutError:
                await self._end()

    async def _start(self) -> None:
        async with self._starting:
            if self._browser is not None and self._browser.is_connected():
                return
            self._places.clear()
            self._left.clear()
            try:
                from playwright.async_api import Error, async_playwright
            except ImportError:
                raise MissingExtra("playwright", "browser") from None
            program = executable()
            try:
                async with asyncio.timeout(START_S):
                    if self._playwright is None:
                        self._playwright = await async_playwright().start()
                    self._browser = await self._playwright.chromium.launch(
                        executable_path=program,
                        downloads_path=self._folder,
                        args=list(_ARGUMENTS),
                        handle_sigint=False,
                        handle_sigterm=False,
                        handle_sighup=False,
                    )
                    self._requests = await self._browser.new_browser_cdp_session()
                    self._requests.on("Fetch.requestPaused", self._paused)
                    self._requests.on("Target.targetCreated", self._opens)
                    self._requests.on("Target.targetDestroyed", self._closes)
                    await self._requests.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
                    await self._requests.send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})
            except (TimeoutError, Error) as error:
                await self._end()
                raise InfrastructureError(f"{program} does not start: {str(error).strip() or 'no answer in time'}") from error

    async def _end(self) -> None:
        playwright, self._playwright, self._browser = self._playwright, None, None
        if self._ready is not None and self._ready is not asyncio.current_task():
            self._ready.cancel()
            self._ready = None
        if playwright is not None:
            with suppress(TimeoutError, _error()):  # given up: its pipe closes with this process at the latest
                await asyncio.wait_for(playwright.stop(), _END_S)

    # --- What the browser tells ---

    def _opens(self, event: Mapping[str, Any]) -> None:
        """A tab will open: known before the action that opens it has come to an end."""
        told = event["targetInfo"]
        for place in self._places.values():
            if place.id == told["browserContextId"]:
                place.activity.opens(told["targetId"])

    def _closes(self, event: Mapping[str, Any]) -> None:
        for place in self._places.values():
            place.activity.never_mind(event["targetId"])

    def _paused(self, event: Mapping[str, Any]) -> None:
        headers = event["request"]["headers"]
        tag = next((value for name, value in headers.items() if name.lower() == TAG), "")
        place, saves = self._places.get(tag), False
        if not tag and event.get("resourceType") == "Document":  # a link with "download": the browser asks for it by itself
            saves, place = True, next((each for each in self._places.values() if event["frameId"] in each.activity.frames), None)
        if place is None or place.take is None:
            self.spawn(self.respond(event["requestId"], None))
        else:
            place.take({**event, "saves": saves})

    async def close(self, target: str) -> None:
        """Closes a tab, whether or not it has opened."""
        if self._requests is not None:
            await self._requests.send("Target.closeTarget", {"targetId": target})

    async def respond(self, request: str, answer: Answer | None) -> None:
        """Answers a paused request; None refuses it, and a page stays where it is.

        Raises:
            InfrastructureError: The browser does not take the answer.
        """
        if self._requests is None:
            return
        refusal = {"requestId": request, "errorReason": "Aborted"}
        if answer is None:
            await self._requests.send("Fetch.failRequest", refusal)
            return
        headers = [{"name": name, "value": value} for name, value in answer.headers]
        body = base64.b64encode(answer.body).decode()
        told = {"requestId": request, "responseCode": answer.status, "responseHeaders": headers, "body": body}
        try:
            await self._requests.send("Fetch.fulfillRequest", told)
        except _error() as error:
            await self._requests.send("Fetch.failRequest", refusal)  # which fails if nobody waits for it any longer
            raise InfrastructureError(f"the browser does not take an answer of the site: {error}") from error


def _error() -> type[Exception]:
    """What Playwright raises."""
    from playwright.async_api import Error

    return Error


os.register_at_fork(after_in_child=Host.forked)
