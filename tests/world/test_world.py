"""The engine on a toy world: what holds for any world."""

import json
import math
import sqlite3
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ToolSpec
from agent_gym.errors import ConfigurationError
from agent_gym.world import Base, Conflict, DeadlinePassed, NotFound, Operation, Schema, World, carry_out

SQL = """
CREATE TABLE owners (owner_id TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TABLE things (
    thing_id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES owners,
    label TEXT,
    amount INTEGER NOT NULL CHECK (amount >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE log_events (event_id TEXT PRIMARY KEY, what TEXT NOT NULL) STRICT;
"""
SCHEMA = Schema.parse(SQL)
KEYS = [f"T{number}" for number in range(6)]


def make_base() -> Base:
    def rows(_: object) -> dict[str, list[dict[str, object]]]:
        things = [{"thing_id": key, "owner_id": "O1", "label": "25", "amount": 25} for key in KEYS[:3]]
        return {"owners": [{"owner_id": "O1", "name": "Zoë"}], "things": things}

    return World.build(SCHEMA, 7, 1_000, rows)


BASE = make_base()

steps = st.one_of(
    st.tuples(st.just("insert"), st.sampled_from(KEYS), st.sampled_from(["O1", "O9"]), st.integers(-1, 3)),
    st.tuples(st.just("update"), st.sampled_from(KEYS), st.sampled_from(["25", "26", None]), st.integers(-1, 3)),
    st.tuples(st.just("delete"), st.sampled_from(KEYS), st.none(), st.just(0)),
    st.tuples(st.just("log"), st.sampled_from(KEYS), st.none(), st.just(0)),
    st.tuples(st.just("fail"), st.just(""), st.none(), st.just(0)),
)
transactions = st.lists(st.lists(steps, min_size=1, max_size=4), max_size=6)


def do(world: World, step: tuple[str, str, str | None, int]) -> None:
    kind, key, text, amount = step
    world.advance(1)
    if kind == "insert":
        world.insert("things", thing_id=key, owner_id=text or "", label=world.new_id("L"), amount=amount)
    elif kind == "update":
        world.update("things", key, label=text, amount=amount)
    elif kind == "delete":
        world.delete("things", key)
    elif kind == "log":
        world.insert("log_events", event_id=world.new_id("E"), what=key)
    else:
        raise Conflict("no")


def rows(world: World) -> dict[str, dict[str, object]]:
    return {str(row["thing_id"]): row for row in world.query("SELECT * FROM things ORDER BY thing_id")}


def state(world: World) -> object:
    shot = world.snapshot()
    return [shot["digest"], shot["clock"], shot["serial"], shot["changes"], rows(world), world.query("SELECT * FROM log_events")]


def play(world: World, plan: list[list[tuple[str, str, str | None, int]]]) -> None:
    for transaction in plan:
        before = state(world)
        try:
            with world.transaction():
                for step in transaction:
                    do(world, step)
        except (Conflict, NotFound, sqlite3.IntegrityError):
            assert state(world) == before


@settings(max_examples=150, deadline=None)
@given(transactions)
def test_digest_and_changes_kept_up_row_by_row_equal_a_full_look(plan: list[list[tuple[str, str, str | None, int]]]) -> None:
    world = World(SCHEMA, BASE)
    before = rows(world)
    play(world, plan)
    after = rows(world)
    assert world.digest() == world.recomputed_digest()
    expected = [(key, before.get(key), after.get(key)) for key in KEYS if before.get(key) != after.get(key)]
    assert [(change.key, change.before, change.after) for change in world.changes()] == expected
    world.close()


@settings(max_examples=60, deadline=None)
@given(transactions, transactions)
def test_snapshot_and_fork_go_on_as_the_original_does(
    first: list[list[tuple[str, str, str | None, int]]], second: list[list[tuple[str, str, str | None, int]]]
) -> None:
    world = World(SCHEMA, BASE)
    play(world, first)
    shot = json.loads(json.dumps(world.snapshot()))
    fork, restored = world.fork(), World(SCHEMA, BASE)
    restored.restore(shot)
    middle = state(world)
    play(world, second)
    assert state(fork) == middle
    for other in (fork, restored):
        play(other, second)
        assert state(other) == state(world)
        assert world.diff(other) == []
    world.restore(shot)
    assert state(world) == middle
    there, back = world.diff(fork), fork.diff(world)
    assert [(c.where, c.key, c.before, c.after) for c in there] == [(c.where, c.key, c.after, c.before) for c in back]
    for each in (world, fork, restored):
        each.close()


def test_diff_of_worlds_with_different_starts_looks_at_every_row() -> None:
    world, other = World(SCHEMA, BASE), World(SCHEMA, BASE)
    with other.transaction():
        other.update("things", "T1", amount=3)
    other.settle()
    assert other.changes() == []
    assert [(change.key, change.after["amount"]) for change in world.diff(other)] == [("T1", 3)]


