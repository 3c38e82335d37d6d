"""One JSON file an episode in the Agent Trajectory Interchange Format, version 1.8, for the viewers and converters that read it.

Reference: https://www.harborframework.com/docs/trajectory-format. It allows no fields but its own; whatever else is known of an episode
stands in its ``extra`` objects.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from agent_gym.errors import StoreError
from agent_gym.trajectories.export.conversation import call_id, opening, seen
from agent_gym.trajectories.export.reading import Reading, Recorded, keep_images

__all__ = ["VERSION", "write"]

VERSION = "ATIF-v1.8"
_STEP_EXTRA = ("status", "reward", "milestones", "action_valid", "invalid_reason", "ending", "state_digest", "obs_digest", "policy_version")
_EXTRA = ("env_version", "task_type", "split", "difficulty", "seed", "episode_index", "reset_options", "outcome", "end_reason")


def write(episodes: Reading, out: Path) -> int:
    """Writes a file an episode, named by its id; see `agent_gym.trajectories.export.reading.Writer`."""
    out.mkdir()
    rows = 0
    for episode in episodes:
        name = f"{episode.row['episode_id']}.json"
        if Path(name).name != name:
            raise StoreError(f"the episode's id {episode.row['episode_id']!r} cannot be the name of a file")
        (out / name).write_bytes(orjson.dumps(_trajectory(episode), option=orjson.OPT_INDENT_2))
        keep_images(episodes.blobs, episode.steps, out / "images")
        rows += 1
    return rows


def _trajectory(episode: Recorded) -> dict[str, Any]:
    row = episode.row
    first = episode.steps[0]
    told: list[dict[str, Any]] = [
        {"source": "system" if message["role"] == "system" else "user", "message": message["content"]} for message in opening(episode)
    ]
    told[-1] |= {"message": _content(told[-1]["message"], first), "extra": _known(first, _STEP_EXTRA)}
    steps = [{**step, "timestamp": _time(first)} for step in told] + [_step(episode, step) for step in episode.steps[1:]]
    totals = {"prompt_tokens": "total_prompt_tokens", "completion_tokens": "total_completion_tokens", "cost_usd": "total_cost_usd"}
    version = row["policy_version_end"]
    agent = {"name": row["policy_id"] or row["source"] or "unknown", "version": "unknown" if version is None else str(version)}
    return {
        "schema_version": VERSION,
        "session_id": row["run_id"],
        "trajectory_id": row["episode_id"],
        "agent": {**agent, **({} if episode.tools is None else {"tool_definitions": episode.tools}), "extra": {"source": row["source"]}},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {
            **{name: row[column] for column, name in totals.items() if row[column] is not None},
            "total_steps": len(steps),
            "extra": {"reward_total": row["reward_total"], "success": row["success"]},
        },
        "extra": {
            "env_id": row["env_id"],
            "task_id": row["task_id"],
            **_known(row, _EXTRA),
            **{name: orjson.loads(row[name]) for name in ("checks", "changes") if row[name]},
            "versions": _known(row, ("tools_version", "prompt_version", "code_version")),
        },
    }


def _step(episode: Recorded, step: Mapping[str, Any]) -> dict[str, Any]:
    after = _content(seen(episode, step)["content"], step)
    made: dict[str, Any] = {"source": "agent", "timestamp": _time(step), "message": ""}
    result: dict[str, Any] = {"content": after}
    if step["action"] is None:
        made["message"] = step["given"] or ""
    else:
        action = orjson.loads(step["action"])
        made["tool_calls"] = [{"tool_call_id": call_id(step), "function_name": action["name"], "arguments": action["arguments"]}]
        result = {"source_call_id": call_id(step), **result}
    if episode.row["source"] == "oracle":
        made["llm_call_count"] = 0  # which rules metrics out
    elif metrics := _known(step, ("prompt_tokens", "completion_tokens", "cost_usd")):
        made["metrics"] = metrics
    return {**made, "observation": {"results": [result]}, "extra": _known(step, _STEP_EXTRA)}


def _content(text: str, step: Mapping[str, Any]) -> str | list[dict[str, Any]]:
    """A text, or with its image a list of both."""
    if step["obs_image"] is None:
        return text
    source = {"media_type": "image/png", "path": f"images/{step['obs_image']}.png"}
    return [{"type": "text", "text": text}, {"type": "image", "source": source}]


def _time(step: Mapping[str, Any]) -> str:
    return datetime.fromtimestamp(step["t_us"] / 1e6, UTC).isoformat()


def _known(row: Mapping[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in columns if row[name] is not None}
