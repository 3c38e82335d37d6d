"""The tool door of a world: what its session does with keys, rehearsals and time."""

import json
import math
from collections.abc import Iterator

import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.world import WorldSession, WorldTaskSet

TASKS = WorldTaskSet([RETAIL])
TASK = TASKS.get("retail/cancel/train/0")
ORDER = TASK.spec["params"]["order_id"]
CANCEL = ToolCall("cancel_order", {"order_id": ORDER, "reason": "no_longer_needed"})
READ = ToolCall("get_order", {"order_id": ORDER})


def open_session(snapshot: dict[str, object] | None = None) -> WorldSession:
    session = TASKS.open(TASK, snapshot)
    assert isinstance(session, WorldSession)
    return session


@pytest.fixture
def session() -> Iterator[WorldSession]:
    made = open_session()
    yield made
    made.close()


def test_a_key_makes_a_write_happen_once_also_after_a_restore(session: WorldSession) -> None:
    first = session.call(CANCEL, math.inf, "k")
    saved = session.save()
    again = session.call(CANCEL, math.inf, "k")
    assert (first.status, again.status, again.from_cache, again.structured) == ("ok", "ok", True, first.structured)
    assert session.call(CANCEL, math.inf).status == "conflict"
    restored = open_session(json.loads(json.dumps(saved)))
    assert restored.call(CANCEL, math.inf, "k") == again
    assert (restored.digest(), restored.milestones(), restored.now()) == (session.digest(), session.milestones(), session.now())
    restored.close()


def test_a_stored_answer_is_not_noted_again() -> None:
    tasks = (TASKS.get(task_id) for task_id in TASKS.ids("train", "retail/refuse"))
    task = next(task for task in tasks if task.spec["params"]["request"] == "cancel")
    session = TASKS.open(task)
    call = ToolCall("cancel_order", {"order_id": task.spec["params"]["order_id"], "reason": "no_longer_needed"})
    assert session.call(call, math.inf, "k").status == "ok"
    assert session.violation == str(call)
    session.violation = ""
    assert session.call(call, math.inf, "k").from_cache
    assert session.violation == ""
    session.close()


@pytest.mark.parametrize("call", [CANCEL, READ, ToolCall("get_order", {"order_id": "W0000000"})])
def test_a_rehearsal_answers_and_leaves_nothing(session: WorldSession, call: ToolCall) -> None:
    before, probes = session.save(), session.probes()
    rehearsed = session.rehearse(call, math.inf)
    assert (session.save(), session.probes()) == (before, probes)
    assert rehearsed == session.call(call, math.inf)
    assert session.rehearse(ToolCall("click", {"bid": "1"}), math.inf) is None


def test_waiting_moves_the_clock_and_nothing_else(session: WorldSession) -> None:
    start, digest = session.now(), session.digest()
    assert start == session.world.clock
    for _ in range(3):
        session.wait(0.75)
    assert session.now() - start == 2.25
    assert session.world.clock - start == 2
    assert (session.digest(), session.changes()) == (digest, [])
    restored = open_session(json.loads(json.dumps(session.save())))
    restored.wait(0.75)
    assert restored.now() - start == restored.world.clock - start == 3
    with pytest.raises(ValueError, match="forward only"):
        restored.wait(-1)
    assert restored.now() - start == 3
    restored.close()


def test_the_tool_door_stands_for_a_service(session: WorldSession) -> None:
    assert all(spec.remote for spec in session.tools if spec.name != "ask")  # a person does not fail as a service does
