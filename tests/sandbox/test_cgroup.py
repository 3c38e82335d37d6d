"""The delegated cgroup: used where there is one, never needed. No kernel's is touched here: a folder stands for it."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_gym.sandbox import Limits, SandboxPool, cgroup, preflight, warm


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("controllers", "subtree_control"):
        (tmp_path / f"cgroup.{name}").write_text("cpu memory pids")
    monkeypatch.setattr(cgroup, "_own", lambda: tmp_path)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)  # a kernel's group may hold its files when it goes
    cgroup.delegated.cache_clear()
    yield tmp_path
    cgroup.delegated.cache_clear()


def test_a_group_that_hands_on_memory_and_pids_is_found(group: Path) -> None:
    assert cgroup.delegated() == group
    assert [path.name for path in group.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("lack", ["controllers", "probe", "group"])
def test_one_that_does_not_is_not_used(group: Path, lack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if lack == "controllers":
        (group / "cgroup.controllers").write_text("hugetlb")
    elif lack == "probe":
        (group / f"agent-gym-probe-{os.getpid()}").write_text("in the way")
    else:
        monkeypatch.setattr(cgroup, "_own", lambda: None)
    assert cgroup.delegated() is None


@pytest.mark.usefixtures("needs_sandbox")
def test_a_warm_sandbox_is_put_into_a_group_of_its_own_with_bounds(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preflight(warm=True)
    moved: list[str] = []
    write = Path.write_text
    monkeypatch.setattr(Path, "write_text", lambda path, text: moved.append(text) if path.name == "cgroup.procs" else write(path, text))
    monkeypatch.setattr(warm, "delegated", lambda: group)
    with SandboxPool(1) as pool, pool.acquire(limits=Limits(memory_mib=100, workspace_mib=20, tmp_mib=10, processes=9)) as sandbox:
        assert sandbox.capabilities["cgroup"] == str(group)
        assert sandbox.run(["true"]).ok
        [own] = [path for path in group.iterdir() if path.is_dir()]
        assert len(moved) == 3  # bwrap, zygote, process 1
        assert int((own / "memory.max").read_text()) == (100 + 20 + 20 + 64) << 20
        assert int((own / "pids.max").read_text()) == 9 + 8
        (own / "memory.events").write_text("oom 0\noom_kill 0\n")
        timer = threading.Timer(0.2, lambda: write(own / "memory.events", "oom 1\noom_kill 1\n"))
        timer.start()
        assert sandbox.run(["sleep", "1"]).reason == "memory"
        timer.join()
    assert [path for path in group.iterdir() if path.is_dir()] == []