def test_equal_looking_values_of_different_types_have_different_digests() -> None:
    world = World(SCHEMA, BASE)
    before = world.digest()
    with world.transaction():
        world.update("things", "T0", label=None)
        none = world.digest()
        world.update("things", "T0", label="null")
    assert len({before, none, world.digest()}) == 3


def test_a_row_put_back_is_no_change_and_a_logging_table_never_is() -> None:
    world = World(SCHEMA, BASE)
    before = world.digest()
    with world.transaction():
        world.insert("log_events", event_id="E1", what="x")
        world.update("things", "T0", amount=1)
    with world.transaction():
        world.update("things", "T0", amount=25)
        world.delete("things", "T1")
        world.insert("things", thing_id="T1", owner_id="O1", label="25", amount=25)
    assert world.changes() == []
    assert world.digest() == before


def test_a_trial_shows_its_changes_and_leaves_none() -> None:
    world = World(SCHEMA, BASE)
    before = state(world)
    with world.transaction(trial=True):
        world.update("things", "T0", amount=1)
        assert len(world.changes()) == 1
    assert state(world) == before


@pytest.mark.parametrize(
    "write",
    [
        lambda world: world.update("things", "T0", amount=1),
        lambda world: world.insert("owners", owner_id="O2", name="x"),
        lambda world: world.delete("things", "T0"),
        lambda world: world.new_id("X"),
        lambda world: world.advance(1),
    ],
)
def test_nothing_changes_outside_a_transaction(write: Callable[[World], object]) -> None:
    world = World(SCHEMA, BASE)
    before = state(world)
    with pytest.raises(RuntimeError, match="inside a transaction"):
        write(world)
    assert state(world) == before


def test_query_only_reads_and_wrong_names_are_named() -> None:
    world = World(SCHEMA, BASE)
    with pytest.raises(ValueError, match="only reads"):
        world.query("DELETE FROM things")
    with pytest.raises(ConfigurationError, match="no table 'thing'"):
        world.get("thing", "T0")
    with world.transaction(), pytest.raises(ConfigurationError, match="no column 'size'"):
        world.update("things", "T0", size=1)
    with world.transaction(), pytest.raises(ValueError, match="primary key"):
        world.update("things", "T0", thing_id="T9")
    with pytest.raises(NotFound, match="T9"):
        world.get("things", "T9")


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n"


def hang(world: World) -> dict[str, object]:
    world.update("things", "T0", amount=1)
    return {"rows": world.query(ENDLESS)}


HANG = Operation(ToolSpec(name="hang", description="Never ends."), hang)


def test_a_deadline_stops_an_endless_operation_and_undoes_it() -> None:
    world = World(SCHEMA, BASE)
    before = state(world)
    result = carry_out(world, HANG, {}, time.monotonic() + 0.05)
    assert result.status == "timeout"
    assert state(world) == before
    with world.transaction():
        world.update("things", "T0", amount=2)
    assert world.digest() == world.recomputed_digest()


def test_a_deadline_that_has_passed_stops_the_first_write() -> None:
    world = World(SCHEMA, BASE)
    with pytest.raises(DeadlinePassed), world.transaction(time.monotonic() - 1):
        world.update("things", "T0", amount=1)
    assert world.changes() == []


def test_interrupt_from_another_thread_stops_an_endless_operation() -> None:
    world = World(SCHEMA, BASE)
    before = state(world)
    stop = threading.Event()

    def keep_interrupting() -> None:
        while not stop.wait(0.01):
            world.interrupt()

    thread = threading.Thread(target=keep_interrupting)
    thread.start()
    try:
        assert carry_out(world, HANG, {}, math.inf).status == "timeout"
    finally:
        stop.set()
        thread.join()
    assert state(world) == before


def test_threads_take_turns() -> None:
    world = World(SCHEMA, BASE)

    def count() -> None:
        for _ in range(50):
            with world.transaction():
                world.update("things", "T0", amount=world.get("things", "T0")["amount"] + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert world.get("things", "T0")["amount"] == 225
    assert world.digest() == world.recomputed_digest()


def test_ids_look_drawn_and_never_repeat() -> None:
    world = World(SCHEMA, BASE)
    with world.transaction():
        ids = [world.new_id("X") for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert all(len(text) == 8 for text in ids)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE TABLE a (x TEXT PRIMARY KEY)", "STRICT"),
        ("CREATE TABLE a (x TEXT, y TEXT, PRIMARY KEY (x, y)) STRICT", "one column"),
        ("CREATE TABLE a (x TEXT PRIMARY KEY, y TEXT REFERENCES a ON DELETE CASCADE) STRICT", "foreign key with an action"),
        ("CREATE TABLE a (x TEXT PRIMARY KEY) STRICT; CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END", "triggers"),
    ],
)
def test_a_schema_in_which_rows_could_change_unseen_is_refused(sql: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Schema.parse(sql)


def test_closing_twice_is_fine() -> None:
    world = World(SCHEMA, BASE)
    world.close()
    world.close()
