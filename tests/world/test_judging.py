"""What an episode in a world is judged by, through its session: answers, questions, closings, what was seen first."""

import gc
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import Ending, Task, ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.web_task import WebTask
from agent_gym.envs.web_task.session import WebSession
from agent_gym.envs.web_task.tools import browser_tools
from agent_gym.envs.worlds import WORLDS
from agent_gym.errors import ConfigurationError
from agent_gym.world import WorldKind, WorldSession, WorldTaskSet
from agent_gym.world.answers import answered
from tests.world import shelf as site
from tests.world.shelf import ANA, shelf

CANCEL = ToolCall("cancel_job", {"job_id": "J1"})
READ = ToolCall("get_job", {"job_id": "J1"})
SURE, ZIP, WEATHER = (ToolCall("ask", {"question": text}) for text in ("Are you sure?", "What is your ZIP code?", "Nice weather?"))
CONFIRMED = {"tool": "ask", "arguments": {"intent": "confirm"}}
GOAL: dict[str, Any] = {
    "rows": [{"table": "jobs", "where": {"job_id": "J1"}, "values": {"status": "cancelled"}}],
    "allowed": [{"table": "jobs", "where": {"job_id": "J1"}, "columns": ["status"]}],
}
REPLIES = {"confirm": {"answer": "Yes, I am."}, "zip": {"answer": "It is 10115.", "zip": "10115"}}


@contextmanager
def opened(kind: WorldKind, snapshot: dict[str, Any] | None = None) -> Iterator[WorldSession]:
    tasks = WorldTaskSet([kind])
    session = tasks.open(task_of(kind), snapshot)
    assert isinstance(session, WorldSession)
    try:
        yield session
    finally:
        session.close()


def task_of(kind: WorldKind) -> Task:
    return WorldTaskSet([kind]).get(f"{kind.name}/job/train/0")


def ending(kind: WorldKind, *calls: ToolCall) -> Ending:
    """How an episode of these calls, the closing one last, is judged; saved and restored before each."""
    with opened(kind) as session:
        saved = session.save()
    for call in calls[:-1]:
        with opened(kind, json.loads(json.dumps(saved))) as session:
            session.call(call, math.inf)
            saved = session.save()
    with opened(kind, saved) as session:
        return session.verdict(calls[-1]).ending


@pytest.mark.parametrize(
    ("asks", "wanted", "right", "wrong"),
    [
        ("zip", "01 115", ["01 115", " 01\t115\n"], ["1115", "01115", "", None, 1115]),
        ("name", "Zoë O'Hara", ["zoë o'hara", "ZOË  O'HARA"], ["zoe o'hara", "Zoë"]),
        ("status", "Straße", ["strasse", "STRASSE"], ["strase"]),
        ("count", 1_200, ["1200", "1,200", " 1200.0 ", "+1200"], ["12,00", "$1200", "1200 things", "1_200", "1e3", "nan", "", None]),
        ("count", -3, ["-3"], ["3", "--3"]),
        ("rate", 0.1, ["0.1", "0.10"], [".1.", "0.11", "0,1"]),
        ("total_cents", 1990, ["1990", "$19.90", "19.90", "19.9", "1,990"], ["19", "$1990", "$19.9.0", "€19.90", "$", "19.900", "199"]),
        ("total_cents", 200_000, ["$2,000", "$2000.00", "2,000.00", "200000"], ["2,000", "2000", "$20,00"]),
        ("total_cents", 0, ["0", "$0", "$0.00"], ["", "free"]),
        ("total_cents", -550, ["-$5.50", "-550"], ["$5.50", "$-5.50"]),
        ("paid", True, ["true", "Yes"], ["no", "1", "maybe"]),
        ("job_id", ["J1", "J2"], ["J1, J2", "j2,J1", "J2 , J1, J1,"], ["J1", "J1 J2", "J1, J2, J3", ""]),
        ("price_cents", [100, 250], ["$2.50, 100", "1.00,2.50"], ["1, 2.50", "100"]),
        ("job_id", [], ["", " , "], ["none", None]),
    ],
)
def test_an_answer_is_compared_as_what_it_is(asks: str, wanted: Any, right: list[Any], wrong: list[Any]) -> None:
    assert [said for said in right if not answered(asks, wanted, said)] == []
    assert [said for said in wrong if answered(asks, wanted, said)] == []


@given(st.integers(-(10**12), 10**12), st.text(max_size=40))
def test_an_amount_can_be_said_in_cents_and_in_dollars_and_any_text_is_survived(cents: int, said: str) -> None:
    sign, whole, rest = "-" if cents < 0 else "", *divmod(abs(cents), 100)
    assert answered("total_cents", cents, str(cents))
    assert answered("total_cents", cents, f"{sign}${whole:,}.{rest:02d}")
    assert not answered("total_cents", cents, f"{sign}${whole:,}.{rest:02d}1")
    assert isinstance(answered("total_cents", cents, said), bool)
    assert answered("name", said, f" {said}\n")


