"""How an oracle that was written for the tool door goes through the pages: what they told it, and the way to what it still wants."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.core.closing import CLOSING
from agent_gym.world import Script
from agent_gym.world.counterpart import ASK
from agent_gym.world.scripts import ANSWERED

__all__ = ["next_action"]


def next_action(script: Script, site: ModuleType, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
    """The next action on the page towards the first call that a script wants and that no page has answered yet.

    Args:
        script: A fresh generator; see `agent_gym.world.scripts`.
        site: The module of the world's site: its ``answer(call, view)`` reads the record that a call would give off a page, or gives
            None; its ``way(call, views)`` is the next action towards the page that answers the call.
        observations: The observations so far, oldest first, with the pages seen in ``data["view"]``. What the counterpart was asked
            stands in ``data["last"]``.
    """
    views = [observation["data"]["view"] for observation in observations]
    lasts = [last for observation in observations if (last := observation["data"]["last"]) is not None and last["tool"] == ASK]
    told = {last["arguments"].get("question"): last["result"] for last in lasts if last["status"] in ANSWERED}
    at = 0  # the page that gave the last answer: the next was read there or later, or else before
    try:
        wanted = next(script)
        while wanted.name not in CLOSING:
            if wanted.name == ASK:
                answer = told.get(wanted.arguments["question"])
            else:
                pages = (*range(at, len(views)), *reversed(range(at)))
                answers = ((page, site.answer(wanted, views[page])) for page in pages)
                at, answer = next((found for found in answers if found[1] is not None), (at, None))
            if answer is None:
                action: ToolCall = wanted if wanted.name == ASK else site.way(wanted, views)
                return action
            wanted = script.send(answer)
    except StopIteration:
        return ToolCall("finish")
    finally:
        script.close()
    return wanted
