"""One tab of the browser: what it is loading, and calls into the script that reads and touches its page."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agent_gym.errors import InfrastructureError

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page, Request

__all__ = ["LATE_S", "Activity", "Closed", "Left", "Tab"]

LATE_S = 2.0
"""How long what the browser tells of a tab or a request may come after what it was told for."""
_WORLD = "agent-gym"
_CLOCK = 'window["agent-gym"]'
"""Of the page; see clock.js. Neither name can be taken from the page."""
_GONE = ("navigated", "destroyed", "Cannot find context", "uniqueContextId not found")
_SAVES = """addEventListener("click", event => {
  const link = event.composedPath().find(each => each.localName === "a" || each.localName === "area");
  if (link?.hasAttribute("download") && link.origin === location.origin && link.protocol !== "blob:") {
    agentSaves("1");
    setTimeout(() => { if (event.defaultPrevented) agentSaves("-1"); });
  }
}, true)"""
"""Tells of links that save what they lead to: the browser asks for that some time later."""
_SOURCES = [files(__package__).joinpath(name).read_text("utf-8") for name in ("drawn.js", "page.js")]


class Left(Exception):
    """The document was left while it was asked something."""


class Closed(Left):
    """The whole tab was."""


class Activity:
    """What is under way in an episode's tabs. A tab is known by its main frame.

    Attributes:
        begun: How many things have begun so far.
        pending: Requests that are not answered yet.
        asked: Requests that a page has made and whose answers it has not got yet.
        opening: Tabs that will open.
        saving: How many links were clicked that save what they lead to, less those for which it was asked: either may be told first.
        mains: Tabs that have opened.
        frames: All frames that these have or had.
        changed: Set whenever something begins or ends.
        crashed: Set when a tab's process has died.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.pending = 0
        self.asked: set[Request] = set()
        self.opening: set[str] = set()
        self.saving = 0
        self._giving_up: asyncio.TimerHandle | None = None
        self.mains: set[str] = set()
        self.frames: set[str] = set()
        self.changed = asyncio.Event()
        self.crashed = asyncio.Event()

    def begin(self) -> None:
        """Something has begun."""
        self.begun += 1
        self.changed.set()

    def opens(self, tab: str) -> None:
        """A tab will open, or will be given up if nothing comes of it."""
        if tab not in self.mains:
            self.opening.add(tab)
            asyncio.get_running_loop().call_later(LATE_S, self._late, tab)
            self.begin()

    def _late(self, tab: str) -> None:
        if self.pending and tab in self.opening:  # it may be waiting for that
            asyncio.get_running_loop().call_later(LATE_S, self._late, tab)
        else:
            self.never_mind(tab)

    def saves(self, more: int) -> None:
        """A link that saves was clicked (1); what it leads to was asked for, or will not be (-1)."""
        self.saving += more
        self.begin()
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._giving_up = asyncio.get_running_loop().call_later(LATE_S, self.saves_none)

    def saves_none(self) -> None:
        """No link is waited for."""
        self.saving = 0
        self.changed.set()

    def never_mind(self, tab: str) -> None:
        """A tab is not to be waited for."""
        self.opening.discard(tab)
        self.changed.set()


