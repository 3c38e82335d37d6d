"""The one template that every environment follows: reset, step, endings, reward, record, state.

A domain subclasses `AgentEnv`, hands it its tasks and tools, and implements `open`, which builds the `Session` of one episode.
Everything that a policy, a wrapper or a recorder relies on is here and is the same for all of them.
"""

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import orjson
from gymnasium.spaces import Dict

from agent_gym.core.action import ToolCall, parse_action
from agent_gym.core.canonical import plain
from agent_gym.core.closing import closing_tools
from agent_gym.core.observation import Observation, cut
from agent_gym.core.record import StepRecord
from agent_gym.core.seeding import derive, derive_seed
from agent_gym.core.session import Session, Snapshot
from agent_gym.core.spaces import Json, ToolCallSpace, Unicode
from agent_gym.core.task import Task, TaskSet
from agent_gym.core.tool import CallRecord, ToolResult, ToolSpec
from agent_gym.core.verdict import Check, Ending
from agent_gym.errors import ConfigurationError, InfrastructureError, InvalidAction, ResetNeeded, unknown
from agent_gym.gateway import Gateway, Outcome

__all__ = ["MAX_DATA_BYTES", "MAX_TEXT_BYTES", "AgentEnv"]

MAX_TEXT_BYTES = 16_384
"""An observation's text is cut to this many bytes of UTF-8; ``gaps`` then says ``text_cut``."""
MAX_DATA_BYTES = 65_536
"""An observation's data fits into this many bytes of JSON; a larger last result is left out and ``gaps`` says ``data_cut``."""

OVERREACH_COST = 0.1
"""What a call that was refused as ``forbidden`` costs; play goes on."""

_OPTIONS = frozenset({"task_id", "split", "difficulty"})


