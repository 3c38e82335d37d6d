"""Remote tools: what is retried, waited for, remembered, left alone; and that a write is made once, whatever goes wrong."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import Change, Observation, Session, ToolCall, ToolResult, ToolSpec, Verdict
from agent_gym.errors import ConfigurationError
from agent_gym.gateway import KINDS, WAIT, Boundary, FaultPlan, Gateway, Permissions, Resilience, check_tools, issue_token
from agent_gym.gateway.resilience import Breaker

TOOL_TASK = "agent_gym:AgentBase/ToolTask-v0"
_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def spec(name: str, **hints: bool) -> ToolSpec:
    return ToolSpec(name=name, description=name, parameters=_SCHEMA, output_schema=_SCHEMA, annotations=hints, remote=True, may_block=False)


READ, PUT, POST = spec("read", readOnlyHint=True), spec("put", idempotentHint=True), spec("post")
MIRROR, OTHER = spec("mirror", readOnlyHint=True), spec("other")
OK = ToolResult(status="ok", structured={"n": 1})


class Service(Session):
    """A service that answers as it is told, and honours idempotency keys."""

    def __init__(self, *answers: ToolResult | Callable[[], ToolResult]) -> None:
        self.tools = (READ, PUT, POST, MIRROR, OTHER)
        self.answers = list(answers)
        self.keys: dict[str, ToolResult] = {}
        self.seen: list[tuple[float, str, str]] = []
        self.rows = 0

    def call(self, call: ToolCall, deadline: float, key: str = "") -> ToolResult:  # noqa: ARG002 - nothing here takes time
        self.seen.append((self.now(), call.name, key))
        if key and key in self.keys:
            return self.keys[key]
        result: Any = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        result = result() if callable(result) else result
        if call.name in ("put", "post", "other") and (not result.failed or result.status == "outcome_unknown"):
            self.rows += 1
            if key:
                self.keys[key] = OK
        return result  # type: ignore[no-any-return]

    def observe(self) -> Observation:
        return Observation("")

    def verdict(self, closing: ToolCall) -> Verdict:
        raise NotImplementedError

    def digest(self) -> str:
        return ""

    def changes(self) -> list[Change]:
        return []


def failing(status: str, retry_after_s: float | None = None) -> ToolResult:
    return ToolResult(status=status, content=status, retry_after_s=retry_after_s)


def call(service: Service, name: str, times: int = 1, **boundary: Any) -> ToolResult:
    gateway = Gateway(service, boundary=Boundary(**boundary))
    for number in range(times):
        result = gateway.call(ToolCall(name, {"n": 1}), number + 1).result
    gateway.close()
    return result


@pytest.mark.parametrize(
    ("status", "reads", "puts", "posts"),
    [
        # What comes back, and how often a read, an idempotent write and a write are made: section by section of the conventions.
        ("ok", 1, 1, 1),
        ("empty", 1, 1, 1),
        ("not_found", 1, 1, 1),
        ("conflict", 1, 1, 1),
        ("forbidden", 1, 1, 1),
        ("invalid_arguments", 1, 1, 1),
        ("error", 1, 1, 1),
        ("rate_limited", 3, 3, 3),
        ("unavailable", 3, 3, 3),
        ("timeout", 3, 1, 1),
        ("malformed", 3, 3, 3),
    ],
)
def test_what_is_tried_again(status: str, reads: int, puts: int, posts: int) -> None:
    for name, times in (("read", reads), ("put", puts), ("post", posts)):
        structured = {"n": 1} if status in ("ok", "empty") else None
        service = Service(ToolResult(status=status, structured=structured))
        result = call(service, name)
        assert (result.status, len(service.seen), result.attempts) == (status, times, times), name
        agent = Service(ToolResult(status=status, structured=structured))
        assert call(agent, name, retries="agent").status == status
        assert len(agent.seen) == 1, "one layer owns retries"


def test_a_transient_failure_is_waited_out_in_virtual_time() -> None:
    service = Service(failing("unavailable"), failing("unavailable"), OK)
    assert call(service, "read").status == "ok"
    first, second, third = (at for at, _, _ in service.seen)
    assert 0.1 <= second - first <= 0.15
    assert 0.2 <= third - second <= 0.3


def test_retry_after_is_honoured_or_told() -> None:
    service = Service(failing("rate_limited", 30.0), OK)
    assert call(service, "read").status == "ok"
    assert service.seen[1][0] - service.seen[0][0] == 30.0
    far = Service(failing("rate_limited", 3_600.0), OK)
    result = call(far, "read")
    assert (result.status, result.retry_after_s, len(far.seen)) == ("rate_limited", 3_600.0, 1)


@pytest.mark.parametrize("status", ["rate_limited", "unavailable"])
def test_a_backup_answers_degraded(status: str) -> None:
    service = Service(failing(status, 3_600.0), OK)
    gateway = Gateway(service, boundary=Boundary(resilience=Resilience(backups={"read": "mirror"})))
    outcome = gateway.call(ToolCall("read", {"n": 1}), 1)
    assert outcome.result.status == "degraded"
    assert not outcome.result.failed
    assert [(one.call.name, one.result.status) for one in outcome.attempts] == [("read", status), ("mirror", "ok")]


@pytest.mark.parametrize("first", ["outcome_unknown", "malformed"])
def test_a_write_that_may_have_been_made_is_not_made_by_the_backup(first: str) -> None:
    service = Service(failing(first), failing("unavailable"))
    gateway = Gateway(service, boundary=Boundary(resilience=Resilience(backups={"post": "other"})))
    service.keys.clear()
    outcome = gateway.call(ToolCall("post", {"n": 1}), 1)
    assert "other" not in {name for _, name, _ in service.seen}
    assert service.rows <= 1
    assert outcome.result.status in ("ok", "outcome_unknown"), "a later failure does not hide it"
    untouched = Service(failing("unavailable"), failing("unavailable"), failing("unavailable"), OK)
    gateway = Gateway(untouched, boundary=Boundary(resilience=Resilience(backups={"post": "other"})))
    outcome = gateway.call(ToolCall("post", {"n": 1}), 1)
    assert (outcome.result.status, untouched.rows) == ("degraded", 1)
    assert [one.attempt for one in outcome.attempts] == [1, 2, 3, 4], "numbered through, so that each is found in the log"


@pytest.mark.parametrize("name", ["put", "post"])
@pytest.mark.parametrize("resilience", [{}, {"keys": False}, {"write": 0, "idempotent": 0}, {"write": 5}, {"retries_per_episode": 0}])
@pytest.mark.parametrize("retries", ["gateway", "agent"])
def test_a_write_that_times_out_after_commit_leaves_one_row(name: str, resilience: dict[str, Any], retries: str) -> None:
    service = Service(failing("outcome_unknown"), OK)
    result = call(service, name, resilience=Resilience.of(resilience), retries=retries)
    if name == "put" and resilience == {"keys": False} and retries == "gateway":
        assert service.rows == 2, "an idempotent write may be made twice"
    else:
        assert service.rows == 1
    assert result.status in ("ok", "outcome_unknown")
    keys = {key for _, _, key in service.seen}
    assert len(keys) == 1, "one operation, one key"


def test_each_call_has_a_key_of_its_own_and_reads_have_none() -> None:
    service = Service(OK)
    call(service, "post", times=2)
    call(service, "read")
    keys = [key for _, _, key in service.seen]
    assert len(set(keys)) == 3
    assert keys[2] == ""


def test_the_second_identical_read_is_answered_from_memory_until_something_is_written() -> None:
    service = Service(OK)
    gateway = Gateway(service)
    results = [gateway.call(ToolCall(name, {"n": 1}), n).result for n, name in enumerate(["read", "read", "post", "read"])]
    assert [result.from_cache for result in results] == [False, True, False, False]
    assert [name for _, name, _ in service.seen] == ["read", "post", "read"]
    for off in (Boundary(resilience=Resilience(cache=False)), Boundary(faults=FaultPlan(rate=0.0))):
        service = Service(OK)
        gateway = Gateway(service, boundary=off)
        assert not any(gateway.call(ToolCall("read", {"n": 1}), n).result.from_cache for n in range(3))


def test_a_failure_is_not_remembered() -> None:
    service = Service(failing("not_found"), OK)
    assert [call(service, "read").status for _ in range(2)] == ["not_found", "ok"]


def test_full_reset_forgets_what_was_read() -> None:
    env: Any = gym.make(TOOL_TASK, interface="text", disable_env_checker=True).unwrapped
    env.reset(seed=0, options={"task_id": "retail/cancel/train/0"})
    read = ToolCall("list_products", {"category": "home"})
    env.step(read)
    env.step(read)
    assert env.last_record.result.from_cache
    env.full_reset(seed=0, options={"task_id": "retail/cancel/train/0"})
    env.step(read)
    assert not env.last_record.result.from_cache


def test_the_breaker_opens_half_opens_and_closes_in_virtual_time() -> None:
    service = Service(failing("unavailable"))
    gateway = Gateway(service, boundary=Boundary(retries="agent"))
    read = ToolCall("read", {"n": 1})
    for number in range(5):
        assert gateway.call(read, number).result.status == "unavailable"
    shut = gateway.call(read, 6).result
    assert (shut.status, shut.retry_after_s, len(service.seen)) == ("unavailable", 60, 5), "open: not even tried"
    service.wait(60)
    assert gateway.call(read, 7).result.retry_after_s is None
    assert len(service.seen) == 6, "half-open: one try"
    assert gateway.call(read, 8).result.retry_after_s == 60, "it failed: open again"
    service.wait(60)
    service.answers = [OK]
    assert gateway.call(read, 9).result.status == "ok"
    service.answers = [failing("unavailable")]
    assert gateway.call(read, 10).result.retry_after_s is None, "closed"


def test_what_the_business_says_never_trips_the_breaker() -> None:
    breaker = Breaker(2, 60.0)
    breaker.note(True, 0.0)
    breaker.note(False, 0.0)
    breaker.note(True, 0.0)
    assert breaker.shut_for(0.0) == 0.0
    service = Service(failing("not_found"))
    call(service, "read", times=20)
    assert len(service.seen) == 20


def test_a_thousand_calls_of_a_dead_tool_are_a_bounded_number_of_tries() -> None:
    for retries in ("gateway", "agent"):
        service = Service(failing("unavailable"))
        gateway = Gateway(service, boundary=Boundary(retries=retries))
        for number in range(1_000):
            outcome = gateway.call(ToolCall("post", {"n": 1}), number)
            assert len(outcome.attempts) <= 3
        assert len(service.seen) <= 5


def test_retries_of_an_episode_are_bounded() -> None:
    answers: list[Any] = [failing("malformed") if number % 2 else OK for number in range(1_000)]
    service = Service(failing("malformed"), *answers)
    gateway = Gateway(service, boundary=Boundary(resilience=Resilience(cache=False, retries_per_episode=7)))
    made = [len(gateway.call(ToolCall("read", {"n": 1}), number).attempts) - 1 for number in range(50)]
    assert sum(made) == 7


def test_waiting_and_writing_make_what_was_read_old() -> None:
    service = Service(OK)
    write = ToolSpec(name="type", description="", may_block=False)
    service.tools = (*service.tools, write)
    gateway = Gateway(service, own=[(WAIT, lambda _: ToolResult(status="ok"))])
    read = ToolCall("read", {"n": 1})
    for number, between in enumerate([ToolCall("wait", {"seconds": 5}), ToolCall("type")]):
        gateway.call(read, 3 * number)
        gateway.call(between, 3 * number + 1)
        assert not gateway.call(read, 3 * number + 2).result.from_cache, between.name


def test_what_is_remembered_is_a_copy() -> None:
    service = Service(OK)
    gateway = Gateway(service)
    read = ToolCall("read", {"n": 1})
    gateway.call(read, 1)
    gateway.call(read, 2).result.structured.clear()
    assert gateway.call(read, 3).result.structured == {"n": 1}


@pytest.mark.parametrize("answer", [None, {"n": 1}, ToolResult(status="ok", content=None), ToolResult(status="ok", structured={"n": {1}})])  # type: ignore[arg-type]
def test_whatever_a_service_answers_is_a_result(answer: Any) -> None:
    for faults in (None, FaultPlan(rate=1.0, kinds=("slow",))):
        assert call(Service(lambda: answer), "read", retries="agent", faults=faults).status == "malformed"


@pytest.mark.parametrize("after", [-5, float("nan"), float("inf"), "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_time_that_cannot_be_waited_for_is_left_out(after: Any) -> None:
    service = Service(failing("unavailable", after))
    assert call(service, "read").retry_after_s is None
    assert service.now() >= 0


def test_a_rehearsal_that_raises_is_an_error() -> None:
    class Raising(Service):
        def rehearse(self, call: ToolCall, deadline: float) -> ToolResult | None:  # noqa: ARG002 - it never gets so far
            raise RuntimeError("not today")

    assert call(Raising(OK), "post", retries="agent", faults=FaultPlan(rate=1.0, kinds=("silent_noop",))).status == "error"


def test_calls_beyond_a_rate_are_not_waited_for_without_end() -> None:
    service = Service(OK)
    result = call(service, "post", times=2, resilience=Resilience(calls_per_s=1e-6, burst=1))
    assert (result.status, result.retry_after_s, service.now()) == ("rate_limited", 1_000_000, 0.0)


def test_calls_are_spread_to_a_rate() -> None:
    service = Service(OK)
    call(service, "post", times=7, resilience=Resilience(calls_per_s=2.0, burst=3))
    assert [at for at, _, _ in service.seen] == [0.0, 0.0, 0.0, 0.5, 1.0, 1.5, 2.0]


@pytest.mark.parametrize(
    "answer",
    [
        ToolResult(status="ok", structured={"m": 1}),
        ToolResult(status="ok", structured={"n": "1"}),
        ToolResult(status="ok", content="n is 1"),
        ToolResult(status="ok", structured={"n": {1, 2}}),
    ],
)
def test_an_answer_that_breaks_its_schema_is_malformed(answer: ToolResult) -> None:
    result = call(Service(answer), "read", retries="agent")
    assert result.status == "malformed"
    assert result.structured is None


# --- Through the environment ---


def make(**keywords: Any) -> Any:
    """The rich environment itself, whose session can be looked at."""
    interface: Any = gym.make(TOOL_TASK, interface="text", disable_env_checker=True, **keywords).unwrapped
    return interface.rich.unwrapped


def test_nothing_found_and_out_of_reach_are_told_apart_in_observation_and_log() -> None:
    env = make(retries="agent")
    env.reset(seed=0)
    observation, *_, info = env.step(ToolCall("find_users_by_name", {"name": "Nemo Nobody"}))
    assert observation["data"]["last"]["status"] == info["status"] == env.last_record.attempts[-1].result.status == "empty"
    env = make(retries="agent", faults={"rate": 1.0, "kinds": ["unavailable"]})
    env.reset(seed=0)
    observation, *_, info = env.step(ToolCall("find_users_by_name", {"name": "Nemo Nobody"}))
    assert observation["data"]["last"]["status"] == info["status"] == env.last_record.attempts[-1].result.status == "unavailable"
    assert env.last_record.attempts[-1].fault == "unavailable"
    assert "fault" not in str(observation["data"]["last"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_fault_shows_as_it_says(kind: str) -> None:
    shown = {
        "rate_limit": {"rate_limited"},
        "unavailable": {"unavailable"},
        "network_drop": {"unavailable"},
        "outage": {"unavailable"},
        "read_timeout": {"timeout"},
        "timeout_after_commit": {"outcome_unknown"},
        "malformed": {"malformed"},
        "renamed_field": {"malformed"},
        "stale_read": {"ok", "empty"},
        "silent_noop": {"ok"},
        "partial_page": {"ok"},
        "slow": {"ok", "empty", "conflict"},  # the second cancellation of an order
    }
    env = make(faults={"rate": 1.0, "kinds": [kind]}, retries="agent", task_ids=["retail/cancel/train/0"])
    plain = make(task_ids=["retail/cancel/train/0"])
    plain.reset(seed=0)
    solution = _solve(plain)
    env.reset(seed=0)
    before = env.session.now()
    hit = 0
    for action in solution[:-1]:
        for _ in range(2):
            env.step(action)
            for attempt in env.last_record.attempts:
                if attempt.fault:
                    assert attempt.fault == kind
                    assert attempt.result.status in shown[kind]
                    hit += 1
    assert hit
    if kind in ("slow", "read_timeout", "timeout_after_commit"):
        assert env.session.now() > before
    order = next(row["values"] for row in env.task.spec["goal"] if row["table"] == "orders")
    done = any(change.after and change.after.get("status") == order["status"] for change in env.session.changes())
    assert done == (kind not in ("silent_noop", "rate_limit", "outage", "unavailable", "network_drop"))


def _solve(env: Any) -> list[ToolCall]:
    observations, calls, done = [env.observation.to_dict()], [], False
    while not done:
        calls.append(env.oracle(observations))
        observation, _, terminated, truncated, _ = env.step(calls[-1])
        observations.append(observation)
        done = terminated or truncated
    return calls


_EPISODES = """
import gymnasium, hashlib, json
env = gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", disable_env_checker=True, faults=0.5, retries={retries!r})
seen = hashlib.sha256()
for seed in range(6):
    observation, info = env.reset(seed=seed)
    observations = [observation]
    while not info["ending"]:
        observation, reward, _, _, info = env.step(env.unwrapped.careful_oracle(observations))
        observations.append(observation)
        seen.update(json.dumps([observation, reward, info], sort_keys=True).encode())
        seen.update(str([(a.fault, a.result.status, a.waited_s) for a in env.unwrapped.last_record.attempts]).encode())
