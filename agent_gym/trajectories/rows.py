"""Rows of the tables, made from step records nearly as the tables want them.

Values of JSON columns stay values until they are sealed (`as_json`), so that a rollout pays for encoding them once, with their line.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson

from agent_gym.core.canonical import digest, dumps
from agent_gym.core.record import StepRecord
from agent_gym.core.task import Task
from agent_gym.core.tool import ToolSpec
from agent_gym.trajectories.blobs import Blobs, blob_digest, png

__all__ = [
    "as_json",
    "call_rows",
    "checked_notes",
    "drawn_digest",
    "end_row",
    "now_us",
    "observation_digest",
    "step_entry",
    "step_row",
    "task_digest",
    "tools_version",
]

_NOTED: dict[str, Callable[[Any], float | str]] = {
    "logprob": float,
    "policy_version": int,
    "model_us": int,
    "human_s": float,
    "stage": str,
}
_USAGE: dict[str, Callable[[Any], float | str]] = {"prompt_tokens": int, "completion_tokens": int, "cost_usd": float}
_TOKENS: dict[str, Callable[[Any], float]] = {
    "prompt_token_ids": int,
    "completion_token_ids": int,
    "logprobs": float,
    "loss_mask": bool,
}
_SORTED_JSON = ("arguments", "checks", "changes")
_JSON = ("action", "obs_data", "structured")
"""Kept in their order: an observation shows a call's arguments as the agent wrote them."""
_DIGEST_BYTES = 16


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


def step_row(record: StepRecord, blobs: Blobs | None, drawn: str) -> dict[str, Any]:
    """A step's row: what the environment knows of it.

    Args:
        record: The step.
        blobs: Where its image goes; None keeps no more than its digest.
        drawn: The step's ``rng_digest``.

    Raises:
        OSError: The image cannot be written.
    """
    shown = record.observation
    row: dict[str, Any] = {
        "step": record.step,
        "t_us": now_us(),
        "obs_text": shown.text,
        "obs_data": shown.data,
        "state_digest": record.digest,
        "rng_digest": drawn,
        "env_us": record.env_us,
        "grade_us": record.grade_us,
    }
    if shown.image is not None:
        picture = png(shown.image)
        row["obs_image"] = blob_digest(picture) if blobs is None else blobs.put(picture)
    if record.gaps:
        row["gaps"] = record.gaps
    if record.milestones:
        row["milestones"] = record.milestones
    if parts := [{"name": name, "score": score} for name, score in record.reward_parts.items() if score]:
        row["reward_parts"] = parts
    if record.retry_safety:
        row["retry_safety"] = [{"name": name, "count": count} for name, count in record.retry_safety.items() if count]
    if record.useless_questions is not None:
        row["n_useless_questions"] = record.useless_questions
    return row


def step_entry(
    row: dict[str, Any],
    record: StepRecord,
    *,
    reward: float,
    terminated: bool,
    truncated: bool,
    ending: str | None = None,
    success: bool | None = None,
    given: Any = None,
) -> dict[str, Any]:
    """The rows of a step that was taken: ``step``, ``calls`` and, where it was the last one, ``end``.

    Args:
        row: What `step_row` gave; it is filled up.
        record: The step.
        reward: What the learner was given.
        terminated: What the learner was told.
        truncated: What the learner was told.
        ending: The ending, if a wrapper knows better than the record.
        success: The same for success.
        given: What ``step`` was given.
    """
    row["reward"] = float(reward) if record.reward_valid else None
    row["terminated"], row["truncated"] = terminated, truncated
    row["action_valid"] = not record.invalid
    if record.call is not None:
        row["action"] = record.call.to_dict()
    if record.invalid:
        row["invalid_reason"] = record.invalid
    if record.result is not None:
        row["status"] = record.result.status
    if isinstance(given, str):
        row["given"] = given
    elif isinstance(given, np.integer) or (isinstance(given, np.ndarray) and given.size == 1):
        row["given"] = str(given.item())
    elif type(given) is int and abs(given) < 2**63:
        row["given"] = str(given)
    entry: dict[str, Any] = {"step": row, "calls": call_rows(record)}
    if terminated or truncated:
        ended = ending or (str(record.ending) if record.ending is not None else "step_limit" if truncated else None)
        row["ending"] = ended
        entry["end"] = end_row(record, ended, record.success if success is None else success)
    return entry


