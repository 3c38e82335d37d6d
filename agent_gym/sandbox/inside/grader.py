# ruff: noqa: B905 - zip(strict=) is newer than Python 3.9
"""Runs a task's test against a function that lives elsewhere.

The test is a data set's code, so it runs in a sandbox too; the function it tests is a stand-in that asks the host, which asks the
candidate's sandbox. Answers arrive as plain builtins made by our codec, so no object of the candidate's is ever compared here.

Messages in: ``("check", prelude, test, entry_point)``, then one answer a call: ``("value", result, args, kwargs)`` or
``("raised", type, text)``. Messages out: ``("call", args, kwargs)``, and at the end ``("verdict", passed, detail)``.
"""

from __future__ import annotations

import builtins

from agent_gym.sandbox.codec import CodecError, dumps
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
        exec(compile(prelude, "prelude.py", "exec", dont_inherit=True), namespace)
        namespace[entry_point] = ask  # the prelude may hold a stub of that name
        exec(compile(test, "test.py", "exec", dont_inherit=True), namespace)
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


def update(before: Any, after: Any) -> Any:
    """Makes a container hold what the candidate left in it, and the containers inside it too.

    Returns:
        What now stands in its place: itself where it can be changed, else ``after``.
    """
    if type(before) is not type(after):
        return after
    if isinstance(before, list):
        before[:] = elements(before, after)
    elif isinstance(before, tuple):
        now = elements(before, after)
        return before if len(now) == len(before) and all(a is b for a, b in zip(before, now)) else tuple(now)
    elif isinstance(before, dict):
        entries = [(key, update(before[key], value) if key in before else value) for key, value in after.items()]
        before.clear()
        before.update(entries)
    elif isinstance(before, set):
        before.clear()
        before.update(after)
    else:
        return after
    return before


def elements(before: Any, after: Any) -> list[Any]:
    """The elements of ``after``; those of ``before`` stand in for them, so that whoever else holds one sees the same.

    Which element is which nobody tells: equal ones are the same, wherever they went; the rest are by their places.
    """
    now = list(after)
    places = [i for i, new in enumerate(now) if isinstance(new, (list, tuple, dict, set))]
    if not places:
        return now
    old = {i: element for i, element in enumerate(before) if isinstance(element, (list, tuple, dict, set))}
    known = {i: dumps(element) for i, element in old.items()}
    texts = {i: dumps(now[i]) for i in places}
    where: dict[bytes, list[int]] = {}
    for i, text in known.items():
        if texts.get(i) == text:
            now[i] = old.pop(i)
            del texts[i]
        else:
            where.setdefault(text, []).append(i)
    for i, text in list(texts.items()):
        if where.get(text):
            now[i] = old.pop(where[text].pop(0))
            del texts[i]
    for i in texts:
        if i in old:
            now[i] = update(old[i], now[i])
    return now


if __name__ == "__main__":
    main()
