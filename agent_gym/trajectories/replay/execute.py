"""Replaying a recorded episode and saying what came out otherwise, and where first."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_gym.errors import ConfigurationError, unknown
from agent_gym.trajectories.replay.cassette import Cassette
from agent_gym.trajectories.replay.diff import Difference, compare_ends, compare_steps, kind_of
from agent_gym.trajectories.replay.elements import LostElement
from agent_gym.trajectories.replay.playback import Playback
from agent_gym.trajectories.replay.recording import Recording
from agent_gym.trajectories.store import TrajectoryStore
from agent_gym.trajectories.versions import code_version

__all__ = ["MODES", "Report", "replay"]

MODES = ("execute", "cassette", "rescore")
"""``execute``: everything anew. ``cassette``: the recorded results of tools are served back. ``rescore``: everything anew, and only
how the episode was judged is compared."""

_SKEW = ("env_version", "tools_version", "task_digest")
_SCORE = ("outcome", "end_reason", "success", "reward_total")


@dataclass
class Report:
    """What a replay found.

    Attributes:
        episode_id: The episode.
        env_id: Its environment.
        task_id: Its task.
        mode: One of `MODES`.
        steps: How many steps were played again.
        verdict: One of `agent_gym.trajectories.replay.diff.VERDICTS`.
        differences: All that differs, in order.
        versions: What it rests on and was other when it was recorded, as pairs of then and now.
        ends: How it was judged, as pairs of then and now: ``outcome``, ``end_reason``, ``success``, ``reward_total``.
        notes: What else there is to know, in words.
    """

    episode_id: str
    env_id: str
    task_id: str | None
    mode: str
    steps: int = 0
    verdict: str = "identical"
    differences: list[Difference] = field(default_factory=list)
    versions: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    ends: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing differs but what is volatile."""
        return self.verdict in ("identical", "volatile_only")

    @property
    def first(self) -> Difference | None:
        """The first difference that is not volatile; the first volatile one where there is no other."""
        return next((one for one in self.differences if not one.volatile), next(iter(self.differences), None))

    def to_dict(self, diffs: int = 0) -> dict[str, Any]:
        """The report as JSON values.

        Args:
            diffs: How many differences, at most, are told with their text diffs.
        """
        first = self.first
        told: dict[str, Any] = {name: getattr(self, name) for name in ("episode_id", "env_id", "task_id", "mode", "steps", "verdict")}
        told["first"] = None if first is None else _told(first)
        told["counts"] = dict(Counter(one.field for one in self.differences if not one.volatile))
        told["volatile"] = dict(Counter(one.field for one in self.differences if one.volatile))
        told |= {"versions": self.versions, "ends": self.ends, "notes": self.notes}
        if diffs:
            told["differences"] = [{**_told(one), "diff": one.unified()} for one in self.differences[:diffs]]
        return told


def replay(store: TrajectoryStore, episode_id: str, mode: str = "execute") -> Report:
    """Plays an episode again in a fresh environment and compares it with its record.

    Args:
        store: The store.
        episode_id: The episode.
        mode: One of `MODES`.

    Raises:
        ConfigurationError: There is no such mode, or the episode cannot be played again; says why.
        InfrastructureError: The environment failed.
        StoreError: There is no such episode, or the store cannot be read.
    """
    if mode not in MODES:
        raise unknown("mode", mode, MODES)
    recording = Recording.load(store, episode_id)
    row = recording.row
    report = Report(episode_id, row["env_id"], row["task_id"], mode)
    tape = Cassette(recording) if mode == "cassette" else None
    with Playback(recording, tape=tape) as playback:
        if row["code_version"] != (now := code_version()):
            report.versions["code_version"] = row["code_version"], now
        if (version := playback.inner.version) != row["env_version"]:
            report.versions["env_version"] = row["env_version"], version
        try:
            found = list(_played(report, recording, playback, judged_only=mode == "rescore"))
        except ConfigurationError as error:  # a task that an older version had, say
            if "env_version" not in report.versions:
                raise
            found = []
            report.notes.append(str(error))
        report.differences = found
        report.verdict = kind_of(found)
    if tape is not None and tape.missing:
        report.notes += [f"step {step}: {call} is not on the tape, and was not made" for step, call in tape.missing]
    if mode != "rescore" and set(_SKEW) & set(report.versions):
        report.verdict = "version_skew"
    return report


def _played(report: Report, recording: Recording, playback: Playback, *, judged_only: bool) -> Iterator[Difference]:
    row, last, volatile = recording.row, recording.playable, playback.volatile
    taken = playback.begin()
    now = playback.versions()
    report.versions |= {name: (row[name], now[name]) for name in _SKEW if row[name] is not None and row[name] != now[name]}
    if row["task_id"] != now["task_id"]:
        yield Difference(0, "task_id", row["task_id"], now["task_id"])
        return
    if not judged_only:
        yield from compare_steps(recording.steps[0], (), taken.step, (), volatile)
    for number in range(1, last + 1):
        if playback.ended:
            yield Difference(number - 1, "length", last, number - 1)
            break
        try:
            taken = playback.step(number)
        except LostElement as lost:
            report.notes.append(f"step {number}: {lost}")
            yield Difference(number, "action", recording.steps[number]["action"], str(lost))
            break
        report.steps = number
        if not judged_only:
            yield from compare_steps(recording.steps[number], recording.calls.get(number, ()), taken.step, taken.calls, volatile)
    if last < len(recording.steps) - 1:
        report.notes.append(f"step {last + 1} is left out: the environment itself failed in it when it was recorded")
    elif row["outcome"] == "interrupted":
        report.notes.append("the episode was interrupted when it was recorded: how it was judged cannot be compared")
    elif report.steps == last:
        ends = playback.row()
        report.ends = {name: (row[name], ends[name]) for name in _SCORE}
        if judged_only and row["final_state_digest"] != ends["final_state_digest"]:
            report.notes.append("the state that was judged is not the recorded one; see --mode execute")
        if playback.ended:
            yield from compare_ends(row, ends, last, volatile)


def _told(one: Difference) -> dict[str, Any]:
    told: dict[str, Any] = {"step": one.step, "field": one.field, "recorded": one.recorded, "replayed": one.replayed}
    return told if one.attempt is None else {**told, "attempt": one.attempt}
