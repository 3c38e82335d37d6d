"""What users of other vectorised runners ran into, as behaviour that this one has. Each test names the report it comes from."""

import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit

import agent_gym.factory
from agent_gym.errors import InfrastructureError
from agent_gym.runner import AgentVectorEnv, AsyncPool
from tests.runner.oddities import DIE, END, HANG, LOCK, RAISE, STEP, Locking, Oddity, Talking

BACKENDS = ["thread", "process"]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    Oddity.resets_to_fail = 0
    Oddity.released.clear()
    yield
    Oddity.released.set()


def odd(count: int = 3, mode: AutoresetMode = AutoresetMode.NEXT_STEP, backend: str = "thread", **pool: Any) -> AgentVectorEnv:
    return AgentVectorEnv(Oddity, count, autoreset_mode=mode, backend=backend, **pool)


def sb3(count: int = 3, backend: str = "thread", **pool: Any) -> Any:
    pytest.importorskip("stable_baselines3")
    from agent_gym.runner import AgentVecEnv

    return AgentVecEnv([Oddity] * count, backend=backend, **pool)


def open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("actions", [[STEP, STEP], [STEP] * 4, [[STEP], [STEP], [STEP]], STEP])
def test_a_wrong_number_of_actions_is_refused_and_nothing_hangs(actions: Any) -> None:
    """Farama-Foundation/Gymnasium#1417: with too few actions step_wait never came back."""
    envs = odd()
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="expected"):
        envs.step(actions)
    assert envs.step([STEP] * 3)[0][:, 1].tolist() == [1, 1, 1]
    envs.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_final_observation_and_info_survive_the_reset_of_an_environment_that_reuses_its_buffers(backend: str) -> None:
    """Farama-Foundation/Gymnasium#1132, #1680, #1715: final_obs and final_info were those of the next episode."""
    envs = odd(mode=AutoresetMode.SAME_STEP, backend=backend)
    first, _ = envs.reset(seed=0)
    observations, _, _, _, infos = envs.step([STEP, END, STEP])
    assert infos["final_obs"][1].tolist() == [first[1, 0], 1]
    assert infos["final_info"]["steps"].tolist() == [0, 1, 0]
    assert infos["steps"].tolist() == [1, 0, 1]
    kept = infos["final_obs"][1].copy()
    envs.step([STEP, STEP, STEP])
    assert (infos["final_obs"][1] == kept).all()
    assert observations[1, 1] == 0
    envs.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_observations_that_were_kept_do_not_change(backend: str) -> None:
    """thu-ml/tianshou#1281, #1272: stored frames were views of a buffer, and all became the newest one."""
    envs = odd(backend=backend)
    kept = [envs.reset(seed=0)[0]]
    kept += [envs.step([STEP] * 3)[0] for _ in range(3)]
    assert [observations[0, 1] for observations in kept] == [0, 1, 2, 3]
    envs.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_text_observations_are_new_at_each_step_and_of_any_length(backend: str) -> None:
    """Farama-Foundation/Gymnasium#1164, DLR-RM/stable-baselines3#1704, thu-ml/tianshou#1065: stale, refused, or broken by their lengths."""
    envs = AgentVectorEnv(Talking, 2, backend=backend)
    texts = [envs.reset()[0]["text"], *(envs.step([0, 1])[0]["text"] for _ in range(2))]
    assert texts == [("", ""), ("a", "é"), ("aa", "éé")]
    envs.close()


def test_two_vector_environments_do_not_share_metadata() -> None:
    """Farama-Foundation/Gymnasium#1623: the autoreset mode was written into the environment's class."""
    one, other = odd(mode=AutoresetMode.NEXT_STEP), odd(mode=AutoresetMode.DISABLED)
    assert one.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert other.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert "autoreset_mode" not in Oddity.metadata
    one.close()
    other.close()


