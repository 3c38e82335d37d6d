"""What the gateway costs: calls through it beside the same calls straight to the session, in one process, on one core."""

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from agent_gym.agent_env import AgentEnv
from agent_gym.bench.playing import one_core
from agent_gym.core import Session, ToolCall
from agent_gym.gateway import Boundary, Gateway, Resilience

__all__ = ["measure"]

_CALLS = 300
_ROUNDS = 15


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Makes the same calls through a gateway and without one, in turn.

    Returns:
        ``gateway_over_direct_x`` (a click in an in-process page of WebTask), ``web_click_us`` and ``web_click_direct_us``;
        ``retail_call_over_direct_x``, ``retail_call_us`` and ``retail_call_direct_us`` (``get_order`` in ToolTask, a remote tool,
        its cache off). Medians of rounds; a ratio is the median of the rounds' own.
    """
    with one_core():
        progress("a click in a page")
        click = _compare("agent_gym:AgentBase/WebTask-v0", lambda _: [ToolCall("click", {"bid": "1"}), ToolCall("click", {"bid": "2"})])
        progress("a retail operation")
        read = _compare("agent_gym:AgentBase/ToolTask-v0", _reads)
    return {
        "gateway_over_direct_x": click[2],
        "web_click_us": click[0],
        "web_click_direct_us": click[1],
        "retail_call_over_direct_x": read[2],
        "retail_call_us": read[0],
        "retail_call_direct_us": read[1],
    }


def _reads(env: AgentEnv) -> list[ToolCall]:
    pattern: dict[str, Any] = next(one for one in env.task.spec["look_first"] if one["tool"] == "get_order")
    return [ToolCall("get_order", pattern["arguments"])]


def _compare(env_id: str, calls_of: Callable[[AgentEnv], list[ToolCall]]) -> tuple[float, float, float]:
    """Microseconds a call with and without the gateway, and the ratio."""
    env = gymnasium.make(env_id, interface="text", disable_env_checker=True).unwrapped.rich.unwrapped  # type: ignore[attr-defined]
    env.reset(seed=0)
    session: Session = env.session
    calls = calls_of(env)
    gateway = Gateway(session, boundary=Boundary(resilience=Resilience(cache=False)))
    through, direct = [], []
    for _ in range(_ROUNDS + 1):
        through.append(_timed(lambda call, number: gateway.call(call, number).result, calls))
        direct.append(_timed(lambda call, _: session.call(call, math.inf), calls))
    gateway.close()
    env.close()
    ratios = [one / other for one, other in zip(through[1:], direct[1:], strict=True)]
    return statistics.median(through[1:]), statistics.median(direct[1:]), statistics.median(ratios)


def _timed(make: Callable[[ToolCall, int], Any], calls: list[ToolCall]) -> float:
    """Microseconds a call."""
    started = time.perf_counter()
    for number in range(_CALLS):
        make(calls[number % len(calls)], number)
    return 1e6 * (time.perf_counter() - started) / _CALLS
