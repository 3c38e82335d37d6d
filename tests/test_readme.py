"""Every code block of the README but the two make commands is run, and prints what the README says it prints."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
MAKE = "make demo\nmake test\n"


def following_text(index: int) -> str | None:
    return BLOCKS[index + 1][1] if index + 1 < len(BLOCKS) and BLOCKS[index + 1][0] == "text" else None


PYTHON = [pytest.param(code, following_text(i), id=f"block{i}") for i, (kind, code) in enumerate(BLOCKS) if kind == "python"]
CONSOLE = [line for kind, code in BLOCKS if kind == "console" and code != MAKE for line in code.splitlines()]


def test_the_readme_has_the_two_commands_and_nothing_untested() -> None:
    assert ("console", MAKE) in BLOCKS
    assert {kind for kind, _ in BLOCKS} == {"python", "text", "console"}
    assert len(PYTHON) == 4
    assert len(CONSOLE) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("code", "expected"), PYTHON)
def test_python_blocks(code: str, expected: str | None, tmp_path: Path) -> None:
    if "stable_baselines3" in code:
        pytest.importorskip("stable_baselines3")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    if expected is not None:
        assert done.stdout == expected


@pytest.mark.slow
@pytest.mark.parametrize("line", CONSOLE)
def test_console_lines(line: str, tmp_path: Path) -> None:
    command, *arguments = shlex.split(line)
    assert command == "agent-gym"
    environment = {**os.environ, "AGENT_GYM_STORE": str(tmp_path / "store")}
    done = subprocess.run(
        [sys.executable, "-m", "agent_gym.cli", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
