"""What the registered ids call: builds ``Interface(wrappers(AgentEnv))`` from keywords that are JSON values or import strings."""

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from agent_gym.agent_env import AgentEnv
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.interface import ArrayInterface, Interface, TextInterface

__all__ = ["INTERFACES", "interface_of", "load_object", "make"]

INTERFACES: dict[str, type[Interface]] = {"array": ArrayInterface, "text": TextInterface}
"""The interfaces by name."""


def make(
    *,
    env: str,
    interface: str = "array",
    rich_wrappers: Sequence[Sequence[Any]] = (),
    render_mode: str | None = None,
    **keywords: Any,
) -> Interface:
    """Builds an environment.

    Args:
        env: Import string of the `AgentEnv`.
        interface: ``"array"`` (fixed-size arrays and the index of a candidate) or ``"text"`` (rich observations and tool calls); or the
            import string of another `Interface`.
        rich_wrappers: Wrappers between the environment and its interface, innermost first: pairs of an import string such as
            ``"package.module:Wrapper"`` and a dict of keywords.
        render_mode: ``"ansi"`` or None.
        **keywords: The environment's own.

    Raises:
        ConfigurationError: A keyword, name or wrapper that does not exist or does not fit.
    """
    shown_as = interface_of(interface)
    kind = load_object(env)
    try:
        rich: gymnasium.Env[Any, Any] = kind(render_mode=render_mode, **keywords)
    except TypeError as error:
        if "keyword argument" in str(error):
            raise ConfigurationError(f"{kind.__name__}: {str(error).rpartition(') ')[2] or error}") from error
        raise
    if isinstance(rich, AgentEnv):
        rich.rebuild = functools.partial(kind, render_mode=render_mode, **keywords)
    if not isinstance(rich_wrappers, list | tuple):
        raise ConfigurationError(f"rich_wrappers must be a list of pairs, got {rich_wrappers!r}")
    for pair in rich_wrappers:
        rich = _wrap(rich, pair)
    built = shown_as(rich)
    built.rebuild = functools.partial(make, env=env, interface=interface, rich_wrappers=rich_wrappers, render_mode=render_mode, **keywords)
    return built


def interface_of(name: str) -> type[Interface]:
    """The interface of that name, or of that import string.

    Raises:
        ConfigurationError: There is none.
    """
    if isinstance(name, str) and ":" in name:
        found = load_object(name)
        if isinstance(found, type) and issubclass(found, Interface):
            return found
        raise ConfigurationError(f"interface: {name!r} is no agent_gym Interface")
    if not isinstance(name, str) or name not in INTERFACES:
        raise unknown("interface", name, [*INTERFACES, "an import string (package.module:name)"])
    return INTERFACES[name]


def load_object(name: str) -> Any:
    """What an import string ``"package.module:name"`` names.

    Raises:
        ConfigurationError: It names nothing.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ConfigurationError(f"{name!r} is no import string; write 'package.module:name'")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ConfigurationError(f"{name!r} names nothing that can be imported: {error}") from error


def _wrap(env: gymnasium.Env[Any, Any], pair: Sequence[Any]) -> gymnasium.Env[Any, Any]:
    if isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], Mapping):
        raise ConfigurationError(f"rich_wrappers: {pair!r} is not a pair of an import string and a dict of keywords")
    wrapper = load_object(pair[0])
    if not (isinstance(wrapper, type) and issubclass(wrapper, gymnasium.Wrapper)):
        raise ConfigurationError(f"rich_wrappers: {pair[0]!r} is no gymnasium.Wrapper")
    try:
        wrapped: gymnasium.Env[Any, Any] = wrapper(env, **pair[1])
    except TypeError as error:
        raise ConfigurationError(f"rich_wrappers: {pair[0]}: {error}") from error
    if not isinstance(wrapped.unwrapped, AgentEnv):
        raise ConfigurationError(f"rich_wrappers: {pair[0]!r} hides the environment inside it")
    return wrapped
