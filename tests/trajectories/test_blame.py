"""Blame: the step that is named is the one after which nothing could be saved, and every state before it is told apart from it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.errors import ConfigurationError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.replay import blame
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.drifting import ENV_ID

TOOL = "AgentBase/ToolTask-v0"


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "store")


def recorded(store: TrajectoryStore, actions: Sequence[Any], task: str = "green") -> str:
    with RecordTrajectory(gymnasium.make(ENV_ID, interface="text", disable_env_checker=True), str(store.path)) as recording:
        recording.reset(seed=0, options={"task_id": task})
        for action in actions:
            recording.step(action)
    return str(recording.episode_id)


def test_the_mistake_is_the_first_step_that_cannot_be_mended(store: TrajectoryStore) -> None:
    found = blame(store, recorded(store, ("look()", "press('12')", "look()", "press('11')", "finish()")))
    assert found.mistake == 2
    assert found.action == {"name": "press", "arguments": {"bid": "12"}}
    assert found.changes == ({"where": "buttons", "key": "0", "before": None, "after": "blue"},)
    assert found.why == ("pressed: ['blue']",)
    assert [one.rescuable for one in found.steps] == [True, True, False, False, False, False]
    assert [one.steps for one in found.steps] == [2, 2, 1, 1, 1, 0]


def test_a_success_has_no_mistake(store: TrajectoryStore) -> None:
    found = blame(store, recorded(store, ("look()", "press('11')", "finish()")))
    assert (found.mistake, found.action, found.changes, found.why, found.note) == (None, None, (), (), "")
    assert [one.rescuable for one in found.steps] == [True] * 4


def test_closing_too_early_is_a_mistake_and_so_is_running_out_of_steps(store: TrajectoryStore) -> None:
    early = blame(store, recorded(store, ("look()", "finish()")))
    assert (early.mistake, early.action, early.why) == (2, {"name": "finish", "arguments": {}}, ("pressed: []",))
    late = blame(store, recorded(store, ("look()",) * 8))
    assert late.mistake == 7, "after six of eight steps there are two left, and two are needed"
    assert late.why == ("ended as step_limit",)
    unread = blame(store, recorded(store, ("what?",) * 8))
    assert (unread.mistake, unread.action, unread.status) == (7, None, "invalid_arguments")


def test_an_interrupted_episode_may_still_be_saved(store: TrajectoryStore) -> None:
    assert blame(store, recorded(store, ("look()",))).mistake is None
    assert blame(store, recorded(store, ("look()", "press('10')"))).mistake == 2


def test_what_was_taken_back_was_no_mistake(store: TrajectoryStore) -> None:
    """The oracle does not take back what others did; the agent did."""
    env = gymnasium.make(TOOL, interface="text", disable_env_checker=True, worlds=["retail"], families=["cancel"], split="test")
    with RecordTrajectory(env, str(store.path)) as recording:
        base: Any = recording.unwrapped
        recording.reset(seed=3)
        seen = [base.observation.to_dict()]
        while (call := base.oracle(seen)).name != "cancel_order":
            recording.step(call)
            seen.append(base.observation.to_dict())
        before = len(seen)
        other = {"order_id": call.arguments["order_id"], "reason": next(r for r in reasons(base) if r != call.arguments["reason"])}
        for action in ({"name": "cancel_order", "arguments": other}, "undo()", "hand_over(reason='missing_permission')"):
            recording.step(action)
    found = blame(store, str(recording.episode_id))
    assert found.mistake == before + 2
    assert found.action == {"name": "hand_over", "arguments": {"reason": "missing_permission"}}
    assert not found.steps[before].rescuable
    assert found.steps[before + 1].rescuable
    assert found.note == "after some earlier steps the oracle fails too, although it succeeds after a later one"


def reasons(base: Any) -> list[str]:
    spec = next(tool for tool in base.tools if tool.name == "cancel_order")
    return list(spec.parameters["properties"]["reason"]["enum"])


def test_a_task_without_an_oracle_has_no_blame(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = recorded(store, ("finish()",))

    def none(*_: Any) -> Any:
        raise ConfigurationError("no oracle for this")

    monkeypatch.setattr("tests.trajectories.drifting.DriftingEnv.oracle", none)
    with pytest.raises(ConfigurationError, match="no oracle for this"):
        blame(store, episode)
