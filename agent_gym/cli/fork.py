"""``agent-gym episodes fork`` and ``agent-gym episodes blame``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.text import Text

from agent_gym.cli.output import JsonOption, SeedOption, StoreOption, console, print_json, table
from agent_gym.cli.replay import newest
from agent_gym.core.action import ToolCall
from agent_gym.play.screen import printable
from agent_gym.policies import load
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.env_spec import rebuild
from agent_gym.trajectories.replay import Blame, blame, fork

__all__ = ["blame_episode", "fork_episode"]

_CHARS = 200
"""Of what changed and why it fails, so much is shown; ``--json`` has it all."""
_COMPARED = ("episode_id", "policy_id", "outcome", "end_reason", "n_turns", "reward_total")


def fork_episode(
    episode: Annotated[str, typer.Argument(metavar="ID", help="The episode's id.")],
    step: Annotated[int, typer.Option("--from", metavar="N", help="The last step that is taken from it; 0 is the reset.", min=0)],
    policy: Annotated[str, typer.Option(help="Who goes on: a policy's name (oracle, random, …), a saved model, or an import string.")],
    seed: SeedOption = 0,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Play an episode again up to a step, go on from there with another policy, and record that as an episode of its own."""
    kept = TrajectoryStore(store)
    old = kept.episode(episode)
    env = rebuild(old, "text")
    try:
        forked = fork(kept, episode, step, load(policy, env, seed=seed))
    finally:
        env.close()
    rows = [{name: row[name] for name in _COMPARED} for row in (old, kept.episode(forked))]
    if as_json:
        print_json({"store": str(store), "from": step, "parent": rows[0], "fork": rows[1]})
        return
    cells = [[name, *("–" if row[name] is None else row[name] for row in rows)] for name in _COMPARED]
    table(f"after step {step}", ["", "recorded", "forked"], cells)


def blame_episode(
    episode: Annotated[str | None, typer.Argument(metavar="ID", help="The episode's id; by default the newest.")] = None,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Find the mistake of an episode: the first step after which the oracle, taking over, cannot save it any more."""
    kept = TrajectoryStore(store)
    found = blame(kept, episode or newest(kept))
    if as_json:
        print_json({"store": str(store), **asdict(found)})
    else:
        _tell(found)


def _tell(found: Blame) -> None:
    _line((found.episode_id, "bold cyan"))
    _line((f"{found.env_id}  {found.task_id or 'unknown task'}  {found.outcome}", "bold"))
    for one in found.steps:
        told = "the oracle succeeds from here" if one.rescuable else f"lost: {', '.join(why.partition(':')[0] for why in one.why)}"
        told = "success" if one.rescuable and not one.steps else told
        _line((f"  after step {one.step:>3}  ", "dim"), (told, "green" if one.rescuable else "red"))
    if found.mistake is None:
        _line((found.note or "no step is a mistake", "bold"))
        return
    action = (
        "an action that could not be read" if found.action is None else str(ToolCall(found.action["name"], dict(found.action["arguments"])))
    )
    _line((f"the mistake is step {found.mistake}: ", "bold"), (action, "bold"), (f"  {found.status}", ""))
    for change in found.changes:
        before, after = (_cut(_json(value)) for value in _differing(change["before"], change["after"]))
        _line((f"  changed {change['where']} {change['key']}: {before} → {after}", ""))
    for why in found.why:
        _line((f"  fails since  {_cut(why)}", "red"))
    if found.note:
        _line((f"  {found.note}", "dim"))


def _differing(before: Any, after: Any) -> tuple[Any, Any]:
    """Of two versions of a row only what differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}
    return before, after


def _cut(text: str) -> str:
    return text if len(text) <= _CHARS else f"{text[:_CHARS]}…"


def _json(value: Any) -> str:
    return "nothing" if value is None else orjson.dumps(value).decode()


def _line(*parts: tuple[str, str]) -> None:
    console.print(Text.assemble(*((printable(text), style) for text, style in parts)), soft_wrap=True)
