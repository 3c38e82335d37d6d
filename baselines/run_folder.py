"""The folder of a training run, whoever learns: what was asked for, the best model, the newest checkpoint, the learning curve.

::

    config.json           what was asked for
    model.zip             the best model by the validation split so far; the newest one if nothing is measured
    checkpoint.zip        the newest model and whatever its learner needs to go on; replaced in one stroke, so it is always whole
    learning_curve.json   a list of measurements
    tensorboard/          what TensorBoard shows
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from agent_gym.baselines.sb3.config import TrainConfig
from agent_gym.core.policy import Policy
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation import evaluate

__all__ = ["Bars", "Keeper", "TrainResult", "prepare", "write_json"]

_MAY_CHANGE = frozenset({"steps", "time_limit_s", "threads", "backend"})


@dataclass(frozen=True)
class TrainResult:
    """What came of a training run.

    Attributes:
        model: The best model's file; `agent_gym.policies.load` takes its path.
        steps: Environment steps of PPO, those before a resume included.
        seconds: Wall-clock seconds, demonstrations and measurements included.
        curve: The measurements: ``steps``, ``seconds``, ``success_rate``, ``success_macro``, ``by_task_type``.
    """

    model: Path
    steps: int
    seconds: float
    curve: list[dict[str, Any]]


def prepare(config: TrainConfig, folder: Path, resume: bool) -> bool:
    """Readies the folder; whether there is a checkpoint to go on from.

    Raises:
        ConfigurationError: The folder holds a run already, or another one than is to be resumed.
    """
    going_on = (folder / "checkpoint.zip").is_file()
    if going_on and not resume:
        raise ConfigurationError(f"{str(folder)!r} holds a training run already; resume it or give another folder")
    if going_on:
        earlier, now = type(config).load(folder).to_dict(), config.to_dict()
        for name in sorted(now.keys() - _MAY_CHANGE):
            if now[name] != earlier[name]:
                raise ConfigurationError(f"{str(folder)!r} holds another run: its {name} is {earlier[name]!r}, not {now[name]!r}")
    else:
        shutil.rmtree(folder / "tensorboard", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.tmp"):  # by a run that was killed while it wrote
        left.unlink()
    write_json(folder / "config.json", config.to_dict())
    return going_on


class Keeper:
    """Measures, keeps the best model, writes checkpoints and watches the clock; all of it between two rollouts.

    Args:
        config: What was asked for.
        folder: Where to.
        state: ``seconds`` and ``curve`` of what was before; empty for a new run.
        policy: The policy as it is now.
        save: Writes a file, atomically: a path, JSON values to keep with it, and whether a learner is to go on from it.
        bars: Says what was measured.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path,
        state: Mapping[str, Any],
        policy: Callable[[], Policy],
        save: Callable[[Path, Mapping[str, Any], bool], None],
        bars: "Bars",
    ) -> None:
        self.config, self.folder, self.bars = config, folder, bars
        self.curve: list[dict[str, Any]] = list(state.get("curve", ()))
        self._policy, self._save = policy, save
        self._seconds_before: float = state.get("seconds", 0.0)
        self._started = time.monotonic()
        self._saved_at: int = state.get("steps", -1)

    @property
    def seconds(self) -> float:
        """Wall-clock seconds so far."""
        return self._seconds_before + time.monotonic() - self._started

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit is over."""
        return self.config.time_limit_s is not None and self.seconds >= self.config.time_limit_s

    def keep(self, steps: int, *, last: bool = False) -> bool:
        """Does what is due after so many steps; whether a checkpoint was written."""
        if self.config.eval_episodes:
            measured = self.curve[-1]["steps"] if self.curve else -self.config.eval_every
            if steps - measured >= self.config.eval_every or (last and steps > measured):
                self._measure(steps)
        elif last:
            self._save(self.folder / "model.zip", self._card(steps), False)
        due = self._saved_at < 0 or steps - self._saved_at >= self.config.checkpoint_every or (last and steps > self._saved_at)
        if due:
            self._save(self.folder / "checkpoint.zip", {**self._card(steps), "seconds": self.seconds, "curve": self.curve}, True)
            self._saved_at = steps
        return due

    def _measure(self, steps: int) -> None:
        config = self.config
        report = evaluate(
            self._policy(),
            config.env_id,
            episodes=config.eval_episodes,
            split=config.eval_split,
            seed=config.seed,
            env_kwargs={name: value for name, value in config.env_kwargs.items() if name not in ("split", "task_ids")},
        )
        best = max((point["success_macro"] for point in self.curve), default=-1.0)
        point = {
            "steps": steps,
            "seconds": self.seconds,
            "success_rate": report["success_rate"],
            "success_macro": report["success_macro"],
            "by_task_type": {name: part["success_rate"] for name, part in report["by_task_type"].items()},
        }
        self.curve.append(point)
        write_json(self.folder / "learning_curve.json", self.curve)
        self.bars.say(f"validation {point['success_macro']:.2f}")
        if point["success_macro"] >= best:
            self._save(self.folder / "model.zip", self._card(steps), False)

    def _card(self, steps: int) -> dict[str, Any]:
        return {"name": self.config.algo, "steps": steps, "config": self.config.to_dict()}


class Bars:
    """A progress bar on stderr, or nothing.

    Args:
        shown: Whether there is one; by default, if stderr is a terminal.
    """

    def __init__(self, shown: bool | None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        shown = sys.stderr.isatty() if shown is None else shown
        self._progress = Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True), disable=not shown)
        self._task: TaskID | None = None

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Starts another bar."""
        self._task = self._progress.add_task(what, total=total, completed=done, note="")

    def advance(self) -> None:
        """One more is done."""
        if self._task is not None:
            self._progress.advance(self._task)

    def show(self, done: int) -> None:
        """So many are done."""
        if self._task is not None:
            self._progress.update(self._task, completed=done)

    def say(self, note: str) -> None:
        """Puts a note beside the bar."""
        if self._task is not None:
            self._progress.update(self._task, note=note)


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file, atomically."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=1), encoding="utf-8")
    temporary.replace(path)
