"""The viewer: episodes of a trajectory store as one page to filter, to step through, and to set side by side.

The page holds a row an episode as JSON, and each episode as base64 of gzipped JSON of its own, which is unpacked when it is opened.
Neither can end its script element. The page runs the kit's script alone, named by its hash, which writes texts and never markup.
"""

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from agent_gym.core.tool import CALL_FAILED
from agent_gym.errors import StoreError
from agent_gym.report.episodes import Passage, StepView, episode_view
from agent_gym.report.figures import duration, reward, tone, visible
from agent_gym.report.kit import render, write
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.blobs import Blobs

__all__ = ["Viewed", "write_viewer"]

_PICTURE_BYTES = 2 * 2**20
_PICTURES_BYTES = 24 * 2**20
_CHANGES = 200
_EXACT = 2**53
_ABOUT = (
    "env_id",
    "env_version",
    "split",
    "source",
    "stage",
    "seed",
    "episode_index",
    "reset_options",
    "parent_episode_id",
    "capabilities",
)
_VERSIONS = ("policy_version_start", "policy_version_end", "tools_version", "prompt_version", "code_version")
_COUNTS = ("n_tool_calls", "n_tool_failures", "n_invalid_actions", "n_retries", "n_faults", "n_useless_questions", "retry_safety")
_COSTS = ("prompt_tokens", "completion_tokens", "cost_usd")
_TIMES = ("env_us", "grade_us", "tool_us", "model_us")
_SCRIPT = Path(__file__).parent / "templates" / "viewer.js"


@dataclass(frozen=True, kw_only=True)
class Viewed:
    """What a viewer's file holds."""

    path: Path
    """The file, absolute."""
    episodes: int
    steps: int
    """Resets not counted."""
    pictures: int
    pictures_left_out: int
    """Pictures that would have made the file too large, or that are missing from the store."""
    bytes: int
    """Size of the file."""


