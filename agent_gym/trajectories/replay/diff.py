"""Where two plays of an episode differ, and what kind of difference that is."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agent_gym.trajectories.replay.recording import Row

__all__ = ["VERDICTS", "Difference", "compare_ends", "compare_steps", "kind_of"]

VERDICTS = (
    "identical",
    "volatile_only",
    "tool_nondeterminism",
    "env_nondeterminism",
    "version_skew",
    "reward_changed",
    "length_changed",
)
"""What a replay can find; the first two are well."""

_ACTION = ("action", "action_valid", "invalid_reason")
_SHOWN = ("obs_text", "obs_data", "obs_image", "state_digest", "rng_digest", "milestones", "gaps")
_WORTH = ("reward", "reward_parts")
_LENGTH = ("terminated", "truncated", "ending")
_ENDS = ("outcome", "end_reason", "success", "reward_total", "checks", "changes")
_CALL = ("tool", "arguments", "known_tool", "args_valid", "effect", "fault", "waited_s", "key", "from_cache")
_ANSWER = ("status", "result", "structured", "retry_after_s", "took_effect")
_TEXTS = frozenset({"obs_text", "obs_data", "result", "structured", "checks", "changes", "invalid_reason"})
"""The columns in which something may be volatile."""
_JSON = frozenset({"obs_data", "structured", "checks", "changes", "arguments", "action"})
_MASK = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True)
class Difference:
    """One value that is not as it was recorded.

    Attributes:
        step: The step; for how the episode ended, its last.
        field: The column; one of ``tool_calls`` has that before its name.
        recorded: Its value in the record.
        replayed: Its value now.
        volatile: Whether all of it is something that the environment declares as volatile.
        attempt: The attempt of the step's call, for a column of ``tool_calls``; else None.
    """

    step: int
    field: str
    recorded: Any
    replayed: Any
    volatile: bool = False
    attempt: int | None = None

    def unified(self) -> str:
        """Both values as text, line by line, in the form of ``diff -u``."""
        before, after = (_lines(self.field, value) for value in (self.recorded, self.replayed))
        return "\n".join(difflib.unified_diff(before, after, "recorded", "replayed", lineterm="", n=2))


def compare_steps(
    recorded: Row, calls: Sequence[Row], replayed: Row, calls_now: Sequence[Row], volatile: Sequence[re.Pattern[str]]
) -> Iterator[Difference]:
    """What differs in a step, causes before effects: the action, the attempts, what is shown, the reward, the end.

    Args:
        recorded: The recorded row of ``steps``.
        calls: The recorded rows of its attempts.
        replayed: The row now.
        calls_now: The rows of the attempts now.
        volatile: What may differ in texts.
    """
    step = recorded["step"]
    yield from _differing(step, _ACTION, recorded, replayed, volatile)
    for row, now in zip(calls, calls_now, strict=False):
        yield from _differing(step, (*_CALL, *_ANSWER), row, now, volatile, row["attempt"])
    if len(calls) != len(calls_now):
        yield Difference(step, "tool_calls", len(calls), len(calls_now))
    yield from _differing(step, (*_SHOWN, *_WORTH, *_LENGTH), recorded, replayed, volatile)


def compare_ends(recorded: Row, replayed: Row, step: int, volatile: Sequence[re.Pattern[str]]) -> Iterator[Difference]:
    """What differs in how two episodes ended, by their rows of ``episodes``."""
    yield from _differing(step, _ENDS, recorded, replayed, volatile)


def kind_of(differences: Iterable[Difference]) -> str:
    """One of `VERDICTS`, by the first step in which something differs that is not volatile; versions are looked at elsewhere."""
    found = list(differences)
    real = [one for one in found if not one.volatile]
    if not real:
        return "volatile_only" if found else "identical"
    first = [one for one in real if one.step == real[0].step]
    if tried := [one for one in first if one.attempt is not None or one.field == "tool_calls"]:
        fields = {one.field.rpartition(".")[2] for one in tried if one.attempt == tried[0].attempt}
        return "env_nondeterminism" if fields - set(_ANSWER) else "tool_nondeterminism"
    fields = {one.field for one in first}
    if fields & {*_ACTION, *_SHOWN, "task_id"}:
        return "env_nondeterminism"
    if fields & {"length"} or any(one.field == "ending" and None in (one.recorded, one.replayed) for one in first):
        return "length_changed"
    return "length_changed" if fields & {"terminated", "truncated"} else "reward_changed"


def _differing(
    step: int,
    names: Iterable[str],
    recorded: Row,
    replayed: Row,
    volatile: Sequence[re.Pattern[str]],
    attempt: int | None = None,
) -> Iterator[Difference]:
    gone = {blob["column"] for blob in recorded.get("blobs") or () if recorded.get(blob["column"]) is None}
    for name in names:
        before, after = _value(recorded.get(name)), _value(replayed.get(name))
        if name == "gaps" and before:  # what retention has dropped since was there
            before = [gap for gap in before if not gap.startswith("dropped:")] or None
        if before == after or name in gone:
            continue
        masked = name in _TEXTS and bool(volatile) and _masked(before, volatile) == _masked(after, volatile)
        yield Difference(step, name if attempt is None else f"tool_calls.{name}", before, after, masked, attempt)


def _value(value: Any) -> Any:
    """A value as both sides have it: what is empty is null in one and left out in the other."""
    if isinstance(value, list | tuple):
        return [_value(item) for item in value] or None
    if isinstance(value, Mapping):
        return dict(value)
    return value


def _masked(text: Any, volatile: Sequence[re.Pattern[str]]) -> Any:
    if not isinstance(text, str):
        return text
    for pattern in volatile:
        text = pattern.sub(_MASK, text)
    return text


def _lines(field: str, value: Any) -> list[str]:
    if value is None:
        return []
    if field.rpartition(".")[2] in _JSON and isinstance(value, str):
        value = orjson.loads(value)
    if not isinstance(value, str):
        value = orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
    return str(value).splitlines()
