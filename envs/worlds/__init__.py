"""The worlds that ship with the package, one folder each."""

from agent_gym.errors import ConfigurationError, unknown
from agent_gym.factory import load_object
from agent_gym.world import WorldKind

__all__ = ["WORLDS", "load_worlds"]

WORLDS = {
    "retail": "agent_gym.envs.worlds.retail:RETAIL",
    "library": "agent_gym.envs.worlds.library:LIBRARY",
}
"""The worlds by name. A new one is one more line."""


def load_worlds(names: object) -> list[WorldKind]:
    """The worlds of these names, all of them for None.

    Raises:
        ConfigurationError: There is none of that name.
    """
    if isinstance(names, str) or not (names is None or isinstance(names, list | tuple)):
        raise ConfigurationError(f"worlds must be a list of names, got {names!r}")
    for name in names or ():
        if name not in WORLDS:
            raise unknown("world", name, WORLDS)
    return [load_object(WORLDS[name]) for name in (WORLDS if names is None else names)]
