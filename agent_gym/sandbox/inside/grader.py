# ruff: noqa: B905 - zip(strict=) is newer than Python 3.9
"""Runs a task's test against a function that lives elsewhere.

The test is a data set's code, so it runs in a sandbox too; the function it tests is a stand-in that asks the host, which asks the
candidate's sandbox. Answers arrive as plain builtins made by our codec, so no object of the candidate's is ever compared here.

Messages in: ``("check", prelude, test, entry_point)``, then one answer a call: ``("value", result, args, kwargs)`` or
``("raised", type, text)``. Messages out: ``("call", args, kwargs)``, and at the end ``("verdict", passed, detail)``.
"""

from __future__ import annotations

import builtins

from agent_gym.sandbox.codec import CodecError
from agent_gym.sandbox.inside.channel import receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXT = 500


class CandidateRaised(Exception):
    """The candidate raised something that is no builtin exception, or that would change how the test itself runs."""


def main() -> None:
    """Runs one test and tells the verdict."""
    _, prelude, test, entry_point = receive()
    try:
        namespace: dict[str, Any] = {"__name__": "task"}
        exec(compile(prelude, "prelude.py", "exec"), namespace)
        namespace[entry_point] = ask  # the prelude may hold a stub of that name
        exec(compile(test, "test.py", "exec"), namespace)
        namespace["check"](ask)
    except BaseException as error:  # noqa: BLE001 - whatever it was, it is the verdict
        send(("verdict", False, f"{type(error).__name__}: {error}"[:_TEXT]))
    else:
        send(("verdict", True, ""))


def ask(*args: Any, **kwargs: Any) -> Any:
    """The stand-in: has the candidate called, and does to the arguments what it did to them."""
    try:
        send(("call", args, kwargs))
    except CodecError as error:
        raise TypeError(f"the test calls the function with something that cannot be sent: {error}") from None
    answer = receive()
    if answer[0] == "raised":
        raise exception(answer[1], answer[2])
    _, result, args_after, kwargs_after = answer
    for before, after in zip((*args, *kwargs.values()), (*args_after, *kwargs_after.values())):
        update(before, after)
    return result


def exception(name: str, text: str) -> Exception:
    """The builtin exception of that name, or a ``CandidateRaised``.

    ``StopIteration`` and its like are not passed on: a test that maps the function over its cases would end early, and pass.
    """
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(kind, (StopIteration, StopAsyncIteration, UnicodeError)):
        return CandidateRaised(f"{name}: {text}")
    try:
        return kind(text)
    except TypeError:  # one that is made from more than a text
        return CandidateRaised(f"{name}: {text}")


def update(before: object, after: object) -> None:
    """Makes a container hold what the candidate left in it."""
    if type(before) is not type(after):
        return
    if isinstance(before, list) and isinstance(after, list):
        before[:] = after
    elif isinstance(before, (dict, set)) and isinstance(after, (dict, set)):
        before.clear()
        before.update(after)


if __name__ == "__main__":
    main()
