"""What the player sees. Whatever an environment says is shown as it is, never read as markup or as terminal codes."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from agent_gym.core.canonical import dumps
from agent_gym.core.session import Change
from agent_gym.core.tool import CALL_FAILED, ToolSpec
from agent_gym.play.game import Game
from agent_gym.play.moves import COMMANDS, signature

__all__ = ["Screen", "printable"]

_FEW = 12
"""So many choices are listed after each step; more are listed when they are asked for."""

_ENDINGS = {
    "success": "the task is solved",
    "failure": "the task is not done as it should be; the checks say why",
    "violation": "a rule forbids what was done",
    "abstained": "the task was given up without a good reason",
    "step_limit": "no steps are left",
    "infra_error": "the environment itself failed, which is no fault of yours",
}


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Screen:
    """Shows a game.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def opening(self, game: Game) -> None:
        """An episode's first screen: the goal, the rules, the tools, and what can be seen."""
        task = game.task
        self._rule(f"Episode {game.number}: {task.id} (difficulty {task.difficulty:.2f}, {task.max_steps} steps)")
        self.rules(game)
        self._headed("Tools", _rows([(Text(signature(spec)), _line(_first_sentence(spec.description))) for spec in game.tools]))
        self._view(game)
        self.hint(game)

    def step(self, game: Game) -> None:
        """What the last call brought."""
        last = game.data["last"]
        self._rule(f"Step {game.data['step']} of {game.data['max_steps']}")
        if last is None:
            self.say("nothing was called yet")
        else:
            failed = last["status"] in CALL_FAILED
            style = "bold red" if failed else "bold yellow" if last["status"] != "ok" else "bold green"
            given = ", ".join(f"{key}={dumps(value).decode()}" for key, value in last["arguments"].items())
            self._console.print(_line(f"{last['tool']}({given})"))
            self._console.print(Text(last["status"], style=style))
            if last["result"] not in ("", None):
                self._indented(_facts(last["result"]))
        self._view(game)
        self.hint(game)

    def rules(self, game: Game) -> None:
        """The goal and the rules."""
        self._headed("Goal", Text(printable(game.task.goal.strip()), style="bold"))
        if game.data["rules"]:
            self._headed("Rules", Text(printable(game.data["rules"])))

    def hint(self, game: Game) -> None:
        """What can be typed now: the choices where they are few, else how many there are."""
        if game.ending:
            return
        few = len(game.choices) <= _FEW
        if few:
            self.choices(game)
        self._console.print()
        self.say(f"Type a call, or the number of {'a choice' if few else f'one of {len(game.choices)} choices'}; ? helps.")

    def choices(self, game: Game) -> None:
        """The numbered calls."""
        rows = [(Text(str(number), style="cyan", justify="right"), _line(str(call))) for number, call in enumerate(game.choices, 1)]
        self._headed("Choices", _rows(rows) if rows else Text("none", style="dim"))

    def tools(self, game: Game) -> None:
        """Every tool in full."""
        for spec in game.tools:
            self._headed(signature(spec), Group(Text(printable(spec.description)), *_parameters(spec)))

    def help(self, game: Game) -> None:
        """What can be typed."""
        tool = next((spec for spec in game.tools if spec.parameters.get("required")), game.tools[0])
        needed = ", ".join(f'{name}="…"' for name in tool.parameters.get("required", ()))
        forms = [
            (Text(f"{tool.name}({needed})"), Text("a call; values may stand without their names, in the tool's order")),
            (Text('{"name": "…", "arguments": {…}}'), Text("the same as JSON")),
            (Text("7"), Text("the choice of that number")),
        ]
        self._headed("Moves", _rows(forms))
        self._indented(
            Text("A call may go over several lines. One that can't be read or breaks its tool's schema costs no step.", style="dim")
        )
        self._headed("Commands", _rows([(Text(name), Text(does)) for name, does in COMMANDS.items()]))
        self.choices(game)

    def end(self, game: Game, episode_id: str | None) -> None:
        """How the episode ended, what that rests on, and what is possible now."""
        record = game.last_record
        style = "bold green" if record.success else "bold red"
        told = _ENDINGS.get(game.ending)
        self._rule(f"The end: {game.ending}" + (f" – {told}" if told else ""), style)
        parts = ", ".join(f"{name} {score:+g}" for name, score in record.reward_parts.items() if score)
        facts: list[tuple[RenderableType, RenderableType]] = []
        reward = f"{game.reward:g}" if record.reward_valid else "unknown"
        facts.append((Text("reward", style="dim"), Text(reward + (f" (last step: {parts})" if parts else ""))))
        facts.append((Text("steps", style="dim"), Text(f"{record.step} of {record.task.max_steps}")))
        if record.error:
            facts.append((Text("error", style="dim"), Text(printable(record.error))))
        if record.checks:
            checks = [
                (Text("passed", style="green") if c.passed else Text("FAILED", style="bold red"), Text(c.name), Text(printable(c.detail)))
                for c in record.checks
            ]
            facts.append((Text("checks", style="dim"), _rows(checks)))
        changes = Group(*map(_change, record.changes)) if record.changes else Text("none")
        facts.append((Text("changes", style="dim"), changes))
        if episode_id is not None:
            facts.append((Text("record", style="dim"), Text(episode_id)))
        self._indented(_rows(facts))
        self._console.print()
        self.say("Enter goes on to the next episode; restart, undo and quit are possible too.")

    def say(self, text: str) -> None:
        """A remark."""
        self._console.print(Text(printable(text), style="dim"), soft_wrap=True)

    def complain(self, text: str) -> None:
        """What is wrong with what was typed."""
        self._console.print(Text("not done: ", style="bold red").append(printable(text), style="not bold default"), soft_wrap=True)

    def _view(self, game: Game) -> None:
        if game.view:
            self._console.print()
            self._console.print(Text(printable(game.view)), soft_wrap=True)

    def _rule(self, title: str, style: str = "bold") -> None:
        self._console.print()
        self._console.print(Rule(Text(title, style=style), align="left", style="dim"))

    def _headed(self, heading: str, content: RenderableType) -> None:
        self._console.print()
        self._console.print(Text(heading, style="bold cyan"))
        self._indented(content)

    def _indented(self, content: RenderableType) -> None:
        self._console.print(Padding(content, (0, 0, 0, 2), expand=False))


