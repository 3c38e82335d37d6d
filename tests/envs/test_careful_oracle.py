"""The careful oracle solves tasks whatever goes wrong: each kind of trouble at each point of its path, and the seeded faults."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agent_gym.core import Ending, Task, ToolCall, ToolResult
from agent_gym.core.closing import CLOSING
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.gateway.faults import KINDS
from agent_gym.world import Script, WorldSession, WorldTaskSet, careful_call

TASKS = WorldTaskSet([RETAIL])
FAMILIES = [f"retail/{name}" for name in ("cancel", "change_address", "exchange", "refuse", "who_is_it")]
MORE = [f"retail/{name}" for name in ("order_facts", "last_delivery", "many_orders", "which_order", "injected", "close_account")]
"""Not those in which being refused or taking back is a part of the way: there faults can look like what is looked for."""
WAITS = (5, 60, 300)
WRITES = {spec.name for spec in RETAIL.tools if not spec.read_only}


class Line:
    """A bad line to a session: each kind of trouble is a method, and hits the calls of the numbers in ``hits``."""

    def __init__(self, session: WorldSession, trouble: str, hits: range) -> None:
        self.session, self.trouble, self.hits = session, trouble, hits
        self.not_before = -math.inf
        self.answers: dict[ToolCall, ToolResult] = {}
        self.number = -1

    def call(self, call: ToolCall) -> ToolResult:
        if call.name == "wait":
            self.session.wait(call.arguments["seconds"])
            return ToolResult(status="ok")
        self.number += 1
        assert self.session.now() >= self.not_before, f"{call} came before it was time"
        if self.number in self.hits:
            result: ToolResult = getattr(self, self.trouble)(call, call.name in WRITES)
        else:
            result = self.session.call(call, math.inf)
        self.answers.setdefault(call, result)
        return result

    def none(self, call: ToolCall, _: bool) -> ToolResult:
        return self.session.call(call, math.inf)

    def limited(self, _: ToolCall, __: bool) -> ToolResult:
        self.not_before = self.session.now() + 400
        return ToolResult(status="rate_limited", retry_after_s=400)

    def dropped(self, _: ToolCall, __: bool) -> ToolResult:
        return ToolResult(status="unavailable")

    def late(self, call: ToolCall, writes: bool) -> ToolResult:
        self.session.call(call, math.inf)
        return ToolResult(status="outcome_unknown" if writes else "timeout")

    def lost(self, _: ToolCall, writes: bool) -> ToolResult:
        return ToolResult(status="outcome_unknown" if writes else "timeout")

    def garbled(self, call: ToolCall, _: bool) -> ToolResult:
        self.session.call(call, math.inf)
        return ToolResult(status="malformed", content="<html>")

    def pretended(self, call: ToolCall, writes: bool) -> ToolResult:
        result = self.session.rehearse(call, math.inf) if writes else self.session.call(call, math.inf)
        assert result is not None
        return result

    def stale(self, call: ToolCall, writes: bool) -> ToolResult:
        return self.answers[call] if call in self.answers and not writes else self.session.call(call, math.inf)

    def cut(self, call: ToolCall, writes: bool) -> ToolResult:
        """Every list of a read cut to its first half."""
        result = self.session.call(call, math.inf)
        if writes or result.failed:
            return result
        parts = {name: part[: len(part) // 2] if isinstance(part, list) else part for name, part in result.structured.items()}
        return dataclasses.replace(result, structured=parts)


TROUBLES = [name for name in vars(Line) if not name.startswith("_") and name not in ("call", "none")]


def opened(task: Task) -> WorldSession:
    session = TASKS.open(task)
    assert isinstance(session, WorldSession)
    return session


def follow(line: Line, script: Callable[[], Script], limit: int = 20) -> list[ToolCall]:
    """The calls that were made in following a script, the closing one included if the limit allows."""
    observations: list[dict[str, Any]] = [{"data": {"last": None}}]
    calls: list[ToolCall] = []
    while len(calls) < limit:
        call = careful_call(script(), observations, RETAIL.verified_by, WAITS)
        calls.append(call)
        if call.name in CLOSING:
            break
        result = line.call(call)
        told = result.content if result.structured is None else result.structured
        last = {"tool": call.name, "arguments": call.arguments, "status": result.status, "result": told}
        observations.append({"data": {"last": last if result.retry_after_s is None else {**last, "retry_after_s": result.retry_after_s}}})
    return calls


def play(task: Task, trouble: str = "none", hits: range = range(0)) -> tuple[Ending, list[str]]:
    """How a task ends, and the names of the calls that were made."""
    session = opened(task)

    def script() -> Script:
        found = RETAIL.oracle(task.goal)
        assert found is not None
        return found

    calls = follow(Line(session, trouble, hits), script, task.max_steps)
    assert not session.violation
    ending = session.verdict(calls[-1]).ending if calls[-1].name in CLOSING else Ending.STEP_LIMIT
    session.close()
    return ending, [call.name for call in calls]


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("family", [*FAMILIES, *MORE])
def test_it_copes_with_trouble_at_any_point_once_or_twice(family: str, trouble: str) -> None:
    for task_id in TASKS.ids("test", family)[2:4]:
        task = TASKS.get(task_id)
        _, path = play(task)
        for start in range(len(path) - 1):
            for length in (1, 2):
                ending, names = play(task, trouble, range(start, start + length))
                assert ending is Ending.SUCCESS, (task_id, start, length, names)
                assert len(names) <= len(path) + 6


@pytest.mark.parametrize("trouble", ["none", *TROUBLES])
def test_it_fills_a_cart_once(trouble: str) -> None:
    """Two writes that would take effect twice, the second on a line that only the first makes."""
    task = TASKS.get("retail/cancel/test/0")
    look = opened(task)
    user = look.world.query("SELECT user_id FROM users WHERE user_id NOT IN (SELECT user_id FROM carts) ORDER BY user_id LIMIT 1")[0][
        "user_id"
    ]
    variant = look.world.query("SELECT variant_id FROM variants WHERE stock > 9 ORDER BY variant_id LIMIT 1")[0]["variant_id"]
    look.close()

    def fill() -> Script:
        cart = ToolCall("get_cart", {"user_id": user})
        yield cart
        yield ToolCall("add_to_cart", {"user_id": user, "variant_id": variant, "quantity": 2})
        lines = (yield cart)["lines"]
        line_id = next((line["line_id"] for line in lines if line["variant_id"] == variant), "")
        yield ToolCall("set_cart_quantity", {"line_id": line_id, "quantity": 5})

    for start in range(6):
        session = opened(task)
        assert follow(Line(session, trouble, range(start, start + 1)), fill)[-1] == ToolCall("finish")
        assert [row["quantity"] for row in session.world.query("SELECT * FROM carts WHERE user_id = ?", (user,))] == [5]
        logged = session.world.query("SELECT operation FROM log_operations ORDER BY booked_at")
        assert [row["operation"] for row in logged] == ["add_to_cart", "set_cart_quantity"]
        session.close()


def test_every_write_of_retail_can_be_verified() -> None:
    assert RETAIL.verified_by.keys() == WRITES
    assert not WRITES & set(RETAIL.verified_by.values())


def solved(env: ToolTask, oracle: Callable[[Any], ToolCall], count: int) -> Counter[str]:
    """The endings of the first so many tasks of each family."""
    endings: Counter[str] = Counter()
    for family in FAMILIES:
        for number, task_id in enumerate(env.tasks.ids("test", family)[:count]):
            observations, info = [env.reset(seed=number, options={"task_id": task_id})[0]], {"ending": ""}
            while not info["ending"]:
                observation, _, _, _, info = env.step(oracle(observations))
                observations.append(observation)
            endings[info["ending"]] += 1
    return endings


@pytest.mark.parametrize("retries", ["gateway", "agent"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_fault_is_recoverable(kind: str, retries: str) -> None:
    """All but one in 25 tasks; where bad luck makes the path too long, the step limit is what ends it and nothing worse."""
    env = ToolTask(split="test", retries=retries, faults={"rate": 0.3, "kinds": [kind]})
    endings = solved(env, env.careful_oracle, 20)
    env.close()
    assert endings["success"] >= 96
    assert set(endings) <= {"success", "step_limit"}


@pytest.mark.parametrize("retries", ["gateway", "agent"])
def test_under_all_kinds_the_careful_oracle_solves_what_the_plain_one_does_not(retries: str) -> None:
    env = ToolTask(split="test", retries=retries, faults=0.3)
    careful, plain = solved(env, env.careful_oracle, 10), solved(env, env.oracle, 10)
    env.close()
    assert careful == {"success": 50}
    assert plain["success"] <= 45


def test_without_faults_it_takes_one_more_step_for_each_write() -> None:
    for family in FAMILIES:
        for task_id in TASKS.ids("test", family)[:20]:
            ending, names = play(TASKS.get(task_id))
            assert ending is Ending.SUCCESS
            assert len(names) <= 9
            assert names[-1] == "refuse" or (names[-2] == "get_order" and names[-3] in WRITES)