def task_digest(task: Task) -> str:
    """The digest of a whole task."""
    return digest(vars(task))


def tools_version(tools: Sequence[ToolSpec]) -> str:
    """The digest of tools as an agent sees them."""
    return digest([tool.to_openai() for tool in tools])


def checked_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that notes fill: the known ones by name, everything else as one JSON object in ``note``.

    Args:
        notes: ``logprob``, ``policy_version``, ``model_us``, ``human_s``, ``stage``, ``usage`` (``prompt_tokens``, ``completion_tokens``,
            ``cost_usd``), ``tokens`` (lists, by the columns of the table ``tokens``), and anything that is JSON or NumPy.

    Returns:
        Columns of ``steps``, and under ``tokens`` those of that table.

    Raises:
        TypeError: A value is of the wrong kind.
        ValueError: A known one cannot be read as a number.
    """
    rest = dict(notes)
    usage, tokens = dict(rest.pop("usage", None) or {}), dict(rest.pop("tokens", None) or {})
    columns: dict[str, Any] = {}
    for known, given in ((_NOTED, rest), (_USAGE, usage)):
        columns |= {name: kind(value) for name, kind in known.items() if (value := given.pop(name, None)) is not None}
    if kept := {name: [kind(value) for value in tokens.pop(name)] for name, kind in _TOKENS.items() if name in tokens}:
        columns["tokens"] = kept
    rest |= {name: left for name, left in (("usage", usage), ("tokens", tokens)) if left}
    if rest:
        columns["note"] = orjson.dumps(rest, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return columns


def drawn_digest(before: str, record: StepRecord) -> str:
    """The ``rng_digest`` after a step, from the one before it (empty at an episode's beginning).

    All randomness of an episode comes from its seeds; what was drawn on the way shows in faults, waits and keys.
    """
    drawn = [(made.fault, made.waited_s, made.key) for made in record.attempts if made.fault or made.waited_s or made.key]
    if before and not drawn:
        return before
    told = f"{before}|{drawn}" if before else f"{record.root_seed}|{record.episode}|{record.task.id}|{drawn}"
    return blake2b(told.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def call_rows(record: StepRecord) -> list[dict[str, Any]]:
    """The rows of every attempt of the step's call."""
    rows = []
    for made in record.attempts:
        result = made.result
        row: dict[str, Any] = {
            "attempt": made.attempt,
            "tool": made.call.name,
            "arguments": made.call.arguments,
            "known_tool": made.known_tool,
            "args_valid": made.valid,
            "status": result.status,
            "result": result.content,
            "effect": made.effect,
            "started_us": made.started_us,
            "dur_us": made.duration_us,
            "waited_s": made.waited_s,
            "took_effect": made.took_effect,
            "from_cache": result.from_cache,
        }
        if result.structured is not None:
            told = result.structured
            row["structured"] = orjson.dumps(told).decode() if isinstance(told, str) else told
        if result.retry_after_s is not None:
            row["retry_after_s"] = result.retry_after_s
        for name in ("error", "key", "fault"):
            if value := getattr(made, name):
                row[name] = value
        rows.append(row)
    return rows


def end_row(record: StepRecord, ending: str | None, success: bool | None) -> dict[str, Any]:
    """How the episode ended, for its row."""
    end: dict[str, Any] = {"ending": ending, "success": success, "reward_valid": record.reward_valid}
    if record.error:
        end["error"] = record.error
    if record.checks:
        end["checks"] = [{"name": check.name, "passed": check.passed, "detail": check.detail} for check in record.checks]
    if record.changes:
        end["changes"] = [{"where": c.where, "key": c.key, "before": c.before, "after": c.after} for c in record.changes]
    return end


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """Turns the values of a row's JSON columns into JSON text, in place."""
    for name in _SORTED_JSON:
        if (value := row.get(name)) is not None and not isinstance(value, str):
            row[name] = dumps(value).decode()
    for name in _JSON:
        if (value := row.get(name)) is not None and not isinstance(value, str):
            row[name] = orjson.dumps(value).decode()
    return row


def observation_digest(text: str | None, data: str | None, image: str | None) -> str:
    """The ``obs_digest`` of an observation.

    Args:
        text: Its text.
        data: Its data, as the JSON text of ``obs_data``.
        image: The digest of its PNG, if it has an image.
    """
    return blake2b("\0".join((text or "", data or "", image or "")).encode(), digest_size=_DIGEST_BYTES).hexdigest()
