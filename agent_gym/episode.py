"""One episode from its first observation to its verdict: what is shown, how it ends, what it is worth, what is kept of it."""

import copy
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from agent_gym.core.action import ToolCall, parse_action
from agent_gym.core.canonical import plain
from agent_gym.core.closing import closing_tools
from agent_gym.core.observation import Observation, cut
from agent_gym.core.record import StepRecord
from agent_gym.core.session import Session
from agent_gym.core.task import Task
from agent_gym.core.tool import CallRecord, ToolResult, ToolSpec
from agent_gym.core.verdict import Check, Ending
from agent_gym.errors import InfrastructureError, InvalidAction, unknown
from agent_gym.gateway import WAIT, Boundary, Gateway, Outcome, Permissions

__all__ = ["MAX_DATA_BYTES", "MAX_TEXT_BYTES", "OVERREACH_COST", "Episode", "Terms"]

MAX_TEXT_BYTES = 16_384
"""An observation's text is cut to this many bytes of UTF-8; ``gaps`` then says ``text_cut``."""
MAX_DATA_BYTES = 65_536
"""An observation's data fits into this many bytes of JSON; a larger last result is left out and ``gaps`` says ``data_cut``."""
OVERREACH_COST = 0.1
"""What a call that was refused as ``forbidden`` costs; play goes on."""

_NO_REWARD = {"outcome": 0.0, "violation": 0.0, "overreach": 0.0, "shaping": 0.0}
_REASON_CHARS = 300
_FROM_OUTSIDE = (Ending.FAILURE, Ending.DEADLINE, Ending.BUDGET)
_STARTED = Outcome(ToolResult(status="ok"), ())


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What holds for every episode of an environment.

    Attributes:
        rules: What the agent must keep to, in words, where a session does not say so itself.
        reasons: The reasons that ``refuse`` takes, where a session does not say so itself.
        closing: Closing tools beside those that exist everywhere.
        shaping: Whether reaching milestones is rewarded on the way.
        gamma: The γ of shaping.
        limit_is_terminal: Whether the step limit terminates an episode.
        boundary: What holds at the boundary before the tools.
        offered: Tools of wrappers, and what each does.
    """

    rules: str
    reasons: Sequence[str]
    closing: tuple[ToolSpec, ...]
    shaping: bool
    gamma: float
    limit_is_terminal: bool
    boundary: Boundary
    offered: tuple[tuple[ToolSpec, Callable[[ToolCall], ToolResult]], ...] = ()

    @property
    def waits(self) -> bool:
        """Whether the agent may have to wait, and so can."""
        return self.boundary.faults is not None or self.boundary.retries == "agent"

    def own(self, tools: Sequence[ToolSpec], reasons: Sequence[str] | None = None) -> tuple[ToolSpec, ...]:
        """Our own tools beside a session's: ``wait`` where it is of use, the closing tools last."""
        wait = (WAIT,) if self.waits and any(spec.remote for spec in tools) else ()
        return (*wait, *closing_tools(self.reasons if reasons is None else reasons), *self.closing)


