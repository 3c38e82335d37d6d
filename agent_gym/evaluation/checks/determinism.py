"""``agent-gym check determinism``: whether equal seeds and actions give the same in another process."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

import numpy as np

from agent_gym.core.canonical import dumps
from agent_gym.core.difference import difference
from agent_gym.core.verdict import Check
from agent_gym.evaluation.checks.playing import opened
from agent_gym.evaluation.checks.sampling import sampled
from agent_gym.factory import INTERFACES

__all__ = ["check_determinism", "tell"]

_HASH_SEEDS = ("1", "2")
_FIELDS = ("action", "observation", "reward", "flags", "info")
_PROGRAM = "from agent_gym.evaluation.checks.determinism import tell; tell()"


def check_determinism(
    env_id: str, *, split: str = "train", episodes: int = 10, seed: int = 0, env_kwargs: Mapping[str, Any] | None = None
) -> list[Check]:
    """Plays the same episodes in two processes that hash differently, and compares all that a learner is given.

    Args:
        env_id: An environment of this package.
        split: The split that tasks are drawn from.
        episodes: Episodes through each interface, from 1.
        seed: Of the episodes and of the actions.
        env_kwargs: Further keywords of the environment, JSON values.

    Returns:
        What was checked, in words, with what was seen: the first difference of each kind.

    Raises:
        ConfigurationError: There is no such environment or keyword.
    """
    with opened(env_id, split, env_kwargs or {}):
        pass  # what does not fit is told before any process starts
    checks = []
    for interface in INTERFACES:
        found, steps, failed = _compared([env_id, split, dict(env_kwargs or {}), interface, episodes, seed])
        for field in _FIELDS:
            checks.append(Check(f"the_same_{field}_{interface}", field not in found, found.get(field, f"{steps} steps")))
        checks.append(Check(f"both_processes_end_{interface}", not failed, failed or "in two processes"))
    return checks


def tell() -> None:
    """What each process does: plays as its argument says, and writes a line of JSON for every step to stdout."""
    env_id, split, env_kwargs, interface, episodes, seed = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed does not belong there
    with opened(env_id, split, env_kwargs, interface) as env, out:
        for each in sampled(env, episodes, seed):
            action = each.action.to_dict() if hasattr(each.action, "to_dict") else each.action
            values = (action, each.observation, each.reward, [each.terminated, each.truncated], each.info)
            out.write(dumps([str(each), dict(zip(_FIELDS, map(_plain, values), strict=True))]) + b"\n")


def _compared(told: list[Any]) -> tuple[dict[str, str], int, str]:
    """The first difference in each field, how many steps there were, and why a process failed."""
    found: dict[str, str] = {}
    steps = 0
    with ExitStack() as stack:
        runs = [_start(json.dumps(told), hash_seed, stack) for hash_seed in _HASH_SEEDS]
        for one, other in zip_longest(*(_lines(run) for run, _ in runs)):
            steps += 1
            if one is None or other is None:
                found.setdefault("flags", f"one process went on after {steps - 1} steps, the other did not")
                break
            for field in _FIELDS:
                if field not in found and (differs := difference(one[1][field], other[1][field], field)):
                    found[field] = f"{one[0]}: {differs.where} is {differs.one!r} in one process, {differs.other!r} in the other"
        for run, errors in runs:
            if run.wait():
                errors.seek(0)
                return found, steps, errors.read().decode(errors="replace").strip()[-400:]
    return found, steps, ""


def _start(argument: str, hash_seed: str, stack: ExitStack) -> tuple[subprocess.Popen[bytes], Any]:
    errors = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _PROGRAM, argument]
    run = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment))
    stack.callback(run.kill)
    return run, errors


def _lines(run: subprocess.Popen[bytes]) -> Iterator[Any]:
    assert run.stdout is not None
    yield from map(json.loads, run.stdout)


def _plain(value: Any) -> Any:
    """A JSON value that is equal exactly where the value is: of an array, its kind and a digest of its bytes."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype}{list(value.shape)} {blake2b(value.tobytes(), digest_size=8).hexdigest()}"
    return value