def printable(text: str) -> str:
    """Text without control characters, which a terminal would obey."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text).encode(errors="backslashreplace").decode()


def _line(text: str) -> Text:
    """Text that is cut at the end of the line."""
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def _rows(rows: Iterable[tuple[RenderableType, ...]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*row)
    return grid


def _facts(value: Any) -> RenderableType:
    """A JSON value for people: objects as lines, lists of objects as tables where these are flat."""
    if isinstance(value, Mapping) and value:
        nested = {key: part for key, part in value.items() if _nests(part)}
        flat = _rows((Text(printable(key), style="dim"), _facts(part)) for key, part in value.items() if key not in nested)
        below = [
            part for key, inner in nested.items() for part in (Text(printable(key), style="dim"), Padding(_facts(inner), (0, 0, 0, 2)))
        ]
        return Group(*([flat] if len(nested) < len(value) else []), *below)
    if isinstance(value, list) and _nests(value):
        if any(not isinstance(part, Mapping) or any(map(_nests, part.values())) for part in value):
            return Group(*map(_facts, value))
        listed = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        columns = dict.fromkeys(key for part in value for key in part)
        for column in columns:
            listed.add_column(Text(printable(column)), overflow="fold")
        for part in value:
            listed.add_row(*(Text(_inline(part[column]) if column in part else "") for column in columns))
        return listed
    return Text(_inline(value), overflow="fold")


def _nests(value: Any) -> bool:
    """Whether a value needs lines of its own."""
    if isinstance(value, str):
        return "\n" in value.strip()
    return bool(value) and (isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(p, Mapping | list) for p in value)))


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return ", ".join(map(_inline, value)) or "none"
    return printable(dumps(value).decode())


def _parameters(spec: ToolSpec) -> list[RenderableType]:
    required = spec.parameters.get("required", ())
    rows = []
    for name, schema in spec.parameters.get("properties", {}).items():
        rest = {key: value for key, value in schema.items() if key not in ("type", "description", "enum", "x-entity")}
        told = [str(schema.get("type", "any")) + ("" if name in required else ", may be left out")]
        if "enum" in schema:
            told.append("one of " + _inline(schema["enum"]))
        if schema.get("description"):
            told.append(str(schema["description"]))
        told += [f"{key} {_inline(value)}" for key, value in rest.items()]
        rows.append((Text(name, style="cyan"), Text(printable("; ".join(told)))))
    return [_rows(rows)] if rows else []


def _change(change: Change) -> Text:
    head = Text(printable(f"{change.where} {change.key}"), style="cyan")
    before, after = change.before, change.after
    if isinstance(before, str) and isinstance(after, str):
        return head.append(
            printable("\n" + "\n".join(list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:])),
            "default",
        )
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
        told = ", ".join(f"{key} {_inline(before.get(key))} → {_inline(after.get(key))}" for key in keys)
    elif before is None:
        told = f"new: {_pairs(after)}"
    elif after is None:
        told = f"gone: {_pairs(before)}"
    else:
        told = f"{_inline(before)} → {_inline(after)}"
    return head.append(f"  {told}", "default")


def _pairs(value: Any) -> str:
    return ", ".join(f"{key} {_inline(part)}" for key, part in value.items()) if isinstance(value, Mapping) else _inline(value)


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].removesuffix(".")
