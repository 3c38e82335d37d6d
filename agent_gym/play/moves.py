"""What a player can type: commands, the number of a choice, or a call."""

import difflib
import re
from collections.abc import Iterable, Sequence

from agent_gym.core.action import ToolCall, parse_action
from agent_gym.core.tool import ToolSpec
from agent_gym.errors import InvalidAction
from agent_gym.gateway.gateway import first_fault

__all__ = ["COMMANDS", "read_move", "signature"]

COMMANDS = {
    "help": "this page; ? does the same",
    "choices": "the numbered calls",
    "tools": "every tool in full, with its parameters",
    "rules": "the goal and the rules",
    "look": "the last result and what can be seen now",
    "undo": "take the last step back",
    "restart": "begin this episode anew",
    "next": "leave this episode for the next one",
    "quit": "leave; Ctrl-D and Ctrl-C do the same",
}
"""Every command, and what it does."""

_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")


def signature(spec: ToolSpec) -> str:
    """A tool with its parameters, such as ``find_users_by_name(name, page?)``; what may be left out ends in a question mark."""
    required = spec.parameters.get("required", ())
    return f"{spec.name}({', '.join(name if name in required else f'{name}?' for name in spec.parameters.get('properties', ()))})"


def read_move(typed: str, choices: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> ToolCall:
    """Reads what was typed as a call that the environment would take.

    A policy's unreadable action costs it a step. A person's slip of the keyboard doesn't: it is found here.

    Args:
        typed: The number of a choice, from 1; or a call, as JSON or as ``name(argument=value)``; or the bare name of a tool that
            needs no argument.
        choices: The calls on offer by number.
        tools: What can be called.

    Raises:
        InvalidAction: It is none of these. The message says what is wrong and what would do.
    """
    typed = typed.strip()
    known = {spec.name: spec for spec in tools}
    if typed.isdecimal():
        number = int(typed[:9])
        if not 1 <= number <= len(choices):
            raise InvalidAction(f"there is no choice {typed[:9]}; they go from 1 to {len(choices)}, and 'choices' lists them")
        return choices[number - 1]
    if typed.isidentifier() and typed not in known:
        raise InvalidAction(f"{typed!r} is neither a command nor a tool{_meant(typed, [*COMMANDS, *known])}")
    if (called := _CALLED.match(typed)) and called[1] not in known:  # said before anything about its arguments
        raise _no_tool(called[1], known)
    call = parse_action(f"{typed}()" if typed in known else typed, tools)
    if call.name not in known:
        raise _no_tool(call.name, known)
    if fault := first_fault(known[call.name], call.arguments):
        raise InvalidAction(f"{fault}; write {signature(known[call.name])}, and see 'tools' for what each argument may be")
    return call


def _no_tool(name: str, known: Iterable[str]) -> InvalidAction:
    return InvalidAction(f"there is no tool {name!r}{_meant(name, known)}; 'tools' lists them")


def _meant(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
