"""The worlds that ship with the package, one folder each."""

from dataclasses import replace

from agent_gym.errors import ConfigurationError, unknown
from agent_gym.factory import load_object
from agent_gym.world import WorldKind

__all__ = ["WORLDS", "load_worlds"]

WORLDS = {
    "retail": "agent_gym.envs.worlds.retail:RETAIL",
    "workspace": "agent_gym.envs.worlds.workspace:WORKSPACE",
    "library": "agent_gym.envs.worlds.library:LIBRARY",
    "widgets": "agent_gym.envs.worlds.widgets:WIDGETS",
}
"""The worlds by name. A new one is one more line."""


def load_worlds(names: object, *, scripts: bool = False, counterpart: object = None) -> list[WorldKind]:
    """The worlds of these names; all of them for None, but for galleries.

    Args:
        names: The names.
        scripts: Whether pages are shown by a browser that runs their scripts, as a gallery's must.
        counterpart: Import string of a function that reads questions in the counterpart's place (see `Counterpart`), or None.

    Raises:
        ConfigurationError: There is none of that name, or it needs such a browser, or the import string names no function.
    """
    if isinstance(names, str) or not (names is None or isinstance(names, list | tuple)):
        raise ConfigurationError(f"worlds must be a list of names, got {names!r}")
    for name in names or ():
        if name not in WORLDS:
            raise unknown("world", name, WORLDS)
    kinds: list[WorldKind] = [load_object(WORLDS[name]) for name in (WORLDS if names is None else names)]
    if counterpart is not None:
        stand_in = load_object(counterpart) if isinstance(counterpart, str) else None
        if not callable(stand_in):
            raise ConfigurationError(f"counterpart must be the import string of a function, got {counterpart!r}")
        kinds = [replace(kind, counterpart=kind.counterpart and replace(kind.counterpart, stand_in=stand_in)) for kind in kinds]
    if names is None:
        return [kind for kind in kinds if not kind.gallery]
    if not scripts and (closed := [kind.name for kind in kinds if kind.gallery]):
        raise ConfigurationError(
            f"the world {closed[0]!r} is a gallery of pages with scripts; play it with AgentBase/WebTask-v0 and engine='chromium'"
        )
    return kinds
