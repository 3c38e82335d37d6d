"""WebTask: the tasks of a simulated business, solved through its web site."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from gymnasium.spaces import Box, Dict

from agent_gym import browser
from agent_gym.agent_env import AgentEnv
from agent_gym.core import Session, Snapshot, Task, ToolCall
from agent_gym.envs.web_task.oracle import next_action
from agent_gym.envs.web_task.session import ENGINES, OBSERVATIONS, SIZE, WebSession
from agent_gym.envs.web_task.tools import REPORT_INFEASIBLE, browser_tools, pointing_tools
from agent_gym.envs.worlds import load_worlds
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.world import WorldTaskSet
from agent_gym.world.site import site_of

__all__ = ["WebTask"]

_WHOLE = r"(?<![-:.+$])[0-9]{1,4}(?![-:.][0-9])"
"""A whole number in a goal that is no part of a date, a time or a price."""
_PACE = 1.5
"""A page takes more steps than a tool: the step limits are this many times those of the tool door."""


class WebTask(AgentEnv):
    """Does what people ask of a business, through its web site.

    ## Description
    The same businesses, requests and ids of tasks as in ``AgentBase/ToolTask-v0``, through the other door: the agent sits at the
    service desk of a shop, signed in to its web site, and clicks its way to the customer, the order and the form that does what
    was asked. The pages call the same operations on the same database, and the same is judged. By default no browser, no socket
    and no script is involved: an engine of our own reads the pages by HTML's rules. ``engine="chromium"`` shows the same pages in
    a real browser, by the same numbers. Nothing outside the site can be reached.

    ## Observation
    ``text`` says it all in words; the page is an outline in which everything that can be acted upon has a number: ``[12] link
    "Orders"``. ``data`` has ``goal``, ``rules``, ``step``, ``max_steps``, ``last``, and in ``view`` the page: ``url``, ``title``,
    ``status``, ``tabs``, ``outline``, ``elements`` (``bid``, ``role``, ``name``, ``context``, ``value``, ``states``, ``options``,
    ``actions``, ``url``), ``focused``, ``error`` (of the last action on the page), ``downloads``, ``notes``.

    ## Actions
    | tool | arguments | |
    |---|---|---|
    | click, dblclick, hover, focus | bid | on an element |
    | fill, clear | bid, value; bid | a field's text |
    | select_option | bid, options | a select's options, by label |
    | check, uncheck | bid | checkboxes, radio buttons |
    | press | bid, key_comb | ``Enter``, ``Tab``, ``Space``, … |
    | scroll | delta_x, delta_y | |
    | goto, go_back, go_forward | url; | within the site |
    | new_tab, tab_focus, tab_close | ; index; | |
    | upload_file | bid, file | files that the episode offers |
    | send_msg_to_user | text | the answer, if ``finish`` gives none |
    | noop | wait_ms? | |
    | accept_dialog, dismiss_dialog | text?; | in Chromium only, as are all of these |
    | drag_and_drop, scroll_at | from_bid, to_bid; x, y, dx, dy | |
    | mouse_move, mouse_down, mouse_up, mouse_click, mouse_dblclick | x, y, button? | |
    | mouse_drag_and_drop | from_x, from_y, to_x, to_y | |
    | keyboard_down, keyboard_up, keyboard_press | key | where the focus is |
    | keyboard_type, keyboard_insert_text | text | |
    | finish, refuse, hand_over, report_infeasible | answer?; reason; reason; reason | close the episode |

    An action that cannot be done has status ``not_found`` (no such element, or of an earlier page), ``conflict`` (hidden,
    disabled, not fillable, stopped by a validation message, no URL) or ``forbidden`` (it leads out of the site), and the result
    says why. ``outcome_unknown``: the site has changed something, but the page that tells of it did not come. A page that is too
    long to show at once is shown from where it is scrolled to, 20 pixels a line.

    ## Reward
    +1 for success, -1 for a violation, -0.1 for an attempt to leave the site, else 0. ``shaping="milestones"`` as in ToolTask.

    ## Endings
    As in ToolTask; *step_limit* after 30 steps.

    ## Tasks
    Those of ToolTask, by the same ids; a page that shows an account or an order counts as having read it.

    ``worlds=["widgets"]``, in Chromium only, is a gallery: seventeen pages of one widget each, with scripts (``autocomplete``,
    ``confirm_dialog``, ``date_picker``, ``download``, ``drag_to_sort``, ``iframe``, ``infinite_list``, ``modal``, ``native_select``,
    ``nested_scroll``, ``popup``, ``replaced``, ``rich_text``, ``shadow_root``, ``slider``, ``toast``, ``upload``), to be set as the
    goal says.

    ## Versions
    - 3: as ToolTask's version 4.
    - 2: as ToolTask's version 3: several worlds, all families through the pages.
    - 1: the first.

    Args:
        worlds: Names of worlds; all that have a site by default, but for the gallery ``"widgets"``, which is asked for by name.
        engine: What runs the pages: ``"inprocess"``, or ``"chromium"`` (extra ``browser``).
        observation: How pages are shown: ``"text"``; or, in Chromium, ``"image"`` (a screenshot of 720 by 1280 pixels in which the
            elements' numbers are drawn, and no outline), or ``"both"``.
        counterpart: As in ToolTask.
        **keywords: Those of `AgentEnv`.
    """

    version: ClassVar[str] = "3"

    def __init__(
        self,
        *,
        worlds: Sequence[str] | None = None,
        engine: str = "inprocess",
        observation: str = "text",
        counterpart: str | None = None,
        **keywords: Any,
    ) -> None:
        if engine not in ENGINES:
            raise unknown("engine", engine, ENGINES)
        if observation not in OBSERVATIONS:
            raise unknown("observation", observation, OBSERVATIONS)
        if observation != "text" and engine != "chromium":
            raise ConfigurationError(f"observation={observation!r} needs engine='chromium': only a browser draws pages")
        self._engine, self._observation = engine, observation
        kinds = load_worlds(worlds, scripts=engine == "chromium", counterpart=counterpart)
        if closed := [kind.name for kind in kinds if worlds is not None and not kind.site]:
            raise ConfigurationError(f"the world {closed[0]!r} has no web site")
        kinds = [kind for kind in kinds if kind.site]
        self._sites = {kind.name: site_of(kind) for kind in kinds}
        self.carried = frozenset(name for kind in kinds for name in kind.operations)
        self._tasks = WorldTaskSet(kinds, pace=_PACE)
        tools = [spec for kind in kinds for spec in kind.tools]
        fields = [schema for spec in tools for schema in spec.parameters["properties"].values()]
        typed = {schema.get("x-find") or ("x-entity" in schema and schema.get("pattern")) for schema in fields}
        if any(
            spec.parameters["properties"][name].get("type") == "integer" for spec in tools for name in spec.parameters.get("required", ())
        ):
            typed.add(_WHOLE)
        self._tools = browser_tools(pattern for pattern in typed if pattern)
        if engine == "chromium":
            self._tools += pointing_tools()
        asking = {spec.name: spec for kind in kinds for spec in kind.asking}
        reasons = dict.fromkeys(reason for kind in kinds for reason in kind.reasons)
        rules = "\n\n".join(kind.rules for kind in kinds)
        closing = (REPORT_INFEASIBLE,)
        super().__init__(
            tasks=self._tasks, tools=(*self._tools, *asking.values()), closing=closing, reasons=tuple(reasons), rules=rules, **keywords
        )
        if observation != "text":
            self.observation_space = Dict({**cast("Dict", self.observation_space).spaces, "image": Box(0, 255, SIZE, np.uint8)})

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - a page saves no snapshot
        """Opens the task's world and its site; everything about it follows from the task, nothing from the seed."""
        kind, base = self._tasks.base(task)
        return WebSession(kind, task, base, self._sites[kind.name], self._tools, self._engine, self._observation)

    def clear_caches(self) -> None:
        """Forgets whatever outlives an episode to be faster, the pages seen among it."""
        super().clear_caches()
        browser.clear_caches()
        for site in self._sites.values():
            site.clear_caches()

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """What a perfect agent would do next, from nothing but the observations since the reset."""
        goal = observations[0]["data"]["goal"]
        for kind in self._tasks.kinds.values():
            script = kind.oracle(goal)
            if script is not None:
                return next_action(script, self._sites[kind.name], observations)
        raise ConfigurationError(f"no oracle can read the goal {goal!r}")
