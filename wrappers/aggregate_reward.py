"""Makes one reward of several sources, each with its weight; what a source cannot tell is left out and said."""

import functools
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.errors import ConfigurationError, unknown
from agent_gym.gateway.worker import Abandoned, Worker
from agent_gym.wrappers.process_rules import RULES, told
from agent_gym.wrappers.reward_wrapper import RewardWrapper, Transition, agent_env, called_by_name

__all__ = ["AggregateReward"]

_PARTS = ("outcome", "violation", "overreach", "shaping", "potential")
_KEYS = frozenset({"source", "weight", "gate", "at", "deadline_s", "range"})
_DEADLINE_S = 10.0


@dataclass(frozen=True, kw_only=True)
class _Source:
    """One source, ready to be asked; ``part`` names a part beneath, ``ask`` is anything else."""

    weight: float
    gate: str | None
    at_end: bool
    deadline_s: float | None
    part: str | None
    ask: Callable[[Transition], Any] | None


class AggregateReward(RewardWrapper):
    """Puts Σ weight · value · gate in the place of the reward, with one part for each source that has a weight.

    It weighs the parts that the environment gives anew and adds nothing on top of them: a part that is not among the sources is not
    in the reward. A source that gives None, raises, gives NaN or ±inf, or takes too long is left out of that step's sum, and
    ``info["gaps"]`` and the record say ``reward_NAME:WHY`` (``none``, ``raised``, ``not_finite``, ``late``, ``gate``). Where none of
    the sources that were asked could tell, the reward is not valid. A call that is late goes on by itself; until it is back, its
    source is late at once. Wrappers that end episodes (budgets, deadlines, guards) go inside, so that the end is seen here.

    ===================== ========================================================================================================
    source                its value
    ===================== ========================================================================================================
    ``outcome``           these and ``violation``, ``overreach``, ``shaping``, ``potential``: the parts beneath of these names
    ``part:NAME``         any other part beneath, such as what `InjectReward` was given; 0 in a step without it
    ``reward``            the reward of an environment without parts
    ``legality``          −1 for an action that was invalid or forbidden
    ``legal``             1 until an action was invalid or forbidden, then 0; to be a gate
    ``progress``          by how much the share of milestones reached has changed
    ``repeated_error``    −1 for a call that has failed in the same way before, with nothing changed since
    ``turns``             at the end, 0 if the number of steps is within ``range``, else down to −1
    ``package.mod:name``  what the function gives for a `Transition`: a model, a judge
    ===================== ========================================================================================================

    ::

        AggregateReward(env, {
            "outcome": 1.0,
            "violation": 2.0,
            "turns": {"weight": 0.2, "range": [3, 12], "gate": "outcome"},
            "judge": {"source": "my_package.judges:tone", "weight": 0.5, "at": "end", "deadline_s": 20, "gate": "legal"},
            "legal": {"weight": 0},
        })

    Args:
        env: Any environment; all but ``reward`` and functions need one of this package.
        sources: By name: a weight, from 0; an import string (or a function), of weight 1; or a dict of ``weight``, ``source``
            (the name, by default), ``gate`` (the source whose value, in [0, 1], this one's is multiplied by), ``at`` (``"step"``, or
            ``"end"``: asked at an episode's end only), ``deadline_s`` (10 by default, for functions; None calls the function in
            place and waits) and ``range`` (for ``turns``: least and most steps).

    Raises:
        ConfigurationError: A source that does not exist or does not fit.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], sources: Mapping[str, Any]) -> None:
        if not isinstance(sources, Mapping) or not sources:
            raise ConfigurationError(f"sources must be a dict of at least one source, got {sources!r}")
        self._ours = agent_env(env) is not None
        read = {str(name): self._read(str(name), given) for name, given in sources.items()}
        RecordConstructorArgs.__init__(self, sources={name: shown for name, (_, shown) in read.items()})
        super().__init__(env)
        self._sources = {name: source for name, (source, _) in read.items()}
        for name, source in self._sources.items():
            if source.gate is None:
                continue
            if not isinstance(source.gate, str) or source.gate not in self._sources or source.gate == name:
                raise unknown(f"gate of source {name!r}", source.gate, self._sources.keys() - {name})
            if self._sources[source.gate].at_end and not source.at_end:
                raise ConfigurationError(
                    f'source {name!r} is asked at every step, its gate {source.gate!r} only at the end; add "at": "end"'
                )
        self._looks = any(source.ask is not None for source in self._sources.values())
        self._history: list[dict[str, Any]] = []
        self._milestones = 0
        self._desks: dict[str, _Desk] = {}

    def _read(self, name: str, given: Any) -> tuple[_Source, Any]:
        """A source, and how the spec says it."""
        if isinstance(given, bool) or (not isinstance(given, Mapping | int | float | str) and not callable(given)):
            raise ConfigurationError(f"source {name!r}: give a weight, an import string, or a dict, got {given!r}")
        options = dict(given) if isinstance(given, Mapping) else {"weight" if isinstance(given, int | float) else "source": given}
        if extra := options.keys() - _KEYS:
            raise unknown(f"key of source {name!r}", sorted(extra)[0], _KEYS)
        weight, at, deadline_s = options.get("weight", 1.0), options.get("at", "step"), options.get("deadline_s", _DEADLINE_S)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise ConfigurationError(f"source {name!r}: the weight must be a number from 0 (values carry the sign), got {weight!r}")
        if at not in ("step", "end"):
            raise unknown(f"at of source {name!r}", at, ["step", "end"])
        if deadline_s is not None and (not isinstance(deadline_s, int | float) or not 0 < deadline_s < math.inf):
            raise ConfigurationError(f"source {name!r}: deadline_s must be seconds above 0 or None, got {deadline_s!r}")
        source = options.get("source", name)
        if ("range" in options) != (source == "turns"):
            raise ConfigurationError(f'source {name!r}: "range" goes with turns, and turns needs it, such as [2, 12]')
        part, ask, own_code = self._meant(name, source, options)
        if own_code:
            options["source"] = called_by_name(source)[1]
        made = _Source(
            weight=float(weight),
            gate=options.get("gate"),
            at_end=at == "end" or source == "turns",
            deadline_s=deadline_s if own_code else None,
            part=part,
            ask=ask,
        )
        return made, options

    def _meant(self, name: str, source: Any, options: Mapping[str, Any]) -> tuple[str | None, Callable[[Transition], Any] | None, bool]:
        """The part beneath or the function that a source names, and whether that is somebody else's code."""
        if callable(source) or (isinstance(source, str) and ":" in source and not source.startswith("part:")):
            return None, called_by_name(source)[0], True
        known = (*_PARTS, "part:…", *RULES) if self._ours else ("reward", "part:…")
        known_here = isinstance(source, str) and (source in known or source.startswith("part:"))
        if not known_here:
            raise unknown(f"source {name!r}:", source, [*known, "an import string (package.module:name)"])
        if source not in RULES:
            return str(source).removeprefix("part:"), None, False
        if source != "turns":
            return None, RULES[source], False
        ends = options["range"]
        fits = isinstance(ends, list | tuple) and len(ends) == 2 and all(type(end) is int for end in ends) and 1 <= ends[0] <= ends[1]
        if not fits:
            raise ConfigurationError(f"source {name!r}: range must be the least and the most steps, such as [2, 12], got {ends!r}")
        return None, functools.partial(RULES["turns"], low=ends[0], high=ends[1]), False

    def close(self) -> None:
        """Closes the environment, and leaves what is still being asked to itself."""
        for desk in self._desks.values():
            desk.close()
        self._desks = {}
        super().close()

    def _begin(self, observation: Any, info: Mapping[str, Any]) -> None:  # noqa: ARG002 - nothing is rewarded yet
        ours = agent_env(self.env) if self._looks else None
        if ours is not None:
            self._history = [told(self._records.last_record)]
            self._milestones = len(ours.session.milestones())

    def _rewarded(self, now: Transition) -> dict[str, float] | None:
        if self._ours and self._looks:
            record = self._records.last_record
            self._history.append(told(record))
            now = replace(now, record=record, history=tuple(self._history), milestones=self._milestones)
        gaps: dict[str, str] = {}
        values: dict[str, float] = {}
        asked = [(name, source) for name, source in self._sources.items() if now.ended or not source.at_end]
        for name, source in asked:
            value = _finite(now.parts.get(source.part, 0.0)) if source.part is not None else self._asked(name, source, now)
            if isinstance(value, str):
                gaps[name] = value
            else:
                values[name] = value
        made: dict[str, float] = {}
        for name, source in asked:
            if name not in values or not source.weight:
                continue
            gate = 1.0 if source.gate is None else values.get(source.gate, math.nan)
            if 0.0 <= gate <= 1.0:
                made[name] = source.weight * values[name] * gate
            else:
                gaps[name] = "gate"
        self._gaps = tuple(f"reward_{name}:{why}" for name, why in gaps.items())
        return None if gaps and not made else made

    def _asked(self, name: str, source: _Source, now: Transition) -> float | str:
        """What a source says, or why it says nothing."""
        assert source.ask is not None
        try:
            if source.deadline_s is not None:
                if name not in self._desks:
                    self._desks[name] = _Desk()
                value = self._desks[name].ask(functools.partial(source.ask, now), source.deadline_s)
            else:
                value = source.ask(now)
            if value is None:
                return "none"
            return _finite(float(value))
        except Abandoned:
            return "late"
        except Exception:  # noqa: BLE001 - whatever a model or a judge raises is a gap in the record, and no crash of a training run
            return "raised"

    def _saved(self) -> dict[str, Any]:
        return {"history": list(self._history), "milestones": self._milestones}

    def _load(self, state: Mapping[str, Any]) -> None:
        self._history, self._milestones = [dict(step) for step in state["history"]], int(state["milestones"])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_desks": {}}


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "not_finite"


class _Desk:
    """Where one source is asked: by one thread, and never again before it is back."""

    def __init__(self) -> None:
        self._worker = Worker()
        self._back = threading.Event()

    def ask(self, question: Callable[[], Any], deadline_s: float) -> Any:
        """What the question gives; raises `Abandoned` if that takes longer than ``deadline_s``, or an earlier one still does."""
        if self._worker.abandoned:
            if not self._back.is_set():
                raise Abandoned
            self._worker = Worker()
        self._back = back = threading.Event()

        def answer() -> Any:
            try:
                return question()
            finally:
                back.set()

        return self._worker.run(answer, deadline_s, lambda: None, 0.0)

    def close(self) -> None:
        self._worker.close()
