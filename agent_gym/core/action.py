"""Actions: every action of every environment is a `ToolCall`, however the policy wrote it."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from agent_gym.core.canonical import dumps, plain
from agent_gym.errors import InvalidAction

if TYPE_CHECKING:
    from agent_gym.core.tool import ToolSpec

__all__ = ["ToolCall", "parse_action"]

MAX_ACTION_CHARS = 1_000_000
"""The longest JSON text that is read as an action, in characters; a longer one is an invalid action."""
MAX_CALL_CHARS = 100_000
"""The same for function-call text, which takes longer to read."""
MAX_NAME_CHARS = 64
"""The longest tool name."""
MAX_DEPTH = 64
"""How deep arguments may nest."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolCall:
    """One call of one tool.

    Attributes:
        name: The tool's name.
        arguments: JSON values by parameter name.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """``{"name": …, "arguments": …}``, the form that is stored and that `parse_action` reads."""
        return {"name": self.name, "arguments": self.arguments}

    def __eq__(self, other: object) -> bool:
        """Whether name and arguments are the same, by value and type: 1, 1.0 and True are three things."""
        if not isinstance(other, ToolCall):
            return NotImplemented
        return self.name == other.name and self.arguments == other.arguments and dumps(self.arguments) == dumps(other.arguments)

    def __hash__(self) -> int:
        return hash((self.name, dumps(self.arguments)))

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={dumps(value).decode()}" for key, value in self.arguments.items())
        return f"{self.name}({shown})"


def parse_action(action: object, tools: Sequence["ToolSpec"] = ()) -> ToolCall:
    """Reads an action as a tool call.

    Args:
        action: A `ToolCall`, a mapping with ``name`` and ``arguments`` (``arguments`` may itself be JSON text, as chat models
            return it), JSON text of such a mapping, or function-call text such as ``click('12')``.
        tools: The tools on offer; positional arguments of function-call text take their names from these, in the order in
            which the tool's schema declares its properties.

    Raises:
        InvalidAction: If it cannot be read. The message says where.
    """
    if isinstance(action, InvalidAction):
        raise action
    try:
        return _read(action, tools)
    except InvalidAction:
        raise
    except Exception as error:  # noqa: BLE001 - an action may be any object, whose methods may do anything
        raise InvalidAction(f"action: a {type(action).__name__} that cannot be read: {type(error).__name__}") from None


def _read(action: object, tools: Sequence["ToolSpec"]) -> ToolCall:
    if isinstance(action, ToolCall):
        return _checked(action.name, action.arguments)
    if not isinstance(action, str):
        return _from_mapping(action)
    text = str.strip(action)
    is_json = text.startswith("{")
    limit = MAX_ACTION_CHARS if is_json else MAX_CALL_CHARS
    if len(text) > limit:
        raise InvalidAction(f"action: {len(text)} characters, at most {limit} are read")
    return _from_mapping(_json(text, "action")) if is_json else _from_call_text(text, tools)


def _json(text: str, where: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidAction(f"{where}: not JSON: {error}") from None


def _from_mapping(action: object) -> ToolCall:
    if not isinstance(action, Mapping):
        raise InvalidAction(f"action: a {type(action).__name__} is not a tool call; give a name and arguments")
    extra = set(action) - {"name", "arguments"}
    if extra:
        raise InvalidAction(f"action: unexpected key {sorted(map(repr, extra))[0][:80]}; a tool call has name and arguments")
    if "name" not in action:
        raise InvalidAction("action.name: missing")
    arguments = action.get("arguments", {})
    if isinstance(arguments, str):
        arguments = _json(arguments, "action.arguments")
    return _checked(action["name"], arguments)


def _checked(name: object, arguments: object) -> ToolCall:
    if not isinstance(name, str):
        raise InvalidAction(f"action.name: {type(name).__name__} is not a string")
    if not isinstance(arguments, Mapping):
        raise InvalidAction(f"action.arguments: {type(arguments).__name__} is not an object")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidAction(f"action.name: {len(name)} characters, a tool's name has at most {MAX_NAME_CHARS}")
    if _depth(arguments) > MAX_DEPTH:
        raise InvalidAction(f"action.arguments: nested deeper than {MAX_DEPTH}")
    try:
        return ToolCall(plain(name), plain(dict(arguments)))
    except (TypeError, RecursionError) as error:
        raise InvalidAction(f"action: not plain JSON: {error}") from None


def _depth(value: object) -> int:
    """How deep a value nests, counted no further than it matters."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        parts = [list(part.values()) if isinstance(part, Mapping) else part for part in level if isinstance(part, Mapping | list | tuple)]
        level = [inner for part in parts for inner in part]
    return depth


def _from_call_text(text: str, tools: Sequence["ToolSpec"]) -> ToolCall:
    try:
        node = ast.parse(text, mode="eval").body
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            raise InvalidAction("action: neither a JSON object nor one call such as name(argument='value')")
        values = [ast.literal_eval(arg) for arg in node.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    except InvalidAction:
        raise
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise InvalidAction(f"action: cannot be read as a call: {type(error).__name__}: {error}") from None
    name = node.func.id
    if None in named:
        raise InvalidAction("action: ** is not read; name each argument")
    order = next((list(spec.parameters.get("properties", {})) for spec in tools if spec.name == name), [])
    if len(values) > len(order):
        raise InvalidAction(f"action: {len(values)} positional arguments, {name} takes {len(order)}")
    arguments: dict[str, Any] = dict(zip(order, values, strict=False))
    for key, value in named.items():
        if key in arguments:
            raise InvalidAction(f"arguments.{key}: given twice")
        arguments[str(key)] = value
    return _checked(name, arguments)
