"""The state of an episode as JSON values, by which any equal environment can take it up."""

from collections.abc import Mapping
from typing import Any

from agent_gym.core.canonical import plain
from agent_gym.core.verdict import Ending
from agent_gym.episode import Episode
from agent_gym.errors import ConfigurationError, InvalidAction

__all__ = ["catch_up", "check_state", "state_of"]

_ALWAYS = frozenset({"kind", "root", "number", "task_id", "options", "calls"})
_SNAPSHOT = frozenset({"session", "shown"})


def state_of(episode: Episode) -> dict[str, Any]:
    """The state, of the kind ``snapshot`` where the session can be saved and nothing has failed so far, else ``prefix``.

    What fails leaves breakers, budgets and books behind, which no snapshot has; from a prefix, the calls are made again.

    Raises:
        ConfigurationError: The environment has failed in it.
    """
    if episode.record.ending is Ending.INFRA_ERROR:
        raise ConfigurationError("the environment failed in this episode: it has no state to go back to; call reset()")
    saved = episode.session.save() if episode.saveable else None
    state: dict[str, Any] = {
        "kind": "prefix" if saved is None else "snapshot",
        "root": episode.record.root_seed,
        "number": episode.record.episode,
        "task_id": episode.task.id,
        "options": episode.options,
        "calls": episode.calls,
    }
    if episode.concluded is not None:
        state["concluded"] = episode.concluded
    if saved is not None:
        state |= {"session": saved, "shown": episode.saved()}
    copied: dict[str, Any] = plain(state)
    return copied


def check_state(state: Mapping[str, Any]) -> None:
    """Looks whether something is such a state.

    Raises:
        ConfigurationError: It is not.
    """
    missing = (_ALWAYS | _SNAPSHOT if state.get("kind") == "snapshot" else _ALWAYS) - set(state)
    if missing or state["kind"] not in ("snapshot", "prefix"):
        raise ConfigurationError(f"not a state of get_state(): missing {sorted(missing)}, kind {state.get('kind')!r}")


def catch_up(episode: Episode, state: Mapping[str, Any]) -> None:
    """Brings an episode that was begun for a state to where that is: a prefix is played, and what ended it from outside ends it."""
    for call in state["calls"] if state["kind"] == "prefix" else ():
        episode.step(InvalidAction(call["invalid"]) if "invalid" in call else call)
    if "concluded" in state:
        ending, why = state["concluded"]
        episode.conclude(Ending(ending), why)
