"""Taking back, and what somebody else does meanwhile."""

import dataclasses
import gc
import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.worlds import WORLDS
from agent_gym.errors import ConfigurationError
from agent_gym.world import UNDO, Script, World, WorldKind, WorldSession, WorldTaskSet, carry_out
from tests.world import shelf as module
from tests.world.shelf import ANA, BEN, OPERATIONS, SCHEMA, build, shelf

BASE = build(3)
TAKE_BACK = ToolCall("undo")
CANCEL = ToolCall("cancel_job", {"job_id": "J1"})
READ = ToolCall("get_job", {"job_id": "J1"})

jobs = st.sampled_from(["J1", "J2", "J3", "J9"])
calls = st.one_of(
    st.builds(lambda job: ("cancel_job", {"job_id": job}), jobs),
    st.builds(lambda job: ("remove_job", {"job_id": job}), jobs),
    st.builds(lambda job: ("get_job", {"job_id": job}), jobs),
    st.builds(lambda ids, cents: ("set_prices", {"job_ids": ids, "price_cents": cents}), st.lists(jobs, min_size=1), st.integers(0, 2)),
    st.builds(lambda person: ("add_job", {"person_id": person}), st.sampled_from([ANA, "P9"])),
    st.just(("undo", {})),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(calls, max_size=12))
def test_undo_goes_back_through_the_changes_one_by_one(plan: list[tuple[str, dict[str, Any]]]) -> None:
    world = World(SCHEMA, BASE)
    digests: list[str] = [world.digest()]
    for name, arguments in plan:
        serial, clock = world.serial, world.clock
        result = None
        with suppress(sqlite3.IntegrityError):  # a foreign key: nothing has happened
            result = carry_out(world, OPERATIONS[name], arguments, math.inf)
        if name == "undo":
            assert result is not None
            assert result.failed is (len(digests) == 1)
            digests = digests[: max(1, len(digests) - 1)]
        elif result is not None and not result.failed and not OPERATIONS[name].spec.read_only:
            digests.append(world.digest())
        assert world.digest() == digests[-1] == world.recomputed_digest()
        assert (world.serial, world.clock) >= (serial, clock)
    world = restored(world) if len(plan) % 2 else world.fork()
    for digest in digests[-2::-1]:
        assert carry_out(world, UNDO, {}, math.inf, trial=True).status == "ok"
        assert carry_out(world, UNDO, {}, math.inf).status == "ok"
        assert world.digest() == digest == world.recomputed_digest()
    assert carry_out(world, UNDO, {}, math.inf).status == "conflict"
    assert world.changes() == []
    world.close()


def restored(world: World) -> World:
    other = World(SCHEMA, BASE)
    other.restore(json.loads(json.dumps(world.snapshot())))
    return other


def opened(kind: WorldKind) -> WorldSession:
    tasks = WorldTaskSet([kind])
    session = tasks.open(tasks.get("shelf/job/train/0"))
    assert isinstance(session, WorldSession)
    return session


@pytest.fixture
def session() -> Iterator[WorldSession]:
    made = opened(shelf(forbidden=[{"tool": "cancel_job", "arguments": {"job_id": "J2"}}]))
    yield made
    made.close()


def test_undo_says_what_it_took_back_happens_once_by_its_key_and_forgives_nothing(session: WorldSession) -> None:
    start = session.digest()
    session.call(ToolCall("set_prices", {"job_ids": ["J1", "J3", "J1"], "price_cents": 5}), math.inf)
    middle = session.digest()
    session.call(ToolCall("cancel_job", {"job_id": "J2"}), math.inf)
    first = session.call(TAKE_BACK, math.inf, "key")
    assert (first.status, first.structured) == ("ok", {"undone": [{"job_id": "J2"}]})
    assert session.call(TAKE_BACK, math.inf, "key").from_cache
    assert session.digest() == middle
    assert session.violation
    assert session.call(TAKE_BACK, math.inf, "other").structured == {"undone": [{"job_id": "J1"}, {"job_id": "J3"}]}
    assert session.digest() == start
    assert session.call(TAKE_BACK, math.inf, "third").status == "conflict"


def test_what_is_final_is_not_taken_back_nor_what_came_before_it() -> None:
    kind = shelf()
    final = {**kind.operations, "cancel_job": dataclasses.replace(kind.operations["cancel_job"], final=True)}
    session = opened(dataclasses.replace(kind, operations=final))
    price = ToolCall("set_prices", {"job_ids": ["J3"], "price_cents": 5})
    assert session.call(price, math.inf).status == "ok"
    assert session.rehearse(CANCEL, math.inf).status == "ok"  # type: ignore[union-attr]
    assert session.call(ToolCall("cancel_job", {"job_id": "J9"}), math.inf).status == "not_found"
    assert session.call(TAKE_BACK, math.inf).status == "ok"  # neither a rehearsal nor a failure is final
    assert [session.call(call, math.inf).status for call in (price, CANCEL, TAKE_BACK)] == ["ok", "ok", "conflict"]
    assert {change.key for change in session.changes()} == {"J1", "J3"}
    after = ToolCall("set_prices", {"job_ids": ["J2"], "price_cents": 5})
    assert [session.call(call, math.inf).status for call in (after, TAKE_BACK, TAKE_BACK)] == ["ok", "ok", "conflict"]
    assert {change.key for change in session.changes()} == {"J1", "J3"}
    session.close()


def test_the_tasks_own_rows_are_not_the_agents_to_take_back() -> None:
    def draft(world: World) -> None:
        world.update("jobs", "J1", price_cents=7)

    session = opened(shelf(draft))
    assert session.call(TAKE_BACK, math.inf).status == "conflict"
    assert session.changes() == []
    session.close()