class AgentEnv(gymnasium.Env[dict[str, Any], Any]):
    """An environment in which every action is a tool call.

    Observations are ``{"text": str, "data": dict}``; actions are `ToolCall` objects, dicts ``{"name", "arguments"}`` or text.
    `gymnasium.make` puts an `Interface` around it, which turns both into what a learner eats.

    Args:
        tasks: The domain's tasks.
        tools: Every tool any of its sessions offers.
        reasons: The reasons that ``refuse`` takes.
        rules: What the agent must keep to, in words; part of every observation.
        split: The split that tasks are drawn from.
        families: Families to draw from, all of the split's by default.
        difficulty: Lowest and highest difficulty, in [0, 1].
        task_ids: Draw from exactly these tasks instead.
        shaping: ``"milestones"`` adds γΦ′−Φ, where Φ is the share of milestones reached and 0 at the end of an episode.
        gamma: The γ of shaping, in (0, 1].
        limit_is_terminal: Whether the step limit terminates the episode (the observation shows the steps left) or truncates it.
        call_timeout_s: Wall-clock seconds after which one call ends as ``timeout``.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigurationError: A keyword that does not fit; the message says what would.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}
    version: ClassVar[str] = "0"
    """Bumped when a task, a world or the way of judging changes."""

    def __init__(
        self,
        *,
        tasks: TaskSet,
        tools: Sequence[ToolSpec],
        reasons: Sequence[str] = ("impossible", "not_allowed"),
        rules: str = "",
        split: str = "train",
        families: Sequence[str] | None = None,
        difficulty: Sequence[float] | None = None,
        task_ids: Sequence[str] | None = None,
        shaping: str | None = None,
        gamma: float = 0.98,
        limit_is_terminal: bool = False,
        call_timeout_s: float = 30.0,
        render_mode: str | None = None,
    ) -> None:
        if shaping not in (None, "milestones"):
            raise unknown("shaping", shaping, ["None", "milestones"])
        if not 0.0 < gamma <= 1.0:
            raise ConfigurationError(f"gamma must be in (0, 1], got {gamma}")
        if call_timeout_s <= 0:
            raise ConfigurationError(f"call_timeout_s must be above 0, got {call_timeout_s}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown("render_mode", render_mode, self.metadata["render_modes"])
        self.tasks = tasks
        self.rules = rules
        self.render_mode = render_mode
        self._split, self._families, self._task_ids = split, families, task_ids
        self._difficulty = _range(difficulty)
        self._selection = tasks.select(split, families, self._difficulty, task_ids)
        self._closing_tools = closing_tools(reasons)
        self._shaping, self._gamma, self._limit_is_terminal = shaping, gamma, limit_is_terminal
        self._call_timeout_s = call_timeout_s
        self.observation_space = Dict({"text": Unicode(MAX_TEXT_BYTES), "data": Json(MAX_DATA_BYTES)})
        self.action_space = ToolCallSpace((*tools, *self._closing_tools))
        self._root: int | None = None
        self._episode = 0
        self._session: Session | None = None
        self._record: StepRecord | None = None

    # What a domain implements.

    @abstractmethod
    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:
        """Builds the session of one episode.

        Args:
            task: Fixes the database, the goal and the wording.
            seed: The episode's seed, for whatever else is drawn.
            snapshot: What an earlier session of the same task and seed saved; the new one goes on from there.

        Raises:
            InfrastructureError: It could not be built.
        """

    @abstractmethod
    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """What a perfect agent would do next, a pure function of the rich observations since the reset.

        Raises:
            ConfigurationError: The tasks have no oracle.
        """

    def clear_caches(self) -> None:
        """Forgets whatever outlives an episode to be faster."""
        self.tasks.clear_cache()

    # Gymnasium.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: The root of all randomness from now on; without it the episodes go on from the last root.
            options: For this episode alone: ``task_id``, or ``split`` and ``difficulty``.

        Raises:
            ConfigurationError: An option that does not exist or does not fit.
            InfrastructureError: The session could not be built, in two tries.
        """
        super().reset(seed=seed)
        task_of = self._chooser(options or {})
        if seed is not None or self._root is None:
            self._root = int(self.np_random.integers(2**62)) if seed is None else seed
            self._episode = 0
        else:
            self._episode += 1
        task = task_of(derive("task", self._root, self._episode))
        self._start(task, dict(options or {}))
        observation, _, _, _, info = self._finish_step(None, Outcome(ToolResult(status="ok"), ()), time.monotonic_ns())
        return observation, info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carries out one action.

        Args:
            action: A `ToolCall`, a dict ``{"name", "arguments"}``, or text (JSON or ``name(argument=value)``). One that cannot
                be read, names an unknown tool or breaks its schema is an invalid action: it costs a step and the result says
                what was wrong.

        Raises:
            ResetNeeded: There is no episode, or it has ended.
        """
        if self._session is None or self._gateway is None or self._record is None or self._record.ending is not None:
            raise ResetNeeded("call reset() first" if self._record is None else "the episode has ended; call reset()")
        started = time.monotonic_ns()
        self._steps += 1
        call: ToolCall | None = None
        try:
            call = parse_action(action, self.tools)
            outcome = self._gateway.call(call)
        except InvalidAction as error:
            outcome = Outcome(ToolResult(status="invalid_arguments", content=str(error)), (), str(error))
        except InfrastructureError as error:
            return self._infrastructure_failed(call, error, started)
        self._calls.append({"invalid": outcome.invalid} if call is None else call.to_dict())
        return self._finish_step(call, outcome, started)

    def render(self) -> str | None:  # type: ignore[override]
        """The observation's text for ``render_mode="ansi"``, else None."""
        if self.render_mode is None:
            return None
        if self._record is None:
            raise ResetNeeded("call reset() before render()")
        return self._record.observation.text

    def close(self) -> None:
        """Frees everything; closing twice is fine."""
        self._close_session()
        super().close()

    # Beyond Gymnasium.

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called in this episode, the closing tools last."""
        session_tools = self._session.tools if self._session is not None else self.action_space.tools[: -len(self._closing_tools)]
        return (*session_tools, *self._closing_tools)

    @property
    def running(self) -> bool:
        """Whether there is an episode, ended or not."""
        return self._session is not None

    @property
    def task(self) -> Task:
        """The episode's task."""
        return self.last_record.task

    @property
    def observation(self) -> Observation:
        """The newest rich observation."""
        return self.last_record.observation

    @property
    def last_record(self) -> StepRecord:
        """All about the last step."""
        if self._record is None:
            raise ResetNeeded("call reset() first")
        return self._record

    @property
    def session(self) -> Session:
        """The episode's session, for checks that look beneath; a policy never sees it."""
        if self._session is None:
            raise ResetNeeded("call reset() first")
        return self._session

    def full_reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """`reset`, after every cache has been emptied."""
        self._close_session()
        self.clear_caches()
        return self.reset(seed=seed, options=options)

    def get_state(self) -> dict[str, Any]:
        """The episode's state as JSON values, for `set_state` of this or any environment of the same id and keywords.

        ``kind`` is ``snapshot`` where the session can be saved, else ``prefix``: then the calls so far are made again.
        """
        record = self.last_record
        saved = self.session.save() if record.ending is None else None
        state: dict[str, Any] = {
            "kind": "prefix" if saved is None else "snapshot",
            "root": self._root,
            "episode": self._episode,
            "task_id": record.task.id,
            "options": self._options,
            "calls": plain(self._calls),
        }
        if saved is not None:
            state["session"] = saved
            state["last"] = self._last
            state["potential"] = self._potential
        return state

    def set_state(self, state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Goes back (or over) to a state of `get_state`.

        Returns:
            The observation and info at that state.

        Raises:
            ConfigurationError: It is no such state.
        """
        missing = {"kind", "root", "episode", "task_id", "options", "calls"} - set(state)
        if missing or state["kind"] not in ("snapshot", "prefix"):
            raise ConfigurationError(f"not a state of get_state(): missing {sorted(missing)}, kind {state.get('kind')!r}")
        self._root, self._episode = state["root"], state["episode"]
        self._start(self.tasks.get(state["task_id"]), dict(state["options"]), state.get("session"))
        started = time.monotonic_ns()
        if state["kind"] == "prefix":
            self._finish_step(None, Outcome(ToolResult(status="ok"), ()), started)
            for call in state["calls"]:
                self.step(InvalidAction(call["invalid"]) if "invalid" in call else call)
            return self._public()
        self._calls = list(state["calls"])
        self._steps = len(self._calls)
        self._last = state["last"]
        self._potential = state["potential"]
        observation, gaps = self._observe()
        status = self._last["status"] if self._last else "ok"
        self._record = self._make_record(None, Outcome(ToolResult(status=status), ()), observation, gaps, started)
        return self._public()

    # How an episode goes.

    def _chooser(self, options: Mapping[str, Any]) -> Any:
        if extra := set(options) - _OPTIONS:
            raise unknown("reset option", sorted(extra)[0], _OPTIONS)
        if "task_id" in options:
            task = self.tasks.get(options["task_id"])
            return lambda _: task
        if not options:
            return self._selection.draw
        difficulty = _range(options["difficulty"]) if "difficulty" in options else self._difficulty
        task_ids = None if "split" in options else self._task_ids
        return self.tasks.select(options.get("split", self._split), self._families, difficulty, task_ids).draw

    def _start(self, task: Task, options: dict[str, Any], snapshot: Snapshot | None = None) -> None:
        self._close_session()
        seed = derive_seed("episode", self._root or 0, self._episode, task.id)
        try:
            session = self.open(task, seed, snapshot)
        except InfrastructureError:
            session = self.open(task, seed, snapshot)
        handlers = [(spec, self._on_closing) for spec in self._closing_tools]
        self._task, self._options, self._session = task, options, session
        self._gateway: Gateway | None = Gateway(session, handlers, self._call_timeout_s)
        self._closing: ToolCall | None = None
        self._steps = 0
        self._potential = 0.0
        self._last: dict[str, Any] | None = None
        self._calls: list[dict[str, Any]] = []

    def _close_session(self) -> None:
        if self._session is not None:
            self._session.close()
            if self._gateway is not None:
                self._gateway.close()
            self._session, self._gateway = None, None

    def _on_closing(self, call: ToolCall) -> ToolResult:
        self._closing = call
        return ToolResult(status="ok")

    def _finish_step(
        self, call: ToolCall | None, outcome: Outcome, started: int
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Observes, judges and records what a call (or the reset: None and no attempts) led to."""
        result = outcome.result
        if self._steps:
            shown = result.content if result.structured is None else result.structured
            name, arguments = (call.name, call.arguments) if call is not None else ("", {})
            self._last = {"tool": name, "arguments": arguments, "status": result.status, "result": shown}
        try:
            ending, checks, grade_us = self._ending()
            observation, gaps = self._observe()
        except InfrastructureError as error:
            if not self._steps:
                raise
            return self._infrastructure_failed(call, error, started)
        parts = {"outcome": 0.0, "violation": 0.0, "overreach": 0.0, "shaping": 0.0}
        if ending is Ending.SUCCESS:
            parts["outcome"] = 1.0
        elif ending is Ending.VIOLATION:
            parts["violation"] = -1.0
        if result.status == "forbidden":
            parts["overreach"] = -OVERREACH_COST
        if self._shaping and self._steps:
            parts["shaping"] = self._shape(ending)
        self._record = self._make_record(call, outcome, observation, gaps, started, ending, parts, checks, grade_us)
        observed, info = self._public()
        terminated = ending is not None and (ending.terminates or (ending is Ending.STEP_LIMIT and self._limit_is_terminal))
        return observed, sum(parts.values()), terminated, ending is not None and not terminated, info

    def _ending(self) -> tuple[Ending | None, tuple[Check, ...], int]:
        session, started = self.session, time.monotonic_ns()
        if session.violation:
            return Ending.VIOLATION, (Check("no_forbidden_call", False, session.violation),), 0
        if self._closing is not None:
            verdict = session.verdict(self._closing)
            return verdict.ending, verdict.checks, (time.monotonic_ns() - started) // 1_000
        return (Ending.STEP_LIMIT if self._steps >= self._task.max_steps else None), (), 0

    def _shape(self, ending: Ending | None) -> float:
        reached = list(self.session.milestones().values())
        after = sum(reached) / len(reached) if reached and ending is None else 0.0
        before, self._potential = self._potential, after
        return self._gamma * after - before

    def _infrastructure_failed(
        self, call: ToolCall | None, error: InfrastructureError, started: int
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Ends the episode without blaming the agent: the last good observation stands, the reward is unknown."""
        outcome = Outcome(ToolResult(status="unavailable", content="the environment itself failed"), ())
        parts = {"outcome": 0.0, "violation": 0.0, "overreach": 0.0, "shaping": 0.0}
        before = self.last_record
        self._record = self._make_record(
            call, outcome, before.observation, before.gaps, started, Ending.INFRA_ERROR, parts, error=f"{type(error).__name__}: {error}"
        )
        observed, info = self._public()
        return observed, 0.0, False, True, info

    def _observe(self) -> tuple[Observation, tuple[str, ...]]:
        view = self.session.observe()
        gaps: list[str] = []
        data = {
            "goal": self._task.goal,
            "rules": self.rules,
            "step": self._steps,
            "max_steps": self._task.max_steps,
            "last": self._last,
            "view": view.data,
        }
        raw = orjson.dumps(data)
        if len(raw) > MAX_DATA_BYTES:
            gaps.append("data_cut")
            short = dict(self._last or {}, arguments={}, result="too large to show; ask for less")
            raw = orjson.dumps({**data, "last": short if self._last else None, "view": {}})
        text = self._describe(view.text)
        shown = cut(text, MAX_TEXT_BYTES)
        if shown is not text:
            gaps.append("text_cut")
        return Observation(shown, orjson.loads(raw), view.image), tuple(gaps)

    def _describe(self, view: str) -> str:
        lines = [f"Goal: {self._task.goal}"]
        if self.rules:
            lines.append(f"Rules:\n{self.rules}")
        lines.append(f"Step {self._steps} of {self._task.max_steps}.")
        if self._last is not None:
            call = ToolCall(self._last["tool"] or "(unreadable action)", self._last["arguments"])
            result = self._last["result"]
            shown = result if isinstance(result, str) else orjson.dumps(result).decode()
            lines.append(f"Last call: {call}\nStatus: {self._last['status']}\nResult: {shown}")
        if view:
            lines.append(view)
        lines.append("Tools: " + ", ".join(f"{spec.name}({', '.join(spec.parameters.get('properties', ()))})" for spec in self.tools))
        return "\n".join(lines)

    def _make_record(
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
        session = self.session
        valid = ending is not Ending.INFRA_ERROR
        parts = parts or {"outcome": 0.0, "violation": 0.0, "overreach": 0.0, "shaping": 0.0}
        attempts: tuple[CallRecord, ...] = outcome.attempts
        return StepRecord(
            task=self._task,
            root_seed=self._root or 0,
            episode=self._episode,
            step=self._steps,
            call=call,
            result=outcome.result if self._steps else None,
            attempts=attempts,
            invalid=outcome.invalid,
            observation=observation,
            reward=sum(parts.values()) if valid else None,
            reward_parts=parts,
            reward_valid=valid,
            milestones=tuple(name for name, reached in session.milestones().items() if reached) if valid else (),
            digest=session.digest() if valid else "",
            changes=tuple(session.changes()) if ending is not None and valid else (),
            checks=checks,
            ending=ending,
            success=None if ending is None or not valid else ending is Ending.SUCCESS,
            gaps=gaps,
            env_us=(time.monotonic_ns() - started) // 1_000,
            grade_us=grade_us,
            error=error,
            options=self._options,
        )

    def _public(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The observation and the info of the last record; nothing in them is shared with it."""
        record = self.last_record
        info: dict[str, Any] = {
            "task_id": record.task.id,
            "task_type": record.task.type,
            "difficulty": record.task.difficulty,
            "status": record.result.status if record.result is not None else "ok",
            "invalid_action": bool(record.invalid),
            "ending": str(record.ending) if record.ending is not None else "",
            "reward_parts": dict(record.reward_parts),
            "reward_valid": record.reward_valid,
            "gaps": list(record.gaps),
        }
        if record.success is not None:
            info["success"] = info["is_success"] = record.success
        shown = record.observation
        return Observation(shown.text, plain(shown.data), None if shown.image is None else shown.image.copy()).to_dict(), info


def _range(difficulty: Sequence[float] | None) -> tuple[float, float] | None:
    if difficulty is None:
        return None
    if not isinstance(difficulty, list | tuple) or len(difficulty) != 2 or not all(isinstance(end, int | float) for end in difficulty):
        raise ConfigurationError(f"difficulty must be two numbers, lowest and highest, got {difficulty!r}")
    return float(difficulty[0]), float(difficulty[1])
