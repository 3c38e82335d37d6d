r"""Scripted oracles: who solves which page, from nothing but what can be seen.

Each is a generator function ``script(goal, fields, view)``, written as straight-line code. It yields the action it wants, a `ToolCall`
of the tools that `agent_gym.envs.miniwob.MiniWoB` lists, and is sent what the page shows after it::

    def click_button(goal: str, fields: Fields, view: View) -> Script:
        button = find(view, "button", asked('"(.*)"', goal)[0])
        view = yield ToolCall("click", {"bid": button["bid"]})

- ``goal``: what the page asks, as one line of text (``data["goal"]``).
- ``fields``: the same in parts, by name, where the page itself says them (the flight sites); else empty (``data["view"]["fields"]``).
- ``view``: ``data["view"]``. Its ``elements`` are in document order; each has ``bid`` and ``role``, and where it has them ``name``,
  ``context`` (what its row or item says), ``value``, ``states`` (``checked``, ``disabled``, ``expanded``, …), ``options``, ``actions``,
  ``url`` and ``box`` (left, top, width, height in pixels of the window, for the tools ``mouse_…``, which take pixels of the window).
  A bid stays the same as long as the element is on the page. Controls have the roles of ARIA; a text with no element in it has
  ``generic``; a shape, a coloured or empty box, an icon or a canvas has ``img`` and a name such as ``red circle``, ``yellow
  triangle``, ``blue T`` or its classes. ``outline`` is the page in lines. ``error`` says why the last action failed, or is empty.

The page's clock stands still but for half a second with every action (`noop` only lets that pass). The page ends the episode by itself
as soon as it judges what was done; a script need not know it. One that comes to its end before that gives up (``finish``).

A script is a function of its arguments and of what it is sent, and of nothing else: `next_call` runs it again at every step. When
something else was done than it wanted, it is begun anew with what is shown then. It must not look for what cannot be seen.
`ORACLES` holds them by page; a page that is not in it has no oracle.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.envs.miniwob.oracles.clicking import CLICKING
from agent_gym.envs.miniwob.oracles.dragging import DRAGGING
from agent_gym.envs.miniwob.oracles.seeing import Fields, NotShown, Oracle, Script, View
from agent_gym.envs.miniwob.oracles.shapes import SHAPES
from agent_gym.envs.miniwob.oracles.sites import SITES
from agent_gym.envs.miniwob.oracles.typing import TYPING

__all__ = ["ORACLES", "Fields", "Script", "View", "next_call"]


def next_call(oracle: Oracle, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
    """The next call that a script wants, from the observations so far, oldest first; ``finish`` if it wants nothing more."""
    goal, fields = observations[0]["data"]["goal"], observations[0]["data"]["view"]["fields"]
    script = oracle(goal, fields, observations[0]["data"]["view"])
    wanted = _sent(script, None)
    for observation in observations[1:]:
        last, view = observation["data"]["last"], observation["data"]["view"]
        if wanted is not None and ToolCall(last["tool"], last["arguments"]) == wanted:
            wanted = _sent(script, view)
        else:
            script.close()
            script = oracle(goal, fields, view)
            wanted = _sent(script, None)
    script.close()
    return wanted or ToolCall("finish")


def _sent(script: Script, view: View | None) -> ToolCall | None:
    """What a script wants when it is begun, or is sent what is shown; None when it has come to its end or gone astray."""
    try:
        return next(script) if view is None else script.send(view)
    except (StopIteration, NotShown):
        return None


ORACLES: Mapping[str, Oracle] = dict(sorted({**CLICKING, **DRAGGING, **SHAPES, **SITES, **TYPING}.items()))
"""The oracles, by the page's name."""
