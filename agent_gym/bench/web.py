"""How fast web tasks are: steps and resets of ``AgentBase/WebTask-v0``, on pages that run in process and in Chromium."""

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium

from agent_gym.bench.against import against
from agent_gym.bench.playing import Episodes, one_core, oracle_episodes, play
from agent_gym.browser.chromium.executable import available

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["measure"]

_ID = "agent_gym:AgentBase/WebTask-v0"
_RETAIL: dict[str, Any] = {"worlds": ["retail"]}
_EPISODES = 20
"""That are played in the browser; the first quarter warms up and does not count."""
_PAUSE_S = 0.2
"""Between two of them, in which the next context gets ready, as it does while a policy thinks."""
_ROWS, _STEPS = 1_000, 20
"""Of a large page, five elements each; and between such pages."""


def measure(progress: Callable[[str], None], other: str | None = None) -> dict[str, float]:
    """Plays the oracle's episodes in the retail world again and again.

    Returns:
        ``web_inprocess_steps_per_s`` (rich observations, tool calls) and ``web_inprocess_steps_per_s_array`` (arrays,
        candidates), both of `step` alone; ``web_inprocess_reset_ms`` of the text interface, with warm caches. Medians of rounds
        over the same episodes. Where there is a browser, medians of ``web_chromium_step_text_ms``,
        ``web_chromium_step_screenshot_ms`` (text and picture), ``web_chromium_reset_ms`` and ``web_chromium_step_5000_elements_ms``
        (a click that leads from one page of that size to the next), all cores in use. With ``other`` what
        `agent_gym.bench.against` gives, and nothing else.
    """
    if other is not None:
        return against(other, progress)
    with one_core():
        progress("recording the oracle's episodes")
        episodes = oracle_episodes(_ID, **_RETAIL)
        progress("text interface")
        steps, reset = play(_ID, "text", episodes, **_RETAIL)
        progress("array interface")
        steps_array, _ = play(_ID, "array", episodes, **_RETAIL)
    metrics = {
        "web_inprocess_steps_per_s": steps,
        "web_inprocess_steps_per_s_array": steps_array,
        "web_inprocess_reset_ms": reset,
    }
    if (missing := available()) is not None:
        progress(f"without Chromium: {missing}")
        return metrics
    progress("Chromium, text")
    metrics["web_chromium_step_text_ms"], metrics["web_chromium_reset_ms"] = _in_browser(episodes[:_EPISODES], "text")
    progress("Chromium, screenshots")
    metrics["web_chromium_step_screenshot_ms"], _ = _in_browser(episodes[:_EPISODES], "both")
    progress("Chromium, large pages")
    metrics["web_chromium_step_5000_elements_ms"] = _on_large_pages()
    return metrics


def _in_browser(episodes: Episodes, observation: str) -> tuple[float, float]:
    """Milliseconds a step and a reset take in Chromium, medians."""
    env: Any = gymnasium.make(_ID, interface="text", disable_env_checker=True, engine="chromium", observation=observation)
    steps: list[float] = []
    resets: list[float] = []
    for at, (task_id, calls) in enumerate(episodes):
        time.sleep(_PAUSE_S)
        started = time.perf_counter()
        env.reset(seed=0, options={"task_id": task_id})
        resets.append(time.perf_counter() - started)
        for call in calls[:-1]:  # the last one closes the episode
            started = time.perf_counter()
            env.step(call)
            steps.append(time.perf_counter() - started)
        if at == len(episodes) // 4:
            steps.clear()
            resets.clear()
    env.close()
    return 1_000 * statistics.median(steps), 1_000 * statistics.median(resets)


def _on_large_pages() -> float:
    """Milliseconds a step takes in Chromium from one page of 5,000 elements to the next, a median."""
    from agent_gym.browser.chromium import ChromiumPage

    rows = "".join(f"<li><a href=/{row}>Item {row}</a> <label>Amount <input name=a{row}></label> <b>new</b></li>" for row in range(_ROWS))
    document = f"<!DOCTYPE html><title>Items</title><ul>{rows}</ul>".encode()

    def site(_: "WSGIEnvironment", start: "StartResponse") -> list[bytes]:
        start("200 OK", [("Content-Type", "text/html; charset=utf-8")])
        return [document]

    page = ChromiumPage(site)
    steps: list[float] = []
    for _ in range(_STEPS):
        bid = next(element.bid for element in page.snapshot().elements if element.role == "link")
        started = time.perf_counter()
        page.click(bid)
        page.snapshot()
        steps.append(time.perf_counter() - started)
    page.close()
    return 1_000 * statistics.median(steps)
