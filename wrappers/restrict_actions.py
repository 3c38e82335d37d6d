"""Fewer tools than an environment has: what is taken away is neither offered nor run."""

from collections.abc import Sequence
from typing import Any

import gymnasium

from agent_gym.errors import ConfigurationError
from agent_gym.wrappers.rich import RichWrapper

__all__ = ["RestrictActions"]


class RestrictActions(RichWrapper):
    """Narrows the permissions that the gateway enforces, and does nothing else.

    Several of them add up. What pages of a web site do are calls of operations: they need permission by their own names and levels,
    beside the tool that clicks. The closing tools are always there.

    Args:
        env: An `AgentEnv`, or wrappers around one.
        level: ``level1`` (what changes nothing), ``level2`` (also what destroys nothing) or ``level3`` (all).
        allow: The only tools that may be called.
        deny: Tools that may not be called.

    Raises:
        ConfigurationError: There is no such level or tool, names are no list, nothing is restricted, or it stands in a wrong place.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], level: str | None = None, allow: Sequence[str] | None = None, deny: Sequence[str] | None = None
    ) -> None:
        super().__init__(env, level=level, allow=allow, deny=deny)
        if level is None and allow is None and deny is None:
            raise ConfigurationError("RestrictActions needs a level, allow=[…] or deny=[…]")
        for names in (allow, deny):
            if names is not None and (not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names)):
                raise ConfigurationError(f"RestrictActions: a list of tools' names is needed, got {names!r}")
        self.agent_env.restrict(level or "level3", allow, deny or ())
