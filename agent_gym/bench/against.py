"""Our MiniWoB beside another library's: the same page, seeds and browser, in one run."""

import json
import subprocess
import time
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import gymnasium

from agent_gym.browser.chromium.executable import executable
from agent_gym.core import ToolCall
from agent_gym.errors import ConfigurationError, InfrastructureError

__all__ = ["OTHERS", "against"]

OTHERS = ("browsergym",)
"""Whom ours can be measured against."""
_SEEDS = range(9)
"""Theirs; the first warms up and does not count."""
_NOTHING = ToolCall("scroll", {"delta_x": 0, "delta_y": 0})
_DEADLINE_S = 420.0


def against(other: str, progress: Callable[[str], None]) -> dict[str, float]:
    """Plays ``click-button`` on both sides: a reset, four times ``scroll(0, 0)``, the right click; every observation as a text.

    Args:
        other: ``browsergym=PATH``, the path of a virtual environment that has ``browsergym-miniwob``.
        progress: Is told what is being measured.

    Returns:
        ``web_vs_browsergym_x``, our episodes in a second over theirs, and both: ``web_miniwob_episodes_per_s`` and
        ``web_browsergym_episodes_per_s``. The same without what BrowserGym waits on purpose (``pre_observation_delay`` and ``slow_mo``
        0): ``web_vs_browsergym_unwaiting_x``.

    Raises:
        ConfigurationError: There is no such other, or no such environment.
        InfrastructureError: Theirs failed, or a page asked something else on the two sides.
        MissingExtra: The pages or the browser's extra are not installed.
    """
    name, _, place = other.partition("=")
    python = Path(place) / "bin" / "python"
    if name not in OTHERS or not python.is_file():
        raise ConfigurationError(f"--against takes browsergym=PATH with the path of a virtual environment that has it; got {other!r}")
    from agent_gym.envs.miniwob import pages

    wanted = {"program": executable(), "pages": str(pages.folder()), "seeds": list(_SEEDS)}
    progress("BrowserGym as it comes")
    theirs = _theirs(python, {**wanted, "keywords": {}})
    progress("BrowserGym without its pauses")
    unwaiting = _theirs(python, {**wanted, "keywords": {"pre_observation_delay": 0, "slow_mo": 0}})
    progress("ours")
    ours = _ours(theirs["page_seeds"], theirs["goals"])
    return {
        "web_miniwob_episodes_per_s": ours,
        "web_browsergym_episodes_per_s": _rate(theirs),
        "web_vs_browsergym_x": ours / _rate(theirs),
        "web_vs_browsergym_unwaiting_x": ours / _rate(unwaiting),
    }


def _rate(told: dict[str, Any]) -> float:
    return len(told["episode_s"]) / float(sum(told["episode_s"]))


def _theirs(python: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    with as_file(files(__package__).joinpath("theirs_browsergym.py")) as program:
        try:
            done = subprocess.run(
                [python, program], input=json.dumps(wanted), capture_output=True, text=True, timeout=_DEADLINE_S, check=True
            )
        except subprocess.CalledProcessError as error:
            raise InfrastructureError(f"BrowserGym failed: {error.stderr.strip()[-2_000:]}") from error
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(f"BrowserGym did not come to an end in {_DEADLINE_S:g} s") from error
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _ours(seeds: list[int], goals: list[str]) -> float:
    """Episodes in a second."""
    env: Any = gymnasium.make("agent_gym:AgentBase/MiniWoB-v0", task="click-button", interface="text", disable_env_checker=True)
    took = 0.0
    for at, seed in enumerate([seeds[0], *seeds]):
        started = time.perf_counter()
        observation, _ = env.reset(seed=0, options={"task_id": f"miniwob/click-button/train-{seed}"})
        seen = [observation]
        for _ in range(4):
            seen.append(env.step(_NOTHING)[0])
        info = env.step(env.unwrapped.oracle(seen))[4]
        took += time.perf_counter() - started if at else 0.0  # the first warms up
        if observation["data"]["goal"] != goals[max(at - 1, 0)] or not info["success"]:
            raise InfrastructureError(
                f"seed {seed}: ours asked {observation['data']['goal']!r}, theirs {goals[max(at - 1, 0)]!r}, or the click failed"
            )
    env.close()
    return len(seeds) / took