def test_a_task_that_asks_is_solved_by_the_answer() -> None:
    kind = shelf(asks="price_cents", answer=1000, look_first=[READ.to_dict() | {"tool": "get_job"}])
    assert ending(kind, READ, ToolCall("finish", {"answer": "$10.00"})) is Ending.SUCCESS
    assert ending(kind, ToolCall("finish", {"answer": "$10.00"})) is Ending.FAILURE
    assert ending(kind, READ, ToolCall("finish")) is Ending.FAILURE
    assert ending(kind, READ, CANCEL, ToolCall("finish", {"answer": "1000"})) is Ending.FAILURE
    both = shelf(asks="price_cents", answer=1000, **GOAL)
    assert ending(both, READ, ToolCall("finish", {"answer": "1000"})) is Ending.FAILURE
    assert ending(both, CANCEL, ToolCall("finish", {"answer": "1000"})) is Ending.SUCCESS
    assert ending(shelf(**GOAL), CANCEL, ToolCall("finish", {"answer": "whatever"})) is Ending.SUCCESS
    assert ending(shelf(), ToolCall("finish")) is Ending.FAILURE


def test_one_of_several_looks_is_enough() -> None:
    kind = shelf(**GOAL, look_first=[{"any_of": [READ.to_dict() | {"tool": "get_job"}, {"tool": "get_person", "arguments": {}}]}])
    finish = ToolCall("finish")
    assert ending(kind, READ, CANCEL, finish) is Ending.SUCCESS
    assert ending(kind, ToolCall("get_person", {"person_id": ANA}), CANCEL, finish) is Ending.SUCCESS
    assert ending(kind, CANCEL, finish) is Ending.FAILURE


def test_a_needed_milestone_must_be_reached_before_the_finish() -> None:
    seen = {"name": "seen", "call": {"tool": "get_job", "arguments": {"job_id": "J1"}}}
    done = {"name": "done", "goal": True, "needed": True}
    finish = ToolCall("finish")
    assert ending(shelf(**GOAL, milestones=[seen]), CANCEL, finish) is Ending.SUCCESS
    kind = shelf(**GOAL, milestones=[{**seen, "needed": True}, done])
    assert ending(kind, CANCEL, finish) is Ending.FAILURE
    assert ending(kind, CANCEL, READ, finish) is Ending.SUCCESS  # unlike a look first, it may come later
    assert ending(kind, READ, CANCEL, finish) is Ending.SUCCESS
    with opened(kind) as session:
        session.call(CANCEL, math.inf)
        check = next(check for check in session.verdict(finish).checks if check.name == "milestones")
    assert (check.passed, check.detail) == (False, "not reached: ['seen']")


def test_a_task_is_handed_over_for_the_right_reason_after_the_right_look() -> None:
    kind = shelf(hand_over="missing_information", look_first=[CONFIRMED], answers=REPLIES)
    hand_over, other = (ToolCall("hand_over", {"reason": reason}) for reason in ("missing_information", "beyond_the_tools"))
    assert ending(kind, SURE, hand_over) is Ending.SUCCESS
    assert ending(kind, hand_over) is Ending.ABSTAINED
    assert ending(kind, SURE, other) is Ending.ABSTAINED
    assert ending(kind, SURE, ToolCall("refuse", {"reason": "missing_information"})) is Ending.ABSTAINED
    assert ending(kind, SURE, CANCEL, hand_over) is Ending.FAILURE
    assert ending(kind, SURE, ToolCall("finish")) is Ending.FAILURE
    refused = shelf(refusal="not_open")
    assert ending(refused, ToolCall("refuse", {"reason": "not_open"})) is Ending.SUCCESS
    assert ending(refused, ToolCall("hand_over", {"reason": "not_open"})) is Ending.ABSTAINED
    assert ending(shelf(**GOAL), hand_over) is Ending.ABSTAINED


def test_a_look_can_be_wanted_to_have_been_in_vain() -> None:
    missing = ToolCall("get_job", {"job_id": "J9"})
    kind = shelf(hand_over="missing_information", look_first=[{**missing.to_dict(), "tool": "get_job", "status": "not_found"}])
    hand_over = ToolCall("hand_over", {"reason": "missing_information"})
    assert ending(kind, missing, hand_over) is Ending.SUCCESS
    assert ending(kind, READ, hand_over) is Ending.ABSTAINED
    plain = shelf(hand_over="missing_information", look_first=[{"tool": "get_job", "arguments": {"job_id": "J9"}}])
    assert ending(plain, missing, hand_over) is Ending.ABSTAINED


