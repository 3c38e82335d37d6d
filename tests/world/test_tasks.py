"""Which tasks worlds have, and what an environment shows of one."""

import dataclasses
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.worlds import WORLDS
from agent_gym.errors import ConfigurationError
from agent_gym.world import Operation, WorldKind, WorldTaskSet
from tests.world import shelf as module
from tests.world.shelf import SHELF, shelf

Make = Callable[..., ToolTask]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes a ToolTask of worlds that are not among those that ship."""
    made: list[ToolTask] = []

    def build(*kinds: WorldKind, **keywords: Any) -> ToolTask:
        for kind in kinds:
            monkeypatch.setattr(module, kind.name.upper(), kind, raising=False)
            monkeypatch.setitem(WORLDS, kind.name, f"tests.world.shelf:{kind.name.upper()}")
        made.append(ToolTask(worlds=[kind.name for kind in kinds], **keywords))
        return made[-1]

    yield build
    for env in made:
        env.close()
        env.clear_caches()
    gc.collect()


def transfer(kind: WorldKind, *names: str) -> WorldKind:
    """The world with families held out."""
    families = {name: dataclasses.replace(family, name=name, transfer=name in names) for name, family in kind.families.items()}
    return dataclasses.replace(kind, families=families, tasks={**kind.tasks, "transfer": 3}, bases={**kind.bases, "transfer": 1})


def test_held_out_families_have_tasks_in_one_split_and_no_other_family_has_any_there() -> None:
    held = dataclasses.replace(SHELF, families=dict.fromkeys(("new", "old"), SHELF.families["job"]))
    tasks = WorldTaskSet([transfer(held, "new")])
    assert tasks.splits() == ["train", "test", "transfer"]
    assert (tasks.families("train"), tasks.families("test"), tasks.families("transfer")) == (["shelf/old"], ["shelf/old"], ["shelf/new"])
    assert len(tasks.ids("transfer", "shelf/new")) == 3
    assert tasks.get("shelf/new/transfer/2").split == "transfer"
    for task_id in ("shelf/new/train/0", "shelf/old/transfer/0"):
        with pytest.raises(ConfigurationError, match=f"unknown task id '{task_id}'"):
            tasks.get(task_id)
    with pytest.raises(ConfigurationError, match=r"unknown family in split 'transfer' 'shelf/old'; known: shelf/new"):
        tasks.ids("transfer", "shelf/old")
    with pytest.raises(ConfigurationError, match="unknown family 'new'; known: shelf/old"):
        tasks.select("train", ["new"])


def test_a_world_can_be_held_out_whole() -> None:
    tasks = WorldTaskSet([transfer(SHELF, "job")])
    assert tasks.splits() == ["transfer"]
    with pytest.raises(ConfigurationError, match=r"unknown split 'train'; known: transfer"):
        tasks.select("train")
    with pytest.raises(ConfigurationError, match=r"split 'transfer' needs a number of tasks"):
        dataclasses.replace(SHELF, families={"job": dataclasses.replace(SHELF.families["job"], transfer=True)})


def test_an_episode_shows_the_rules_and_takes_the_reasons_of_its_world(make: Make) -> None:
    other = dataclasses.replace(shelf(), name="attic", rules="Whisper.", reasons=("too_loud",))
    env = make(SHELF, other)
    for kind in (SHELF, other):
        observation, _ = env.reset(seed=1, options={"task_id": f"{kind.name}/job/train/0"})
        assert observation["data"]["rules"] == kind.rules
        assert f"Rules:\n{kind.rules}\nStep" in observation["text"]
        refuse = next(spec for spec in env.tools if spec.name == "refuse")
        assert refuse.parameters["properties"]["reason"]["enum"] == list(kind.reasons)
        assert env.step(ToolCall("refuse", {"reason": kind.reasons[0]}))[2]
    assert (SHELF.rules in env.rules, other.rules in env.rules) == (True, True)


def test_worlds_share_a_tools_name_only_if_it_is_the_same_tool(make: Make) -> None:
    operation = SHELF.operations["get_job"]
    odd = Operation(dataclasses.replace(operation.spec, description="Other."), operation.run)
    with pytest.raises(ConfigurationError, match="'get_job'; rename that of 'attic'"):
        make(SHELF, dataclasses.replace(SHELF, name="attic", operations={**SHELF.operations, "get_job": odd}))


def test_an_answer_is_asked_for_where_one_is_wanted_and_only_there(make: Make) -> None:
    observation, _ = make(shelf(asks="price_cents", answer=1_000)).reset(seed=1)
    assert observation["text"].splitlines()[:2] == ["Goal: Do it.", "Answer wanted: price_cents"]
    assert observation["data"]["asks"] == "price_cents"
    observation, _ = make(shelf()).reset(seed=1)
    assert ("asks" in observation["data"], "wanted" in observation["text"]) == (False, False)
