"""One episode on a page of MiniWoB++."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.browser import PageError
from agent_gym.browser.chromium import ChromiumPage
from agent_gym.core import Change, Check, Ending, Observation, Session, Snapshot, Task, ToolCall, ToolResult, ToolSpec, Verdict
from agent_gym.core.canonical import digest
from agent_gym.envs.miniwob import pages
from agent_gym.envs.miniwob.catalogue import DRAGGED_ONTO
from agent_gym.envs.web_task.session import page_text
from agent_gym.envs.web_task.tools import DEEDS
from agent_gym.errors import InfrastructureError

__all__ = ["Outcome", "PageSession"]

_ASKED = """(told => {
  if (typeof told !== "string") return told;
  try { return {utterance: told, fields: Object(JSON.parse(told))}; } catch { return {utterance: told, fields: {}}; }
})(core.getUtterance())"""
_TOLD = "({done: WOB_DONE_GLOBAL, raw: WOB_RAW_REWARD_GLOBAL, timed: WOB_REWARD_GLOBAL, reason: `${WOB_REWARD_REASON ?? ''}`})"
_SOLVED = 1.0
_SHOWING = frozenset({"generic", "img"})
"""The roles of what is an element since it shows something."""


@dataclass(frozen=True)
class Outcome:
    """What a page says of its end.

    Attributes:
        done: Whether it has come.
        raw: The reward for what was done, in [-1, 1].
        timed: The same, less for the time it took where the page wants that.
        reason: Why, where the page says so.
    """

    done: bool
    raw: float
    timed: float
    reason: str


class PageSession(Session):
    """One episode on a page, in a browser context of its own: everything that the page runs and keeps is new.

    Args:
        task: The task: its page, seed and mode.
        tools: The tools of a browser.
        worth: What an end is worth.

    Raises:
        InfrastructureError: The browser does not start, or the page does not.
        MissingExtra: The browser's or the pages' extra is not installed.
    """

    def __init__(self, task: Task, tools: Sequence[ToolSpec], worth: Callable[[Outcome], float]) -> None:
        self.tools = tools
        self._worth = worth
        self._dragged = task.type in DRAGGED_ONTO
        seed = task.spec["seed"]
        app = pages.serving(task.type, seed, task.spec["mode"])
        self._page = ChromiumPage(app, pages.ORIGIN, start=pages.path_of(task.type), seed=seed, every=True)
        try:
            asked = self._page.ask(_ASKED)
            if not isinstance(asked, dict):
                raise InfrastructureError(f"the page {task.type!r} asks nothing; is miniwob installed whole?")
            self.goal = str(asked["utterance"])
            self._fields = {str(name): str(value) for name, value in asked["fields"].items()}
        except BaseException:
            self._page.close()
            raise

    def observe(self) -> Observation:
        """The page, as text and as the snapshot's JSON values, and the fields of what is asked."""
        snapshot = self._page.snapshot()
        view = {**snapshot.to_dict(), "fields": self._fields}
        for element in view["elements"]:
            actions: tuple[str, ...] = element.get("actions", ())
            if "fill" in actions or "readonly" in element.get("states", ()):
                element["actions"] = (*actions, "click")  # to be in it is all that some pages ask, and others answer it
            elif self._dragged and element["role"] in _SHOWING:
                element["actions"] = (*actions, "drag_and_drop")
        return Observation(page_text(snapshot), view)

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - nothing here is remote
        """Carries out an action on the page; see `Session.call`."""
        try:
            DEEDS[call.name](self._page, **call.arguments)
        except PageError as error:
            return ToolResult(status=error.status, content=str(error))
        finally:
            self._see()
        return ToolResult(status="ok")

    def _see(self) -> None:
        told = self._page.ask(_TOLD) if self.ended is None else None
        if not (isinstance(told, dict) and told["done"]):
            return
        outcome = Outcome(True, float(told["raw"]), float(told["timed"]), told["reason"])
        solved = outcome.raw == _SOLVED
        detail = json.dumps({"raw_reward": outcome.raw, "timed_reward": outcome.timed, "reason": outcome.reason})
        ending = Ending.SUCCESS if solved else Ending.FAILURE
        self.ended = Verdict(ending, (Check("raw_reward_is_1", solved, detail),), self._worth(outcome))

    def verdict(self, closing: ToolCall) -> Verdict:
        """What the page has not ended has failed, or was given up."""
        ending = Ending.FAILURE if closing.name == "finish" else Ending.ABSTAINED
        return Verdict(ending, (Check("page_has_ended", False),), 0.0)

    def digest(self) -> str:
        """A digest of what can be seen and of how it ended."""
        return digest([self._page.snapshot().to_dict(), self._told()])

    def changes(self) -> list[Change]:
        """How the page ended."""
        return [] if self.ended is None else [Change("page", "outcome", None, self._told())]

    def _told(self) -> dict[str, Any] | None:
        return None if self.ended is None else json.loads(self.ended.checks[0].detail)

    def save(self) -> Snapshot | None:
        """None: a page is restored by doing again what was done."""
        return None

    def probes(self) -> dict[str, Any]:
        """The page, and all that its browser keeps."""
        return {"page": self._page.snapshot().to_dict(), "browser": self._page.probes()}

    def interrupt(self) -> None:
        """Stops what is under way."""
        self._page.interrupt()

    def close(self) -> None:
        """Frees the page."""
        self._page.close()
