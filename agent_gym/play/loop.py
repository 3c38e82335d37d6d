"""Lets a person play: reads, carries out, shows, until there is nothing left to play or the player leaves."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
from rich.console import Console

from agent_gym.errors import ConfigurationError, InvalidAction
from agent_gym.evaluation.schedule import keywords, schedule
from agent_gym.play.game import Game
from agent_gym.play.keyboard import Keyboard
from agent_gym.play.moves import COMMANDS, read_move
from agent_gym.play.screen import Screen
from agent_gym.registry import IDS
from agent_gym.trajectories.store import TrajectoryStore
from agent_gym.wrappers.record_trajectory import RecordTrajectory

__all__ = ["play"]


def play(
    env_id: str,
    *,
    split: str = "train",
    episodes: int | None = None,
    tasks: str | None = None,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    console: Console,
) -> None:
    """Plays with whoever sits at stdin. The episodes are those that `evaluate` plays with the same arguments.

    Each is recorded with source ``human``; one that is left before its end is kept as ``interrupted``, and what follows an undo is
    an episode of its own whose parent is the one it goes on from.

    Args:
        env_id: Gymnasium id, with or without ``agent_gym:``.
        split: The split to draw from.
        episodes: How many; without it each of ``tasks`` once, or without these either until the player leaves.
        tasks: Families, task ids, or a file of task ids or families, one a line.
        seed: Of the draw and of the episodes.
        env_kwargs: Further keywords of the environment.
        store: Where the episodes are kept; None keeps none.
        console: Where to show it.

    Raises:
        ConfigurationError: An argument names something that does not exist, or does not fit.
        InfrastructureError: An episode could not begin.
        StoreError: The episodes cannot be kept.
    """
    given = keywords(split, env_kwargs)
    env = _made(env_id, given)
    recorded = None if store is None else RecordTrajectory(env, store, source="human", policy_id="human")
    screen = Screen(console)
    try:
        game = Game(recorded or env, schedule(env.get_wrapper_attr("tasks"), split, episodes, seed, tasks, given), seed)
        keyboard = Keyboard(lambda: _words(game))
        while game.next():
            screen.opening(game)
            if not _episode(game, screen, keyboard, recorded):
                break
    except (EOFError, KeyboardInterrupt):
        console.print()
    finally:
        (recorded or env).close()
    if store is not None and recorded is not None and recorded.run_id is not None:
        TrajectoryStore(store).seal(recorded.run_id)
        screen.say(f"Recorded in {store}; to see it: agent-gym episodes list --store {store} --run {recorded.run_id}")


def _made(env_id: str, given: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(env_id, interface="text", disable_env_checker=True, **given)
    except TypeError as error:
        if "unexpected keyword argument 'interface'" in str(error):
            raise ConfigurationError(f"{env_id!r} has no text interface; play one of {', '.join(IDS)}, or one made like them") from error
        raise


def _episode(game: Game, screen: Screen, keyboard: Keyboard, recorded: RecordTrajectory | None) -> bool:
    """Plays one episode; False if the player has had enough."""
    while True:
        try:
            typed = keyboard.read("ended > " if game.ending else f"{game.data['step']}/{game.data['max_steps']} > ")
        except UnicodeDecodeError as error:
            screen.complain(f"that is no UTF-8: {error}")
            continue
        match typed.strip().lower():
            case "quit" | "exit" | "q":
                return False
            case "next":
                return True
            case "" if game.ending:
                return True
            case "":
                screen.hint(game)
            case "help" | "?":
                screen.help(game)
            case "choices":
                screen.choices(game)
            case "tools":
                screen.tools(game)
            case "rules":
                screen.rules(game)
            case "look":
                screen.step(game)
            case "restart":
                game.restart()
                screen.opening(game)
            case "undo":
                if game.undo():
                    screen.step(game)
                else:
                    screen.complain("there is no step to take back")
            case _ if game.ending:
                screen.complain("the episode has ended; press Enter for the next one, or type restart, undo or quit")
            case _:
                _move(typed, game, screen, recorded)


def _move(typed: str, game: Game, screen: Screen, recorded: RecordTrajectory | None) -> None:
    try:
        call = read_move(typed, game.choices, game.tools)
    except InvalidAction as error:
        screen.complain(str(error))
        return
    game.step(call)
    screen.step(game)
    if game.ending:
        screen.end(game, None if recorded is None else recorded.episode_id)


def _words(game: Game) -> Iterator[str]:
    """What the tab key completes: commands, tools, and the values that stand in the choices."""
    yield from COMMANDS
    yield from (spec.name for spec in game.tools)
    yield from (value for call in game.choices for value in call.arguments.values() if isinstance(value, str))
