"""One episode in the browser: its tabs, its dialogs, and waiting until nothing moves. All of it runs on the browser's thread."""

import asyncio
import base64
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_gym.browser.chromium.hands import Hands
from agent_gym.browser.chromium.host import Host, Place
from agent_gym.browser.chromium.serving import NOTHING_TO_SHOW, Answer
from agent_gym.browser.chromium.tab import LATE_S, Closed, Left, Tab
from agent_gym.browser.inprocess.site import BLANK
from agent_gym.browser.inprocess.tabs import MAX_TABS
from agent_gym.browser.page import Blocked, NoSuchElement
from agent_gym.errors import InfrastructureError

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Page, Request

__all__ = ["Episode"]

_ROUNDS = 40
"""How often a page is looked at again, since something has begun meanwhile."""
_HEARD = ("fetch", "image", "script", "stylesheet", "xhr")
"""What a page asks for and does something with: it is waited for from when the page asks until the page has it."""
_TICK_MS = 500
"""What the page's clock advances by with every action."""


class Episode:
    """One episode.

    Args:
        host: The browser.
        place: Its context.
        hand: Takes each request that is to be answered with `respond`; called on the browser's thread.
        every: Whether whatever shows something is an element, with its box.

    Attributes:
        tabs: The open tabs.
        active: Which of them is shown.
        hands: What points, presses and types in the tab that is shown.
        dialog: The dialog that is open, which stops its page; None if there is none.
        passed: Milliseconds that the clock of its pages has advanced by.
        saved: Names and contents (base64; None if too large) of what pages have made and saved, until somebody takes it.
    """

    def __init__(self, host: Host, place: Place, hand: Callable[[Mapping[str, Any]], None], every: bool = False) -> None:
        self.tabs = [place.tab]
        self.active = 0
        self.hands = Hands(lambda: self.tab, host.viewport, place)
        self.dialog: Dialog | None = None
        self.passed = 0
        self.saved: list[tuple[str, str | None]] = []
        self._host = host
        self._place = place
        self._hand = hand
        self._every = every
        self._activity = place.activity
        self._coming = 0  # tabs that open
        self._broken: InfrastructureError | None = None  # why an answer was not taken
        self._asked = asyncio.Event()  # a dialog was opened
        self._held: asyncio.Future[Any] | None = None  # what the dialog keeps from ending
        place.take = self._take
        place.context.on("page", self._opens)
        place.context.on("request", self._asks_for)
        place.context.on("requestfinished", self._has)
        place.context.on("requestfailed", self._has)
        self._watch(place.tab)

    @property
    def tab(self) -> Tab:
        """The tab that is shown.

        Raises:
            InfrastructureError: There is none, since the browser has ended.
        """
        if not self.tabs:
            raise InfrastructureError("the browser has ended")
        return self.tabs[self.active]

    # --- What the browser tells ---

    def _take(self, event: Mapping[str, Any]) -> None:
        self._activity.pending += 1
        self._activity.begin()
        shown = event.get("resourceType") == "Document" and event["frameId"] in self._activity.mains | self._activity.opening
        if event["saves"]:
            self._activity.saves(-1)
        self._hand({**event, "page": shown or event["saves"]})

    async def respond(self, event: Mapping[str, Any], answer: Answer | None, empty: bool) -> None:
        """Answers a request.

        Args:
            event: The request.
            answer: The answer; None refuses it.
            empty: Whether nothing has been shown where it was made: a tab that opens for nothing is closed again.
        """
        try:
            await self._host.respond(event["requestId"], answer)
            if (
                empty
                and event["page"]
                and event["frameId"] in self._activity.opening
                and (answer is None or answer.status in NOTHING_TO_SHOW)
            ):
                self._activity.never_mind(event["frameId"])
                await self._host.close(event["frameId"])
        except InfrastructureError as error:
            self._broken = error
        finally:
            self._activity.pending -= 1
            self._activity.changed.set()

    def _asks_for(self, request: "Request") -> None:
        if request.resource_type in _HEARD:
            self._activity.asked.add(request)
            self._host.loop.call_later(LATE_S, self._has, request)  # in case its page is gone
        self._activity.begin()

    def _has(self, request: "Request") -> None:
        self._activity.asked.discard(request)
        self._activity.changed.set()

    def _opens(self, page: "Page") -> None:
        if len(self.tabs) + self._coming >= MAX_TABS:
            self._host.spawn(page.close())
            return
        self._coming += 1
        self._activity.pending += 1
        self._activity.begin()
        self._host.spawn(self._opened(page))

    async def _opened(self, page: "Page") -> None:
        try:
            try:
                tab = await Tab.attach(page, self._activity)
            finally:
                self._coming -= 1
            self._watch(tab)
            self.tabs.append(tab)
            self.active = len(self.tabs) - 1
            width, height = self._host.viewport  # whatever size the page wanted
            await page.set_viewport_size({"width": width, "height": height})
            await page.wait_for_load_state("load")
        finally:
            self._activity.pending -= 1
            self._activity.changed.set()

    def _watch(self, tab: Tab) -> None:
        tab.page.on("dialog", self._asks)
        tab.page.on("close", lambda _: self._closed(tab))

    def _closed(self, tab: Tab) -> None:
        if tab in self.tabs:
            at = self.tabs.index(tab)
            del self.tabs[at]
            if self.active >= at:
                self.active = max(0, self.active - 1)
        self._activity.begin()

    def _asks(self, dialog: "Dialog") -> None:
        if dialog.type == "beforeunload":
            self._host.spawn(dialog.accept())
            return
        self.dialog = dialog
        self._asked.set()
        self._activity.begin()

    # --- Acting ---

    async def act(self, action: Coroutine[Any, Any, Any], through_dialog: bool = False) -> dict[str, Any]:
        """Does something, waits for quiet, and reads what is shown then.

        Args:
            action: What to do.
            through_dialog: Whether it is what answers the dialog.

        Raises:
            Blocked: A dialog is open.
            PageError: It could not be done.
            InfrastructureError: The browser did not take an answer of the site.
        """
        if self.dialog is not None and not through_dialog:
            action.close()
            raise Blocked(f"a {self.dialog.type} dialog is open: accept_dialog or dismiss_dialog first")
        self._activity.saves_none()
        try:
            await self._unless_dialog(action)
        except Closed:
            pass  # by itself
        except Left:
            raise NoSuchElement("stale: the page was left") from None
        await self._rest("frame")
        told: dict[str, Any] = {"page": await self._pass() or await self._rest("watch"), "dialog": None}
        if self._broken is not None:
            raise self._broken
        if told["page"] is not None:
            told["page"]["world"] = self.tab.world
            self._place.clipboard = told["page"].pop("clipboard") or self._place.clipboard
        elif self.dialog is not None:
            told["dialog"] = {"type": self.dialog.type, "message": self.dialog.message, "value": self.dialog.default_value}
        return {**told, "main": self.tab.main, "tabs": {tab.main: tab.page.url for tab in self.tabs}}

    async def _pass(self) -> dict[str, Any] | None:
        """Lets time pass and reads what is shown; None if something was due, or has begun: it must be read anew."""
        if self.dialog is not None:
            return None
        self.passed += _TICK_MS
        begun = self._activity.begun
        try:
            told = await self._unless_dialog(self._passing(self.tab))
        except Left:
            return None
        if told is None or begun != self._activity.begun or self._busy() or not told["complete"]:
            return None
        return dict(told)

    async def _passing(self, shown: Tab) -> dict[str, Any] | None:
        *passed, read = await asyncio.gather(*(tab.tick(_TICK_MS) for tab in self.tabs), shown.call("look", self._every))
        self.saved += [saved for each in passed for saved in each["saved"]]
        return None if any(each["due"] for each in passed) else read

    async def _ended(self, tab: Tab) -> bool:
        """Whether a tab was closed by what was done in it, which the browser may tell a little later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LATE_S):
                while tab in self.tabs:
                    self._activity.changed.clear()
                    await self._activity.changed.wait()
        return tab not in self.tabs

    async def _unless_dialog(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What work gives; None if a dialog opens before it ends, which it then goes on behind.

        Raises:
            Closed: The tab was closed meanwhile.
            InfrastructureError: A tab has crashed meanwhile.
        """
        from playwright.async_api import Error

        task, asked, crashed = map(asyncio.ensure_future, (work, self._asked.wait(), self._activity.crashed.wait()))
        try:
            tab = self.tab
            await asyncio.wait((task, asked, crashed), return_when=asyncio.FIRST_COMPLETED)
            if crashed.done():
                raise InfrastructureError("a tab has crashed")
            if task.done():
                try:
                    return task.result()
                except Error:
                    if await self._ended(tab):
                        raise Closed from None
                    raise
            self._held, task = task, asked
            self._held.add_done_callback(lambda done: done.cancelled() or done.exception())
            return None
        finally:
            for each in (task, asked, crashed):
                each.cancel()

    async def _rest(self, function: str) -> Any:
        """Waits for quiet: no request, no page on its way, one frame drawn without anything new.

        Args:
            function: Of the script: what waits for the frame.

        Returns:
            What that gave in the end; None if a dialog is open.
        """
        given: dict[str, Any] | None = None
        for _ in range(_ROUNDS):
            while self._busy() and self.dialog is None:
                self._activity.changed.clear()
                await self._activity.changed.wait()
            if not self.tabs:
                self.tabs.append(await self._blank())
                self.active = 0
            begun = self._activity.begun
            try:
                given = None if self.dialog is not None else await self._unless_dialog(self.tab.call(function, self._every))
            except Left:
                continue
            if given is None or (begun == self._activity.begun and not self._busy() and given["complete"]):
                break
        return given if self.dialog is None else None

    def _busy(self) -> bool:
        activity = self._activity
        return (
            activity.pending > 0 or bool(activity.asked or activity.opening or activity.saving > 0) or any(tab.loading for tab in self.tabs)
        )

    async def _blank(self) -> Tab:
        self._place.context.remove_listener("page", self._opens)
        try:
            tab = await Tab.attach(await self._place.context.new_page(), self._activity)
        finally:
            self._place.context.on("page", self._opens)
        self._watch(tab)
        return tab

    async def picture(self) -> tuple[bytes, dict[str, Any]]:
        """A JPEG of what the window shows, and the boxes of the elements in it by the script's numbers."""
        if self.dialog is not None:
            return b"", {}
        asked = {"format": "jpeg", "quality": 90, "optimizeForSpeed": True}
        taken, boxes = await asyncio.gather(self.tab.session.send("Page.captureScreenshot", asked), self.tab.call("boxes"))
        return base64.b64decode(taken["data"]), boxes

    async def probes(self) -> dict[str, Any]:
        """What an episode could leave behind, by channel; behind a dialog without what only the page can tell."""
        context = self._place.context
        cookies, (history, _) = await asyncio.gather(context.cookies(), self._history())
        told = {
            "dialog": None if self.dialog is None else self.dialog.type,
            "cookies": [{name: cookie.get(name) for name in ("name", "value", "domain", "path")} for cookie in cookies],
            "tabs": [page.url for page in context.pages],
            "history": [entry["url"] for entry in history],
            "pressed": sorted(self._place.pressed),
            "clipboard": self._place.clipboard,
            "temp_files": self._host.temp_files(),
        }
        return told if self.dialog is not None else {**told, **await self.tab.call("probes")}

    # --- Navigation and tabs ---

    async def goto(self, url: str) -> None:
        """Loads a URL."""
        await self.tab.session.send("Page.navigate", {"url": url})

    async def step(self, by: int) -> None:
        """Goes back or forward.

        Raises:
            Blocked: There is nothing there.
        """
        entries, at = await self._history()
        at += by
        if not 0 <= at < len(entries):
            raise Blocked(f"there is no page to go {'back' if by < 0 else 'forward'} to")
        await self.tab.session.send("Page.navigateToHistoryEntry", {"entryId": entries[at]["id"]})

    async def _history(self) -> tuple[list[dict[str, Any]], int]:
        """The tab's entries, without the blank page that it began with, and which of them is shown."""
        told = await self.tab.session.send("Page.getNavigationHistory")
        entries, at = told["entries"], told["currentIndex"]
        return (entries[1:], at - 1) if len(entries) > 1 and entries[0]["url"] == BLANK else (entries, at)

    async def open_tab(self) -> None:
        """Opens a blank tab and goes to it."""
        self.tabs.append(await self._blank())
        self.active = len(self.tabs) - 1

    async def focus_tab(self, index: int) -> None:
        """Goes to a tab.

        Raises:
            NoSuchElement: There is none of that number.
        """
        if not 0 <= index < len(self.tabs):
            raise NoSuchElement(f"no tab {index}; there are {len(self.tabs)}, counted from 0")
        self.active = index
        await self.tab.page.bring_to_front()

    async def close_tab(self, tab: Tab) -> None:
        """Closes a tab and goes to the one before it; the last one leaves a blank one."""
        self._closed(tab)
        await tab.page.close()
        if not self.tabs:
            self.tabs, self.active = [await self._blank()], 0
        await self.tab.page.bring_to_front()

    # --- Dialogs ---

    async def answer(self, accept: bool, text: str | None) -> None:
        """Answers the dialog.

        Raises:
            Blocked: None is open.
        """
        dialog, self.dialog = self.dialog, None
        if dialog is None:
            raise Blocked("no dialog is open")
        self._asked.clear()
        await (dialog.accept(text or "") if accept else dialog.dismiss())
        if self._held is not None:
            held, self._held = self._held, None
            await self._unless_dialog(_ended(held))


async def _ended(work: "asyncio.Future[Any]") -> None:
    """Waits for work to end, whatever it comes to: it was for a page that stood still."""
    await asyncio.wait((work,))