def write_viewer(
    store: TrajectoryStore,
    episodes: Sequence[Mapping[str, Any]],
    path: Path,
    *,
    opened: Sequence[str] = (),
    tell: Callable[[int, int], None] = lambda *_: None,
) -> Viewed:
    """Writes episodes as one HTML file that needs nothing else; equal rows give equal bytes.

    Args:
        store: Where their steps and calls are read.
        episodes: Their rows of the table ``episodes``, in the order in which they are listed.
        path: Where it goes; folders are made, a file that is there is replaced.
        opened: Ids of what is shown first: an episode, or two side by side; else the list.
        tell: Called with how many of them have been read, and how many there are.

    Returns:
        What was written.

    Raises:
        StoreError: The store cannot be read.
        OSError: The file cannot be written.
    """
    listed, packed, wanted = [], [], []
    steps = 0
    for number, row in enumerate(map(Blobs(store.path).put_back, map(dict, episodes))):
        tell(number, len(episodes))
        rows = list(store.steps(row["episode_id"]))
        wanted += [(len(rows) - place, one["obs_image"]) for place, one in enumerate(rows) if one["obs_image"]]
        steps += sum(one["step"] > 0 for one in rows)
        listed.append(_clean(_row(row)))
        packed.append(_packed(_episode(row, rows, list(store.tool_calls(row["episode_id"])), store.events(row["episode_id"]))))
    pictures, left_out = _pictures(store, wanted)
    words = {row["outcome"] for row in listed}
    index = {"opened": list(opened), "episodes": listed, "tones": {word: tone(word) for word in sorted(words)}}
    script = _SCRIPT.read_text(encoding="utf-8")
    page = render(
        "viewer.html.j2",
        index=Markup(_unbreakable(index)),
        packed=packed,
        pictures=pictures,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    path = write(path, page)
    return Viewed(
        path=path, episodes=len(listed), steps=steps, pictures=len(pictures), pictures_left_out=left_out, bytes=path.stat().st_size
    )


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the list shows of an episode."""
    return {
        "id": row["episode_id"],
        "run": row["run_id"],
        "task": row["task_id"] or "",
        "family": row["task_type"] or "",
        "env": row["env_id"] or "",
        "goal": (row["goal"] or "")[:400],
        "policy": row["policy_id"] or "unknown",
        "outcome": row["outcome"],
        "end": row["end_reason"] or "",
        "failed": ", ".join(check["name"] for check in _json(row["checks"], []) if not check["passed"]),
        "steps": row["n_turns"],
        "failures": row["n_tool_failures"],
        "invalid": row["n_invalid_actions"],
        "reward": row["reward_total"],
        "reward_said": reward(row["reward_total"]),
        "started": f"{row['started_at']:%Y-%m-%d %H:%M:%S}",
    }


def _episode(
    row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], calls: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Everything that is shown of one episode. Observations are lists of numbers of lines, since most lines come again and again."""
    tried: dict[int, list[Mapping[str, Any]]] = {}
    for call in calls:
        tried.setdefault(call["step"], []).append(call)
    views = {view.index: view for view in episode_view(row, rows).steps}
    lines: dict[str, int] = {}
    steps, state = [], None
    for one in rows:
        steps.append(
            _step(one, views.get(one["step"]), tried.get(one["step"], ()), lines, changed=state not in (None, one["state_digest"]))
        )
        state = one["state_digest"]
    changes = _json(row["changes"], [])
    facts = {name: row[name] for name in (*_ABOUT, *_VERSIONS, *_COUNTS, *_COSTS)}
    facts["started"], facts["ended"] = (f"{row[name]:%Y-%m-%d %H:%M:%S} UTC" for name in ("started_at", "ended_at"))
    facts |= _durations(row)
    return {
        "goal": row["goal"] or "",
        "error": row["error"] or "",
        "checks": [{**check, "detail": _passage(Passage.of(check["detail"]))} for check in _json(row["checks"], [])],
        "changes": [_change(change) for change in changes[:_CHANGES]],
        "changes_left_out": max(0, len(changes) - _CHANGES),
        "parts": _scores(row["reward_parts"]),
        "gaps": row["gaps"] or [],
        "milestones": row["milestones"] or [],
        "facts": _told(facts),
        "events": [_event(event) for event in events],
        "lines": list(lines),
        "steps": steps,
    }


def _step(
    row: Mapping[str, Any], view: StepView | None, calls: Sequence[Mapping[str, Any]], lines: dict[str, int], *, changed: bool
) -> dict[str, Any]:
    text = visible(row["obs_text"] or "")
    shown = Passage.of(text)
    step: dict[str, Any] = {
        "step": row["step"],
        "obs": [lines.setdefault(line, len(lines)) for line in shown.text.split("\n")] if text else [],
        "obs_left_out": shown.left_out,
        "picture": row["obs_image"],
        "gaps": row["gaps"],
    }
    if view is not None:
        failed = view.status in CALL_FAILED or view.status == "infra_error"
        step |= {
            "call": view.call,
            "inline": view.inline if view.call else "",
            "arguments": [] if view.inline else [[name, _passage(value)] for name, value in view.rows],
            "given": _passage(Passage.of(view.given)) if view.given and not view.call else None,
            "reason": row["invalid_reason"],
            "status": view.status,
            "tone": tone(view.status),
            "failed": failed,
            "invalid": row["action_valid"] is False,
            "result": _passage(view.outcome),
            "reward": None if view.reward == 0 else reward(view.reward),
            "parts": _scores(row["reward_parts"]),
            "reached": list(view.milestones),
            "changed": changed,
            "ending": row["ending"],
            "note": _passage(Passage.of(_json(row["note"], None))) if row["note"] else None,
            "policy": _told({name: row[name] for name in ("logprob", "policy_version", *_COSTS)}),
            "times": _told(_durations(row)),
            "attempts": [_attempt(call, view) for call in calls],
        }
    return _kept(step)


def _attempt(call: Mapping[str, Any], view: StepView) -> dict[str, Any]:
    structured = _json(call["structured"], None)
    shown = Passage.of(call["result"] or "" if structured is None else structured)
    return _kept(
        {
            "attempt": call["attempt"],
            "tool": call["tool"] if call["tool"] != view.call else None,
            "status": call["status"],
            "tone": tone(call["status"]),
            "fault": call["fault"],
            "waited": duration(call["waited_s"]) if call["waited_s"] else None,
            "after": None if call["retry_after_s"] is None else duration(call["retry_after_s"]),
            "effect": call["effect"],
            "took_effect": call["took_effect"],
            "from_cache": call["from_cache"],
            "key": call["key"],
            "took": f"{call['dur_us'] / 1000:.1f} ms",
            "result": _passage(shown) if shown.text != view.outcome.text else None,
            "error": _passage(Passage.of(call["error"])) if call["error"] else None,
        }
    )


def _change(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change field by field: what is the same before and after comes last and is marked so."""
    before, after = (change[when] if isinstance(change[when], dict) else {"": change[when]} for when in ("before", "after"))
    kind = "added" if change["before"] is None else "removed" if change["after"] is None else "changed"
    sides = [side for side, there in ((before, change["before"]), (after, change["after"])) if there is not None]
    fields = []
    for name in dict.fromkeys(name for side in sides for name in side):
        old, new = (_passage(Passage.of(side.get(name, ""))) for side in (before, after))
        fields.append({"name": name, "before": old, "after": new, "same": kind == "changed" and before.get(name) == after.get(name)})
    fields.sort(key=lambda field: field["same"])
    return {"where": change["where"], "key": str(change["key"]), "kind": kind, "fields": fields}


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    about = {name: event[name] for name in ("kind", "author", "reason", "step")}
    payload = _passage(Passage.of(_json(event["payload"], None))) if event["payload"] else None
    return {**about, "at": f"{event['happened_at']:%Y-%m-%d %H:%M}", "payload": payload}


def _pictures(store: TrajectoryStore, wanted: Iterable[tuple[int, str]]) -> tuple[dict[str, str], int]:
    """The pictures by digest, as base64, as far as there is room, those nearest to the ends first; and how many are left out."""
    blobs = Blobs(store.path)
    room = _PICTURES_BYTES
    kept: dict[str, str] = {}
    digests = list(dict.fromkeys(digest for _, digest in sorted(wanted)))
    for digest in digests:
        try:
            content = blobs.get(digest)
        except StoreError:
            continue  # counted as left out, as one that is too large is
        if len(content) <= min(room, _PICTURE_BYTES):
            room -= len(content)
            kept[digest] = base64.b64encode(content).decode()
    return kept, len(digests) - len(kept)


def _passage(shown: Passage) -> str | list[Any]:
    """A text, with the count of characters that were cut off it, if any were."""
    return [shown.text, shown.left_out] if shown.left_out else shown.text


def _scores(parts: Iterable[Mapping[str, Any]] | None) -> list[list[str]]:
    return [[part["name"], reward(part["score"])] for part in parts or ()]


def _durations(row: Mapping[str, Any]) -> dict[str, str]:
    spent = {name.removesuffix("_us"): row[name] for name in _TIMES if row.get(name)}
    return {f"{name} time": f"{us / 1000:,.1f} ms" for name, us in spent.items()}


def _told(facts: Mapping[str, Any]) -> list[list[str]]:
    """Names and values of what is known."""
    known = {name.removeprefix("n_").replace("_", " "): value for name, value in facts.items() if value not in (None, "", [])}
    return [
        [name, f"{value:.6g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]
        for name, value in known.items()
    ]


def _json(text: str | None, default: Any) -> Any:
    return json.loads(text) if text else default


def _kept(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not there: most columns of most steps."""
    return {name: value for name, value in values.items() if value not in (None, False, "", [], 0) or name in ("step", "call")}


def _clean(value: Any) -> Any:
    """A JSON value that a browser reads as it is: characters that disguise text made visible, numbers that it cannot hold as texts."""
    match value:
        case str():
            return visible(value)
        case bool() | None:
            return value
        case int():
            return value if abs(value) < _EXACT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {visible(name): _clean(one) for name, one in value.items()}
    return [_clean(one) for one in value]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _packed(episode: Mapping[str, Any]) -> str:
    return base64.b64encode(gzip.compress(_text(_clean(episode)).encode(), 6, mtime=0)).decode()


def _unbreakable(value: Any) -> str:
    """JSON that holds no character with a meaning in HTML."""
    return _text(_clean(value)).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
