"""Levels and identities in a world, through both doors: what the boundary keeps off, and what tasks make of it."""

import dataclasses
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_gym.agent_env import AgentEnv
from agent_gym.core import ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.web_task import WebTask
from agent_gym.envs.worlds import WORLDS
from agent_gym.gateway import issue_token
from agent_gym.world import World, WorldKind
from tests.world import shelf as module
from tests.world.shelf import ANA, BEN, shelf

Make = Callable[..., AgentEnv]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes an environment of a world that is not among those that ship."""
    made: list[AgentEnv] = []

    def build(door: type[ToolTask | WebTask], kind: WorldKind, **keywords: Any) -> AgentEnv:
        monkeypatch.setattr(module, "SHELF", kind)
        monkeypatch.setitem(WORLDS, "shelf", "tests.world.shelf:SHELF")
        made.append(door(worlds=["shelf"], **keywords))
        made[-1].reset(seed=1)
        return made[-1]

    yield build
    for env in made:
        env.close()
        env.clear_caches()
    gc.collect()


def token(door: type[AgentEnv], identity: str = ANA, level: str = "level3") -> dict[str, Any]:
    return {"permissions": {"token": issue_token(door.__name__, identity, level)}}


MINE = [
    ToolCall("get_job", {"job_id": "J1"}),
    ToolCall("get_person", {"person_id": ANA}),
    ToolCall("set_prices", {"job_ids": ["J1", "J2"], "price_cents": 3}),
    ToolCall("cancel_job", {"job_id": "J2"}),
    ToolCall("undo"),
]
THEIRS = [
    ToolCall("get_job", {"job_id": "J3"}),
    ToolCall("get_person", {"person_id": BEN}),
    ToolCall("set_prices", {"job_ids": ["J1", "J3"], "price_cents": 3}),
    ToolCall("cancel_job", {"job_id": "J3"}),
    ToolCall("add_job", {"person_id": BEN}),
]


@pytest.mark.parametrize("by_task", [False, True])
def test_an_identity_sees_and_changes_its_own_and_nothing_of_others(make: Make, by_task: bool) -> None:
    env = make(ToolTask, shelf(identity=ANA)) if by_task else make(ToolTask, shelf(), **token(ToolTask))
    for call in THEIRS:
        observation, reward, over, _, info = env.step(call)
        assert (info["status"], reward, over) == ("forbidden", -0.1, False)
        assert observation["data"]["last"]["result"] == f"{call.name} is not permitted to P1 for what belongs to somebody else"
    assert env.session.changes() == []
    assert [env.step(call)[4]["status"] for call in MINE] == ["ok"] * len(MINE)
    for call, status in (
        (ToolCall("get_job", {"job_id": "J99"}), "not_found"),
        (ToolCall("get_job", {"job_id": "X"}), "invalid_arguments"),
    ):
        assert env.step(call)[4]["status"] == status
    nobody = make(ToolTask, shelf(), permissions="level3")
    assert [nobody.step(call)[4]["status"] for call in THEIRS] == ["ok"] * len(THEIRS)


def test_of_two_identities_and_two_levels_both_hold(make: Make) -> None:
    env = make(ToolTask, shelf(identity=ANA), **token(ToolTask, BEN))
    assert [env.step(ToolCall("get_job", {"job_id": job}))[4]["status"] for job in ("J1", "J3")] == ["forbidden"] * 2
    for granted, given in (("level1", "level2"), ("level2", "level1"), ("level1", "level3")):
        env = make(ToolTask, shelf(level=granted), permissions=given)
        names = {spec.name for spec in env.tools}
        assert "get_job" in names
        assert not names & {"cancel_job", "set_prices", "undo"}
        _, reward, *_, info = env.step(MINE[2])
        assert (info["status"], reward) == ("forbidden", -0.1)
        assert env.session.changes() == []


def test_a_task_can_turn_on_what_is_not_permitted(make: Make) -> None:
    over_reach = {"tool": "get_job", "arguments": {"job_id": "J3"}, "status": "forbidden"}
    kind = shelf(identity=ANA, hand_over="missing_permission", look_first=[over_reach], milestones=[{"name": "tried", "call": over_reach}])
    hand_over = ToolCall("hand_over", {"reason": "missing_permission"})
    env = make(ToolTask, kind)
    assert env.step(hand_over)[4]["ending"] == "abstained"
    env.reset(seed=1)
    env.step(ToolCall("get_job", {"job_id": "J1"}))
    assert list(env.last_record.milestones) == []
    env.step(THEIRS[0])
    assert list(env.last_record.milestones) == ["tried"]
    state = env.get_state()
    assert env.step(hand_over)[4]["ending"] == "success"
    env.set_state(state)
    assert env.step(hand_over)[4]["ending"] == "success"
    level = shelf(
        level="level1", hand_over="missing_permission", look_first=[{**MINE[3].to_dict(), "tool": "cancel_job", "status": "forbidden"}]
    )
    env = make(ToolTask, level)
    env.step(MINE[3])
    assert env.step(hand_over)[4]["ending"] == "success"


def press(env: AgentEnv, name: str) -> tuple[Any, ...]:
    """Clicks the element of that name."""
    element = next(element for element in env.observation.data["view"]["elements"] if element["name"] == name)
    return env.step(ToolCall("click", {"bid": element["bid"]}))


@pytest.mark.parametrize("by_task", [False, True])
def test_pages_keep_an_identity_off_the_rows_of_others(make: Make, by_task: bool) -> None:
    tried = {"name": "tried", "call": {"tool": "get_job", "arguments": {"job_id": "J3"}, "status": "forbidden"}}
    kind = shelf(identity=ANA if by_task else "", milestones=[tried])
    env = make(WebTask, kind, **({} if by_task else token(WebTask)))
    env.step(ToolCall("goto", {"url": "/"}))
    observation, reward, over, _, info = press(env, "J3")
    assert (info["status"], reward, over) == ("forbidden", -0.1, False)
    assert (observation["data"]["view"]["status"], observation["data"]["view"]["title"]) == (403, "forbidden")
    assert "20095" not in observation["text"]
    assert env.last_record.milestones == ("tried",)
    env.step(ToolCall("goto", {"url": "/"}))
    observation, reward, *_, info = press(env, "J1")
    assert (info["status"], reward, observation["data"]["view"]["status"]) == ("ok", 0.0, 200)
    assert press(env, "Cancel it")[4]["status"] == "ok"
    assert [change.key for change in env.session.changes()] == ["J1"]


def test_pages_of_a_level_can_be_read_and_their_forms_change_nothing(make: Make) -> None:
    env = make(WebTask, shelf(level="level1"))
    env.step(ToolCall("goto", {"url": "/J1"}))
    _, reward, *_, info = press(env, "Cancel it")
    assert (info["status"], reward) == ("forbidden", -0.1)
    assert env.session.changes() == []


@pytest.mark.parametrize("door", [ToolTask, WebTask])
def test_an_operation_that_raises_is_an_error_through_both_doors_and_play_goes_on(make: Make, door: type[ToolTask | WebTask]) -> None:
    def fails(world: World, job_id: str) -> dict[str, Any]:
        world.update("jobs", job_id, price_cents=1)
        raise OverflowError("date value out of range \ud800" + "." * 999)

    kind = shelf()
    broken = dataclasses.replace(kind.operations["get_job"], run=fails)
    env = make(door, dataclasses.replace(kind, operations={**kind.operations, "get_job": broken}))
    observation, reward, terminated, truncated, info = env.step(MINE[0] if door is ToolTask else ToolCall("goto", {"url": "/J1"}))
    assert "get_job failed: OverflowError: date value out of range" in observation["text"]
    assert (reward, terminated, truncated, info["reward_valid"]) == (0.0, False, False, True)
    assert env.session.changes() == []
    assert env.step(MINE[3] if door is ToolTask else ToolCall("goto", {"url": "/"}))[4]["status"] == "ok"
