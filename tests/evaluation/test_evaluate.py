"""evaluate: what is measured depends on the seed alone, and is what the store holds."""

from pathlib import Path
from typing import Any

import pytest

from agent_gym.core.policy import Decision
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation import evaluate, summarize
from agent_gym.trajectories import TrajectoryStore
from tests.trajectories.counting import ENV_ID, CountingPolicy

SOLVABLE = {"families": ["even", "odd"]}
KEYS = [
    "policy",
    "env_id",
    "split",
    "episodes",
    "success_rate",
    "success_ci95",
    "success_macro",
    "success_macro_ci95",
    "reward_mean",
    "turns_mean",
    "invalid_action_rate",
    "tool_success_rate",
    "retries_mean",
    "faults_mean",
    "retry_safety",
    "useless_questions_mean",
    "infra_errors",
    "by_task_type",
    "by_capability",
    "by_task",
    "seed",
    "versions",
]


def test_a_perfect_policy(tmp_path: Path) -> None:
    got = evaluate(CountingPolicy(), ENV_ID, episodes=30, env_kwargs=SOLVABLE, store=tmp_path)
    assert list(got) == KEYS
    assert (got["policy"], got["env_id"], got["split"], got["seed"]) == ("counting", "Test/Counting-v0", "test", 0)
    assert (got["episodes"], got["success_rate"], got["success_macro"], got["infra_errors"]) == (30, 1.0, 1.0, 0)
    assert set(got["by_task_type"]) == {"count/even", "count/odd"}
    rows = TrajectoryStore(tmp_path).episodes()
    assert summarize(rows) == {key: got[key] for key in summarize(rows)}
    assert {row["policy_id"] for row in rows} == {"counting"}
    assert {row["policy_version_end"] for row in rows} == {3}
    assert all(row["prompt_tokens"] == 10 * row["n_turns"] for row in rows)


def test_neither_batch_size_nor_order_matters(tmp_path: Path) -> None:
    results, plays = [], []
    for batch in (1, 4, 50):
        store = TrajectoryStore(tmp_path / str(batch))
        policy = CountingPolicy(frozenset({1, 3}))
        results.append(evaluate(policy, ENV_ID, episodes=40, seed=7, batch=batch, store=store))
        plays.append(sorted((row["seed"], row["task_id"], row["outcome"]) for row in store.episodes()))
        unopened = sum(task_id.startswith("test/unopened") for _, task_id, _ in plays[-1])
        assert policy.episodes == sorted(set(policy.episodes))
        assert len(policy.episodes) == 40 - unopened
    assert results[0] == results[1] == results[2]
    assert plays[0] == plays[1] == plays[2]
    assert evaluate(CountingPolicy(), ENV_ID, episodes=40, seed=8)["by_task_type"] != results[0]["by_task_type"]


def test_failures_of_the_environment_are_no_failures_of_the_policy(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    store = TrajectoryStore(tmp_path)
    got = evaluate(CountingPolicy(), ENV_ID, tasks=["unopened", "test/even/3"], store=store, progress=lambda *told: done.append(told))
    assert (got["episodes"], got["infra_errors"], got["success_rate"]) == (6, 5, 1.0)
    assert got["by_task_type"]["count/unopened"]["infra_errors"] == 5
    assert done == [(number, 6) for number in range(1, 7)]
    assert [row["error"] for row in store.episodes(where="outcome = 'infra_error'")] == ["InfrastructureError: no abacus"] * 5
    got = evaluate(CountingPolicy(), ENV_ID, tasks="unopened")
    assert (got["episodes"], got["success_rate"], got["success_macro"]) == (5, None, None)


@pytest.mark.parametrize("form", ["list", "text", "file"])
def test_chosen_tasks_run_once_each(tmp_path: Path, form: str) -> None:
    names = ["even", "test/odd/1", "test/odd/1", "count/even"]
    (tmp_path / "tasks.txt").write_text("\n".join(names) + "\n\n")
    tasks: Any = {"list": names, "text": ", ".join(names), "file": str(tmp_path / "tasks.txt")}[form]
    store = TrajectoryStore(tmp_path / "store")
    got = evaluate(CountingPolicy(), ENV_ID, tasks=tasks, store=store)
    assert got["episodes"] == 6
    assert sorted(row["task_id"] for row in store.episodes()) == [*(f"test/even/{number}" for number in range(5)), "test/odd/1"]
    assert evaluate(CountingPolicy(), ENV_ID, tasks=tasks, episodes=9)["episodes"] == 9


def test_several_evaluations_in_one_run(tmp_path: Path) -> None:
    with TrajectoryStore(tmp_path).open_run() as run:
        first = evaluate(CountingPolicy(), ENV_ID, tasks="even", store=run)
        second = evaluate(CountingPolicy(frozenset(range(5))), ENV_ID, tasks="even", store=run)
    assert (first["success_rate"], second["success_rate"]) == (1.0, 0.0)
    assert len(TrajectoryStore(tmp_path).episodes(run_id=run.run_id)) == 10


def test_arrays(tmp_path: Path) -> None:
    class First(CountingPolicy):
        interface = "array"
        name = "first"

        def act(self, batch: Any) -> list[Decision]:
            assert all(set(observation) >= {"candidates", "action_mask"} for _, observation in batch)
            return [Decision(0) for _ in batch]

    got = evaluate(First(), ENV_ID, tasks="even,odd", store=tmp_path)
    assert got["episodes"] == 10
    assert {row["given"] for row in TrajectoryStore(tmp_path).sql("SELECT given FROM steps WHERE step > 0")} == {"0"}


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unknown split 'exam'"):
        evaluate(CountingPolicy(), ENV_ID, split="exam")
    with pytest.raises(ConfigurationError, match="unknown task 'nothing'"):
        evaluate(CountingPolicy(), ENV_ID, tasks="nothing")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        evaluate(CountingPolicy(), ENV_ID, tasks=tmp_path / "missing.txt")
    with pytest.raises(ConfigurationError, match="task_ids is empty"):
        evaluate(CountingPolicy(), ENV_ID, tasks="")
    with pytest.raises(ConfigurationError, match="at least 1"):
        evaluate(CountingPolicy(), ENV_ID, episodes=0)

    class Lazy(CountingPolicy):
        def act(self, batch: Any) -> list[Decision]:
            return super().act(batch)[1:]

    with pytest.raises(ConfigurationError, match="gave 4 decisions for 5 episodes"):
        evaluate(Lazy(), ENV_ID, tasks="even")
