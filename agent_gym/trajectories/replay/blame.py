"""Which step of an episode was the mistake: the first one after which even the oracle cannot save it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agent_gym.core.action import ToolCall
from agent_gym.core.session import Change
from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.trajectories.replay.playback import Playback
from agent_gym.trajectories.replay.recording import Recording
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["Blame", "Rescue", "blame"]

Oracle = Callable[[Sequence[Mapping[str, Any]]], ToolCall]


@dataclass(frozen=True)
class Rescue:
    """What became of an episode when the oracle took over.

    Attributes:
        step: The last step that was the agent's; 0 is the reset.
        rescuable: Whether the oracle succeeded from there.
        ending: How it ended; empty where the oracle could not go on.
        steps: How many steps the oracle took.
        why: What failed, in words; empty for a success.
    """

    step: int
    rescuable: bool
    ending: str
    steps: int
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blame:
    """Which step was the mistake.

    Attributes:
        episode_id: The episode.
        env_id: Its environment.
        task_id: Its task.
        outcome: How it ended.
        mistake: The first step after which the oracle never succeeds; None where there is none.
        action: What was called in it; None where it could not be read.
        status: What came of that.
        changes: What it changed: ``where``, ``key``, ``before``, ``after``.
        why: Why the episode fails from there, in words.
        steps: What the oracle could do after each step, the reset first.
        note: What else there is to know, in words; or empty.
    """

    episode_id: str
    env_id: str
    task_id: str | None
    outcome: str
    mistake: int | None
    action: Mapping[str, Any] | None
    status: str | None
    changes: tuple[Mapping[str, Any], ...]
    why: tuple[str, ...]
    steps: tuple[Rescue, ...]
    note: str


def blame(store: TrajectoryStore, episode_id: str) -> Blame:
    """Finds the step after which an episode could not be saved any more.

    After every step the oracle takes over, knowing all observations so far, and plays to the end, within the step limit. That takes
    no step for granted: a state that the oracle cannot save may be followed by one that it can, and then it was no mistake.

    Args:
        store: The store.
        episode_id: The episode.

    Raises:
        ConfigurationError: The episode cannot be played again, or its task has no oracle.
        InfrastructureError: The environment failed.
        StoreError: There is no such episode, or the store cannot be read.
    """
    recording = Recording.load(store, episode_id)
    row = recording.row
    with Playback(recording, interface="text") as playback:
        base: Any = playback.env.unwrapped
        playback.begin()
        seen, states, changes = [playback.observation], [base.get_state()], [_changes(playback)]
        for number in range(1, recording.playable + 1):
            playback.step(number)
            changes.append(_changes(playback))
            if playback.ended:
                break
            seen.append(playback.observation)
            states.append(base.get_state())
        steps = []
        if playback.ended:
            why = _why(playback, playback.outcome["ending"])
            steps = [Rescue(len(states), bool(playback.outcome["success"]), playback.outcome["ending"] or "", 0, why)]
        for number in reversed(range(len(states))):
            steps.append(_rescue(playback, number, states[number], seen[: number + 1]))
    steps.reverse()
    saved = [one.step for one in steps if one.rescuable]
    mistake = saved[-1] + 1 if saved and saved[-1] < steps[-1].step else None
    note = ""
    if not saved:
        note = "the oracle cannot solve this task from its beginning: no step is the mistake"
    elif any(not one.rescuable for one in steps[: saved[-1]]):
        note = "after some earlier steps the oracle fails too, although it succeeds after a later one"
    at = None if mistake is None else recording.steps[mistake]
    return Blame(
        episode_id=episode_id,
        env_id=row["env_id"],
        task_id=row["task_id"],
        outcome=row["outcome"],
        mistake=mistake,
        action=None if at is None or at["action"] is None else orjson.loads(at["action"]),
        status=None if at is None else at["status"],
        changes=() if mistake is None else tuple(_changed(changes[mistake - 1], changes[mistake])),
        why=() if mistake is None else steps[mistake].why,
        steps=tuple(steps),
        note=note,
    )


def _rescue(playback: Playback, number: int, state: Mapping[str, Any], seen: list[Mapping[str, Any]]) -> Rescue:
    base: Any = playback.env.unwrapped
    oracle: Oracle = base.careful_oracle if base.faulty else base.oracle
    base.set_state(state)
    taken, over, info = 0, False, {"ending": ""}
    while not over:
        try:
            call = oracle(seen)
        except ConfigurationError:
            raise  # the task has none
        except Exception as error:  # noqa: BLE001 - it reads what the agent brought about, for which it was not made
            return Rescue(number, False, "", taken, (f"the oracle cannot go on: {type(error).__name__}: {error}",))
        observation, _, terminated, truncated, info = base.step(call)
        seen.append(observation)
        taken, over = taken + 1, terminated or truncated
        if playback.inner.last_record.error:
            raise InfrastructureError(f"after step {number} of episode {playback.inner.task.id}: {playback.inner.last_record.error}")
    return Rescue(number, bool(info.get("success")), str(info["ending"]), taken, _why(playback, info["ending"]))


def _why(playback: Playback, ending: str | None) -> tuple[str, ...]:
    failed = [
        f"{check.name}: {check.detail}" if check.detail else check.name for check in playback.inner.last_record.checks if not check.passed
    ]
    return tuple(failed) if failed or ending == "success" else (f"ended as {ending}",)


def _changes(playback: Playback) -> dict[tuple[str, str], Change]:
    return {(change.where, change.key): change for change in playback.inner.session.changes()}


def _changed(before: Mapping[tuple[str, str], Change], after: Mapping[tuple[str, str], Change]) -> list[dict[str, Any]]:
    """What differs between two lists of what differs from an episode's start."""
    found = []
    for place in sorted({*before, *after}):
        then, now = before.get(place), after.get(place)
        if then == now:
            continue
        start = next(one.before for one in (then, now) if one is not None)
        was, became = (start if one is None else one.after for one in (then, now))
        found.append({"where": place[0], "key": place[1], "before": was, "after": became})
    return found
