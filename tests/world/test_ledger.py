"""A write with a key happens once, whatever is asked for under that key later, from any thread, before or after a restore."""

import json
import math
import threading
import time
from collections.abc import Callable

import pytest

from agent_gym.core import ToolResult, ToolSpec
from agent_gym.world import Conflict, Operation, Schema, World, carry_out

SCHEMA = Schema.parse("CREATE TABLE things (thing_id TEXT PRIMARY KEY, amount INTEGER NOT NULL) STRICT;")
BASE = World.build(SCHEMA, 7, 1_000, lambda _: {"things": [{"thing_id": "T1", "amount": 5}, {"thing_id": "T2", "amount": 5}]})


def add(world: World, thing_id: str, amount: int) -> dict[str, object]:
    total = world.get("things", thing_id)["amount"] + amount
    if total < 0:
        raise Conflict("not that many")
    world.update("things", thing_id, amount=total)
    world.advance(1)
    return {"total": total, "ids": [world.new_id("X")]}


ADD = Operation(ToolSpec(name="add", description="Adds."), add)
TAKE = Operation(ToolSpec(name="take", description="Takes."), lambda world, thing_id, amount: add(world, thing_id, -amount))
READ = Operation(
    ToolSpec(name="read", description="Reads.", annotations={"readOnlyHint": True}),
    lambda world, thing_id: dict(world.get("things", thing_id)),
)

ONE = {"thing_id": "T1", "amount": 1}


def do(world: World, key: str = "", operation: Operation = ADD, **arguments: object) -> ToolResult:
    return carry_out(world, operation, {**ONE, **arguments}, math.inf, key)


def amount(world: World) -> int:
    return int(world.get("things", "T1")["amount"])


@pytest.mark.parametrize(
    ("first", "second", "status", "told_again", "final"),
    [
        (("k", ADD, {}), ("k", ADD, {}), "ok", True, 6),
        (("k", ADD, {}), ("k", ADD, {"amount": 1, "thing_id": "T1"}), "ok", True, 6),
        (("k", ADD, {}), ("k", ADD, {"amount": 2}), "conflict", False, 6),
        (("k", ADD, {}), ("k", ADD, {"thing_id": "T2"}), "conflict", False, 6),
        (("k", ADD, {}), ("k", TAKE, {}), "conflict", False, 6),
        (("k", ADD, {}), ("other", ADD, {}), "ok", False, 7),
        (("", ADD, {}), ("", ADD, {}), "ok", False, 7),
        (("k", TAKE, {"amount": 9}), ("k", TAKE, {"amount": 9}), "conflict", True, 5),
        (("k", ADD, {"thing_id": "T9"}), ("k", ADD, {"thing_id": "T9"}), "not_found", True, 5),
    ],
)
def test_a_key_is_answered_once(
    first: tuple[str, Operation, dict[str, object]],
    second: tuple[str, Operation, dict[str, object]],
    status: str,
    told_again: bool,
    final: int,
) -> None:
    world = World(SCHEMA, BASE)
    given = do(world, first[0], first[1], **first[2])
    assert not given.from_cache
    before = (world.clock, world.serial)
    again = do(world, second[0], second[1], **second[2])
    assert (again.status, again.from_cache, amount(world)) == (status, told_again, final)
    if told_again:
        assert (again.content, again.structured) == (given.content, given.structured)
        assert (world.clock, world.serial) == before
    world.close()


def test_a_stored_answer_is_nobodys_to_change() -> None:
    world = World(SCHEMA, BASE)
    for _ in range(2):
        do(world, "k").structured["ids"].clear()
    assert len(do(world, "k").structured["ids"]) == 1


def test_reads_ignore_keys() -> None:
    world = World(SCHEMA, BASE)
    for expected in (5, 6):
        result = carry_out(world, READ, {"thing_id": "T1"}, math.inf, "k")
        assert (result.structured["amount"], result.from_cache) == (expected, False)
        do(world, "k")
    assert amount(world) == 6


def test_a_try_that_did_nothing_gives_its_key_back() -> None:
    world = World(SCHEMA, BASE)
    assert carry_out(world, ADD, ONE, time.monotonic() - 1, "k").status == "timeout"
    with pytest.raises(TypeError):
        carry_out(world, ADD, {**ONE, "colour": "red"}, math.inf, "k")
    assert amount(world) == 5
    result = do(world, "k")
    assert (result.status, result.from_cache, amount(world)) == ("ok", False, 6)


def test_a_key_under_way_is_a_conflict_at_once() -> None:
    world = World(SCHEMA, BASE)
    entered, leave = threading.Event(), threading.Event()

    def slow(world: World, thing_id: str, amount: int) -> dict[str, object]:
        entered.set()
        leave.wait(10)
        return add(world, thing_id, amount)

    operation = Operation(ADD.spec, slow)
    results: list[ToolResult] = []
    thread = threading.Thread(target=lambda: results.append(do(world, "k", operation)))
    thread.start()
    try:
        assert entered.wait(10)
        second = do(world, "k", operation)  # would wait for ever if it waited for the world
        assert (second.status, second.from_cache) == ("conflict", False)
        assert "under way" in second.content
        assert "another request" in do(world, "k", operation, amount=2).content
    finally:
        leave.set()
        thread.join()
    assert [result.status for result in results] == ["ok"]
    assert do(world, "k", operation).from_cache
    assert amount(world) == 6


def test_of_many_tries_at_once_one_happens() -> None:
    world = World(SCHEMA, BASE)
    gate = threading.Barrier(8)
    results: list[ToolResult] = []

    def try_it() -> None:
        gate.wait()
        results.append(do(world, "k"))

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert amount(world) == 6
    assert sorted(result.status for result in results if not result.from_cache and result.status == "ok") == ["ok"]
    assert {result.status for result in results} <= {"ok", "conflict"}


@pytest.mark.parametrize("way", ["fork", "restore", "rewind"])
def test_keys_go_with_the_state(way: str) -> None:
    world = World(SCHEMA, BASE)
    do(world, "k")
    shot = json.loads(json.dumps(world.snapshot()))
    other = world.fork() if way == "fork" else World(SCHEMA, BASE)
    if way != "fork":
        other.restore(shot)
    do(other, "late")
    assert do(other, "k").from_cache
    assert not do(world, "late").from_cache  # the two are independent
    if way == "rewind":
        other.restore(shot)
        assert not do(other, "late").from_cache
    assert amount(other) == 7


@pytest.mark.parametrize("look", [World.digest, World.changes, World.recomputed_digest])
def test_keys_are_no_part_of_what_changed(look: Callable[[World], object]) -> None:
    keyed, plain = World(SCHEMA, BASE), World(SCHEMA, BASE)
    do(keyed, "k")
    do(keyed, "k")
    do(plain)
    assert look(keyed) == look(plain)
    assert keyed.diff(plain) == []


@pytest.mark.parametrize("operation", [ADD, TAKE, READ])
def test_a_trial_answers_and_leaves_nothing(operation: Operation) -> None:
    world = World(SCHEMA, BASE)
    before = world.snapshot()
    arguments = {"thing_id": "T1"} if operation is READ else ONE
    trial = carry_out(world, operation, arguments, math.inf, "k", trial=True)
    assert world.snapshot() == before
    assert carry_out(world, operation, arguments, math.inf, "k") == trial