def test_a_task_adds_changes_and_removes_rows_and_no_id_comes_twice() -> None:
    made: list[str] = []

    def draft(world: World) -> None:
        world.delete("jobs", "J3")
        world.delete("people", BEN)
        world.insert("people", person_id="P0", name="Çelik", zip="00000")  # a person before their job, whatever the tables' names
        made.append(world.new_id("J"))
        world.insert("jobs", job_id=made[-1], person_id="P0", status="open", price_cents=1)
        world.update("jobs", made[-1], price_cents=2)
        world.update("jobs", "J1", price_cents=1_000)
        world.advance(30)

    session = opened(shelf(draft))
    told = session.call(ToolCall("get_job", {"job_id": made[-1]}), math.inf).structured
    assert told == {"job_id": made[-1], "person_id": "P0", "status": "open", "price_cents": 2}
    assert session.call(ToolCall("get_person", {"person_id": BEN}), math.inf).status == "not_found"
    assert session.changes() == []
    assert session.digest() == session.world.recomputed_digest()
    assert session.now() == BASE.clock + 30
    added = session.call(ToolCall("add_job", {"person_id": "P0"}), math.inf)
    assert added.status == "ok"
    assert added.structured["job_id"] != made[-1]
    session.close()


def test_somebody_else_acts_once_right_after_the_call_that_it_follows() -> None:
    event = {"after": {"tool": "get_job", "arguments": {"job_id": "J1"}}, "operation": "cancel_job", "arguments": {"job_id": "J1"}}
    kind = shelf(events=[event], forbidden=[{"tool": "cancel_job", "arguments": {}}], look_first=[])
    session = opened(kind)
    assert session.call(ToolCall("get_job", {"job_id": "J2"}), math.inf).status == "ok"
    assert session.changes() == []
    assert session.call(READ, math.inf).structured["status"] == "open"
    (change,) = session.changes()
    assert (change.key, change.after["status"]) == ("J1", "cancelled")
    saved, digest = json.loads(json.dumps(session.save())), session.digest()
    session.close()
    session = WorldTaskSet([kind]).open(WorldTaskSet([kind]).get("shelf/job/train/0"), saved)  # type: ignore[assignment]
    assert session.call(READ, math.inf).structured["status"] == "cancelled"
    assert (session.digest(), session.violation) == (digest, "")
    assert session.call(TAKE_BACK, math.inf).status == "conflict"  # it was not the agent's doing
    assert session.call(CANCEL, math.inf).status == "conflict"
    session.close()


def test_what_somebody_else_changed_since_is_not_taken_back() -> None:
    price = {"operation": "set_prices", "arguments": {"job_ids": ["J1"], "price_cents": 9}}
    session = opened(shelf(events=[{"after": CANCEL.to_dict() | {"tool": "cancel_job"}, **price}]))
    assert session.call(CANCEL, math.inf).status == "ok"
    digest = session.digest()
    refused = session.call(TAKE_BACK, math.inf)
    assert (refused.status, "somebody else" in refused.content) == ("conflict", True)
    assert session.digest() == digest
    session.close()
    add = {"after": {"tool": "add_job", "arguments": {}}, "operation": "cancel_job", "arguments": {"job_id": "J9"}}
    session = opened(shelf(events=[add]))
    assert session.call(ToolCall("add_job", {"person_id": ANA}), math.inf).status == "ok"  # what cannot be done does not happen
    assert session.call(TAKE_BACK, math.inf).status == "ok"
    session.close()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"events": [{"after": READ.to_dict(), "operation": "fly", "arguments": {}}]},
            "unknown operation of an event of shelf/job/train/0",
        ),
        ({"asks": "zip"}, "asks and answer"),
        ({"answer": "10115"}, "asks and answer"),
    ],
)
def test_a_draft_that_does_not_fit_is_an_error_that_names_the_task(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        WorldTaskSet([shelf(**fields)]).get("shelf/job/train/0")


def _script() -> Script:
    yield ToolCall("ask", {"question": "Are you sure?"})
    yield READ
    yield ToolCall("set_prices", {"job_ids": ["J1"], "price_cents": 5})
    yield TAKE_BACK
    yield CANCEL
    yield ToolCall("finish")


def test_a_careful_oracle_asks_and_takes_back_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    where = {"table": "jobs", "where": {"job_id": "J1"}}
    drawn = shelf(
        rows=[{**where, "values": {"status": "cancelled", "price_cents": 1_000}}],
        allowed=[{**where, "columns": ["status"]}],
        look_first=[{"tool": "ask", "arguments": {"intent": "confirm"}}],
        answers={"confirm": {"answer": "Yes."}},
    )
    verified_by = dict.fromkeys(("cancel_job", "set_prices", "undo"), "get_job")
    families = {"job": dataclasses.replace(drawn.families["job"], max_steps=90)}
    kind = dataclasses.replace(drawn, oracle=lambda _: _script(), verified_by=verified_by, families=families)
    monkeypatch.setattr(module, "SHELF", kind)
    monkeypatch.setitem(WORLDS, "shelf", "tests.world.shelf:SHELF")
    env = ToolTask(worlds=["shelf"], faults=0.5, retries="agent")
    faults: set[str] = set()
    for seed in range(12):
        observations, over = [env.reset(seed=seed)[0]], False
        while not over:
            observation, _, terminated, truncated, info = env.step(env.careful_oracle(observations))
            observations.append(observation)
            over = terminated or truncated
            faults |= {attempt.fault for attempt in env.last_record.attempts if attempt.call.name == "undo"}
        assert info["ending"] == "success", observations[-1]["text"]
        assert env.last_record.useless_questions == 0
    assert len(faults) > 3
    env.close()
    env.clear_caches()
    gc.collect()
