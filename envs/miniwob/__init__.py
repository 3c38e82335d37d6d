"""MiniWoB: the pages of MiniWoB++ as they are, in a real browser."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agent_gym import browser
from agent_gym.agent_env import AgentEnv
from agent_gym.core import Session, Snapshot, Task, ToolCall
from agent_gym.envs.miniwob import pages
from agent_gym.envs.miniwob.oracles import ORACLES, next_call
from agent_gym.envs.miniwob.rewards import reward_of
from agent_gym.envs.miniwob.session import PageSession
from agent_gym.envs.miniwob.tasks import MiniWoBTaskSet
from agent_gym.envs.web_task.tools import browser_tools, pointing_tools
from agent_gym.errors import ConfigurationError

__all__ = ["MiniWoB"]

_AWAY = frozenset({"goto", "go_back", "go_forward", "new_tab", "tab_focus", "tab_close", "upload_file", "send_msg_to_user"})
"""Tools of a browser that lead away from the page, or that no page has a use for."""
_TYPED = (
    r'(?<=")[^"]+(?="(?:[^"]*"[^"]*")*[^"]*$)',
    r"(?<![\w.,$])-?\d+(?:[./:]\d+)*(?![\w,])",
    r"(?<=from: ).+?(?= to: )|(?<=to: ).+?(?= on )",
    r"(?<=Search for )\w+|(?<=directed by )\w+",
    r"(?<= by )\w+(?= and )|(?<= to )\w+(?=\.$)",
)
"""What is worth typing: what a goal has in quotes, its numbers, dates and times, places of flights, what is known of movies and mails."""
_RULES = "The episode ends by itself as soon as the page judges what was done. To finish, refuse or hand over gives the task up."


class MiniWoB(AgentEnv):
    """Does what a small page asks: click this, type that, drag it there.

    ## Description
    The pages of MiniWoB++, which nobody here wrote, as the package `miniwob` brings them (extra ``miniwob``), in Chromium (extra
    ``browser``). Every episode has a browser context of its own, and the pages are served within the process. What a page asks is
    told as the goal, once; the score that the page shows beside is hidden, and the episode begins at once. The page's clock stands
    still but for half a second with every step, so that a busy machine changes nothing.

    ## Observation
    As in WebTask; beside that, whatever shows something has a number, not only what can be acted upon by rule: a text with no
    element in it (role ``generic``), and a shape, a coloured box, an icon or a canvas (role ``img``, named ``red circle``, ``blue
    T``, or by its classes). Every element in ``data["view"]["elements"]`` has its ``box``: left, top, width and height in pixels of
    the window. ``data["view"]["fields"]`` has what is asked in parts, where the page says it so.

    ## Actions
    | tool | arguments | |
    |---|---|---|
    | click, dblclick, hover, focus | bid | on an element |
    | fill, clear | bid, value; bid | a field's text |
    | select_option | bid, options | a select's options, by label |
    | check, uncheck | bid | checkboxes, radio buttons |
    | press | bid, key_comb | ``Enter``, ``Tab``, ``Space``, … |
    | scroll, scroll_at | delta_x, delta_y; x, y, dx, dy | |
    | drag_and_drop | from_bid, to_bid | |
    | mouse_move, mouse_down, mouse_up, mouse_click, mouse_dblclick | x, y, button? | pixels of the window |
    | mouse_drag_and_drop | from_x, from_y, to_x, to_y | |
    | keyboard_down, keyboard_up, keyboard_press | key | where the focus is |
    | keyboard_type, keyboard_insert_text | text | |
    | accept_dialog, dismiss_dialog | text?; | |
    | noop | wait_ms? | half a second passes |
    | finish, refuse, hand_over | answer?; reason; reason | give the task up |

    The page cannot be left: it is served once, and no other is there.

    ## Reward
    At the end, by ``reward_mode``: the page's own raw reward in [-1, 1] (``"raw"``); the same, less for the time it took where
    the page wants that (``"original"``); 1 or -1, for a raw reward of exactly 1 or less (``"binary"``), or of ``threshold`` at least
    or less (``"thresholded"``). 0 where the page has not ended.

    ## Endings
    *success*: the page's raw reward is exactly 1, whatever the mode. *failure*: it is less, or ``finish`` came before the page had
    ended. *abstained*: refused or handed over. *step_limit*: the time that the page gives, at half a second a step.

    ## Tasks
    ``miniwob/<page>/<split>-<number>``: each seed of a page is a task. The families are the pages, by their names. Splits: ``train``
    (1,000,000 of each page), ``validation`` and ``test`` (1,000 each); where a page has a distribution of its own for testing, ``test``
    draws from that.

    ## Versions
    - 1: the first.

    Args:
        task: A page's name, several, or ``"all"``.
        reward_mode: One of ``"raw"``, ``"original"``, ``"binary"``, ``"thresholded"``.
        threshold: The least raw reward that is worth 1, in [-1, 1]; for ``"thresholded"`` alone.
        **keywords: Those of `AgentEnv`; ``families`` means the same as ``task``.

    Raises:
        ConfigurationError: A keyword that does not fit.
        MissingExtra: The pages are not installed.
    """

    version: ClassVar[str] = "1"

    def __init__(self, *, task: str | Sequence[str] = "all", reward_mode: str = "raw", threshold: float = 1.0, **keywords: Any) -> None:
        self._worth = reward_of(reward_mode, threshold)
        names = None if task == "all" else [task] if isinstance(task, str) else task
        if names is not None and keywords.get("families") is not None:
            raise ConfigurationError("give either task or families: they mean the same")
        tools = [tool for tool in (*browser_tools(_TYPED), *pointing_tools()) if tool.name not in _AWAY]
        super().__init__(tasks=MiniWoBTaskSet(names), tools=tools, rules=_RULES, **keywords)

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - a page saves no snapshot
        """Opens the task's page; everything about it follows from the task, nothing from the seed."""
        return PageSession(task, self._domain_tools, self._worth)

    def clear_caches(self) -> None:
        """Forgets whatever outlives an episode to be faster."""
        super().clear_caches()
        browser.clear_caches()

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """What a perfect agent would do next, from nothing but the observations since the reset; see `agent_gym.envs.miniwob.oracles`."""
        name = pages.name_of(observations[0]["data"]["view"]["url"])
        if name not in ORACLES:
            raise ConfigurationError(f"the page {name!r} has no oracle; those with one are {', '.join(ORACLES)}")
        return next_call(ORACLES[name], observations)
