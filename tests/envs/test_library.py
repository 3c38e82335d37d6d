"""The library, the smallest world: its tasks are solved from what is observed, in many ways, and what breaks a rule is not."""

import math
from collections import Counter
from typing import Any

import gymnasium
import pytest

from agent_gym.core import Task, ToolCall
from agent_gym.core.seeding import derive
from agent_gym.envs.worlds import load_worlds
from agent_gym.testing import CHECKS, Maker
from agent_gym.world import Draft, World, WorldTaskSet, carry_out

(LIBRARY,) = load_worlds(["library"])
TASKS = WorldTaskSet([LIBRARY])
CASES = [("array", check) for check in CHECKS] + [
    ("text", check) for check in CHECKS if "vec" not in check and check != "stable_baselines3"
]


@pytest.fixture
def env() -> Any:
    made = gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", worlds=["library"], split="transfer")
    yield made
    made.close()


def draft_of(task: Task) -> Draft:
    """The draft that a task was made from."""
    world = World(LIBRARY.schema, TASKS.base(task)[1])
    with world.transaction(trial=True):
        draft = LIBRARY.families[task.type.rpartition("/")[2]].draft(world, derive("task", task.id), task.split)
    world.close()
    return draft


@pytest.mark.parametrize("family", TASKS.families("transfer"))
def test_the_oracle_solves_every_task_in_as_many_calls_as_the_draft_says(env: Any, family: str) -> None:
    ways: Counter[str] = Counter()
    most = 0
    for task_id in TASKS.ids("transfer", family)[:60]:
        observation, info = env.reset(seed=0, options={"task_id": task_id})
        seen, calls = [observation], []
        while not info["ending"]:
            calls.append(env.get_wrapper_attr("oracle")(seen))
            observation, _, _, _, info = env.step(calls[-1])
            seen.append(observation)
        assert info["ending"] == "success", (task_id, calls)
        draft = draft_of(TASKS.get(task_id))
        assert len(calls) == draft.steps, (task_id, calls)
        read = {call.arguments["member_id"] for call in calls if call.name == "get_member"}
        assert len(read) <= 1 + draft.distractors
        most = max(most, len(read))
        ways[" ".join(call.name for call in calls)] += 1
    assert len(ways) >= 3
    assert most > 1  # of several who share the name, a wrong one came first


def test_what_a_rule_forbids_is_a_violation(env: Any) -> None:
    done: Counter[tuple[str, str]] = Counter()
    for task_id in TASKS.ids("transfer", "library/renew")[:60]:
        task = TASKS.get(task_id)
        if not task.refusal:
            continue
        env.reset(seed=0, options={"task_id": task_id})
        loan = task.spec["forbidden"][0]["arguments"]["loan_id"]
        _, reward, _, _, info = env.step(ToolCall("renew_loan", {"loan_id": loan}))
        done[task.spec["refusal"], info["ending"] or info["status"]] += 1
        assert reward == (-1.0 if info["ending"] else 0.0)
    assert set(done) == {("blocked", "violation"), ("others_waiting", "violation"), ("renewed_twice", "conflict")}


def test_a_wrong_day_is_no_answer(env: Any) -> None:
    task = TASKS.get("library/due/transfer/3")
    for answer, ending in [(task.spec["answer"], "failure"), ("1999-01-01", "failure")]:
        env.reset(seed=0, options={"task_id": task.id})
        assert env.step(ToolCall("finish", {"answer": answer}))[4]["ending"] == ending  # nothing was read
    account = ToolCall(task.spec["look_first"][0]["tool"], task.spec["look_first"][0]["arguments"])
    for answer, ending in [("1999-01-01", "failure"), (task.spec["answer"], "success")]:
        env.reset(seed=0, options={"task_id": task.id})
        env.step(account)
        assert env.step(ToolCall("finish", {"answer": answer}))[4]["ending"] == ending


def test_renewing_twice_is_all_and_what_fails_changes_nothing() -> None:
    _, base = TASKS.base(TASKS.get("library/renew/transfer/0"))
    world = World(LIBRARY.schema, base)
    loan = world.query("SELECT * FROM loans ORDER BY loan_id")[0]
    statuses = [carry_out(world, LIBRARY.operations["renew_loan"], {"loan_id": loan["loan_id"]}, math.inf).status for _ in range(2)]
    digest = world.digest()
    statuses.append(carry_out(world, LIBRARY.operations["renew_loan"], {"loan_id": loan["loan_id"]}, math.inf).status)
    assert statuses == ["ok", "conflict", "conflict"]  # the base has every loan renewed once
    assert digest == world.digest() == world.recomputed_digest()
    world.close()


@pytest.mark.parametrize(("interface", "check"), CASES)
def test_conformance(interface: str, check: str) -> None:
    keywords = {"interface": interface, "worlds": ["library"], "split": "transfer"}
    CHECKS[check](Maker("agent_gym:AgentBase/ToolTask-v0", keywords))


def test_the_site_leads_the_same_oracle_to_the_same_ends() -> None:
    env = gymnasium.make("agent_gym:AgentBase/WebTask-v0", interface="text", worlds=["library"], split="transfer")
    for family in TASKS.families("transfer"):
        for task_id in TASKS.ids("transfer", family)[:10]:
            observation, info = env.reset(seed=0, options={"task_id": task_id})
            seen = [observation]
            while not info["ending"]:
                observation, _, _, _, info = env.step(env.get_wrapper_attr("oracle")(seen))
                seen.append(observation)
            assert info["ending"] == "success", task_id
    env.close()


def test_a_held_out_world_is_in_no_other_split() -> None:
    assert list(TASKS.splits()) == ["transfer"]
