"""Runs a program that nobody trusts, and answers calls of its functions.

Once the program runs, this process is the program's: it may change anything here and send whatever it likes. That gains it nothing: the
host reads the answers as plain data, and what they should have been was never sent here.

Messages in: ``("load", source)``, then any number of ``("call", name, args, kwargs)``. Messages out, one for each:
``("loaded",)``, ``("value", result, args, kwargs)`` with the arguments as the call left them, ``("raised", type, text)`` or
``("unsendable", why)``.
"""

from __future__ import annotations

import sys

from agent_gym.sandbox.codec import CodecError
from agent_gym.sandbox.inside.channel import receive, send

_TEXT = 500


def main() -> None:
    """Answers until the host hangs up."""
    module = type(sys)("solution")  # not __main__: what a program does when started as a script is not asked for
    sys.modules["solution"] = module
    while True:
        try:
            message = receive()
        except EOFError:
            return
        try:
            answer = load(module, message[1]) if message[0] == "load" else call(module, *message[1:])
        except BaseException as error:  # noqa: BLE001 - SystemExit too: all of it is told to the host
            answer = ("raised", type(error).__name__, text(error))
        try:
            send(answer)
        except CodecError as error:
            send(("unsendable", str(error)))


def load(module: object, source: str | bytes) -> tuple[object, ...]:
    """Runs the program's top level."""
    if isinstance(source, str) and source[:1] == "\ufeff":
        source = source[1:]  # what Python does with such a file
    exec(compile(source, "solution.py", "exec", dont_inherit=True), module.__dict__)
    return ("loaded",)


def call(module: object, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[object, ...]:
    """Calls a function by its name, which may be dotted."""
    function = module
    for part in name.split("."):
        function = getattr(function, part)
    result = function(*args, **kwargs)  # type: ignore[operator]
    return ("value", result, args, kwargs)


def text(error: BaseException) -> str:
    """What an exception says, if it can be got to say anything."""
    try:
        return str(error)[:_TEXT]
    except BaseException:  # noqa: BLE001 - the program's own __str__
        return ""


if __name__ == "__main__":
    main()
