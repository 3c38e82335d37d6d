"""Thirty kinds of hostile program, each contained; as the user that runs the tests, and where that is root, as an ordinary one."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import agent_gym.sandbox
from agent_gym.sandbox import SandboxPool
from tests.sandbox import hostile

pytestmark = pytest.mark.usefixtures("needs_sandbox")


@pytest.mark.parametrize("name", hostile.PROGRAMS)
def test_a_hostile_program_ends_as_it_must_and_leaves_no_trace(name: str, pool: SandboxPool) -> None:
    program = hostile.PROGRAMS[name]
    with hostile.canary() as outside, pool.acquire(loopback=program.loopback) as sandbox:
        fresh = hostile.look(sandbox)
        assert hostile.try_program(sandbox, program, outside) == ""
        assert hostile.look(sandbox) == fresh


@pytest.mark.parametrize("name", hostile.CHEATS)
def test_a_cheat_does_not_pass(name: str, pool: SandboxPool) -> None:
    assert not hostile.passes(pool, hostile.CHEATS[name])


def test_a_program_that_counts_its_calls_fails_where_each_call_has_a_process(pool: SandboxPool) -> None:
    assert hostile.passes(pool, hostile.CALL_COUNTER)
    assert not hostile.passes(pool, hostile.CALL_COUNTER, isolate_calls=True)
    assert hostile.passes(pool, "def f(n): return [n, 'x' * n]", isolate_calls=True)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become an ordinary user")
def test_an_ordinary_user_is_as_safe(tmp_path_factory: pytest.TempPathFactory) -> None:
    packages = sysconfig.get_path("purelib")
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    interpreter = next((p for p in (sys.executable, f"/usr/bin/{minor}") if _can_run(p, packages)), None)
    if interpreter is None:
        pytest.skip(f"uid 12345 can read no {minor} or not {packages}")
    place = _readable_copy(Path(agent_gym.sandbox.__file__).parents[2], tmp_path_factory)
    done = subprocess.run(
        [*_USER, interpreter, "-B", "-W", "ignore", "-m", "tests.sandbox.hostile"],
        cwd="/",
        env={"PYTHONPATH": f"{place}:{packages}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"tried": len(hostile.PROGRAMS) + len(hostile.CHEATS) + 1, "wrong": {}}


_USER = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")


def _readable_copy(root: Path, factory: pytest.TempPathFactory) -> Path:
    place = factory.mktemp("copy")
    for directory in (place, *list(place.parents)[:2]):
        directory.chmod(0o755)
    for part in ("agent_gym/*.py", "agent_gym/core/*.py", "agent_gym/sandbox/**/*.py", "tests/sandbox/hostile.py"):
        for path in root.glob(part):
            target = place / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return place


def _can_run(interpreter: str, packages: str) -> bool:
    command = [*_USER, interpreter, "-c", "import gymnasium"]
    try:
        return subprocess.run(command, cwd="/", env={"PYTHONPATH": packages}, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
