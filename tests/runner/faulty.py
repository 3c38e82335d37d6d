"""An environment that does what its actions, reset options and constructor are told: work, fail in every way, or wait."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from agent_gym.core.seeding import derive
from agent_gym.errors import InfrastructureError

GATES: dict[str, threading.Event] = {}
"""What ``wait:NAME`` waits for, in threads."""


def released(name: str) -> threading.Event:
    """The gate of that name."""
    return GATES.setdefault(name, threading.Event())


def release_all() -> None:
    """Opens every gate, so that no thread is left, and forgets them."""
    for gate in GATES.values():
        gate.set()
    GATES.clear()


class Faulty(gymnasium.Env[Any, Any]):
    """Observations are ``[a number drawn at the reset, a number drawn at each step, steps]``.

    Args:
        make: What the constructor does, before anything else.
        folder: Counts constructions, in files.
        healthy_from: From which construction on ``make`` is left out, counted over all workers.
        length: Steps of an episode.
    """

    def __init__(self, make: str = "", folder: str = "", healthy_from: int = 10**9, length: int = 5) -> None:
        self.observation_space = Box(0.0, 2**53, (3,), np.float64)
        self.action_space = Discrete(2)
        self.length = length
        self.steps = 0
        self.interrupted = threading.Event()
        if folder and count(folder) >= healthy_from:
            make = ""
        self._do(make)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        options = options or {}
        if not options.get("once") or count(options["once"]) == 0:
            self._do(options.get("do", ""))
        self.steps, self.start = 0, float(self.np_random.integers(2**50))
        return self._observation(), {"seed": seed, "task_id": options.get("task_id")}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        action = action if isinstance(action, str) else ""
        self._do(action)
        self.steps += 1
        ended = self.steps >= self.length
        info: dict[str, Any] = {"ending": ("infra_error" if action == "break" else "success") if ended or action == "break" else ""}
        if action == "lambda":
            info["unpicklable"] = threading.Lock()
        return self._observation(), 1.0, ended, action == "break", info

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        self._do(getattr(self, "at_close", ""))

    def echo(self, value: Any) -> Any:
        return value

    def fail(self, text: str) -> None:
        raise KeyError(text)

    def pid(self) -> int:
        return os.getpid()

    def places(self) -> tuple[str, str]:
        """Prints a line and makes a temporary file."""
        print("hello from the environment")
        handle, name = tempfile.mkstemp()
        os.close(handle)
        return name, os.environ.get("TMPDIR", "")

    def _observation(self) -> Any:
        return np.array([self.start, float(self.np_random.integers(2**50)), self.steps])

    def _do(self, what: str) -> None:
        name, _, rest = what.partition(":")
        if name == "raise":
            raise ZeroDivisionError("planted")
        if name == "infra":
            raise InfrastructureError("planted")
        if name == "exit_error":
            raise SystemExit(3)
        if name == "hang":
            while True:
                time.sleep(1)
        if name == "wait":
            released(rest).wait(120)
        if name == "interruptible":
            self.interrupted.wait(120)
        if name == "sleep":
            time.sleep(float(rest))
        if name == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "exit":
            os._exit(3)
        if name == "fork":  # a child that holds whatever the worker holds
            multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True).start()
        if name == "children":
            spawn_children(Path(rest))


def count(folder: str) -> int:
    """How often it was called for this folder before, by any process."""
    number = 0
    while True:
        try:
            (Path(folder) / str(number)).touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return number


_SLEEP = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"


def spawn_children(folder: Path) -> None:
    """Starts one child in the worker's group, one in a session of its own, and one daemon that has left its parent."""
    subprocess.Popen([sys.executable, "-c", _SLEEP, str(folder / "same")])
    subprocess.Popen([sys.executable, "-c", _SLEEP, str(folder / "session")], start_new_session=True)
    if os.fork() == 0:
        subprocess.Popen([sys.executable, "-c", _SLEEP, str(folder / "daemon")], start_new_session=True)
        os._exit(0)
    os.wait()
    while sum(path.stat().st_size > 0 for path in folder.iterdir()) < 3:
        time.sleep(0.01)


class Jittery(Faulty):
    """Takes its time, differently each time and in each process; what it does has nothing to do with that."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        rng = derive("jitter", id(self), time.monotonic_ns())
        time.sleep(float(rng.random()) * 0.003)
        return super().step(action)