class Tab:
    """One tab. Everything here runs on the browser's thread.

    Attributes:
        page: Playwright's page.
        session: Its protocol session.
        main: The id of its main frame.
        activity: What it tells of what begins and ends.
        world: The id of the script's world in the document that is shown; None between two documents.
        outer: The id of the page's own world there.
        loading: The frames that load.
    """

    def __init__(self, page: "Page", session: "CDPSession", activity: Activity) -> None:
        self.page = page
        self.session = session
        self.main = ""
        self.activity = activity
        self.world: str | None = None
        self.outer: str | None = None
        self.loading: set[str] = set()

    @classmethod
    async def attach(cls, page: "Page", activity: Activity) -> "Tab":
        """A page as a tab."""
        tab = cls(page, await page.context.new_cdp_session(page), activity)
        tree = await tab.session.send("Page.getFrameTree")
        tab.main = tree["frameTree"]["frame"]["id"]
        activity.mains.add(tab.main)
        activity.frames.add(tab.main)
        activity.opening.discard(tab.main)
        session = tab.session
        session.on("Page.frameStartedLoading", tab._starts)
        session.on("Page.frameStoppedLoading", tab._stops)
        session.on("Page.frameDetached", tab._stops)
        session.on("Page.frameAttached", tab._attaches)
        session.on("Page.navigatedWithinDocument", lambda _: activity.begin())
        session.on("Runtime.executionContextCreated", tab._enters)
        session.on("Runtime.executionContextDestroyed", tab._leaves)
        session.on("Runtime.executionContextsCleared", tab._clears)
        page.on("crash", tab._crashes)
        session.on("Runtime.bindingCalled", tab._saves)
        scripts = [{"source": source, "worldName": _WORLD, "runImmediately": True} for source in (*_SOURCES, _SAVES)]
        await asyncio.gather(
            session.send("Page.enable"),
            session.send("Runtime.enable"),
            session.send("Runtime.addBinding", {"name": "agentSaves", "executionContextName": _WORLD}),
            *(session.send("Page.addScriptToEvaluateOnNewDocument", script) for script in scripts),
        )
        return tab

    def _starts(self, event: Mapping[str, Any]) -> None:
        self.activity.frames.add(event["frameId"])
        self.loading.add(event["frameId"])
        self.activity.begin()

    def _stops(self, event: Mapping[str, Any]) -> None:
        self.loading.discard(event["frameId"])
        self.activity.changed.set()

    def _attaches(self, event: Mapping[str, Any]) -> None:
        self.activity.frames.add(event["frameId"])
        self.activity.changed.set()

    def _enters(self, event: Mapping[str, Any]) -> None:
        context = event["context"]
        if context["auxData"]["frameId"] != self.main:
            return
        if context["auxData"]["isDefault"]:
            self.outer = context["uniqueId"]
        elif context["name"] == _WORLD:
            self.world = context["uniqueId"]
            self.activity.changed.set()

    def _leaves(self, event: Mapping[str, Any]) -> None:
        if event.get("executionContextUniqueId") == self.world:
            self.world = None
        if event.get("executionContextUniqueId") == self.outer:
            self.outer = None

    def _clears(self, _: object) -> None:
        self.world = self.outer = None

    def _saves(self, event: Mapping[str, Any]) -> None:
        self.activity.saves(int(event["payload"]))

    def _crashes(self, _: object) -> None:
        self.activity.crashed.set()

    async def call(self, function: str, *arguments: Any) -> Any:
        """Calls a function of the script in the page, and gives what it returns as JSON values.

        Raises:
            Left: The document was left meanwhile.
            InfrastructureError: The script failed.
        """
        while self.world is None:
            self.activity.changed.clear()
            await self.activity.changed.wait()
        return await self._evaluate(f"agent.{function}({', '.join(map(json.dumps, arguments))})", self.world)

    async def ask(self, expression: str) -> Any:
        """What an expression gives among the page's own scripts, as JSON values; None where there is no page.

        Raises:
            Left: The document was left meanwhile.
            InfrastructureError: It failed.
        """
        return None if self.outer is None else await self._evaluate(expression, self.outer)

    async def tick(self, time: int) -> dict[str, Any]:
        """Lets the page's clock go on by some milliseconds; gives how many things were ``due``, and what was ``saved``.

        Raises:
            Left: The document was left meanwhile.
        """
        told: dict[str, Any] | None = None
        if self.outer is not None:
            with suppress(InfrastructureError):  # it runs among the page's scripts, which may break what it stands on
                told = await self._evaluate(f"{_CLOCK}?.pass({time})", self.outer)
        return told or {"due": 0, "saved": []}

    async def _evaluate(self, expression: str, world: str) -> Any:
        from playwright.async_api import Error

        asked = {"expression": expression, "uniqueContextId": world, "awaitPromise": True, "returnByValue": True}
        try:
            told = await self.session.send("Runtime.evaluate", asked)
        except Error as error:
            if any(sign in error.message for sign in _GONE):
                raise Left from None
            raise
        if "exceptionDetails" in told:
            raise InfrastructureError(f"reading the page failed: {told['exceptionDetails'].get('exception', {}).get('description', told)}")
        return told["result"].get("value")