print(seen.hexdigest())
"""


@pytest.mark.parametrize("retries", ["gateway", "agent"])
def test_the_same_fault_seed_gives_the_same_bytes_in_two_processes(retries: str) -> None:
    told = {subprocess.check_output([sys.executable, "-c", _EPISODES.format(retries=retries)], text=True) for _ in range(2)}
    assert len(told) == 1


def test_a_faulty_episode_goes_back_to_where_it_was() -> None:
    env, other = (make(faults=0.6, retries="agent") for _ in range(2))
    observation, _ = env.reset(seed=3)
    observations = [observation]
    for _ in range(4):
        observations.append(env.step(env.oracle(observations))[0])
    other.set_state(env.get_state())
    for _ in range(3):
        action = env.oracle(observations)
        (one, *_, info), (same, *_, same_info) = env.step(action), other.step(action)
        assert (one, info) == (same, same_info)
        observations.append(one)
        if info["ending"]:
            break


def test_no_faults_are_no_faults() -> None:
    for none in (0, 0.0, {"rate": 0}):
        env = make(faults=none)
        assert not env.faulty
        env.reset(seed=0)
        assert env.get_state()["kind"] == "snapshot"


def test_a_state_knows_what_has_failed_so_far() -> None:
    env, other = make(retries="agent"), make(retries="agent")
    env.reset(seed=0)
    for _ in range(3):
        env.step(ToolCall("get_order", {"order_id": "W0000000"}))
    other.set_state(env.get_state())
    assert other.last_record.retry_safety == env.last_record.retry_safety
    assert other.last_record.retry_safety["retried_permanent"] == 2


def test_a_tool_with_a_schema_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="tool 'odd': its output schema is no JSON Schema"):
        check_tools([ToolSpec(name="odd", description="", output_schema={"type": "strin"})])


def test_waiting_is_on_offer_where_it_is_of_use() -> None:
    def names(**keywords: Any) -> set[str]:
        env = make(**keywords)
        env.reset(seed=0)
        return {tool.name for tool in env.tools}

    assert "wait" not in names()
    assert "wait" in names(retries="agent")
    assert "wait" in names(faults=0.1)
    env = make(retries="agent")
    env.reset(seed=0)
    before = env.session.now()
    env.step("wait(60)")
    assert env.session.now() - before == 60
    assert env.step("wait(7)")[4]["status"] == "invalid_arguments"


def test_what_is_not_permitted_is_neither_offered_nor_done() -> None:
    for level, offered in (("level1", set()), ("level2", {"change_address", "exchange_item"}), ("level3", {"cancel_order", "return_item"})):
        env = make(permissions=level)
        env.reset(seed=0, options={"task_id": "retail/cancel/train/0"})
        names = {tool.name for tool in env.tools}
        assert offered <= names
        assert "get_order" in names
        assert ("cancel_order" in names) == (level == "level3")
    env = make(permissions="level1")
    env.reset(seed=0, options={"task_id": "retail/cancel/train/0"})
    order = next(one for one in env.task.spec["look_first"] if one["tool"] == "get_order")["arguments"]
    _, reward, *_, info = env.step(ToolCall("cancel_order", {**order, "reason": "found_cheaper"}))
    assert (info["status"], reward) == ("forbidden", -0.1)
    assert not env.session.changes()
    array: Any = gym.make(TOOL_TASK, permissions="level1", disable_env_checker=True).unwrapped
    array.reset(seed=0)
    assert not {call.name for call in array.candidates} & {"cancel_order", "change_address", "exchange_item", "return_item"}


def test_a_token_opens_its_own_environment_and_no_other() -> None:
    token = issue_token("ToolTask", "clerk", "level1")
    env = make(permissions={"token": token})
    env.reset(seed=0)
    assert "cancel_order" not in {tool.name for tool in env.tools}
    with pytest.raises(ConfigurationError, match="was not issued for 'WebTask'"):
        gym.make("agent_gym:AgentBase/WebTask-v0", permissions={"token": token})
    for forged in (token.replace("level1", "level3"), token[:-1], "", "clerk/level3/", "a/level3/é", "\ud800/level3/x"):
        with pytest.raises(ConfigurationError, match="was not issued"):
            Permissions.of({"token": forged}, "ToolTask")


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"faults": 1.5}, r"rate must be in \[0, 1\], got 1.5"),
        ({"faults": True}, "rate must be in"),
        ({"faults": {"rate": 0.1, "kinds": ["earthquake"]}}, "unknown kind of fault 'earthquake'; known: .*silent_noop"),
        ({"faults": {"kinds": ["slow"]}}, "faults must be a rate or"),
        ({"faults": {"rate": 0.1, "kinds": []}}, "kinds must be a list"),
        ({"retries": "nobody"}, "unknown retries 'nobody'; known: agent, gateway"),
        ({"resilience": {"patience": 3}}, "unknown setting of resilience 'patience'"),
        ({"resilience": {"read": -1}}, "read must be a number of retries"),
        ({"resilience": {"breaker_failures": 0}}, "breaker_failures must be at least 1"),
        ({"resilience": {"breaker_failures": 2.5}}, "breaker_failures must be at least 1, got 2.5"),
        ({"resilience": {"breaker_reset_s": "60"}}, r"breaker_reset_s must be seconds in \[0, 1000000.0\], got '60'"),
        ({"resilience": {"first_delay_s": 1e308}}, "first_delay_s must be seconds"),
        ({"resilience": {"keys": "no"}}, "keys and cache are true or false"),
        ({"resilience": {"backups": ["a"]}}, "backups must be an object of tool names"),
        ({"resilience": {"backups": {"get_order": "get_ordr"}}}, "unknown tool in resilience.backups 'get_ordr'; known: .*cancel_order"),
        ({"resilience": {"backups": {"get_order": "cancel_order"}}}, "cancel_order cannot stand in for get_order"),
        ({"faults": {"rate": 0.1, "kinds": [["x"]]}}, "unknown kind of fault"),
        ({"permissions": "level9"}, "unknown level of permissions 'level9'; known: level1, level2, level3"),
        ({"permissions": {"token": 3}}, "permissions must be one of"),
    ],
)
def test_a_keyword_that_does_not_fit_says_what_would(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        make(**keywords)
