"""What a store may forget, and when: a file in TOML, every line of which has a default."""

import math
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, PositiveFloat, TypeAdapter, ValidationError

from agent_gym.errors import ConfigurationError

__all__ = ["DEFAULT_POLICY", "Keep", "RetentionPolicy", "bytes_of", "load_policy"]

DEFAULT_POLICY = """\
# What `agent-gym store gc` may drop. Rows of episodes, calls without their results, and events always stay.
# A time is a number of days, or "forever".

# budget = "20 GB"         # of the whole store; without it, only age and number count

tokens_days = 3            # the tokens of every episode that is neither pinned nor flagged
blobs_days = 30            # images and long texts of successes that no rule below keeps
successes_per_task = 8     # so many successes of a task and a policy version stay whole, chosen by the hash of their ids …
thin_after_days = 14       # … and the steps of the others go after this time

[keep]                     # episodes of which, for so long, no steps and no blobs go, whatever the budget
pinned = "forever"         # agent-gym episodes pin
flagged = "forever"        # agent-gym episodes flag; counts from the flag
evaluation = "forever"     # of a split other than train, or of a run of agent-gym eval
failures = 90              # everything that ended without success
infra_errors = 90          # of ours, and interrupted episodes
"""

_REMEDY = {
    "days": 'write a number of days above 0, or "forever"',
    "bytes": 'write a size above 0, such as "20 GB" or "500 MiB"',
    "count": "write a whole number, 0 or above",
}


def _days(value: Any) -> Any:
    return math.inf if value == "forever" else value


def _sized(value: Any) -> Any:
    if isinstance(value, bool):  # which would be one byte
        raise ValueError("no size")  # noqa: TRY004 - what pydantic listens to
    return value


Days = Annotated[PositiveFloat, BeforeValidator(_days), Field(strict=True, description="days")]
Size = Annotated[ByteSize, BeforeValidator(_sized), Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Keep(_Part):
    """For how many days episodes stay whole, by what they are; one that is several things stays for the longest."""

    pinned: Days = math.inf
    flagged: Days = math.inf
    evaluation: Days = math.inf
    failures: Days = 90.0
    infra_errors: Days = 90.0


class RetentionPolicy(_Part):
    """What a store may forget; `DEFAULT_POLICY` says what each line means."""

    budget: Annotated[Size | None, Field(description="bytes")] = None
    tokens_days: Days = 3.0
    blobs_days: Days = 30.0
    successes_per_task: Annotated[int, Field(strict=True, ge=0, description="count")] = 8
    thin_after_days: Days = 14.0
    keep: Keep = Keep()


def load_policy(path: Path | None = None) -> RetentionPolicy:
    """Reads a policy; without a file, the default one.

    Raises:
        ConfigurationError: The file cannot be read, or a line of it is wrong; every wrong one is named, with its value and what to do.
    """
    try:
        content = tomllib.loads(DEFAULT_POLICY if path is None else path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"cannot read the policy {path}: {error}; agent-gym store policy prints one to start from") from error
    try:
        return RetentionPolicy.model_validate(content)
    except ValidationError as error:
        raise ConfigurationError("; ".join(f"{path}: {_told(dict(one))}" for one in error.errors())) from error


def bytes_of(size: str) -> int:
    """Reads a size such as ``2 GB``.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        return int(TypeAdapter(Size).validate_python(size))
    except ValidationError as error:
        raise ConfigurationError(f"budget = {size!r} cannot be used; {_REMEDY['bytes']}") from error


def _told(error: dict[str, Any]) -> str:
    names = [str(name) for name in error["loc"]]
    model: type[BaseModel] = Keep if names[0] == "keep" and len(names) > 1 else RetentionPolicy
    name = names[1] if model is Keep else names[0]
    key = f"keep.{name}" if model is Keep else name
    if error["type"] == "extra_forbidden":
        return f"unknown key {key} = {error['input']!r}; known: {', '.join(model.model_fields)}"
    field = model.model_fields[name]
    remedy = _REMEDY.get(field.description or "", "write it as a table: [keep]")
    return f"{key} = {error['input']!r} cannot be used; {remedy}"
