"""``agent-gym doctor system``: what works here, and how to mend the rest."""

import json

import pytest
from typer.testing import CliRunner

from agent_gym.cli import app
from agent_gym.errors import SandboxUnavailable
from agent_gym.sandbox import system

PARTS = {"bwrap", "user namespaces", "seccomp", "limits", "warm sandbox", "cgroup", "cores", "memory", "chromium"}


@pytest.mark.usefixtures("needs_sandbox")
def test_where_all_works_it_says_so() -> None:
    done = CliRunner().invoke(app, ["doctor", "system", "--json"])
    report = json.loads(done.stdout)
    assert (done.exit_code, report["works"]) == (0, True)
    assert {part["name"] for part in report["parts"]} == PARTS
    assert all(part["works"] or part["remedy"] for part in report["parts"])


@pytest.mark.parametrize(
    ("probe", "lacks", "untried"),
    [
        ("bubblewrap", "bwrap", {"user namespaces", "seccomp", "limits", "warm sandbox"}),
        ("user_namespaces", "user namespaces", {"seccomp", "limits", "warm sandbox"}),
        ("system_calls", "seccomp", {"limits", "warm sandbox"}),
        ("processes", "limits", {"warm sandbox"}),
        ("nested_namespaces", "warm sandbox", set()),
    ],
)
def test_a_lack_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, probe: str, lacks: str, untried: set[str]) -> None:
    error = SandboxUnavailable(probe, "what it saw", "the one thing to do")

    def find() -> object:
        if probe == "bubblewrap":
            raise error
        return type("Machine", (), {"bwrap": "/usr/bin/bwrap"})

    monkeypatch.setattr(system, "find_machine", find)
    monkeypatch.setattr(system, "available", lambda warm=False: error if warm or probe != "nested_namespaces" else None)
    parts = {part.name: part for part in system.look_at_system()}
    assert (parts[lacks].works, parts[lacks].remedy) == (False, "the one thing to do")
    assert {name for name, part in parts.items() if part.works is None} >= untried
    done = CliRunner().invoke(app, ["doctor", "system"])
    assert done.exit_code == 1
    assert f"{lacks}: the one thing to do" in done.stdout
