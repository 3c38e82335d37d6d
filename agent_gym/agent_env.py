"""The one template that every environment follows: which task is next, and Gymnasium's reset, step, render and close around it.

A domain subclasses `AgentEnv`, hands it its tasks and tools, and implements `open`, which builds the `Session` of one episode.
Everything that a policy, a wrapper or a recorder relies on is here and in `Episode`, and is the same for all of them.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium
from gymnasium.spaces import Dict

from agent_gym.core.action import ToolCall
from agent_gym.core.choice import Choice, reset_options
from agent_gym.core.dialect import Dialect, ask_plainly
from agent_gym.core.observation import Observation
from agent_gym.core.perturbation import Perturbation, exact_texts
from agent_gym.core.record import StepRecord
from agent_gym.core.seeding import derive, derive_seed
from agent_gym.core.session import Session, Snapshot
from agent_gym.core.spaces import Json, ToolCallSpace, Unicode
from agent_gym.core.task import Task, TaskSet
from agent_gym.core.tool import ToolResult, ToolSpec
from agent_gym.core.translated import TranslatedSession
from agent_gym.core.verdict import Ending
from agent_gym.episode import MAX_DATA_BYTES, MAX_TEXT_BYTES, Episode, Terms
from agent_gym.episode_state import catch_up, check_state, state_of
from agent_gym.errors import ConfigurationError, InfrastructureError, ResetNeeded, UnknownRenderMode, unknown
from agent_gym.gateway import Boundary, FaultPlan, Permissions, Resilience, Tape, check_tools

__all__ = ["AgentEnv"]


class AgentEnv(gymnasium.Env[dict[str, Any], Any]):
    """An environment in which every action is a tool call.

    Observations are ``{"text": str, "data": dict}``; actions are `ToolCall` objects, dicts ``{"name", "arguments"}`` or text.
    `gymnasium.make` puts an `Interface` around it, which turns both into what a learner eats.

    Args:
        tasks: The domain's tasks.
        tools: Every tool any of its sessions offers.
        closing: Tools of the domain's own that close an episode, beside ``finish``, ``refuse`` and ``hand_over``.
        reasons: The reasons that ``refuse`` takes; all of them, where sessions have reasons of their own.
        rules: What the agent must keep to, in words; part of every observation, unless a session has rules of its own.
        split: The split that tasks are drawn from.
        families: Families to draw from, all of the split's by default.
        difficulty: Lowest and highest difficulty, in [0, 1].
        task_ids: Draw from exactly these tasks instead.
        shaping: ``"milestones"`` adds γΦ′−Φ, where Φ is the share of milestones reached and 0 at the end of an episode.
        gamma: The γ of shaping, in (0, 1].
        limit_is_terminal: Whether the step limit terminates the episode (the observation shows the steps left) or truncates it.
        call_timeout_s: Wall-clock seconds after which one call ends as ``timeout``.
        permissions: What may be called: ``"level1"`` (what changes nothing), ``"level2"`` (also what destroys nothing), ``"level3"``
            (all), or ``{"token": …}`` of `agent_gym.gateway.issue_token` for this class of environment, whose identity also keeps off
            what belongs to somebody else. A task may grant less.
        retries: Who tries again after a failure of a remote tool: ``"gateway"``, or ``"agent"``, which is told and can ``wait``.
        resilience: What the gateway does about such failures, as an object; see `agent_gym.gateway.Resilience`.
        faults: What goes wrong with remote tools on purpose: a rate in [0, 1], or ``{"rate", "kinds"}``; see
            `agent_gym.gateway.KINDS`.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigurationError: A keyword that does not fit; the message says what would.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's own attribute
        "render_modes": ["ansi"],
        "render_fps": 4,
    }
    rebuild: Callable[[], "AgentEnv"] | None = None
    """Set by the factory: makes an equal, fresh environment."""
    version: ClassVar[str] = "0"
    """Bumped when a task, a world or the way of judging changes."""
    volatile: ClassVar[Sequence[str]] = ()
    """Regular expressions of what may differ in the texts of two equal episodes: durations, process ids, temporary paths."""
    carried: Collection[str] = ()
    """Names of the calls that its tools carry, where it has tools that do (`ToolSpec.carries`); they need permission too."""
    usage: Mapping[str, float] | None = None
    """What the coming action has cost its policy (``prompt_tokens``, ``completion_tokens``, ``cost_usd``), where somebody knows."""

    def __init__(
        self,
        *,
        tasks: TaskSet,
        tools: Sequence[ToolSpec],
        closing: Sequence[ToolSpec] = (),
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
        permissions: str | Mapping[str, str] | None = None,
        retries: str = "gateway",
        resilience: Mapping[str, Any] | None = None,
        faults: float | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if shaping not in (None, "milestones"):
            raise unknown("shaping", shaping, ["None", "milestones"])
        if not isinstance(gamma, int | float) or not 0.0 < gamma <= 1.0:
            raise ConfigurationError(f"gamma must be in (0, 1], got {gamma!r}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UnknownRenderMode(render_mode, self.metadata["render_modes"])
        self.tasks = tasks
        self.render_mode = render_mode
        self._choice = Choice(tasks, split, families, difficulty, task_ids)
        self._terms = Terms(
            rules=rules,
            reasons=tuple(reasons),
            closing=tuple(closing),
            shaping=shaping is not None,
            gamma=gamma,
            limit_is_terminal=limit_is_terminal,
            boundary=Boundary(
                call_timeout_s=call_timeout_s,
                permissions=Permissions.of(permissions, type(self).__name__),
                retries=retries,
                resilience=Resilience.of(resilience),
                faults=FaultPlan.of(faults),
            ),
        )
        check_tools(tools)
        self._terms.boundary.resilience.check(tools)
        self._domain_tools = tuple(tools)
        self._list_tools()
        self.observation_space = Dict({"text": Unicode(MAX_TEXT_BYTES), "data": Json(MAX_DATA_BYTES)})
        self._root: int | None = None
        self._number = 0
        self._episode: Episode | None = None

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

    def careful_oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """The same for an agent whose tools can fail; what `oracle` says where the domain makes no difference."""
        return self.oracle(observations)

    def ask(self, observations: Sequence[Mapping[str, Any]], *, careful: bool = False) -> ToolCall:
        """What the oracle would do next, or the careful one, in an episode that may be perturbed.

        Oracles are ours: what perturbs wording and interface is undone for them, and what they say is put in the episode's own terms.
        """
        return ask_plainly(self.careful_oracle if careful else self.oracle, observations, self._domain_tools)

    def clear_caches(self) -> None:
        """Forgets whatever outlives an episode to be faster."""
        self.tasks.clear_cache()

    # Gymnasium.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: The root of all randomness from now on; without it the episodes go on from the last root.
            options: For this episode alone: ``task_id``, or ``split`` and ``difficulty``; and ``perturbation``, a
                `agent_gym.core.Perturbation` or its JSON form.

        Raises:
            ConfigurationError: An option that does not exist or does not fit.
            InfrastructureError: The session could not be built, in two tries.
        """
        super().reset(seed=seed)
        choose = self._choice.under(options or {})
        if seed is not None or self._root is None:
            self._root = int(self.np_random.integers(2**62)) if seed is None else seed
            self._number = 0
        else:
            self._number += 1
        self._start(choose(derive("task", self._root, self._number)), reset_options(options or {}))
        return self._public()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carries out one action.

        Args:
            action: A `ToolCall`, a dict ``{"name", "arguments"}``, or text (JSON or ``name(argument=value)``). One that cannot
                be read, names an unknown tool or breaks its schema is an invalid action: it costs a step and the result says
                what was wrong.

        Raises:
            ResetNeeded: There is no episode, or it has ended.
        """
        episode = self._episode
        if episode is None or episode.ended:
            raise ResetNeeded("call reset() first" if episode is None else "the episode has ended; call reset()")
        self.usage = None
        episode.step(action)
        if episode is not self._episode:
            raise ResetNeeded("this step hung, and its episode was abandoned")
        observation, info = self._public()
        terminated = episode.terminated
        return observation, episode.record.reward or 0.0, terminated, episode.ended and not terminated, info

    def render(self) -> str | None:
        """The observation's text for ``render_mode="ansi"``, else None."""
        if self.render_mode is None:
            return None
        return self._running.record.observation.text

    def close(self) -> None:
        """Frees everything; closing twice is fine."""
        self._end()
        super().close()

    # Beyond Gymnasium.

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called in this episode, the closing tools last; before the first one, all that any episode offers."""
        return self._all_tools if self._episode is None else self._episode.tools

    def offer(self, tool: ToolSpec, handler: Callable[[ToolCall], ToolResult]) -> None:
        """Offers a tool of a wrapper's own beside the domain's, from the next reset on.

        Args:
            tool: The tool; read-only, since the session knows nothing of it.
            handler: Carries it out. After `set_state` it is asked again what it was asked then, and must answer the same.

        Raises:
            ConfigurationError: There is a tool of that name.
        """
        check_tools([tool])
        if any(tool.name == known.name for known in self._all_tools):
            raise ConfigurationError(f"there is a tool {tool.name!r} already")
        self._terms = replace(self._terms, offered=(*self._terms.offered, (tool, handler)))
        self._list_tools()

    def restrict(self, level: str = "level3", only: Sequence[str] | None = None, never: Sequence[str] = ()) -> None:
        """Narrows what the gateway permits, from the next reset on; what has been taken does not come back.

        Args:
            level: One of `agent_gym.gateway.LEVELS`.
            only: Tools of the domain, and calls that they carry, beside which nothing may be called; None for no such list.
            never: Those that may not be called.

        Raises:
            ConfigurationError: There is no such level or tool.
        """
        known = {tool.name for tool in self._domain_tools} | set(self.carried)
        if self.carried or not any(tool.carries for tool in self._domain_tools):  # else nobody knows what may be carried
            for name in (*(only or ()), *never):
                if name not in known:
                    raise unknown("tool", name, known)
        narrowed = self._terms.boundary.permissions.narrowed(level, only, never)
        self._terms = replace(self._terms, boundary=replace(self._terms.boundary, permissions=narrowed))
        self._list_tools()

    def seek(self, root: int, number: int) -> None:
        """Makes the next reset without a seed that of a recorded episode.

        Args:
            root: The episode's root seed.
            number: Its number, of the resets since that seed was set.
        """
        self._root, self._number = root, number - 1

    def play_back(self, tape: Tape | None) -> None:
        """From the next reset on, has a tape answer in the place of tools; None has the tools answer again."""
        self._terms = replace(self._terms, boundary=replace(self._terms.boundary, tape=tape))

    def _list_tools(self) -> None:
        permitted = filter(self._terms.boundary.permissions.allow, self._domain_tools)
        self._all_tools = (*permitted, *(tool for tool, _ in self._terms.offered), *self._terms.own(self._domain_tools))
        self.action_space = ToolCallSpace(self._all_tools)

    def renewed(self) -> "AgentEnv":
        """A fresh environment that is equal to this one, with what wrappers have offered and taken away.

        Raises:
            ConfigurationError: `gymnasium.make` has not made this one.
        """
        if self.rebuild is None:
            raise ConfigurationError(f"{type(self).__name__} can be built again only where gymnasium.make has made it")
        fresh = self.rebuild()
        fresh._terms = self._terms
        fresh._list_tools()
        return fresh

    @property
    def rules(self) -> str:
        """What the agent must keep to, in words: in whatever task, if it is not the same in all."""
        return self._terms.rules

    @property
    def faulty(self) -> bool:
        """Whether its tools fail on purpose."""
        return self._terms.boundary.faults is not None

    @property
    def running(self) -> bool:
        """Whether there is an episode, ended or not."""
        return self._episode is not None

    @property
    def task(self) -> Task:
        """The episode's task."""
        return self._running.task

    @property
    def observation(self) -> Observation:
        """The newest rich observation."""
        return self._running.record.observation

    @property
    def view(self) -> str:
        """The part of the observation's text that is neither the goal nor the last result; empty where there is none."""
        return self._running.view

    @property
    def tool_line(self) -> str:
        """The last line of the observation's text, which names the tools."""
        return self._running.tool_line

    @property
    def last_record(self) -> StepRecord:
        """All about the last step."""
        return self._running.record

    @property
    def session(self) -> Session:
        """The episode's session, for checks that look beneath; a policy never sees it."""
        return self._running.session

    def full_reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """`reset`, after every cache has been emptied."""
        self._end()
        self.clear_caches()
        return self.reset(seed=seed, options=options)

    def conclude(self, ending: Ending, why: str) -> StepRecord:
        """Ends the running episode from outside, after a step; stepping on needs a reset.

        Args:
            ending: ``failure``, ``deadline`` or ``budget``.
            why: The reason, which becomes the record's failed check.

        Returns:
            The last record as it is now: with the ending, the check, and no potential left in the reward where it terminates.

        Raises:
            ConfigurationError: The episode cannot be ended so.
            ResetNeeded: There is no episode, or it has ended.
        """
        if self._running.ended:
            raise ResetNeeded("the episode has ended; call reset()")
        return self._running.conclude(ending, why)

    def interrupt(self) -> None:
        """Stops whatever a step on another thread is waiting for."""
        self._running.session.interrupt()

    def abandon(self, action: Any, why: str) -> dict[str, Any]:
        """Ends the running episode as ``deadline`` while a step of it hangs on another thread, from which it will not be taken back.

        Args:
            action: What that step was given.
            why: The reason, which becomes the record's failed check.

        Returns:
            The info of the step that hangs; its record has what was shown before it, and the ending.
        """
        self._episode = self._running.abandoned(action, why)
        return self._public()[1]

    def get_state(self) -> dict[str, Any]:
        """The episode's state as JSON values, for `set_state` of this or any environment of the same id and keywords."""
        return state_of(self._running)

    def set_state(self, state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Goes back (or over) to a state of `get_state`.

        Returns:
            The observation and info at that state.

        Raises:
            ConfigurationError: It is no such state.
            InfrastructureError: The session could not be built.
        """
        check_state(state)
        task = self.tasks.get(state["task_id"])
        self._root, self._number = state["root"], state["number"]
        self._start(task, dict(state["options"]), state if state["kind"] == "snapshot" else None)
        catch_up(self._running, state)
        return self._public()

    @property
    def _running(self) -> Episode:
        if self._episode is None:
            raise ResetNeeded("call reset() first")
        return self._episode

    def _start(self, task: Task, options: dict[str, Any], state: Mapping[str, Any] | None = None) -> None:
        """Begins an episode, or takes up a saved one; an infrastructure failure is tried again once."""
        self._end()
        try:
            self._episode = self._built(task, options, state)
        except InfrastructureError:
            self._episode = self._built(task, options, state)

    def _built(self, task: Task, options: dict[str, Any], state: Mapping[str, Any] | None) -> Episode:
        root = self._root or 0
        seed = derive_seed("episode", root, self._number, task.id)
        perturbation = Perturbation.of(options.get("perturbation"))
        if perturbation is not None:
            task = self.tasks.perturbed(task, perturbation)
        session = self.open(task, seed, None if state is None else state["session"])
        if perturbation is not None and perturbation.interface:
            space = self.observation_space
            pictured = isinstance(space, Dict) and "image" in space.spaces  # a picture shows a page's own words
            dialect = Dialect.drawn(perturbation, self._domain_tools, None if pictured else exact_texts(task.goal, task.spec))
            session, task = TranslatedSession(session, dialect), dialect.task(task)
        episode = Episode(task, session, self._terms, seed=seed, root_seed=root, number=self._number, options=options)
        try:
            if state is None:
                episode.begin()
            else:
                episode.resume(state["calls"], state["shown"])
        except BaseException:
            episode.close()
            raise
        return episode

    def _end(self) -> None:
        if self._episode is not None:
            self._episode.close()
            self._episode = None

    def _public(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._running.record.public()
