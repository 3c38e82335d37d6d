"""A history in the observation's text that fits into a context: some of it stays, some is summarised, the rest can be recalled."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.observation import cut
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.errors import ConfigurationError
from agent_gym.wrappers.rich import Result, RichWrapper, token_counter

__all__ = ["RECALL", "ContextBudget"]

RECALL = ToolSpec(
    name="recall",
    description=(
        "Fetch back what is no longer shown: a step in full by its number, or the steps that share most words with a query "
        "(by default the goal). What is long comes in parts."
    ),
    parameters={
        "type": "object",
        "properties": {
            "step": {"type": "integer", "minimum": 0, "maximum": 100_000},
            "query": {"type": "string", "minLength": 1, "maxLength": 300},
            "part": {"type": "integer", "minimum": 1, "maximum": 1_000},
        },
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    may_block=False,
)
"""The tool that fetches back; a call of it is a step."""

_MIN_TOKENS = 200
_PIECE_SHARE = 4  # of the budget that one recalled piece may take
_FOUND = 3
_WORD = re.compile(r"[^\W_]+")
_CALL_BYTES, _RESULT_BYTES = 80, 60
_HEADING = "Earlier steps (recall(step=…) or recall(query=…) shows them in full):"


class ContextBudget(RichWrapper):
    """Gives the text a history, and keeps the whole of it within so many tokens.

    What stays: the goal, the rules, the tools, the newest result and what can be seen now. What is summarised: earlier steps, one line
    each, ``12 look(room=3) -> ok: {"lamp":"red"…``, the newest that there is room for. What is put away: those steps in full, with the
    pages they showed; the tool ``recall`` fetches them back by step or by words, and each piece names its step. A newest result
    that is too long for the budget is shown up to there, and recalled in parts. Where goal, rules and tools alone are more than the
    budget, so is the text.

    Args:
        env: An `AgentEnv`, or wrappers around one.
        tokens: The budget of a text, at least 200.
        tokenizer: A function (or its import string) that gives a text's tokens or their number; otherwise 4 bytes of UTF-8 are one.

    Raises:
        ConfigurationError: The budget does not fit, it stands in a wrong place, or there is a tool ``recall`` already.
    """

    not_around = {"EpisodeBudget": "the budget counts the text that is shown"}  # noqa: RUF012

    def __init__(self, env: gymnasium.Env[Any, Any], tokens: int = 2_000, tokenizer: str | Callable[[str], Any] | None = None) -> None:
        self._count, name = token_counter(tokenizer)
        super().__init__(env, tokens=tokens, tokenizer=name)
        if not isinstance(tokens, int) or tokens < _MIN_TOKENS:
            raise ConfigurationError(f"ContextBudget: tokens must be at least {_MIN_TOKENS}, got {tokens!r}")
        self._budget = tokens
        self._piece = tokens // _PIECE_SHARE
        self._put_away: list[list[str]] = []  # of each step: the call, its status, the result, what could be seen
        self._lines: list[str] = []
        self._costs: list[int] = []
        self._heading = self._count(f"\n{_HEADING}\n1-99999 are put away")
        self.agent_env.offer(RECALL, self._recall)

    def observation(self, observation: Any) -> Any:
        """The same, with the history in its text."""
        step = observation["data"]["step"]
        tools = "\n" + self.agent_env.tool_line
        text = observation["text"].removesuffix(tools)
        at = text.find(f"\nStep {step} of {observation['data']['max_steps']}.")
        head, middle = (text[:at], text[at:]) if at >= 0 else (text, "")
        room = self._budget - self._count(head + tools)
        if self._count(middle) > room:
            note = f"\n(cut; recall(step={step}) has all of it, in parts)"
            middle = cut(middle, self._bytes(middle, max(room, self._piece) - self._count(note))) + note
        room -= self._count(middle)
        return self.with_text(observation, head + self._history(room) + middle + tools)

    def _bytes(self, text: str, tokens: int) -> int:
        """How many bytes of a text make so many tokens, about; a few less."""
        return max(4, len(text.encode()) * tokens // (self._count(text) + 1))

    def save_state(self) -> dict[str, Any]:
        """The history so far."""
        return {"put_away": list(self._put_away), "lines": list(self._lines)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Takes up what `save_state` gave."""
        self._put_away, self._lines = list(state["put_away"]), list(state["lines"])
        self._costs = [self._count("\n" + line) for line in self._lines]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with no history."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._put_away, self._lines, self._costs = [["", "", "", self.agent_env.view]], [""], [0]
        return self.observation(observation), info

    def step(self, action: Any) -> Result:
        """Carries out one action; its result is put away as well as shown."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._keep()
        return self.observation(observation), reward, terminated, truncated, info

    def _keep(self) -> None:
        record = self.agent_env.last_record
        assert record.result is not None
        result = record.result
        told = result.content if result.structured is None else dumps(result.structured).decode()
        call = " ".join(str(record.call).split()) if record.call is not None else "(unreadable action)"  # in one line, whatever it is
        if record.call is not None and record.call.name == RECALL.name and not result.failed:
            told = ""  # it is of other steps, which have it
        view = self.agent_env.view
        self._put_away.append([call, result.status, told, view])
        line = f"{record.step} {cut(call, _CALL_BYTES)} -> {result.status}"
        if told:
            line += f": {cut(' '.join(told[: 2 * _RESULT_BYTES].split()), _RESULT_BYTES)}"
        self._lines.append(line)
        self._costs.append(self._count("\n" + line))

    def _history(self, room: int) -> str:
        """The steps before the newest, one line each, as many of the newest as there is room for."""
        earlier = self._lines[1:-1]
        if not earlier:
            return ""
        left = room - self._heading
        if left < 0:
            return ""
        shown: list[str] = []
        for line, cost in zip(reversed(earlier), reversed(self._costs[1:-1]), strict=True):
            left -= cost
            if left < 0:
                break
            shown.append(line)
        away = len(earlier) - len(shown)
        first = [] if not away else [f"1-{away} are put away"] if away > 1 else ["1 is put away"]
        return "\n".join(["", _HEADING, *first, *reversed(shown)])

    def _recall(self, call: ToolCall) -> ToolResult:
        """What ``recall`` answers: a function of the steps before it alone, so that it can be asked again."""
        known = [_in_full(*step) for step in self._put_away[: self.agent_env.last_record.step + 1]]
        if (step := call.arguments.get("step")) is None:
            return self._found(call.arguments.get("query", self.agent_env.task.goal), known)
        if step >= len(known):
            return ToolResult(status="not_found", content=f"there is no step {step} yet; the newest is {len(known) - 1}")
        parts = _pieces(known[step], self._bytes(known[step], self._piece))
        part = call.arguments.get("part", 1)
        if part > len(parts):
            return ToolResult(status="not_found", content=f"step {step} has no part {part}; it has {len(parts)}")
        which = f"Step {step}" if len(parts) == 1 else f"Step {step}, part {part} of {len(parts)}"
        return ToolResult(status="ok", content=f"{which}: {parts[part - 1]}")

    def _found(self, query: str, known: Sequence[str]) -> ToolResult:
        wanted, phrase = set(_WORD.findall(query.lower())), query.lower()
        scores = {}
        for step, text in enumerate(map(str.lower, known)):
            if (shared := wanted.intersection(_WORD.findall(text))) and not text.startswith(f"{RECALL.name}("):
                scores[step] = (phrase in text, len(shared), step)
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:_FOUND]
        if not best:
            return ToolResult(status="empty", content="no step so far says anything of that")
        share = self._piece // len(best)
        return ToolResult(status="ok", content="\n".join(f"Step {step}: {self._excerpt(known[step], query, share)}" for step in best))

    def _excerpt(self, text: str, query: str, tokens: int) -> str:
        """Of a long text the part around the query, or around the rarest of the words that they share."""
        size, lowered = self._bytes(text, tokens), text.lower()
        if len(text.encode()) <= size:
            return text
        at = lowered.find(query.lower())
        if at < 0:
            told = Counter(_WORD.findall(lowered))
            at = lowered.index(min((word for word in _WORD.findall(query.lower()) if word in told), key=lambda word: (told[word], word)))
        start = min(max(0, at - size // 4), len(text) - 1)
        return ("…" if start else "") + cut(text[start:], size - 3)


def _in_full(call: str, status: str, told: str, view: str) -> str:
    """A step as it is recalled; marked, so that nobody takes what was then for what is now."""
    text = f"{call}\nStatus: {status}\nResult: {told}\n{view}" if call else f"the start\n{view}"
    return text.rstrip().replace("\n", "\n> ")


def _pieces(text: str, size: int) -> list[str]:
    """A text in pieces of at most so many bytes, whole characters only."""
    pieces, raw = [], text.encode()
    while len(raw) > size:
        piece = raw[:size].decode(errors="ignore")
        pieces.append(piece)
        raw = raw[len(piece.encode()) :]
    return [*pieces, raw.decode()]
