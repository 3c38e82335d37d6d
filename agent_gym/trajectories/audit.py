"""What is known of one episode and how far it can be relied on: its rows against the ledger, its files against the manifest."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from agent_gym.errors import ConfigurationError, StoreError
from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.digests import Digests, event_entry, run_digest
from agent_gym.trajectories.ledger import Link, walk
from agent_gym.trajectories.manifest import FILE_TABLES, kept
from agent_gym.trajectories.query import trouble
from agent_gym.trajectories.rows import observation_digest
from agent_gym.trajectories.schema import SORTED_BY
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["Audit", "audit", "head"]

_DROPPED_BY = {"steps": "dropped_steps", "results": "dropped_steps", "tokens": "dropped_tokens"}
_TOLD = {
    "episode": "the row of the episode is",
    "steps": "the steps are",
    "tool_calls": "the calls are",
    "results": "the results of calls are",
    "tokens": "the tokens are",
    "run": "the record of the run is",
}
_ABOUT_RUN = ("run_id", "command", "host", "pid", "started_at", "policy", "seed", "versions")
_ABOUT = ("source", "policy_id", "stage", "policy_version_start", "policy_version_end", "parent_episode_id")
_WHICH = (
    "env_id",
    "env_version",
    "task_id",
    "task_type",
    "split",
    "goal",
    "seed",
    "episode_index",
    "reset_options",
    "tools_version",
    "prompt_version",
    "code_version",
    "schema_version",
)
_RESULT = ("outcome", "end_reason", "success", "reward_total", "reward_valid", "n_turns", "started_at", "ended_at", "error")
_NONE = bytes(len(next(iter(Digests().all().values()))))


@dataclass
class Audit:
    """An episode, and what of it is as it was sealed.

    Attributes:
        episode_id: The episode.
        trigger: Who or what made it: the run's command, host, process and policy; who acted.
        which: What was played: environment, task, seeds, versions.
        actions: What was done, in order: ``step``, ``action``, ``status``, ``reward``; from the calls where the steps were dropped.
        result: How it ended.
        checks: What the verdict rests on.
        changes: What the episode changed.
        events: What happened to it afterwards.
        digests: For each group of rows ``as sealed``, ``altered``, ``dropped`` or ``missing``.
        files: The checksum of each file that it is in, below the store.
        entry: Its place in the ledger, and the chain there; None if it has none.
        head: The newest entry of the ledger, in the same form.
        findings: What is wrong; empty if everything is as it was sealed, or was dropped with an event that says so.
    """

    episode_id: str
    trigger: dict[str, Any] = field(default_factory=dict)
    which: dict[str, Any] = field(default_factory=dict)
    actions: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    checks: list[Any] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    entry: str | None = None
    head: str | None = None
    findings: list[str] = field(default_factory=list)


def audit(store: TrajectoryStore, episode_id: str, against: str | None = None) -> Audit:
    """Takes all digests of an episode anew and compares them.

    Args:
        store: The store.
        episode_id: The episode.
        against: A head of the ledger that was kept elsewhere; the ledger must still go through it.

    Raises:
        StoreError: There is no such episode, or the store cannot be read.
        ConfigurationError: That is no head.
    """
    try:
        row = store.episode(episode_id)
    except StoreError as error:
        if any(link.entry.kind == "episode" and link.entry.id == episode_id for link in walk(store.path)):
            raise StoreError(f"{error}, but the ledger has it: its rows are missing, or were taken out") from error
        raise
    found = Audit(episode_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what is missing or damaged is told below
        steps, calls, found.events = list(store.steps(episode_id)), list(store.tool_calls(episode_id)), store.events(episode_id)
        raw = {table: _raw(store, table, episode_id) for table in FILE_TABLES}
    run = next((about for about in store.runs() if about["run_id"] == row["run_id"]), {})
    found.trigger = {name: run.get(name) for name in _ABOUT_RUN} | {name: row[name] for name in _ABOUT}
    found.which = {name: row[name] for name in _WHICH}
    found.result = {name: row[name] for name in _RESULT}
    found.checks, found.changes = (orjson.loads(row[name] or "[]") for name in ("checks", "changes"))
    found.actions = list(_actions(steps, calls))
    found.findings += _of_files(store, found, row["run_id"])
    found.findings += _of_rows(store, found, raw, steps, row["run_id"], _Head.of(against))
    found.findings += _of_blobs(store, raw, {event["kind"] for event in found.events})
    return found


def head(store: TrajectoryStore) -> str | None:
    """The newest entry of the ledger, to be kept elsewhere; None in a store without one.

    Raises:
        StoreError: The ledger is damaged.
    """
    store.seal()
    newest = None
    for newest in walk(store.path):  # noqa: B007 - the last one is what is wanted
        pass
    return newest.head if newest else None


@dataclass
class _Head:
    seq: int
    chain: str

    @classmethod
    def of(cls, told: str | None) -> "_Head | None":
        if told is None:
            return None
        seq, _, chain = told.partition(":")
        if not seq.isdecimal() or not chain:
            raise ConfigurationError(f"{told!r} is no head of a ledger; agent-gym episodes audit --head prints one")
        return cls(int(seq), chain)


def _raw(store: TrajectoryStore, table: str, episode_id: str) -> list[dict[str, Any]]:
    order = ", ".join(SORTED_BY[table])
    quoted = episode_id.replace("'", "''")
    return store.sql(f"SELECT * FROM {table} WHERE episode_id = '{quoted}' ORDER BY {order}")


def _actions(steps: list[dict[str, Any]], calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if step["action_valid"] is not None:
            action = orjson.loads(step["action"]) if step["action"] else step["given"]
            yield {"step": step["step"], "action": action, "status": step["status"], "reward": step["reward"]}
    for call in calls if not steps else ():
        arguments = orjson.loads(call["arguments"] or "null")
        yield {
            "step": call["step"],
            "action": {"name": call["tool"], "arguments": arguments},
            "status": call["status"],
            "reward": None,
        }


def _of_files(store: TrajectoryStore, found: Audit, run_id: str) -> Iterator[str]:
    """Checks every file of the run: the rows may be in any of them."""
    for table in FILE_TABLES:
        for file in kept(store.path, table, run_id):
            name = file.path.relative_to(store.path).as_posix()
            if what := trouble(file):
                yield f"{name} {what}"
            found.files[name] = what or f"sha256 {file.sha256}"


def _of_rows(
    store: TrajectoryStore,
    found: Audit,
    raw: dict[str, list[dict[str, Any]]],
    steps: list[dict[str, Any]],
    run_id: str,
    against: _Head | None,
) -> Iterator[str]:
    own: Link | None = None
    events: dict[str, bytes] = {}
    broken: int | None = None
    passed = against is None
    newest = None
    for newest in walk(store.path):
        if not newest.follows and broken is None:
            broken = newest.seq
        passed = passed or (against is not None and (newest.seq, newest.chain) == (against.seq, against.chain))
        if newest.entry.kind == "event" and newest.entry.owner == found.episode_id:
            events[newest.entry.id] = newest.entry.digests
        elif newest.entry.kind == "episode" and newest.entry.id == found.episode_id:
            own = newest
    found.head = newest.head if newest else None
    if broken is not None:
        yield f"the ledger is broken at entry {broken}: it, or one before it, was altered, taken out or put in"
    if not passed:
        yield f"the ledger does not go through {against.seq}:{against.chain}: it was written anew"  # type: ignore[union-attr]
    for event in raw["events"]:
        if (sealed := events.pop(event["event_id"], None)) is None:
            yield f"event {event['event_id']} has no entry in the ledger"
        elif sealed != event_entry(event, run_id).digests:
            yield f"event {event['event_id']} was altered"
    yield from (f"event {event_id} is missing" for event_id in events)
    if own is None:
        yield "the episode has no entry in the ledger: it was recorded before there was one, or not by the recorder"
        return
    found.entry = own.head
    kinds = {event["kind"] for event in raw["events"]}
    now = _digests(raw, steps) | {"run": run_digest(store.path, run_id)}
    for group, sealed in Digests.of(own.entry).items():
        if now[group] == sealed:
            found.digests[group] = "as sealed"
        elif now[group] == _NONE and _DROPPED_BY.get(group) in kinds:
            found.digests[group] = "dropped"
        else:
            found.digests[group] = "missing" if now[group] == _NONE else "altered"
            yield f"{_TOLD[group]} {found.digests[group]}"


def _digests(raw: dict[str, list[dict[str, Any]]], steps: list[dict[str, Any]]) -> dict[str, bytes]:
    now = Digests()
    for table in ("episodes", "tool_calls", "tokens"):
        for row in raw[table]:
            now.add(table, row)
    for row, whole in zip(raw["steps"], steps, strict=True):
        image = next((blob["digest"] for blob in row["blobs"] or () if blob["column"] == "obs_image"), row["obs_image"])
        gone = any(blob["bytes"] is None and blob["column"] in ("obs_text", "obs_data") for blob in row["blobs"] or ())
        seen = row["obs_digest"] if gone else observation_digest(whole["obs_text"], whole["obs_data"], image)
        now.add("steps", row | {"obs_digest": seen})
    return now.all()


def _of_blobs(store: TrajectoryStore, raw: dict[str, list[dict[str, Any]]], kinds: set[str]) -> Iterator[str]:
    blobs = Blobs(store.path)
    for table in FILE_TABLES:
        for row in raw[table]:
            named = [*(row.get("blobs") or ())]
            if row.get("obs_image"):
                named.append({"column": "obs_image", "digest": row["obs_image"], "bytes": 0})
            for blob in named:
                where = f"{blob['column']} of {table}" + (f", step {row['step']}" if row.get("step") is not None else "")
                if blob["bytes"] is None:
                    if not kinds & {"dropped_blobs", "dropped_steps"}:
                        yield f"{where} is said to be dropped, but no event says so"
                    continue
                try:
                    blobs.get(blob["digest"])
                except StoreError as error:
                    yield f"{where}: {error}"
