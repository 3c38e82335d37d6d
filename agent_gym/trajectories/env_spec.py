"""How an environment was built, as JSON text of the column ``env_spec``; and building an equal one from it.

A store may come from anywhere. What is built is an id that Gymnasium knows in this process, never an entry point that a store names;
and of the import strings in its keywords and wrappers only those are followed that lead into this package, into Gymnasium, or into a
module that has been imported already.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium
import orjson
from gymnasium.envs.registration import EnvSpec

from agent_gym.core.canonical import dumps
from agent_gym.errors import ConfigurationError
from agent_gym.factory import interface_of, load_object
from agent_gym.interface import Interface

__all__ = ["describe", "innermost", "rebuild"]

_IMPORT = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*")
_OURS = (__name__.partition(".")[0], gymnasium.__name__)
_ONLOOKERS = (":RecordTrajectory", ":RecordVideo")
"""Wrappers that change nothing about an environment and write files: left out."""


def describe(spec: EnvSpec | None) -> str | None:
    """What it takes to build an environment, as JSON text.

    Args:
        spec: Its spec.

    Returns:
        ``{"kwargs", "max_episode_steps", "wrappers": [[import string, kwargs], …]}``, the innermost wrapper first and the id's own
        keywords left out; None where there is no spec, where something of it is no JSON, and where it holds a token.
    """
    if spec is None:
        return None
    own = gymnasium.registry[spec.id].kwargs if spec.id in gymnasium.registry else {}
    kwargs = {name: value for name, value in spec.kwargs.items() if name not in own or own[name] != value}
    wrappers = [
        [wrapper.entry_point, wrapper.kwargs] for wrapper in spec.additional_wrappers if not wrapper.entry_point.endswith(_ONLOOKERS)
    ]
    if isinstance(kwargs.get("permissions"), Mapping) or any(kwargs is None for _, kwargs in wrappers):
        return None
    try:
        return dumps({"kwargs": kwargs, "max_episode_steps": spec.max_episode_steps, "wrappers": wrappers}).decode()
    except TypeError:
        return None


def rebuild(row: Mapping[str, Any], interface: str | None = None) -> gymnasium.Env[Any, Any]:
    """Builds an environment equal to the one that an episode was recorded in, up to where its recorder stood.

    Args:
        row: The episode's row.
        interface: ``"array"`` or ``"text"`` in place of its own; what stood around that one is then left out.

    Raises:
        ConfigurationError: It is not known how it was built, its id is not known here, or its keywords are not to be trusted.
    """
    env_id, told, where = row["env_id"], row["env_spec"], f"episode {row['episode_id']}"
    if told is None:
        raise ConfigurationError(
            f"{where}: how its environment was built is not in the record: it was recorded by an earlier version, "
            "was not made by gymnasium.make, or has keywords or wrappers that are no JSON values"
        )
    if env_id not in gymnasium.registry:
        raise ConfigurationError(f"{where}: the environment {env_id!r} is not registered in this process; import it first")
    spec = orjson.loads(told)
    for name in _import_strings(spec):
        module = name.partition(":")[0]
        if module.partition(".")[0] not in _OURS and module not in sys.modules:
            raise ConfigurationError(f"{where}: the store names {name!r}, which is not imported for it; import it first")
    kwargs, wrappers = spec["kwargs"], spec["wrappers"]
    if "rich_wrappers" in kwargs:
        kwargs["rich_wrappers"] = _acting(kwargs["rich_wrappers"])
    env = _made(env_id, spec, kwargs)
    if interface is not None and isinstance(env.unwrapped, Interface) and not isinstance(env.unwrapped, interface_of(interface)):
        env.close()
        env, wrappers = _made(env_id, spec, {**kwargs, "interface": interface}), []
    for name, arguments in _acting(wrappers):
        wrapper = load_object(name)
        if not (isinstance(wrapper, type) and issubclass(wrapper, gymnasium.Wrapper)):
            raise ConfigurationError(f"{where}: {name!r} is no gymnasium.Wrapper")
        env = wrapper(env, **arguments)
    return env


def _made(env_id: str, spec: Mapping[str, Any], kwargs: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(env_id, max_episode_steps=spec["max_episode_steps"], disable_env_checker=True, **kwargs)


def _acting(wrappers: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    return [pair for pair in wrappers if not str(pair[0]).endswith(_ONLOOKERS)]


def innermost(env: gymnasium.Env[Any, Any]) -> Any:
    """The environment that makes the records, an `AgentEnv`: beneath every wrapper, and beneath an interface if there is one."""
    base: Any = env.unwrapped
    return base.rich.unwrapped if hasattr(base, "rich") else base


def _import_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if _IMPORT.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _import_strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _import_strings(part)
