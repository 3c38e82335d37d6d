"""Scripted oracles: a policy written as straight-line code, made a pure function of the observations so far.

A script is a generator that yields the calls it wants and is sent their results::

    def script() -> Script:
        user = yield ToolCall("find_user_by_email", {"email": "ana@inbox.example"})
        yield ToolCall("get_user", {"user_id": user["user_id"]})
        yield ToolCall("finish")

`next_call` runs it from its beginning over everything that has happened, whoever caused it: a wish that was already fulfilled is
answered from there, the first that was not is the next call. So it can take over at any moment and remembers nothing. It believes
what it is told; `agent_gym.world.careful` follows the same scripts where answers may be wrong.

What the business refuses is an answer too: ``{"refused": status, "why": text}``. So a script can go on from there; one that needs of
it what only an answer would hold is at its end (`as_far_as_it_goes`).

A wish with an empty argument says that what the script looked for was in none of the answers. Of what a write answers a script may
use only what the read that shows the change says too, by the same name.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agent_gym.core import ToolCall

__all__ = ["ANSWERED", "REFUSED", "Result", "Script", "as_far_as_it_goes", "next_call", "refusal"]

Result = Mapping[str, Any]
Script = Generator[ToolCall, Result, None]

ANSWERED = frozenset({"ok", "empty", "degraded"})
"""The statuses of results that a script can go on with."""
REFUSED = frozenset({"conflict", "forbidden", "not_found"})
"""The statuses by which a call was refused: as things are, it would be again."""


class _NoAnswer(Exception):
    """A script needs what it was refused."""


class _Refusal(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise _NoAnswer(name)


def refusal(status: str, why: str) -> dict[str, Any]:
    """What a script is sent for a call that was refused."""
    return _Refusal(refused=status, why=why)


def as_far_as_it_goes(script: Script) -> Script:
    """The same script, which ends where it needs what it was refused: somebody has made the request impossible."""
    with suppress(_NoAnswer):
        yield from script


def next_call(script: Script, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
    """The first call that a script wants and that has neither succeeded nor been refused yet.

    Args:
        script: A fresh generator.
        observations: The rich observations so far, oldest first; ``data["last"]`` holds the last call and its result.

    Returns:
        The call; ``finish`` if the script wants nothing more.
    """
    answers: dict[ToolCall, Result] = {}
    for observation in observations:
        last = observation["data"]["last"]
        if last is not None and last["status"] in ANSWERED:
            answers[ToolCall(last["tool"], last["arguments"])] = last["result"]
        elif last is not None and last["status"] in REFUSED:
            answers.setdefault(ToolCall(last["tool"], last["arguments"]), refusal(last["status"], last["result"]))
    try:
        wanted = next(script)
        while wanted in answers:
            wanted = script.send(answers[wanted])
    except StopIteration:
        return ToolCall("finish")
    finally:
        script.close()
    return wanted