def test_runs_with_neighbouring_seeds_share_no_episode() -> None:
    """Farama-Foundation/Gymnasium#1321, #422, #427; openai/gym#3121: seed and seed + 1 shared all streams but one."""
    envs = odd(8)
    seen = [number for seed in (0, 1, 2) for number in envs.reset(seed=seed)[0][:, 0]]
    assert len(set(seen)) == 24
    envs.close()


def test_every_episode_of_a_pool_has_a_seed_of_its_own_that_its_number_gives() -> None:
    """The same reports: no control over the seeds of automatic resets."""
    contents = []
    for count in (2, 5):
        with AsyncPool(Oddity, count, seed=3) as pool:
            found: dict[int, float] = {}
            while len(found) < 10:
                free = [env_id for env_id, state in enumerate(pool.states) if state != "busy"]
                pool.async_reset(free[: 10 - len(found)])
                found |= {row.episode: float(row.observation[0]) for row in pool.recv(min=len(free))}
            contents.append(found)
    assert contents[0] == contents[1]
    assert len(set(contents[0].values())) == 10


def test_workers_that_draw_from_numpys_global_generator_do_not_all_draw_the_same() -> None:
    """stepjam/RLBench#92: after a fork all workers played identical episodes."""
    envs = odd(backend="process")
    first = envs.reset(seed=0)[1]["shared"].tolist()
    again = envs.reset(seed=0)[1]["shared"].tolist()
    assert len(set(first)) == 3
    assert first == again
    envs.close()


def test_samples_of_the_batched_action_space_can_be_reproduced_and_differ_between_rows() -> None:
    """openai/gym#2680: the batched space was a copy that nobody had seeded."""
    samples = []
    for _ in range(2):
        envs = odd()
        envs.action_space.seed(4)
        samples.append(np.stack([envs.action_space.sample() for _ in range(9)]))
        envs.close()
    assert (samples[0] == samples[1]).all()
    assert len({tuple(row) for row in samples[0].T}) == 3


def test_an_exception_in_the_main_program_leaves_no_worker_and_lets_it_exit(tmp_path: Path) -> None:
    """openai/gym#1544: workers lived on, and the program never ended."""
    program = tmp_path / "program.py"
    program.write_text(
        "from agent_gym.runner import AgentVectorEnv\n"
        "from tests.runner.oddities import Oddity\n"
        "if __name__ == '__main__':\n"
        "    envs = AgentVectorEnv(Oddity, 2, backend='process')\n"
        "    envs.reset()\n"
        "    print(*envs.get_attr('pid'), flush=True)\n"
        "    raise KeyError('planted')\n"
    )
    paths = {"PYTHONPATH": os.pathsep.join(["."])}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60, env={**os.environ, **paths}, check=False
    )
    assert done.returncode == 1
    assert "KeyError: 'planted'" in done.stderr
    until = time.monotonic() + 10
    while alive := [pid for pid in done.stdout.split() if Path("/proc", pid).exists()]:
        assert time.monotonic() < until, alive
        time.sleep(0.05)


@pytest.mark.parametrize("make", [odd, sb3])
def test_a_worker_that_vanishes_costs_one_episode_not_the_run(make: Any) -> None:
    """openai/gym#3281: an EOFError after 12 million steps; DLR-RM/stable-baselines3#1397: a simulator that crashes at random."""
    envs = make(backend="process")
    envs.reset()
    for _ in range(2):
        results = envs.step(np.array([STEP, DIE, STEP]))
        assert results[1].tolist() == [1.0, 0.0, 1.0]
        envs.step(np.array([STEP] * 3))
    envs.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_constructors_exception_comes_with_its_traceback(backend: str) -> None:
    """openai/gym#1542, #1556: a ConnectionResetError, or None, instead of what had happened."""
    with pytest.raises(InfrastructureError, match=r"(?s)Traceback.*oddities.*planted in the constructor"):
        AgentVectorEnv(Oddity, 2, backend=backend, env_kwargs={"fail": True})


