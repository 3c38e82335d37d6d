"""Projects, judged by calls: the project's code runs in one process, and what its calls should give stays in this one."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from agent_gym.envs.code_task.graders.drivers import driver
from agent_gym.envs.code_task.graders.exact import exactly
from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.envs.code_task.graders.quoting import quoted
from agent_gym.sandbox import CandidateError, CandidateProcess, CodecError, Limits, SandboxPool
from agent_gym.sandbox.codec import dumps, loads

__all__ = ["as_json", "from_json", "judge"]


def judge(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """By cases: ``hidden`` has ``cases``, each with an ``id`` and ``steps``, see `agent_gym.envs.code_task.graders.drivers.calls`; what
    such a step says is as `as_json` writes it. A step may have ``expect``, the value that it gives, or ``raises``, the name of
    the exception's type.

    Tests and whatever else lies in the workspace decide nothing, so nothing there needs to be protected.
    """
    if not hidden["cases"]:
        return Grade(passed=False, detail="there are no cases")
    with pool.lease() as place, CandidateProcess(driver("calls"), files=work.files, limits=limits, place=place) as project:
        for case in hidden["cases"]:
            steps = [{key: from_json(value) for key, value in step.items()} for step in case["steps"]]
            asked = [{key: value for key, value in step.items() if key not in ("expect", "raises")} for step in steps]
            try:
                outcomes = project.call("run", (asked,)).value
            except (CandidateError, CodecError) as error:
                return Grade(passed=False, detail=f"{case['id']}: no value came back: {error}")
            if why := _wrong(steps, outcomes):
                return Grade(passed=False, detail=f"{case['id']}: {why}")
    return Grade(passed=True)


def as_json(value: object) -> Any:
    """A value of the codec's types as JSON values, so that none is taken for another; equal ones are the same in every process."""
    return _settled(orjson.loads(dumps(value)))


def _settled(plain: Any) -> Any:
    """With the members of sets in an order that does not hang on how they are hashed."""
    if isinstance(plain, list):
        return [_settled(part) for part in plain]
    if isinstance(plain, dict):
        ((name, parts),) = plain.items()
        return {name: sorted(_settled(parts), key=orjson.dumps) if name in ("set", "frozenset") else _settled(parts)}
    return plain


def from_json(plain: Any) -> Any:
    """What `as_json` was given."""
    return loads(orjson.dumps(plain))


def _wrong(steps: Sequence[Mapping[str, Any]], outcomes: Any) -> str:
    """What is wrong with what came of a case's steps; empty if nothing is. The outcomes may be anything at all."""
    if type(outcomes) is not list or len(outcomes) != len(steps):
        return "not every call was answered"
    for number, (step, outcome) in enumerate(zip(steps, outcomes, strict=True), 1):
        kind, told = outcome if type(outcome) is tuple and len(outcome) == 2 else (None, None)
        if "raises" in step:
            wanted, right = f"raises {step['raises']}", exactly((kind, told), ("raised", step["raises"]))
        elif "keep" in step:
            wanted, right = "is kept", kind == "kept"
        else:
            wanted, right = f"gives {step.get('expect')!r}", kind == "value" and ("expect" not in step or exactly(told, step["expect"]))
        if not right:
            return f"step {number}, {step['call']}: {wanted}, got {quoted(outcome)}"
    return ""
