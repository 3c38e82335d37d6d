"""A disk that is full or that may not be written: one clear error, and nothing acknowledged is lost."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

SCENE = r"""
import json, subprocess, sys, warnings
import gymnasium
from agent_gym.errors import StoreError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID

disk = sys.argv[1]
store = TrajectoryStore(disk + "/store")
told = {}

def remount(options):
    subprocess.run(["mount", "-o", "remount," + options, disk], check=True)

def error(name, work, *arguments):
    try:
        work(*arguments)
    except StoreError as raised:
        told[name] = str(raised)

def warned(name, work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told[name] = [len(work()), [str(one.message) for one in caught]]

def recorded():
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path))
    env.reset(seed=0)
    env.step("look()")
    return env

recorded().close()
store.seal()
acknowledged = 2

env = recorded()
acknowledged += 2
env.note(thought="x" * 4_000_000)
error("blob", env.step, "look()")
try:
    while True:
        env.reset(seed=0)
        acknowledged += 1
        for _ in range(6):
            env.note(thought="x" * 20_000)
            env.step("look()")
            acknowledged += 1
except StoreError as raised:
    told["step"] = str(raised)
env.close()
error("seal", store.seal)
error("compact", store.compact)
warned("read", lambda: store.sql("SELECT * FROM steps"))
error("event", lambda: store.add_event("x", run_id=env.run_id, reason="x" * 4_000_000))

remount("size=30m")
steps = store.sql("SELECT episode_id, step FROM steps")
told["steps"] = [len(steps), len({tuple(row.values()) for row in steps}), acknowledged]
told["fsck"] = store.fsck()

left = recorded()
left.close()
remount("ro")
error("read_only_record", recorded)
error("read_only_seal", store.seal)
warned("read_only_read", lambda: store.sql("SELECT * FROM steps"))
remount("rw")
told["after"] = [len(store.sql("SELECT * FROM steps")), len(store.fsck())]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened on a small disk in memory, which only the scene's own process sees."""
    disk = tmp_path_factory.mktemp("disk")
    inside = f"mount -t tmpfs -o size=3m none {disk} && exec {sys.executable} -c '{SCENE}' {disk}"
    alone = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    if subprocess.run([*alone, f"mount -t tmpfs none {disk}"], capture_output=True, check=False).returncode:
        alone.remove("--map-root-user")  # root may do without a user namespace, where those are blocked
        if subprocess.run([*alone, f"mount -t tmpfs none {disk}"], capture_output=True, check=False).returncode:
            pytest.skip("a small disk takes root, or a user namespace of one's own")
    done = subprocess.run([*alone, inside], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_full_disk_is_named(told: dict[str, Any]) -> None:
    for name in ("blob", "step"):
        assert told[name].startswith("cannot write /"), told[name]
        assert told[name].endswith("No space left on device"), told[name]
    for name in ("seal", "compact", "event"):
        assert told[name].startswith("cannot "), told[name]
        assert "No space left" in told[name] or "disk is full" in told[name], told[name]


def test_a_full_store_is_still_read(told: dict[str, Any]) -> None:
    rows, warnings = told["read"]
    assert rows == 2, "what was sealed before"
    assert len(warnings) == 1
    assert "what writers have left behind is not shown" in warnings[0]


def test_nothing_acknowledged_is_lost_once_there_is_room(told: dict[str, Any]) -> None:
    kept, unique, acknowledged = told["steps"]
    assert kept == unique == acknowledged > 50
    assert told["fsck"] == []


def test_a_disk_that_became_read_only(told: dict[str, Any]) -> None:
    for name in ("read_only_record", "read_only_seal"):
        assert told[name].startswith("cannot "), told[name]
        assert "Read-only file system" in told[name], told[name]
    rows, warnings = told["read_only_read"]
    assert rows == told["steps"][2]
    assert len(warnings) == 1
    assert told["after"] == [told["steps"][2] + 2, 0]
