"""Admission: what is played, what is counted, and that a family that can be gamed or has one way only is found."""

from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest

from agent_gym.core import Ending, Verdict
from agent_gym.envs.worlds import WORLDS
from agent_gym.evaluation.admission import BOUNDS, AdmissionRow, admit, faults_of_worlds
from agent_gym.testing.small import SmallTask

TOOL = "AgentBase/ToolTask-v0"


class Gift(SmallTask):
    """Everything is a success."""

    def open(self, *arguments: Any) -> Any:
        session: Any = super().open(*arguments)
        session.verdict = lambda _: Verdict(Ending.SUCCESS)
        return session


@pytest.fixture
def gift() -> Iterator[str]:
    gymnasium.register("Test/Gift-v0", "agent_gym.factory:make", kwargs={"env": f"{__name__}:Gift"})
    yield "Test/Gift-v0"
    del gymnasium.registry["Test/Gift-v0"]


def test_every_policy_is_played_on_every_family_and_a_short_cut_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORLDS, "planted", "tests.evaluation.planted:PLANTED")
    told: list[tuple[int, int]] = []
    due, honest, broken = admit(TOOL, seeds=3, episodes=2, env_kwargs={"worlds": ["planted"]}, progress=lambda *done: told.append(done))
    assert (due.env_id, due.split, due.family, honest.family) == (TOOL, "train", "planted/due", "planted/honest")
    assert all(row.scores[name] is not None for row in (due, honest) for name in BOUNDS)
    assert (broken.scores["oracle"], broken.faults) == (1.0, ("cheats has no score: ZeroDivisionError: planted",))
    assert due.scores["oracle"] == due.scores["cheats"] == 1.0
    assert "cheats scores 1.00, at most 0 may be" in due.faults
    assert (honest.scores["oracle"], honest.scores["cheats"], honest.faults) == (1.0, 0.0, ())
    assert due.ways is not None
    assert due.ways >= 3
    assert due.steps is not None
    assert 2 <= due.steps <= 6
    assert 0 < due.difficulty < honest.difficulty
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_what_is_found_of_a_family_depends_neither_on_the_others_nor_on_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORLDS, "planted", "tests.evaluation.planted:PLANTED")
    played: dict[str, Any] = {"seeds": 2, "episodes": 2, "policies": ["random", "heuristic"]}
    both = admit(TOOL, env_kwargs={"worlds": ["planted"]}, **played)
    alone = admit(TOOL, env_kwargs={"worlds": ["planted"], "families": ["honest"]}, **played)
    assert both[1:2] == alone
    library: dict[str, Any] = {"split": "transfer", "env_kwargs": {"worlds": ["library"]}, **played}
    assert admit(TOOL, **library, workers=2) == admit(TOOL, **library)


def test_a_family_that_anybody_solves_is_not_admitted(gift: str) -> None:
    for row in admit(gift, seeds=1, episodes=3):
        assert row.scores["noop"] == 1.0
        assert {"noop scores 1.00, at most 0 may be", "refuse-always scores 1.00, at most 0 may be"} <= set(row.faults)
        assert row.ways is None


def test_only_the_policies_that_are_named_are_played() -> None:
    (row,) = admit(
        TOOL, split="transfer", seeds=1, episodes=1, policies=["oracle"], env_kwargs={"worlds": ["library"], "families": ["due"]}
    )
    assert [name for name, score in row.scores.items() if score is not None] == ["oracle"]
    assert row.faults == ()


@pytest.mark.parametrize(("scores", "found"), [([0.5, 0.6, 0.1], 1), ([0.6, 0.1], 1), ([0.5, 0.4, 0.1], 0)])
def test_a_world_whose_families_the_heuristic_mostly_solves_is_named(scores: list[float], found: int) -> None:
    rows = [
        AdmissionRow(
            env_id=TOOL,
            version="1",
            split="train",
            family=f"shop/{number}",
            scores={**dict.fromkeys(BOUNDS), "heuristic": score},
            ways=3,
            steps=2.0,
            difficulty=0.5,
            faults=(),
        )
        for number, score in enumerate(scores)
    ]
    faults = faults_of_worlds(rows)
    assert len(faults) == found
    assert all(fault.startswith("shop: the heuristic scores 0.5 or more on ") for fault in faults)
