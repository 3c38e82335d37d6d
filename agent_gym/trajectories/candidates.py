"""Which episodes a store may forget something of, in which order, and why."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import duckdb

from agent_gym.trajectories.policy import RetentionPolicy

__all__ = ["KINDS", "Candidate", "Drop", "by_age", "candidates", "under_pressure"]

KINDS = ("tokens", "blobs", "steps")
"""What can be dropped of an episode, in the order in which it goes when room is needed."""
_DAY_US = 86_400 * 10**6
_OURS = ("infra_error", "interrupted")
_MEASURING = re.compile(r"(^|[\s/])agent-gym eval\b")
_EPISODES = """
SELECT episode_id, run_id, epoch_us(coalesce(ended_at, started_at)), outcome, split, env_id, task_id, policy_id, policy_version_end
FROM episodes
"""
_EVENTS = """
SELECT episode_id, kind, epoch_us(happened_at) FROM events
WHERE kind IN ('pin', 'unpin', 'flag', 'dropped_steps') ORDER BY happened_at, event_id
"""
_BLOBS = """
SELECT DISTINCT episode_id FROM (
    SELECT episode_id FROM steps WHERE obs_image IS NOT NULL UNION ALL
    SELECT episode_id FROM (SELECT episode_id, unnest(blobs) AS blob FROM steps) WHERE blob.bytes IS NOT NULL UNION ALL
    SELECT episode_id FROM (SELECT episode_id, unnest(blobs) AS blob FROM tool_calls) WHERE blob.bytes IS NOT NULL
)
"""


@dataclass(kw_only=True)
class Candidate:
    """An episode, as far as retention is concerned.

    Attributes:
        episode_id: Its id.
        ended_us: When it ended, in microseconds since 1970.
        age: The same, as days ago.
        outcome: How.
        has: What it still has of `KINDS`.
        held: The rules by which it stays whole, by their keys in the policy.
        outlived: The rule that it was kept by once: ``failures`` or ``infra_errors``.
        rank: Its place among the successes of its task and policy version that nothing holds; -1 elsewhere.
    """

    episode_id: str
    ended_us: int
    age: float
    outcome: str
    has: frozenset[str]
    held: Sequence[str]
    outlived: str | None = None
    rank: int = -1


class Drop(NamedTuple):
    """Something that goes.

    Attributes:
        kind: Of `KINDS`.
        episode_id: Whose.
        reason: Why.
    """

    kind: str
    episode_id: str
    reason: str


def candidates(
    connection: duckdb.DuckDBPyConnection, policy: RetentionPolicy, commands: dict[str, str], now_us: int, run_id: str | None
) -> list[Candidate]:
    """Every episode, or every one of a run, the oldest first.

    Args:
        connection: Has views of the store's tables.
        policy: What holds for how long.
        commands: What each run was invoked by.
        now_us: Microseconds since 1970.
        run_id: The run.
    """
    happened: dict[str, dict[str, int]] = {}
    for episode_id, kind, at in connection.sql(_EVENTS).fetchall():
        if kind == "unpin":
            happened.get(episode_id, {}).pop("pin", None)
        else:
            happened.setdefault(episode_id, {})[kind] = at
    tokens, blobs = ({one for (one,) in connection.sql(sql).fetchall()} for sql in ("SELECT DISTINCT episode_id FROM tokens", _BLOBS))
    found: list[Candidate] = []
    groups: dict[tuple[Any, ...], list[Candidate]] = {}
    for episode_id, run, ended_us, outcome, split, *group in connection.sql(_EPISODES).fetchall():
        if run_id not in (None, run):
            continue
        events, age = happened.get(episode_id, {}), _days(now_us, ended_us)
        ages = {rule: _days(now_us, events[kind]) for rule, kind in (("pinned", "pin"), ("flagged", "flag")) if kind in events}
        if split not in (None, "train") or _MEASURING.search(commands.get(run, "")):
            ages["evaluation"] = age
        if outcome != "success":
            ages["infra_errors" if outcome in _OURS else "failures"] = age
        held = [rule for rule, since in ages.items() if since <= getattr(policy.keep, rule)]
        has = {"tokens": episode_id in tokens, "blobs": episode_id in blobs, "steps": "dropped_steps" not in events}
        one = Candidate(
            episode_id=episode_id,
            ended_us=ended_us,
            age=age,
            outcome=outcome,
            has=frozenset(kind for kind in KINDS if has[kind]),
            held=held,
            outlived=next((rule for rule in ("failures", "infra_errors") if rule in ages and not held), None),
        )
        found.append(one)
        if outcome == "success" and not held and has["steps"]:
            groups.setdefault(tuple(group), []).append(one)
    for alike in groups.values():
        for rank, one in enumerate(sorted(alike, key=_drawn)):
            one.rank = rank
    return sorted(found, key=lambda one: (one.ended_us, one.episode_id))


def by_age(found: Iterable[Candidate], policy: RetentionPolicy) -> list[Drop]:
    """What goes whether room is needed or not."""
    drops: list[Drop] = []
    for one in found:
        if one.outlived:
            steps = f"keep.{one.outlived} = {getattr(policy.keep, one.outlived):g} days are over"
        elif one.rank >= policy.successes_per_task and one.age > policy.thin_after_days:
            steps = f"one of more than successes_per_task = {policy.successes_per_task}, after thin_after_days = {policy.thin_after_days:g}"
        else:
            steps = ""
        if steps and "steps" in one.has:
            drops += _whole(one, steps)
            continue
        if _tokens_may_go(one) and one.age > policy.tokens_days:
            drops.append(Drop("tokens", one.episode_id, f"tokens_days = {policy.tokens_days:g} are over"))
        if "blobs" in one.has and not one.held and one.age > policy.blobs_days:
            drops.append(Drop("blobs", one.episode_id, f"blobs_days = {policy.blobs_days:g} are over"))
    return sorted(drops, key=lambda drop: KINDS.index(drop.kind))


def under_pressure(found: Iterable[Candidate], kind: str, reason: str) -> list[list[Drop]]:
    """What may go of one kind to make room, each with what must go along; the first goes first.

    Tokens and blobs go by age. Steps go first where a task and a policy version have most episodes left.
    """
    if kind == "tokens":
        return [[Drop(kind, one.episode_id, reason)] for one in found if _tokens_may_go(one)]
    free = [one for one in found if kind in one.has and not one.held]
    if kind == "blobs":
        return [[Drop(kind, one.episode_id, reason)] for one in free]
    return [_whole(one, reason) for one in sorted(free, key=lambda one: -one.rank)]


def _whole(one: Candidate, reason: str) -> list[Drop]:
    return [Drop(kind, one.episode_id, reason) for kind in ("tokens", "steps") if kind in one.has]


def _tokens_may_go(one: Candidate) -> bool:
    return "tokens" in one.has and not {"pinned", "flagged"} & set(one.held)


def _days(now_us: int, then_us: int) -> float:
    return (now_us - then_us) / _DAY_US


def _drawn(one: Candidate) -> bytes:
    """Decides who stays: as good as drawn by lot, and the same every time."""
    return blake2b(one.episode_id.encode(), digest_size=16).digest()
