"""The examples run. Those for libraries that are not installed here are skipped."""

import importlib.util
import math
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from agent_gym.bench import training  # noqa: E402

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_ppo_in_a_single_file_imitates_and_learns(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--steps", "512", "--envs", "4", "--rollout", "64", "--demonstrations", "100", "--families", "cancel"]
    solved = example("ppo_single_file")["main"](options)
    assert solved > 0.1
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_async_against_sync_tells_times_and_curves(capsys: pytest.CaptureFixture[str]) -> None:
    told = example("async_against_sync")
    slow = training.Training(True, 300, 20.0, 30.0, [(100, math.nan), (200, 0.5), (300, 0.7)])
    quick = slow._replace(steps=330, collection_s=5.0, wall_s=12.0)
    told["print_times"]({"sync": [slow, slow], "async": [quick, quick]})
    told["print_curves"]({"sync": [slow], "async": [quick]}, 300)
    said = capsys.readouterr().out
    assert "| 1 | 300 | 20 | 30 | 330 | 5 | 12 |" in said
    assert "collection 0.25, in all 0.40, steps 1.10" in said
    assert said.count("0.70 ± 0.00") == 2


@pytest.mark.slow
def test_bench_training_gives_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**training._SETTINGS, "n_steps": 16, "batch_size": 32}
    for name, value in {"_ENVS": 2, "_SHOWN": 10, "_NEWEST": 4, "_MOST_STEPS": 64, "_SETTINGS": settings, "_SEEDS": 1}.items():
        monkeypatch.setattr(training, name, value)
    metrics = training.measure(lambda _: None)
    assert metrics.keys() == {"reached", "collection_time_x", "wall_time_x", "sync_steps_per_s", "async_steps_per_s"}
    assert all(math.isfinite(value) for value in metrics.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "package", "options"),
    [("torchrl_ppo", "torchrl", ["--steps", "512"]), ("rllib_ppo", "ray", ["--iterations", "1", "--rollout", "256"])],
)
def test_other_libraries_train_on_our_environments(name: str, package: str, options: list[str]) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " steps: re" in done.stdout
