"""The demonstration: trains a policy, measures it beside others, and reports; all of it by commands that anyone can run again."""

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_gym.errors import AgentGymError
from agent_gym.report.charts import Point
from agent_gym.report.demo_report import TRAINED, DemoReport, write_demo_report
from agent_gym.report.episodes import EpisodeView, episode_view
from agent_gym.sandbox import available
from agent_gym.trajectories import TrajectoryStore

__all__ = ["DemoFailed", "DemoResult", "run_demo"]

_TOOL, _CODE = "AgentBase/ToolTask-v0", "AgentBase/CodeTask-v0"
_POLICIES = ("random", "heuristic", TRAINED, "oracle")
_COMPARED = ("random", "oracle")
_FAMILIES = ("cancel", "change_address", "exchange", "refuse", "who_is_it")
_SETTINGS = ["--set", 'worlds=["retail"]', "--set", f"families={json.dumps(_FAMILIES)}"]
"""What is trained on and measured with: the shop's plainest families, which a small policy learns in minutes."""

_SHOWN = (
    "task_type = 'retail/exchange' AND success",
    "task_type = 'retail/refuse' AND success",
    "NOT success",
    "task_type = 'retail/who_is_it'",
)
"""Which episodes of the trained policy the report shows: the first that meets each condition, three in all."""


class DemoFailed(AgentGymError):
    """A command of the demonstration failed; its output is in the message."""


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found.

    Attributes:
        report: The report's file.
        store: The trajectory store with every episode.
        seconds: Wall clock.
        evaluations: By policy, what ``agent-gym eval --json`` gave on the test split.
        code_evaluations: The same on HumanEval.
        code_skipped: Why HumanEval was skipped, or empty.
    """

    report: Path
    store: Path
    seconds: float
    evaluations: Mapping[str, Mapping[str, Any]]
    code_evaluations: Mapping[str, Mapping[str, Any]]
    code_skipped: str


def run_demo(
    folder: Path,
    *,
    store: Path,
    seed: int = 0,
    steps: int = 30_000,
    demonstrations: int = 300,
    episodes: int = 600,
    say: Callable[[str], None] = lambda _: None,
) -> DemoResult:
    """Trains with and without demonstrations at once, each on a core of its own, then measures.

    Args:
        folder: Where models, logs and the report go; an earlier demonstration there is replaced.
        store: The trajectory store that every episode goes into.
        seed: Root of all randomness.
        steps: PPO's environment steps after the demonstrations; training without them gets as many.
        demonstrations: Oracle episodes to clone first.
        episodes: Test episodes of each policy.
        say: Is told each command when it starts.

    Raises:
        DemoFailed: A command failed.
        MissingExtra: The ``train`` extra is not installed.
    """
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    unavailable = available()
    skipped = "" if unavailable is None else str(unavailable)
    for kind in ("with", "without"):
        shutil.rmtree(folder / kind, ignore_errors=True)
    with _Commands(folder, store, say) as commands:

        def training(demonstrations: int, kind: str) -> list[str]:
            amount = ["--bc", str(demonstrations), "--steps", str(steps), "--seed", str(seed)]
            return ["train", _TOOL, *_SETTINGS, *amount, "--folder", str(folder / kind)]

        without = commands.start(training(0, "without"))
        trained = commands.run(training(demonstrations, "with"))
        code = {}
        for name in () if skipped else _COMPARED:
            code[name] = commands.start(["eval", name, _CODE, "--tasks", "humaneval", "--seed", str(seed)])
        evaluations = {}
        for name in _POLICIES:
            policy = trained["model"] if name == TRAINED else name
            evaluations[name] = commands.run(["eval", policy, _TOOL, *_SETTINGS, "--episodes", str(episodes), "--seed", str(seed)])
        code_evaluations = {name: wait() for name, wait in code.items()}
        scratch = without()
    seconds = time.monotonic() - started
    report = write_demo_report(
        DemoReport(
            seed=seed,
            wall_s=seconds,
            command=f"agent-gym demo --seed {seed} --steps {steps} --episodes {episodes}",
            versions={**evaluations[TRAINED]["versions"], "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"},
            demonstrations=demonstrations,
            with_demonstrations=_points(trained["curve"]),
            without_demonstrations=_points(scratch["curve"]),
            evaluations=evaluations,
            code_evaluations=code_evaluations,
            code_skipped=skipped,
            episodes=_chosen(TrajectoryStore(store), evaluations[TRAINED]["policy"]),
        ),
        folder / "report.html",
    )
    return DemoResult(report, store, seconds, evaluations, code_evaluations, skipped)


class _Commands:
    """Runs ``agent-gym`` commands with ``--json``, side by side if wanted, and ends them all with the block."""

    def __init__(self, folder: Path, store: Path, say: Callable[[str], None]) -> None:
        self._folder, self._store, self._say = folder, store, say
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "_Commands":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            if process.poll() is None:
                process.terminate()
                process.wait()

    def run(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Runs a command, its progress shown on a terminal, and gives the JSON object it prints."""
        return self.start(arguments, shown=sys.stderr.isatty())()

    def start(self, arguments: Sequence[str], *, shown: bool = False) -> Callable[[], dict[str, Any]]:
        """Starts a command; what is given back waits for it and gives its JSON object. Its progress is shown, or goes to a log."""
        command = [*arguments, "--store", str(self._store), "--json"]
        line = shlex.join(["agent-gym", *command])
        self._say(line)
        log = self._folder / f"{len(self._running):02d}-{arguments[0]}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "agent_gym.cli", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if shown else errors,
            )
        self._running.append(process)

        def wait() -> dict[str, Any]:
            output, _ = process.communicate()
            if process.returncode:
                raise DemoFailed(
                    f"{shown} failed with exit status {process.returncode}: {log.read_text(errors='replace').strip()[-2_000:]}"
                )
            result: dict[str, Any] = json.loads(output)
            return result

        return wait


def _points(curve: Sequence[Mapping[str, Any]]) -> tuple[Point, ...]:
    return tuple(Point(point["steps"], point["success_macro"]) for point in curve)


def _chosen(store: TrajectoryStore, policy: str) -> tuple[EpisodeView, ...]:
    """Three episodes of the newest evaluation of a policy."""
    played = store.episodes(1, f"policy_id = '{policy}' AND split = 'test'")
    if not played:
        return ()
    run_id = played[0]["run_id"]
    found: dict[str, Mapping[str, Any]] = {}
    for condition in _SHOWN:
        rows = store.episodes(where=f"policy_id = '{policy}' AND split = 'test' AND {condition}", run_id=run_id)
        found |= {row["episode_id"]: row for row in rows[:1]}
    return tuple(episode_view(row, store.steps(episode_id), policy=TRAINED) for episode_id, row in list(found.items())[:3])