def test_what_is_forbidden_may_be_excused_by_what_came_before() -> None:
    kind = shelf(forbidden=[{"tool": "cancel_job", "arguments": {}, "unless": CONFIRMED}], answers=REPLIES, **GOAL)
    assert ending(kind, SURE, CANCEL, ToolCall("finish")) is Ending.SUCCESS
    assert ending(kind, CANCEL, SURE, ToolCall("finish")) is Ending.VIOLATION
    assert ending(kind, ZIP, CANCEL, ToolCall("finish")) is Ending.VIOLATION
    itself = shelf(forbidden=[{"tool": "cancel_job", "arguments": {}, "unless": {"tool": "cancel_job", "arguments": {}}}], **GOAL)
    assert ending(itself, CANCEL, ToolCall("finish")) is Ending.VIOLATION


def test_the_counterpart_answers_by_intent_and_what_brings_nothing_new_is_counted() -> None:
    kind = shelf(answers={"zip": REPLIES["zip"]}, milestones=[{"name": "asked", "call": {"tool": "ask", "arguments": {"intent": "zip"}}}])
    with opened(kind) as session:
        ask = next(spec for spec in session.tools if spec.name == "ask")
        assert ask.parameters["properties"]["question"]["examples"] == ["Are you sure?", "What is your zip?"]
        got = [session.call(call, math.inf) for call in (WEATHER, SURE)]
        assert [(answer.status, answer.structured) for answer in got] == [("empty", {"answer": "The customer has nothing to add."})] * 2
        assert (session.useless_questions, session.milestones()) == (2, {"asked": False})
        first = session.call(ZIP, math.inf)
        assert (first.status, first.structured) == ("ok", {"answer": "It is 10115.", "zip": "10115"})
        assert (session.useless_questions, session.milestones()) == (2, {"asked": True})
        with opened(kind, json.loads(json.dumps(session.save()))) as restored:
            assert restored.call(ToolCall("ask", {"question": "your postcode, please"}), math.inf) == first
            assert (restored.useless_questions, restored.milestones(), restored.digest()) == (3, {"asked": True}, session.digest())
        assert session.changes() == []


def test_what_is_told_is_the_agents_own_copy() -> None:
    kind = shelf(answers=REPLIES)
    task = task_of(kind)
    session = WorldTaskSet([kind]).open(task)
    session.call(ZIP, math.inf).structured["zip"] = ANA
    assert task.spec["answers"]["zip"]["zip"] == "10115"
    session.close()


@pytest.mark.parametrize("web", [False, True])
def test_both_doors_ask(web: bool) -> None:
    kind = shelf(answers=REPLIES)
    task = task_of(kind)
    _, base = WorldTaskSet([kind]).base(task)
    session = WebSession(kind, task, base, site, browser_tools([])) if web else WorldSession(kind, task, base)
    assert "ask" in {spec.name for spec in session.tools}
    assert session.call(ZIP, math.inf).structured == REPLIES["zip"]
    assert session.useless_questions == 0
    assert session.call(WEATHER, math.inf).status == "empty"
    assert session.useless_questions == 1
    session.close()


def stand_in(goal: str, question: str, answers: dict[str, Any]) -> Any:
    """Somebody who reads questions otherwise than the script does."""
    answers.clear()  # whatever is done to it, it is a copy
    return {"zip?": "zip", "sure?": "confirm", "odd?": 7, "": ""}.get(question, f"You asked {question} of {goal}")


def test_somebody_else_may_read_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = shelf(answers={"zip": REPLIES["zip"]}, milestones=[{"name": "asked", "call": {"tool": "ask", "arguments": {"intent": "zip"}}}])
    monkeypatch.setattr(site, "SHELF", kind)
    monkeypatch.setitem(WORLDS, "shelf", "tests.world.shelf:SHELF")
    for door in (ToolTask, WebTask):
        env = door(worlds=["shelf"], counterpart="tests.world.test_judging:stand_in")
        env.reset(seed=1)
        told = [env.step(ToolCall("ask", {"question": text}))[4]["status"] for text in ("hm?", "sure?", "odd?", "zip?")]
        assert told == ["ok", "empty", "error", "ok"]
        assert env.last_record.milestones == ("asked",)
        assert env.last_record.useless_questions == 1
        assert env.observation.data["last"]["result"] == REPLIES["zip"]
        assert env.step(ToolCall("ask", {"question": "And?"}))[0]["data"]["last"]["result"] == {"answer": "You asked And? of Do it."}
        env.close()
        env.clear_caches()
    for wrong in ("tests.world.test_judging:REPLIES", 7):
        with pytest.raises(ConfigurationError, match="import string of a function"):
            ToolTask(worlds=["shelf"], counterpart=wrong)  # type: ignore[arg-type]
    gc.collect()