class Episode:
    """One episode of one task, in one Session.

    Args:
        task: The task.
        session: Its session; closed with the episode.
        terms: What holds in the environment.
        seed: Its own seed.
        root_seed: The root of its environment's randomness.
        number: Resets since that was set.
        options: What the reset was asked for.

    Attributes:
        record: All about the last step; `begin` makes the first.
        steps: Steps made.
        calls: The calls made, as JSON values: ``{"name", "arguments"}`` or ``{"invalid": why}``.
        last: The last call and its result, as the observation shows them, or None.
        view: What can be seen now beyond the goal and the last result, in words.
        tool_line: The tools, in the text's last line.
        potential: Φ of the last state, for shaping.
        concluded: How it was ended from outside, and why; None if it was not.
    """

    record: StepRecord

    def __init__(
        self, task: Task, session: Session, terms: Terms, *, seed: int, root_seed: int, number: int, options: dict[str, Any]
    ) -> None:
        self.task = task if session.goal is None else replace(task, goal=session.goal)
        self.session = session
        own = terms.own(session.tools, session.reasons)
        self.options = options
        self.steps = 0
        self.calls: list[dict[str, Any]] = []
        self.last: dict[str, Any] | None = None
        self.view = ""
        self.potential = 0.0
        self.concluded: tuple[str, str] | None = None
        self._hangs = False
        self._terms = terms
        self._root_seed, self._number = root_seed, number
        self._closing: ToolCall | None = None
        self._worth: float | None = None  # of its end, where the verdict says
        self._rules = terms.rules if session.rules is None else session.rules
        handlers = [*terms.offered, *((spec, self._on_wait if spec is WAIT else self._on_closing) for spec in own)]
        self._gateway = Gateway(session, handlers, terms.boundary, seed, Permissions(task.level or "level3", task.identity))
        self.tools = self._gateway.tools
        self.tool_line = "Tools: " + ", ".join(f"{spec.name}({', '.join(spec.parameters.get('properties', ()))})" for spec in self.tools)

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.record.ending is not None

    @property
    def saveable(self) -> bool:
        """Whether the session's own state is all that it takes to go on from here."""
        return not (self.ended or self._gateway.touched or self._terms.boundary.faults is not None)

    @property
    def terminated(self) -> bool:
        """Whether it ended by itself; ended otherwise, it was truncated."""
        return self._terminates(self.record.ending)

    def begin(self) -> None:
        """Makes the first observation.

        Raises:
            InfrastructureError: There is none.
        """
        started = time.monotonic_ns()
        observation, gaps = self._observe()
        self.record = self._record(None, _STARTED, observation, gaps, started)

    def saved(self) -> dict[str, Any]:
        """What `resume` needs beside the session's snapshot, as JSON values."""
        record = self.record
        return {"last": self.last, "potential": self.potential, "invalid": record.invalid, "reward_parts": record.reward_parts}

    def resume(self, calls: Sequence[Mapping[str, Any]], saved: Mapping[str, Any]) -> None:
        """Takes up an episode whose session was restored from a snapshot.

        Raises:
            InfrastructureError: There is no observation.
        """
        started = time.monotonic_ns()
        self.calls = [dict(call) for call in calls]
        self.steps = len(self.calls)
        self.last = None if saved["last"] is None else dict(saved["last"])
        self.potential = saved["potential"]
        outcome = Outcome(ToolResult(status=self.last["status"] if self.last else "ok"), (), saved["invalid"])
        observation, gaps = self._observe()
        self.record = self._record(None, outcome, observation, gaps, started, parts=dict(saved["reward_parts"]))

    def step(self, action: Any) -> None:
        """Carries out one action; `record` then says what became of it."""
        started = time.monotonic_ns()
        self.steps += 1
        call: ToolCall | None = None
        try:
            try:
                call = parse_action(action, self.tools)
                outcome = self._gateway.call(call, self.steps)
            except InvalidAction as error:
                why = str(error).encode(errors="backslashreplace").decode()[:_REASON_CHARS]
                outcome = Outcome(ToolResult(status="invalid_arguments", content=why), (), why)
            self.calls.append({"invalid": outcome.invalid} if call is None else plain(call.to_dict()))
            self.last = _shown(call, outcome.result)
            ending, checks, grade_us = self._end()
            if ending is not None:
                self._gateway.end()
            observation, gaps = self._observe()
            parts = self._reward(outcome.result, ending)
            self.record = self._record(call, outcome, observation, gaps, started, ending, parts, checks, grade_us)
        except InfrastructureError as error:
            self._fail(call, error, started)

    def conclude(self, ending: Ending, why: str) -> StepRecord:
        """Ends it from outside, as `AgentEnv.conclude` says; it must be running."""
        if ending not in _FROM_OUTSIDE:
            raise unknown("ending from outside", str(ending), _FROM_OUTSIDE)
        self.concluded = (str(ending), why)
        self._gateway.end()
        parts = dict(self.record.reward_parts)
        if self._terms.shaping and self._terminates(ending) and self.steps:
            parts["shaping"] -= self._terms.gamma * self.potential
            self.potential = 0.0
        self.record = replace(
            self.record,
            ending=ending,
            success=False,
            checks=(Check(ending.value, False, why),),
            changes=tuple(self.session.changes()),
            reward=sum(parts.values()),
            reward_parts=parts,
            retry_safety=dict(self._gateway.safety.counts),
        )
        return self.record

    def abandoned(self, action: Any, why: str) -> "Episode":
        """What stands in its place while a step of it hangs. That keeps the session, which is closed on a thread that may hang too."""
        other = copy.copy(self)
        other.calls, other.steps = list(self.calls), self.record.step + 1
        other.concluded = (Ending.DEADLINE.value, why)
        other._hangs = True
        try:
            call = parse_action(action, self.tools)
        except InvalidAction:
            call = None
        result = ToolResult(status="timeout", content=why)
        other.record = replace(
            self.record,
            step=other.steps,
            call=call,
            result=result,
            attempts=() if call is None else (CallRecord(call=call, result=result),),
            invalid="",
            reward=0.0,
            reward_parts=dict(_NO_REWARD),
            ending=Ending.DEADLINE,
            success=False,
            checks=(Check(Ending.DEADLINE.value, False, why),),
        )
        threading.Thread(target=self.close, name="agent-gym-close", daemon=True).start()
        return other

    def close(self) -> None:
        """Closes the session; closing twice is fine."""
        if self._hangs:
            return
        self.session.close()
        self._gateway.close()

    def _terminates(self, ending: Ending | None) -> bool:
        return ending is not None and (ending.terminates or (ending is Ending.STEP_LIMIT and self._terms.limit_is_terminal))

    def _on_wait(self, call: ToolCall) -> ToolResult:
        self.session.wait(call.arguments["seconds"])
        return ToolResult(status="ok", content=f"{call.arguments['seconds']} s have passed")

    def _on_closing(self, call: ToolCall) -> ToolResult:
        self._closing = call
        return ToolResult(status="ok")

    def _end(self) -> tuple[Ending | None, tuple[Check, ...], int]:
        """The ending if there is one, what it rests on, and the microseconds that grading took."""
        if self.session.violation:
            return Ending.VIOLATION, (Check("no_forbidden_call", False, self.session.violation),), 0
        started, verdict = time.monotonic_ns(), self.session.ended
        if verdict is None and self._closing is not None:
            verdict = self.session.verdict(self._closing)
        if verdict is not None:
            self._worth = verdict.worth
            return verdict.ending, verdict.checks, (time.monotonic_ns() - started) // 1_000
        return (Ending.STEP_LIMIT if self.steps >= self.task.max_steps else None), (), 0

    def _reward(self, result: ToolResult, ending: Ending | None) -> dict[str, float]:
        parts = dict(_NO_REWARD)
        if ending is Ending.SUCCESS:
            parts["outcome"] = 1.0
        elif ending is Ending.VIOLATION:
            parts["violation"] = -1.0
        if self._worth is not None:
            parts["outcome"] = self._worth
        if result.status == "forbidden":
            parts["overreach"] = -OVERREACH_COST
        if self._terms.shaping:
            reached = list(self.session.milestones().values())
            after = sum(reached) / len(reached) if reached and not self._terminates(ending) else 0.0
            parts["shaping"] = self._terms.gamma * after - self.potential
            self.potential = after
        return parts

    def _fail(self, call: ToolCall | None, error: InfrastructureError, started: int) -> None:
        """Ends the episode without blaming the agent: the last good observation stands, the reward is unknown."""
        result = ToolResult(status="unavailable", content="the environment itself failed")
        told = f"{type(error).__name__}: {error}"
        outcome = Outcome(result, () if call is None else (CallRecord(call=call, result=result, error=told),))
        before = self.record
        self.record = self._record(call, outcome, before.observation, before.gaps, started, Ending.INFRA_ERROR, error=told)

    def _observe(self) -> tuple[Observation, tuple[str, ...]]:
        view = self.session.observe()
        self.view = view.text
        gaps: list[str] = []
        data = {
            "goal": self.task.goal,
            "rules": self._rules,
            "step": self.steps,
            "max_steps": self.task.max_steps,
            "last": self.last,
            "view": view.data,
        }
        if self.task.asks:
            data["asks"] = self.task.asks
        if self.session.conventions is not None:
            data["conventions"] = dict(self.session.conventions)
        raw = orjson.dumps(data)
        if len(raw) > MAX_DATA_BYTES:
            gaps.append("data_cut")
            short = self.last and {**self.last, "arguments": {}, "result": "too large to show; ask for less"}
            raw = orjson.dumps({**data, "last": short, "view": {}})
        text = self._describe(view.text)
        shown = cut(text, MAX_TEXT_BYTES)
        if shown is not text:
            gaps.append("text_cut")
        return Observation(shown, orjson.loads(raw), view.image), tuple(gaps)

    def _describe(self, view: str) -> str:
        lines = [f"Goal: {self.task.goal}"]
        if self.task.asks:
            lines.append(f"Answer wanted: {self.task.asks}")
        if self._rules:
            lines.append(f"Rules:\n{self._rules}")
        if self.session.conventions is not None:
            lines.append("Conventions: {names}, dates as {dates}, numbers as {numbers}.".format_map(self.session.conventions))
        lines.append(f"Step {self.steps} of {self.task.max_steps}.")
        if self.last is not None:
            call = ToolCall(self.last["tool"] or "(unreadable action)", self.last["arguments"])
            result = self.last["result"]
            lines.append(f"Last call: {call}\nStatus: {self.last['status']}")
            lines.append(f"Result: {result if isinstance(result, str) else orjson.dumps(result).decode()}")
        if view:
            lines.append(view)
        lines.append(self.tool_line)
        return "\n".join(lines)

    def _record(
        self,
        call: ToolCall | None,
        outcome: Outcome,
        observation: Observation,
        gaps: tuple[str, ...],
        started: int,
        ending: Ending | None = None,
        parts: dict[str, float] | None = None,
        checks: tuple[Check, ...] = (),
        grade_us: int = 0,
        error: str = "",
    ) -> StepRecord:
        parts = parts or dict(_NO_REWARD)
        valid = ending is not Ending.INFRA_ERROR
        return StepRecord(
            task=self.task,
            root_seed=self._root_seed,
            episode=self._number,
            step=self.steps,
            call=call,
            result=outcome.result if self.steps else None,
            attempts=outcome.attempts,
            invalid=outcome.invalid,
            observation=observation,
            reward=sum(parts.values()) if valid else None,
            reward_parts=parts,
            reward_valid=valid,
            milestones=tuple(name for name, reached in self.session.milestones().items() if reached) if valid else (),
            digest=self.session.digest() if valid else "",
            changes=tuple(self.session.changes()) if ending is not None and valid else (),
            checks=checks,
            ending=ending,
            success=None if ending is None or not valid else ending is Ending.SUCCESS,
            gaps=gaps,
            env_us=(time.monotonic_ns() - started) // 1_000,
            grade_us=grade_us,
            error=error,
            options=self.options,
            retry_safety=dict(self._gateway.safety.counts),
            useless_questions=self.session.useless_questions,
        )


def _shown(call: ToolCall | None, result: ToolResult) -> dict[str, Any]:
    """A call and its result as the observation shows them."""
    name, arguments = ("", {}) if call is None else (call.name, call.arguments)
    told = result.content if result.structured is None else result.structured
    shown = {"tool": name, "arguments": arguments, "status": result.status, "result": told}
    return shown if result.retry_after_s is None else {**shown, "retry_after_s": result.retry_after_s}
