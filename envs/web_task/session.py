"""One episode in a world through its web site."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zlib import crc32

from agent_gym.browser import InProcessPage, Page, PageError, PageSnapshot
from agent_gym.browser.lines import escaped
from agent_gym.core import Observation, Snapshot, Task, ToolCall, ToolResult, ToolSpec, Verdict
from agent_gym.envs.web_task.tools import DEEDS, REPORT_INFEASIBLE, SEND_MESSAGE
from agent_gym.errors import InfrastructureError
from agent_gym.world import Base, WorldKind, WorldSession
from agent_gym.world.counterpart import ASK

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

__all__ = ["ENGINES", "OBSERVATIONS", "SIZE", "WebSession", "page_text"]

OBSERVATIONS = ("text", "image", "both")
"""How pages are shown: as an outline with elements, as a picture with the elements' numbers in it, or as both."""
SIZE = (720, 1280, 3)
"""The shape of such a picture."""
ENGINES = ("inprocess", "chromium")
"""What can run the pages: an engine of our own, or a real browser (extra ``browser``)."""


class WebSession(WorldSession):
    """One episode in a world through its web site: the pages call its operations, the agent acts on the pages.

    What is judged is the same as through the tool door: the live database, what was read, and what was called.

    Args:
        kind: The kind of world.
        task: The task.
        base: The base database that the task's spec names.
        site: The module of the world's site.
        tools: The tools of a browser.
        engine: What runs the pages, one of `ENGINES`.
        observation: How pages are shown, one of `OBSERVATIONS`.

    Raises:
        InfrastructureError: The browser does not start.
        MissingExtra: The engine is not installed.
    """

    def __init__(
        self,
        kind: WorldKind,
        task: Task,
        base: Base,
        site: ModuleType,
        tools: Sequence[ToolSpec],
        engine: str = "inprocess",
        observation: str = "text",
    ) -> None:
        super().__init__(kind, task, base)
        self.tools = (*tools, *kind.asking)
        self._deadline = math.inf
        self._observation = observation
        self._late = False  # an operation that this action called came to no end in time
        self._done = False  # one has changed something
        self._denied = ""  # why one was not permitted
        self._said = ""
        self._shown: tuple[PageSnapshot | None, Observation] = (None, Observation(""))
        self._page = _open(engine, site.application(self._operate), site.ORIGIN, task, getattr(site, "FILES", {}))

    def _operate(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What the pages call: an operation of the world, permitted as the gateway permits it, noted as the tool door notes it.

        One that raises has failed, as it would have through the tool door: that is no failure of the site.
        """
        call = ToolCall(name, dict(arguments))
        if why := self.permit(self._kind.operations[name].spec, call):
            self._denied = why
            return ToolResult(status="forbidden", content=why)
        try:
            result = super().call(call, self._deadline)
        except InfrastructureError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an operation may raise anything; the page tells it
            return ToolResult.raised(name, error)
        self._late |= result.status == "timeout"
        self._done |= not result.failed and not self._kind.operations[name].spec.read_only
        return result

    def observe(self) -> Observation:
        """The page, as text and as the snapshot's JSON values."""
        snapshot = self._page.snapshot()
        if snapshot is not self._shown[0]:
            self._shown = snapshot, self._seen(snapshot)
        return self._shown[1]

    def _seen(self, snapshot: PageSnapshot) -> Observation:
        image = self._page.picture() if self._observation != "text" else None
        if self._observation == "image":
            snapshot = replace(snapshot, outline="", elements=())
        return Observation(page_text(snapshot), snapshot.to_dict(), image)

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - nothing here is remote
        """Carries out an action on the page, or puts a question to the counterpart; see `Session.call`."""
        if call.name == ASK:
            return super().call(call, deadline)
        if call.name == SEND_MESSAGE:
            self._said = call.arguments["text"]
        self._deadline, self._late, self._done, self._denied = deadline, False, False, ""
        try:
            DEEDS[call.name](self._page, **call.arguments)
        except PageError as error:
            if not self._done:
                return ToolResult(status=error.status, content=str(error))
            self._late = True
        if self._late and self._done:
            return ToolResult(
                status="outcome_unknown", content=f"{call.name} has changed something, but the page that tells of it did not come"
            )
        if self._late:
            return ToolResult(status="timeout", content=f"{call.name} did not come to an end in time; nothing was changed")
        if self._denied and not self._done:
            return ToolResult(status="forbidden", content=self._denied)
        return ToolResult(status="ok")

    def verdict(self, closing: ToolCall) -> Verdict:
        """Judges the live database; see `agent_gym.world.grading`."""
        if closing.name == REPORT_INFEASIBLE.name:
            closing = ToolCall("refuse", closing.arguments)
        elif closing.name == "finish" and self._said:
            closing = ToolCall("finish", {"answer": self._said, **closing.arguments})
        return super().verdict(closing)

    def save(self) -> Snapshot | None:
        """None: a page is restored by doing again what was done."""
        return None

    def probes(self) -> dict[str, Any]:
        """Rows, clock, progress, the page, and all that its browser keeps."""
        return {**super().probes(), "page": self._page.snapshot().to_dict(), "browser": self._page.probes()}

    def interrupt(self) -> None:
        """Stops what is under way."""
        super().interrupt()
        self._page.interrupt()

    def close(self) -> None:
        """Frees page and database."""
        self._page.close()
        super().close()


def _open(engine: str, app: "WSGIApplication", origin: str, task: Task, files: Mapping[str, bytes]) -> Page:
    """A page of an engine."""
    if engine == "inprocess":
        return InProcessPage(app, origin, files=files)
    from agent_gym.browser.chromium import ChromiumPage

    return ChromiumPage(app, origin, files=files, seed=crc32(task.id.encode()))


def page_text(snapshot: PageSnapshot) -> str:
    """A page in words."""
    lines = [f"Page: {snapshot.title or '(no title)'} <{snapshot.url}>"]
    if len(snapshot.tabs) > 1:
        tabs = (f"{'*' if tab['active'] else ''}{index} {tab['title'] or '(blank)'}" for index, tab in enumerate(snapshot.tabs))
        lines.append(f"Tabs: {' · '.join(tabs)}")
    if snapshot.downloads:
        lines.append(f"Downloaded: {', '.join(snapshot.downloads)}")
    lines += [f"Note: {note}" for note in snapshot.notes]
    return "\n".join([*map(escaped, lines), snapshot.outline])
