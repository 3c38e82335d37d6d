"""Pairs of a better and a worse course of action, a JSON object a line, in TRL's form: ``prompt``, ``chosen``, ``rejected``.

Reference: https://huggingface.co/docs/trl/dataset_formats#preference
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from agent_gym.trajectories.export.conversation import opening, said, turns
from agent_gym.trajectories.export.reading import Reading, Recorded

__all__ = ["write", "write_steps"]

_TASK = ("env_id", "env_version", "task_id", "tools_version")
_START = ("seed", "episode_index", "reset_options")
_NOISE = 1e-9
"""Sums of the same rewards may differ by less than this."""

Row = dict[str, Any]


def write(episodes: Reading, out: Path) -> int:
    """Writes pairs of whole episodes: the same task, seed and first observation, a success and a failure. Each is in at least one."""
    return _lines(out, (pair for group in _groups(episodes, *_TASK, *_START) for pair in _of_episodes(group)))


def write_steps(episodes: Reading, out: Path) -> int:
    """Writes pairs of single actions: taken in the same state after the same observation, with more and with less reward to come."""
    return _lines(out, (pair for group in _groups(episodes, *_TASK) for pair in _of_steps(group)))


def _lines(out: Path, rows: Iterable[Row]) -> int:
    written = 0
    with out.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            written += 1
    return written


def _groups(episodes: Reading, *columns: str) -> Iterator[list[Recorded]]:
    """The episodes that agree in some columns, a group at a time in memory."""
    for _, group in itertools.groupby(episodes.by(*columns), lambda episode: [episode.row[column] for column in columns]):
        yield list(group)


def _of_episodes(group: Sequence[Recorded]) -> Iterator[Row]:
    by_start: dict[str, list[Recorded]] = defaultdict(list)
    for episode in group:
        by_start[episode.steps[0]["obs_digest"]].append(episode)
    for started in by_start.values():
        good = [episode for episode in started if episode.row["success"]]
        bad = [episode for episode in started if episode.row["success"] is False]
        if not good or not bad:
            continue
        for number in range(max(len(good), len(bad))):
            chosen, rejected = good[number % len(good)], bad[number % len(bad)]
            rewards = chosen.row["reward_total"], rejected.row["reward_total"]
            yield _pair(opening(chosen), turns(chosen), turns(rejected), (chosen, rewards[0]), (rejected, rewards[1]), step=1)


def _of_steps(group: Sequence[Recorded]) -> Iterator[Row]:
    taken: dict[tuple[str, str], dict[bytes, list[tuple[float, Recorded, int]]]] = defaultdict(lambda: defaultdict(list))
    for episode in group:
        to_come = 0.0
        for before, step in zip(reversed(episode.steps[:-1]), reversed(episode.steps[1:]), strict=True):
            to_come += step["reward"]
            place = taken[before["state_digest"], before["obs_digest"]]
            place[_action(step)].append((to_come, episode, step["step"]))
    for actions in taken.values():
        if len(actions) < 2:
            continue
        valued = sorted((_mean(tries), number, tries[0]) for number, tries in enumerate(actions.values()))
        best, _, (_, chosen, at) = valued[-1]
        for value, _, (_, rejected, step) in valued[:-1]:
            if value < best - _NOISE:
                prompt = [*opening(chosen), *turns(chosen, until=at)]
                better, worse = [said(chosen.steps[at])], [said(rejected.steps[step])]
                yield _pair(prompt, better, worse, (chosen, best), (rejected, value), step=at)


def _action(step: Mapping[str, Any]) -> bytes:
    """What tells actions apart: the call with its keys sorted, or the text that is none."""
    return orjson.dumps([step["action"], None if step["action"] else step["given"]])


def _mean(tries: Sequence[tuple[float, Recorded, int]]) -> float:
    return sum(value for value, _, _ in tries) / len(tries)


def _pair(
    prompt: list[Row], chosen: list[Row], rejected: list[Row], better: tuple[Recorded, float], worse: tuple[Recorded, float], step: int
) -> Row:
    """A row; ``step`` is the first step that is compared, and the rewards are those that came from there on, on average."""
    (good, good_reward), (bad, bad_reward) = better, worse
    about = {name: good.row[name] for name in ("env_id", "env_version", "task_id", "task_type", "split", "seed")}
    named = {"chosen_episode_id": good.row["episode_id"], "rejected_episode_id": bad.row["episode_id"]}
    rewards = {"chosen_reward": good_reward, "rejected_reward": bad_reward}
    return {"prompt": prompt, "chosen": chosen, "rejected": rejected, "tools": good.tools, **about, "step": step, **named, **rewards}
