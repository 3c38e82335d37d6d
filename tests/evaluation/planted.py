"""A world with planted defects: the library's question with a short cut that works, and a cheat that raises."""

from dataclasses import replace

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.library import LIBRARY
from agent_gym.world import next_call

__all__ = ["PLANTED"]


def _works(observations: object) -> ToolCall:
    script = LIBRARY.oracle(observations[0]["data"]["goal"])  # type: ignore[index]
    assert script is not None
    return next_call(script, observations)  # type: ignore[arg-type]


def _breaks(_: object) -> ToolCall:
    raise ZeroDivisionError("planted")


_CHEATS = {"finishes": lambda _: ToolCall("finish"), "works": _works}
_FAMILIES = {"due": replace(LIBRARY.families["due"], transfer=False, cheats=_CHEATS)}
_FAMILIES |= {"honest": replace(LIBRARY.families["renew"], name="honest", transfer=False, cheats={"finishes": _CHEATS["finishes"]})}
_FAMILIES |= {"broken": replace(_FAMILIES["honest"], name="broken", cheats={"breaks": _breaks})}

PLANTED = replace(LIBRARY, name="planted", families=_FAMILIES, tasks={"train": 60}, bases={"train": 1})
"""The world."""
