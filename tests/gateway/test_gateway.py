"""Whatever an agent calls with whatever arguments, a step comes back with a status; nothing is raised and nothing hangs."""

import os
import sys
import threading
import time
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_gym.core import STATUSES
from agent_gym.gateway.worker import Abandoned, Interrupted, Worker

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TOOLS = [
    "find_user_by_email",
    "find_users_by_name",
    "get_user",
    "get_order",
    "cancel_order",
    "exchange_item",
    "finish",
    "refuse",
    "nothing",
]
NAMES = ["email", "name", "page", "user_id", "order_id", "item_id", "variant_id", "reason", "answer"]


@pytest.fixture(scope="module")
def env() -> gym.Env[Any, Any]:
    return gym.make("agent_gym:AgentBase/ToolTask-v0", interface="text", disable_env_checker=True).unwrapped


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(TOOLS), "arguments": st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3) | JSON}
        )
        | JSON,
        min_size=1,
        max_size=4,
    )
)
def test_no_call_raises(env: gym.Env[Any, Any], actions: list[Any]) -> None:
    env.reset(seed=1)
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        assert info["status"] in STATUSES
        assert env.observation_space.contains(observation)
        assert float(reward) <= 0
        if terminated or truncated:
            env.reset()


def test_a_worker_runs_interrupts_and_abandons() -> None:
    worker = Worker()
    assert worker.run(lambda: 7, 5, lambda: None, 1) == 7
    with pytest.raises(ZeroDivisionError):
        worker.run(lambda: 1 // 0, 5, lambda: None, 1)
    stop = threading.Event()
    with pytest.raises(Interrupted) as late:
        worker.run(stop.wait, 0.05, stop.set, 5)
    assert late.value.value is True  # what it returned even so
    assert worker.run(lambda: 8, 5, lambda: None, 1) == 8
    with pytest.raises(SystemExit):
        worker.run(sys.exit, 5, lambda: None, 1)
    with pytest.raises(Abandoned):
        worker.run(lambda: time.sleep(1), 0.05, lambda: None, 0.05)
    with pytest.raises(Abandoned):
        worker.run(lambda: 9, 5, lambda: None, 1)
    worker.close()


def test_a_thread_that_was_abandoned_ends_when_its_call_does() -> None:
    worker, stop = Worker(), threading.Event()
    threads: list[threading.Thread] = []

    def deaf() -> None:
        threads.append(threading.current_thread())
        stop.wait()

    with pytest.raises(Abandoned):
        worker.run(deaf, 0.05, lambda: None, 0.05)
    stop.set()
    threads[0].join(60)
    assert not threads[0].is_alive()


def test_a_call_that_was_left_in_the_middle_answers_nobody_else() -> None:
    def refused() -> None:
        raise RuntimeError

    worker, stop = Worker(), threading.Event()
    with pytest.raises(RuntimeError):
        worker.run(stop.wait, 0.05, refused, 1)
    stop.set()
    assert worker.run(lambda: 2, 5, lambda: None, 1) == 2
    worker.close()


def test_a_worker_that_was_closed_has_no_thread_and_can_be_used_again() -> None:
    worker = Worker()
    for _ in range(2):
        thread = worker.run(threading.current_thread, 5, lambda: None, 1)
        assert thread.is_alive()
        worker.close()
        assert not thread.is_alive()
    worker.close()


def test_a_forked_child_has_a_worker_of_its_own() -> None:
    worker = Worker()
    assert worker.run(lambda: 1, 30.0, lambda: None, 0.1) == 1
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(write, str(worker.run(lambda: 2, 5.0, lambda: None, 0.1)).encode())
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 10) == b"2"
    os.close(read)
    os.waitpid(child, 0)
    worker.close()
