"""An episode as a conversation in the form of OpenAI-style chat APIs: rules, goal, calls, and what was seen after each."""

from collections.abc import Mapping
from typing import Any

import orjson

from agent_gym.trajectories.export.reading import Recorded

__all__ = ["call_id", "opening", "said", "seen", "turns"]

Message = dict[str, Any]


def call_id(step: Mapping[str, Any]) -> str:
    """The id of a step's call, unique in its episode; nine letters and digits, since some chat templates take no other."""
    return f"call{step['step']:05d}"


def opening(episode: Recorded) -> list[Message]:
    """What the agent was told before its first action: the rules, if there are any, and the first observation."""
    rules, text = _shown(episode)[:2]
    return [*([{"role": "system", "content": rules}] if rules else []), {"role": "user", "content": text}]


def said(step: Mapping[str, Any]) -> Message:
    """A step's action, as the agent said it: a call, or plain text where it could not be read as one."""
    if step["action"] is None:
        return {"role": "assistant", "content": step["given"] or ""}
    action = orjson.loads(step["action"])
    function = {"name": action["name"], "arguments": orjson.dumps(action["arguments"]).decode()}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": call_id(step), "type": "function", "function": function}]}


def seen(episode: Recorded, step: Mapping[str, Any]) -> Message:
    """What the agent saw after a step: the result of its call and the state then, without what the opening has said already."""
    text = step["obs_text"].removeprefix(_shown(episode)[2])
    if step["action"] is None:
        return {"role": "user", "content": text}
    return {"role": "tool", "tool_call_id": call_id(step), "content": text}


def turns(episode: Recorded, until: int | None = None) -> list[Message]:
    """The conversation after its opening, up to the last action; nobody acted on what was seen after that.

    Args:
        episode: The episode.
        until: Only what was said and seen before this step was taken.
    """
    messages = []
    for step in episode.steps[1:until]:
        messages += [said(step), seen(episode, step)]
    return messages[:-1] if until is None else messages


def _shown(episode: Recorded) -> tuple[str, str, str]:
    """The rules; the first observation without them; and the beginning that all observations share."""
    first = episode.steps[0]
    text, data = first["obs_text"], orjson.loads(first["obs_data"])
    rules, goal = data.get("rules") or "", data.get("goal") or ""
    end = text.find(f"\nStep 0 of {data.get('max_steps')}.", len(goal) + len(rules)) + 1
    block = f"Rules:\n{rules}\n"
    at = text.find(block, len(goal), end)
    return rules, text if at < 0 or not rules else text[:at] + text[at + len(block) :], text[:end]