def test_a_lock_that_a_thread_of_the_main_program_holds_does_not_stop_workers() -> None:
    """hill-a/stable-baselines#217, #218, #428: fork copied locks of other threads, held for ever."""
    with LOCK:
        envs = AgentVectorEnv(Locking, 2, backend="process", make_timeout_s=30)
        envs.reset()
        envs.close()


def test_slow_environments_hold_up_nobody_else() -> None:
    """DLR-RM/stable-baselines3#1786, hill-a#866, thu-ml/tianshou#103, Unity-Technologies/ml-agents#2265: all waited for the slowest."""
    with AsyncPool(Oddity, 3) as pool:
        pool.async_reset()
        pool.recv(min=3)
        pool.send([HANG, STEP, STEP], [0, 1, 2])
        for steps in range(1, 6):
            batch = pool.recv(min=2)
            assert sorted(batch.env_ids.tolist()) == [1, 2]
            assert [row.observation[1] for row in batch] == [steps] * 2
            pool.send([STEP, STEP], [1, 2])
        Oddity.released.set()
        assert sorted(pool.recv(min=3).env_ids.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("make", [odd, sb3])
@pytest.mark.parametrize("backend", BACKENDS)
def test_closing_gives_every_file_descriptor_and_thread_back(make: Any, backend: str) -> None:
    """DLR-RM/stable-baselines3#2284: pipes leaked, until there were "too many open files"."""
    counts = []
    for _ in range(2):
        envs = make(2, backend=backend)
        envs.reset()
        envs.close()
        counts.append((open_fds(), threading.active_count()))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_need_neither_a_pickled_function_nor_a_round_trip(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stable-Baselines-Team/stable-baselines3-contrib#49, #154, #279: masks were fetched from the workers at each step."""
    envs = sb3(backend=backend)
    envs.reset()
    assert envs.has_attr("action_masks")
    monkeypatch.setattr(envs.pool, "call", None)
    assert np.stack(envs.env_method("action_masks")).tolist() == [[True] * 3 + [False] * 4] * 3
    envs.step(np.array([STEP, END, STEP]))
    assert np.stack(envs.env_method("action_masks", indices=[1])).shape == (1, 7)
    monkeypatch.undo()
    envs.close()


def limited() -> gymnasium.Env[Any, Any]:
    return TimeLimit(Oddity(), 1)


def test_a_truncation_can_be_bootstrapped() -> None:
    """vwxyzjn/cleanrl#198, #457; Farama-Foundation/PettingZoo#1126: truncations were taken for terminations."""
    pytest.importorskip("stable_baselines3")
    from agent_gym.runner import AgentVecEnv

    envs = AgentVecEnv([limited] * 2)
    first: Any = envs.reset()
    *_, infos = envs.step(np.array([STEP, END]))
    assert [info["TimeLimit.truncated"] for info in infos] == [True, False]
    assert infos[0]["terminal_observation"].tolist() == [first[0, 0], 1]
    envs.close()


def test_the_row_of_a_reset_at_the_next_step_can_be_told_and_the_other_modes_have_none() -> None:
    """vwxyzjn/cleanrl#475, #499; Denys88/rl_games#362: rows whose action was ignored were learned from."""
    envs = odd()
    envs.reset(seed=0)
    *_, terminated, truncated, _ = envs.step([STEP, END, STEP])
    ignored = terminated | truncated
    observations, rewards, terminated, truncated, _ = envs.step([END] * 3)
    assert rewards[ignored].tolist() == [0.0]
    assert not (terminated | truncated)[ignored].any()
    assert observations[ignored][:, 1].tolist() == [0]
    envs.close()
    envs = odd(mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=0)
    envs.step([STEP, END, STEP])
    assert envs.step([STEP] * 3)[1].tolist() == [1.0] * 3
    envs.close()


def test_every_reset_that_was_asked_for_arrives_and_a_second_recv_invents_nothing() -> None:
    """sail-sg/envpool#59, #63, #194, #259: rows missing after async_reset, and empty arrays from a second recv."""
    with AsyncPool(Oddity, 4) as pool:
        pool.async_reset()
        assert sorted(pool.recv(min=4).env_ids.tolist()) == [0, 1, 2, 3]
        assert len(pool.recv()) == 0
        pool.send([STEP], [2])
        assert [(row.env_id, row.observation[1]) for row in pool.recv(min=4)] == [(2, 1)]


def test_a_timeout_of_recv_bounds_the_call_and_an_answer_that_is_late_is_not_lost() -> None:
    """pytorch/rl#4184, #4198: the timeout did not bound the call."""
    with AsyncPool(Oddity, 1) as pool:
        pool.async_reset()
        pool.recv()
        pool.send([HANG], [0])
        start = time.monotonic()
        assert len(pool.recv(timeout=0.1)) == 0
        assert time.monotonic() - start < 10
        Oddity.released.set()
        assert len(pool.recv()) == 1


@pytest.mark.parametrize("make", [odd, sb3])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hung_environment_is_found_and_replaced(make: Any, backend: str) -> None:
    """alex-petrenko/sample-factory#316: "no heartbeat for 552 s", and nothing was done about it."""
    envs = make(backend=backend, step_timeout_s=0.5)
    envs.reset()
    assert envs.step(np.array([STEP, HANG, STEP]))[1].tolist() == [1.0, 0.0, 1.0]
    envs.step(np.array([STEP] * 3))
    assert envs.step(np.array([STEP] * 3))[1].tolist() == [1.0] * 3
    assert envs.pool.stats().restarts == 1
    envs.close()


def test_a_replaced_environment_throws_no_other_episode_away_and_restarts_have_a_bound() -> None:
    """ray-project/ray#47608, #62884, #16605: one restart discarded all episodes; crash loops went on without end."""
    envs = odd(mode=AutoresetMode.SAME_STEP, max_restarts=2)
    envs.reset(seed=0)
    for steps in range(1, 6):
        observations, rewards, _, truncated, infos = envs.step([STEP, RAISE, STEP])
        assert observations[[0, 2], 1].tolist() == [steps] * 2
        assert rewards.tolist() == [1.0, 0.0, 1.0]
        assert truncated.tolist() == [False, True, False]
    assert "retired" in infos["fault"][1]
    assert envs.pool.stats().restarts == 2
    envs.close()


def test_an_environment_that_hangs_in_reset_is_not_waited_for_without_end() -> None:
    """ray-project/ray#56709: a reset that never came back stopped the run."""
    envs = AgentVectorEnv(Oddity, 2, reset_timeout_s=0.3)
    envs.reset(seed=0)
    _, infos = envs.reset(seed=0, options={"hang": True, "reset_mask": np.array([True, False])})
    assert infos["_fault"].tolist() == [True, False]
    Oddity.released.set()
    envs.step([STEP] * 2)
    assert envs.step([STEP] * 2)[1].tolist() == [1.0, 1.0]
    envs.close()


def test_an_environment_that_breaks_off_its_episode_itself_is_not_replaced() -> None:
    """hud-evals/hud-python#426, benchflow#949: whose failure it was could not be told. Ours says so, and its worker lives on."""
    make = functools.partial(agent_gym.factory.make, env="agent_gym.testing.small:SmallTask", defects=True, interface="text")
    envs = AgentVectorEnv(make, 2)
    envs.reset(seed=0)
    _, rewards, terminated, truncated, infos = envs.step(["break_engine()", "look(room=1)"])
    assert (rewards.tolist(), terminated.tolist(), truncated.tolist()) == ([0.0, 0.0], [False, False], [True, False])
    assert infos["ending"].tolist() == ["infra_error", ""]
    assert infos["reward_valid"].tolist() == [False, True]
    assert envs.pool.stats().faults == 0
    envs.close()
