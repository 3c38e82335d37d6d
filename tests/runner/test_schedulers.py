"""Schedulers: what they choose, and that nothing starves."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.seeding import derive
from agent_gym.errors import ConfigurationError
from agent_gym.runner.schedulers import PRESETS, SCHEDULERS, Fair, Priority, Scheduler, Shortest, TaskState, family_of, plan
from agent_gym.runner.tasks import TaskQueue

each_scheduler = pytest.mark.parametrize("name", sorted(SCHEDULERS))

seconds = st.floats(0.0, 1e4)
states = st.builds(
    TaskState,
    st.just("t"),
    priority=st.floats(-1e6, 1e6),
    family=st.sampled_from("abcd"),
    queued_at=st.integers(0, 1000),
    waited=st.integers(0, 10_000),
    expected_s=st.none() | seconds,
)


def order(queue: TaskQueue, at_once: int = 1, lasts: Callable[[str], float] = lambda _: 1.0) -> list[str]:
    """Works a queue off, so many tasks at a time; gives the order in which they started."""
    started: list[str] = []
    while not queue.finished:
        for task_id in (taken := queue.take(at_once)):
            queue.done(task_id, lasts(task_id))
        started += taken
    return started


def queued(scheduler: str | Scheduler, tasks: Sequence[str | tuple[str, float]]) -> TaskQueue:
    queue = TaskQueue(scheduler=scheduler)
    for task in tasks:
        queue.add(*(task if isinstance(task, tuple) else (task,)))
    return queue


@each_scheduler
@given(rounds=st.lists(st.tuples(st.lists(states, max_size=30), st.integers(0, 40), seconds), max_size=4))
def test_select_gives_as_many_distinct_indices_as_there_are_places_and_tasks(
    name: str, rounds: list[tuple[list[TaskState], int, float]]
) -> None:
    scheduler = SCHEDULERS[name]()
    for ready, k, took in rounds:
        chosen = list(scheduler.select(ready, k))
        assert len(chosen) == len(set(chosen)) == min(k, len(ready))
        assert all(0 <= index < len(ready) for index in chosen)
        for index in chosen[:3]:
            scheduler.note(ready[index], took)


@each_scheduler
@given(
    arrivals=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-5, 5), seconds), max_size=4), max_size=25),
    at_once=st.integers(1, 3),
)
def test_every_task_starts_once_under_any_arrivals(name: str, arrivals: list[list[tuple[str, float, float]]], at_once: int) -> None:
    queue, lasts, started = TaskQueue(scheduler=name), dict[str, float](), Counter[str]()
    while arrivals or not queue.finished:
        for family, priority, took in arrivals.pop(0) if arrivals else []:
            task_id = f"{family}/train/{len(lasts)}"
            lasts[task_id] = took
            queue.add(task_id, priority)
        for task_id in queue.take(at_once):
            started[task_id] += 1
            queue.done(task_id, lasts[task_id])
    assert started == dict.fromkeys(lasts, 1)


@each_scheduler
def test_the_same_calls_give_the_same_order(name: str) -> None:
    rng = derive(name)
    tasks = [(f"f{rng.integers(5)}/train/{number}", float(rng.integers(4))) for number in range(200)]
    orders = [order(queued(name, tasks), 3, lambda task_id: 1.0 + len(task_id)) for _ in range(2)]
    assert orders[0] == orders[1]


def test_fifo_is_first_come_first_served() -> None:
    tasks = [f"f/train/{number}" for number in (3, 1, 2)]
    assert order(queued("fifo", tasks), 2) == tasks


def test_a_task_of_high_priority_that_is_queued_last_starts_first() -> None:
    queue = queued("priority", [f"f/train/{number}" for number in range(1000)])
    queue.take(8)
    queue.add("f/train/urgent", priority=10.0)
    assert queue.take(8)[0] == "f/train/urgent"


@each_scheduler
def test_no_task_starves_among_a_thousand_that_always_look_better(name: str) -> None:
    """One dear task of no priority waits while there are always fifty better ones, and a new one for each that ends."""
    lasts = {"slow": 100.0, "fast": 1.0}
    queue = queued(name, ["slow/train/known", *(f"fast/train/{number}" for number in range(50))])
    order(queue, 1, lambda task_id: lasts[family_of(task_id)])  # so that it is known how long they take
    queue.add("slow/train/late", 0.0)
    for number in range(50):
        queue.add(f"fast/train/better{number}", 10.0)
    before = 0
    while queue.report["slow/train/late"].status == "waiting":
        queue.add(f"fast/train/more{before}", 10.0)
        (task_id,) = queue.take(1)
        queue.done(task_id, lasts[family_of(task_id)])
        before += 1
    assert before < 300


@given(
    aging=st.sampled_from([0.05, 0.5, 3.0]),
    ahead=st.lists(st.integers(0, 10), max_size=20),
    after=st.lists(st.lists(st.integers(0, 10), max_size=2), max_size=60),
)
def test_priority_keeps_the_bound_it_states(aging: float, ahead: list[int], after: list[list[int]]) -> None:
    queue = queued(Priority(aging), [(f"f/ahead/{number}", float(priority)) for number, priority in enumerate(ahead)])
    queue.add("f/the/one", 0.0)
    soon, before = 0, 0
    for selection in range(10_000):
        came = after.pop(0) if after else []
        for number, priority in enumerate(came):
            queue.add(f"f/after{selection}/{number}", float(priority))
        soon += len(came) if selection < 10 / aging + 1 else 0
        (task_id,) = queue.take(1)
        if task_id == "f/the/one":
            break
        before += 1
    assert before <= len(ahead) + soon


def test_the_shortest_expected_job_goes_first_and_an_unknown_one_before_all() -> None:
    scheduler = Shortest()
    for family, took in (("long", 9.0), ("long", 11.0), ("short", 2.0), ("short", 4.0)):
        scheduler.note(TaskState("t", family=family), took)
    ready = [TaskState("t", family=family, queued_at=number) for number, family in enumerate(("long", "short", "new", "short"))]
    assert list(scheduler.select(ready, 3)) == [2, 1, 3]
    ready[0].expected_s = 1.0  # the caller knows better
    assert list(scheduler.select(ready, 2)) == [2, 0]


def test_shortest_means_the_same_for_milliseconds_and_hours() -> None:
    tasks = [f"{family}/train/{number}" for number in range(40) for family in ("long", "short", "middle")]
    lasts = {"long": 9.0, "middle": 4.0, "short": 1.0}

    def run(unit: float) -> list[str]:
        return order(queued("shortest", tasks), lasts=lambda task_id: unit * lasts[family_of(task_id)])

    assert run(0.001) == run(3600.0)
    assert [family_of(task_id) for task_id in run(1.0)[-39:]] == ["long"] * 39


@given(costs=st.lists(st.integers(1, 20), min_size=2, max_size=4), at_once=st.integers(1, 3))
def test_fair_gives_families_the_same_time_within_a_quantum(costs: list[int], at_once: int) -> None:
    """However many tasks a family has waiting; here each has always some, the first family far more."""
    families = {f"f{number}": cost for number, cost in enumerate(costs)}
    scheduler, quantum = Fair(), max(costs)
    for family, cost in families.items():
        scheduler.note(TaskState("t", family=family), cost)
    waiting = [*families] * 3 + ["f0"] * 30
    ready = [TaskState("t", family=family, queued_at=number) for number, family in enumerate(waiting)]
    given_s, turn, rounds = dict.fromkeys(families, 0), "", 0
    for index in (index for _ in range(300) for index in scheduler.select(ready, at_once)):
        family = ready[index].family
        apart = max(given_s.values()) - min(given_s.values())
        if (family, turn) == ("f0", f"f{len(families) - 1}"):  # all have had their turns
            rounds += 1
            assert apart <= quantum
        assert apart < 2 * quantum
        given_s[family] += families[family]
        turn = family
    assert rounds > 3


def test_fair_is_plain_round_robin_as_long_as_nothing_is_known() -> None:
    ready = [TaskState("t", family=family, queued_at=number) for number, family in enumerate("aaaabbc")]
    assert [ready[index].family for index in Fair().select(ready, 7)] == list("abcabaa")


def test_a_family_without_waiting_tasks_saves_nothing() -> None:
    fair = Fair()
    a, b = TaskState("t", family="a"), TaskState("t", family="b", queued_at=1)
    for _ in range(100):
        assert fair.select([b], 1) == [0]
    chosen = [[a, b][fair.select([a, b], 1)[0]].family for _ in range(10)]
    assert sorted(chosen) == ["a"] * 5 + ["b"] * 5


def test_episodes_that_take_no_time_do_not_keep_the_others_waiting() -> None:
    queue = queued("fair", [f"none/train/{number}" for number in range(900)] + [f"some/train/{number}" for number in range(3)])
    started = order(queue, lasts=lambda task_id: float(task_id.startswith("some")))
    assert started.index("some/train/2") < 500


def test_names_and_presets() -> None:
    assert set(SCHEDULERS) == {"fifo", "priority", "shortest", "fair"}
    assert {name: preset.stage for name, preset in PRESETS.items()} == {"explore": "explore", "exploit": "exploit"}
    assert isinstance(plan("explore").scheduler, Shortest)
    assert isinstance(plan("exploit").scheduler, Priority)
    own = Fair()
    assert plan(own) == (own, "")
    assert plan("fair").scheduler is not plan("fair").scheduler
    with pytest.raises(ConfigurationError, match=r"unknown scheduler 'lifo'; known: exploit, explore, fair, fifo, priority, shortest"):
        plan("lifo")
    with pytest.raises(ConfigurationError, match="aging must be above 0"):
        Priority(0.0)


def test_the_family_is_the_text_before_the_last_two_slashes() -> None:
    assert family_of("retail/cancel/train/17") == "retail/cancel"
    assert family_of("click-button/test/3") == "click-button"
    assert family_of("plain") == "plain"
