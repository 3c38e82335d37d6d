"""What is cloned: the oracle's steps, recorded ones, and what the oracle says where the policy got to by itself."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import agent_gym  # noqa: E402, F401 - registers the ids
from agent_gym.baselines.candidate_ppo import CandidatePPOConfig, CandidatePPOPolicy, train  # noqa: E402
from agent_gym.baselines.candidate_ppo.features import INTERFACE, MOST  # noqa: E402
from agent_gym.baselines.candidate_ppo.imitation import Example, clone, dagger, demonstrations, recorded, stratified  # noqa: E402
from agent_gym.baselines.candidate_ppo.network import Scorer, collate  # noqa: E402
from agent_gym.baselines.candidate_ppo.playing import Advice  # noqa: E402
from agent_gym.baselines.sb3.bc import oracle_episodes  # noqa: E402
from agent_gym.core.task import Selection  # noqa: E402
from agent_gym.errors import ConfigurationError  # noqa: E402
from agent_gym.evaluation import evaluate  # noqa: E402
from agent_gym.runner import AsyncPool  # noqa: E402
from agent_gym.trajectories import TrajectoryStore  # noqa: E402
from agent_gym.trajectories.policy import load_policy  # noqa: E402
from agent_gym.trajectories.retention import collect_garbage  # noqa: E402
from agent_gym.wrappers import RecordTrajectory  # noqa: E402

ENV_ID = "AgentBase/ToolTask-v0"
torch.set_num_threads(1)


def tool_task(**keywords: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(ENV_ID, interface=INTERFACE, disable_env_checker=True, **keywords)


def advised(**keywords: Any) -> gymnasium.Env[Any, Any]:
    return Advice(tool_task(**keywords))


def selection(env: gymnasium.Env[Any, Any], *families: str, **narrowed: Any) -> Selection:
    found: Selection = env.get_wrapper_attr("tasks").select("train", list(families) or None, **narrowed)
    return found


def shown(env: gymnasium.Env[Any, Any], tasks: list[str]) -> list[Example]:
    episodes = oracle_episodes(env, tasks, seed=0, gamma=0.9)
    return [Example(*step) for episode in episodes for step in zip(episode.observations, episode.actions, episode.returns, strict=True)]


def test_tasks_come_in_equal_shares_and_none_twice() -> None:
    env = tool_task()
    chosen = selection(env, "cancel", "exchange", "book")
    tasks = stratified(chosen, 24, seed=0)
    assert len(set(tasks)) == 24
    assert set(Counter(task.rpartition("/train/")[0] for task in tasks).values()) == {8}
    assert stratified(chosen, 24, seed=0) == tasks
    assert stratified(chosen, 24, seed=1) != tasks
    kinds = {env.get_wrapper_attr("tasks").get(task).difficulty for task in stratified(selection(env, "cancel"), 6, seed=0)}
    assert len(kinds) > 1
    narrowed = selection(env, "cancel", difficulty=(min(kinds), min(kinds)))
    assert {narrowed.get(task).difficulty for task in stratified(narrowed, 5, seed=0)} == {min(kinds)}


def test_the_interface_fits_its_space_and_offers_more_than_the_array_does() -> None:
    env = tool_task()
    array = gymnasium.make(ENV_ID, disable_env_checker=True)
    observation, _ = env.reset(seed=3)
    array.reset(seed=3)
    done = False
    rich = [env.unwrapped.observation.to_dict()]  # type: ignore[attr-defined]
    while not done:
        assert env.observation_space.contains(observation)
        offered = env.unwrapped.candidates  # type: ignore[attr-defined]
        assert len(observation["rows"]) == len(offered) <= MOST
        assert len(observation["sizes"]) == 3 + len(offered)
        assert observation["sizes"].sum() == len(observation["ids"])
        assert set(array.unwrapped.candidates) <= set(offered)  # type: ignore[attr-defined]
        call = env.unwrapped.oracle(rich)  # type: ignore[attr-defined]
        observation, _, terminated, truncated, _ = env.step(offered.index(call))
        array.step(call)
        rich.append(env.unwrapped.observation.to_dict())  # type: ignore[attr-defined]
        done = terminated or truncated


@pytest.mark.slow
def test_cloning_learns_what_is_shown() -> None:
    env = tool_task(families=["cancel"])
    examples = shown(env, stratified(selection(env, "cancel"), 30, seed=0))
    torch.manual_seed(0)
    network = Scorer(32, 16)
    told = clone(network, examples, epochs=7, batch_size=16, learning_rate=3e-3, seed=0)
    assert told["accuracy"] > 0.8
    report = evaluate(CandidatePPOPolicy(network), ENV_ID, tasks=["cancel"], episodes=8, split="validation")
    assert report["success_rate"] > 0.4


def test_recorded_episodes_are_cloned_as_if_they_were_shown(tmp_path: Path) -> None:
    env = RecordTrajectory(tool_task(families=["cancel"]), store=str(tmp_path), source="human")
    tasks = stratified(selection(env, "cancel"), 2, seed=0)
    lived = shown(env, tasks)
    env.close()
    store, chosen = TrajectoryStore(tmp_path), selection(env, "cancel")
    found = [example for episode in recorded(store, "agent_gym:" + ENV_ID, chosen, gamma=0.9) for example in episode]
    assert len(found) == len(lived) > 6
    for one, other in zip(lived, found, strict=True):
        assert one.action == other.action
        assert one.returns == pytest.approx(other.returns)
        assert all(np.array_equal(one.observation[name], other.observation[name]) for name in one.observation)
    tests = env.get_wrapper_attr("tasks").select("test")
    assert not list(recorded(store, ENV_ID, tests, gamma=0.9))
    assert not list(recorded(store, ENV_ID, selection(env, "exchange"), gamma=0.9))
    assert not list(recorded(store, "AgentBase/WebTask-v0", chosen, gamma=0.9))
    collect_garbage(store, load_policy(None).model_copy(update={"successes_per_task": 0, "thin_after_days": 0.0}))
    assert len(store.episodes(where="outcome = 'success'")) == 2
    assert not list(recorded(store, ENV_ID, chosen, gamma=0.9))


def test_each_family_of_a_store_counts_alike(tmp_path: Path) -> None:
    env = RecordTrajectory(tool_task(families=["cancel", "book"]), store=str(tmp_path), source="human")
    shown(env, [*stratified(selection(env, "cancel"), 3, seed=0), *stratified(selection(env, "book"), 1, seed=0)])
    chosen = selection(env, "cancel", "book")
    env.close()
    weights = sorted(episode[0].weight for episode in recorded(TrajectoryStore(tmp_path), ENV_ID, chosen, gamma=0.9))
    assert weights == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])


def test_the_oracle_says_what_to_do_where_the_policy_got_to() -> None:
    env = tool_task(families=["cancel"])
    tasks = stratified(selection(env, "cancel"), 3, seed=0)
    torch.manual_seed(0)
    config = CandidatePPOConfig(key_weight=3.0)
    network = Scorer(16, 8)
    with AsyncPool(lambda: Advice(tool_task(families=["cancel"])), 2) as pool:
        visited = dagger(network, pool, tasks, config, oracle_share=0.0, number=0)
        followed = dagger(network, pool, tasks, config, oracle_share=1.0, number=0)
        alone = demonstrations(pool, tasks, config)
    assert {example.weight for example in visited + followed} <= {1.0, 3.0}
    for example in visited:
        apart = int(network(collate([example.observation])).log_probs.argmax()) != example.action
        assert example.weight == 3.0 or not apart
    assert np.array_equal(visited[0].observation["rows"], followed[0].observation["rows"])
    met = {example.observation["rows"].tobytes() for example in followed}
    assert any(example.observation["rows"].tobytes() not in met for example in visited), "it goes its own way"
    assert all(example.returns is None for example in visited)
    oracle = shown(env, tasks)
    assert [example.action for example in followed] == [example.action for example in oracle]
    assert [example.action for episode in alone for example in episode] == [example.action for example in oracle]


def test_what_is_shown_is_the_same_whoever_plays_it() -> None:
    tasks = stratified(selection(tool_task(), "cancel", "book"), 6, seed=0)
    config = CandidatePPOConfig(gamma=0.9)
    taken = []
    for backend, num_envs in (("thread", 1), ("process", 3)):
        with AsyncPool(partial(advised, families=["cancel", "book"]), num_envs, backend=backend) as pool:
            taken.append(demonstrations(pool, tasks, config))
    one, other = ([example for episode in episodes for example in episode] for episodes in taken)
    assert len(taken[0]) == 6
    assert len(one) == len(other) > 18
    for mine, yours in zip(one, other, strict=True):
        assert mine.action == yours.action
        assert mine.returns == yours.returns
        assert all(np.array_equal(mine.observation[name], yours.observation[name]) for name in mine.observation)


def test_an_oracle_that_knows_more_than_can_be_seen_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "HumanEval.jsonl"
    row = {"task_id": "HumanEval/0", "prompt": "def one():\n", "entry_point": "one", "canonical_solution": "    return 1\n"}
    source.write_text(json.dumps({**row, "test": "def check(candidate):\n    assert candidate() == 1\n"}) + "\n")
    config = CandidatePPOConfig(
        env_id="AgentBase/CodeTask-v0",
        env_kwargs={"source": str(source), "split": "test"},
        bc=0,
        dagger=1,
        n_envs=1,
        n_steps=2,
        batch_size=2,
        width=16,
    )
    with pytest.raises(ConfigurationError, match=r"its oracle is 'privileged'.*leave DAgger out"):
        train(config, tmp_path / "run")


def test_what_is_no_number_stops_cloning() -> None:
    env = tool_task(families=["cancel"])
    (example, *_) = shown(env, stratified(selection(env, "cancel"), 1, seed=0))
    with pytest.raises(ConfigurationError, match=r"bc_learning_rate below 0\.001"):
        clone(Scorer(16, 8), [Example(example.observation, 0, float("inf"))], epochs=1, batch_size=1, learning_rate=1e-3, seed=0)
