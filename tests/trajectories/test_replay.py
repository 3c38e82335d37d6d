"""Replaying: what is the same is found the same, and what is not is found, named and placed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import orjson
import pytest
from gymnasium.wrappers import TimeLimit

from agent_gym import evaluate
from agent_gym.errors import ConfigurationError
from agent_gym.policies import load
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.env_spec import rebuild
from agent_gym.trajectories.replay import MODES, fork, replay
from agent_gym.trajectories.replay.cassette import Cassette
from agent_gym.trajectories.replay.playback import Playback
from agent_gym.trajectories.replay.recording import Recording
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import CountingEnv
from tests.trajectories.drifting import ENV_ID, SENT, DriftingEnv

TOOL = "AgentBase/ToolTask-v0"
SOLVED = ("look()", "press('11')", "look()", "finish()")


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "store")


def recorded(store: TrajectoryStore, actions: Sequence[Any] = SOLVED, env_id: str = ENV_ID, task: str = "green", **keywords: Any) -> str:
    """The id of an episode of these actions."""
    env = gymnasium.make(env_id, disable_env_checker=True, **{"interface": "text", **keywords})
    with RecordTrajectory(env, str(store.path)) as recording:
        recording.reset(seed=0, options={"task_id": task})
        for action in actions:
            recording.step(action)
    return str(recording.episode_id)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> TrajectoryStore:
    """Episodes of the oracle (text), of chance (indices) and of chance among tools that fail, after one another on the same seed."""
    store = TrajectoryStore(tmp_path_factory.mktemp("played"))
    env = gymnasium.make(TOOL, interface="text", disable_env_checker=True)
    for name, keywords in (("oracle", {}), ("random-until-end", {}), ("random-action", {"faults": 0.5, "retries": "agent"})):
        evaluate(load(name, env), TOOL, episodes=4, env_kwargs=keywords, store=store)
    with RecordTrajectory(
        gymnasium.make(TOOL, interface="text", disable_env_checker=True, families=["workspace/look_up"]), store.path
    ) as later:
        later.reset(seed=5)
        for action in ("finish()", "no call at all", {"name": 3}, "finish(answer='x')"):
            later.reset()
            later.step(action)
    return store


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_whatever_was_done_comes_out_again(played: TrajectoryStore, mode: str) -> None:
    rows = played.episodes()
    reports = [replay(played, row["episode_id"], mode) for row in rows]
    assert len(reports) == 17
    assert {report.verdict for report in reports} == {"identical"}
    assert [report.steps for report in reports] == [row["n_turns"] for row in rows]
    assert any(row["n_faults"] for row in rows), "some of them met faults"
    assert any(row["episode_index"] for row in rows), "some are not the first after their seed"


@pytest.mark.parametrize(
    ("drift", "verdict", "step", "field"),
    [
        (None, "identical", None, None),
        ("volatile", "volatile_only", 1, "tool_calls.result"),
        ("tool", "tool_nondeterminism", 3, "tool_calls.result"),
        ("shown", "env_nondeterminism", 2, "obs_text"),
        ("state", "env_nondeterminism", 2, "state_digest"),
        ("grader", "reward_changed", 4, "reward"),
        ("length", "length_changed", 2, "reward"),
        ("tools", "version_skew", None, None),
        ("task", "version_skew", None, None),
    ],
)
def test_a_planted_difference_is_named_and_placed(
    store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch, drift: str | None, verdict: str, step: int | None, field: str | None
) -> None:
    episode = recorded(store)
    monkeypatch.setattr(DriftingEnv, "drift", drift)
    report = replay(store, episode)
    assert report.verdict == verdict, report.to_dict()
    assert report.well == (verdict in ("identical", "volatile_only"))
    assert (report.first and report.first.step, report.first and report.first.field) == (step, field)
    assert replay(store, episode, "rescore").verdict == {"grader": "reward_changed", "length": "length_changed"}.get(
        str(drift), "identical"
    )


def test_a_difference_is_told_with_both_values_and_as_text(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = recorded(store)
    monkeypatch.setattr(DriftingEnv, "drift", "tool")
    told = replay(store, episode).to_dict(diffs=5)
    assert told["first"]["recorded"] == "1 pressed, seen in 1.5 ms"
    assert told["first"]["replayed"] == "2 pressed, seen in 1.5 ms"
    assert told["first"]["attempt"] == 1
    assert told["counts"] == {"tool_calls.result": 1, "obs_text": 1, "obs_data": 1}
    assert told["differences"][0]["diff"].splitlines()[-2:] == ["-1 pressed, seen in 1.5 ms", "+2 pressed, seen in 1.5 ms"]


def test_a_changed_verdict_names_the_old_and_the_new(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = recorded(store)
    monkeypatch.setattr(DriftingEnv, "drift", "grader")
    ends = replay(store, episode, "rescore").ends
    assert ends == {
        "outcome": ("success", "failure"),
        "end_reason": ("success", "failure"),
        "success": (True, False),
        "reward_total": (1.0, 0.0),
    }


@pytest.mark.parametrize("drift", [None, "grader", "gone"])
def test_another_version_is_told_before_all_else(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch, drift: str | None) -> None:
    episode = recorded(store)
    monkeypatch.setattr(DriftingEnv, "version", "2")
    monkeypatch.setattr(DriftingEnv, "drift", drift)
    report = replay(store, episode)
    assert report.verdict == "version_skew"
    assert report.versions["env_version"] == ("1", "2")
    assert report.notes == (["unknown task 'green'; known: none"] if drift == "gone" else [])


def test_what_goes_outside_is_never_sent_from_a_cassette(store: TrajectoryStore) -> None:
    SENT.clear()
    episode = recorded(store, ("send(text='a')", "send(text='b')", "press('11')", "finish()"))
    assert SENT == ["a", "b"]
    assert replay(store, episode, "cassette").verdict == "identical"
    assert SENT == ["a", "b"]
    report = replay(store, episode)
    assert report.verdict == "tool_nondeterminism", "outside they are the third and the fourth"
    assert report.first is not None
    assert (report.first.step, report.first.field) == (1, "tool_calls.structured")
    assert SENT == ["a", "b", "a", "b"]


def test_a_call_that_is_not_on_the_tape_is_not_made(store: TrajectoryStore) -> None:
    SENT.clear()
    recording = Recording.load(store, recorded(store, ("send(text='a')", "send(text='b')", "finish()")))
    tape = Cassette(replace(recording, calls={1: recording.calls[1]}))
    with Playback(recording, tape=tape) as playback:
        playback.begin()
        statuses = [playback.step(number).step["status"] for number in (1, 2)]
    assert statuses == ["ok", "error"]
    assert tape.missing == [(2, 'send(text="b")')]
    assert SENT == ["a", "b"]


def test_an_element_is_found_again_under_another_number(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = recorded(store, ("press('11')", "press('13')", "press('99')", "finish()"))
    monkeypatch.setattr(DriftingEnv, "drift", "numbers")
    report = replay(store, episode)
    assert (report.verdict, report.steps) == ("env_nondeterminism", 4)
    actions = [one.replayed for one in report.differences if one.field == "action"]
    assert actions == ['{"name":"press","arguments":{"bid":"41"}}', '{"name":"press","arguments":{"bid":"43"}}']
    assert {one.field for one in report.differences if one.step == 4} == {"obs_data"}
    assert report.ends["outcome"] == ("failure", "failure")
    assert replay(store, episode, "rescore").verdict == "identical"


def test_an_element_that_is_gone_ends_the_replay(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = recorded(store)
    monkeypatch.setattr(DriftingEnv, "drift", "element_gone")
    report = replay(store, episode)
    assert (report.verdict, report.steps) == ("env_nondeterminism", 1)
    assert report.notes == ["step 2: press(bid=\"11\") was done to button 'green', number 1 of its kind; the page has 0 of them now"]


def test_wrappers_and_keywords_are_part_of_what_is_built(store: TrajectoryStore) -> None:
    keywords = {
        "rich_wrappers": [["agent_gym.wrappers:RestrictActions", {"deny": ["undo"]}]],
        "worlds": ["retail"],
        "shaping": "milestones",
    }
    env = gymnasium.make(TOOL, interface="array", disable_env_checker=True, max_episode_steps=3, **keywords)
    with RecordTrajectory(TimeLimit(env, 2), str(store.path)) as recording:
        recording.reset(seed=1)
        recording.step(0)
        assert recording.step(1)[3]
    row = store.episode(str(recording.episode_id))
    assert orjson.loads(row["env_spec"]) == {"kwargs": {"interface": "array", **keywords}, "max_episode_steps": 2, "wrappers": []}
    assert replay(store, row["episode_id"]).verdict == "identical"


@pytest.mark.slow
def test_what_programs_print_is_the_same_but_for_what_is_volatile(store: TrajectoryStore, needs_sandbox: None) -> None:  # noqa: ARG001
    suite = "import unittest\nclass T(unittest.TestCase):\n    def test(self): print(object(), {'a', 'b', 'c'})\nunittest.main()"
    actions = [{"name": "write_file", "arguments": {"path": "a.py", "content": suite}}]
    actions += [{"name": "run_shell", "arguments": {"command": command}} for command in ("ls -laR", "python3 a.py", "mktemp")]
    verdicts = []
    for done in (actions[:2], actions):
        env = gymnasium.make("AgentBase/CodeTask-v0", interface="text", disable_env_checker=True, families=["code/shell"])
        with RecordTrajectory(env, str(store.path)) as recording:
            recording.reset(seed=0)
            for action in (*done, "finish()"):
                recording.step(action)
        verdicts.append(replay(store, str(recording.episode_id)).verdict)
    assert verdicts[0] in ("identical", "volatile_only"), "the clock may stand still in between"
    assert verdicts[1] == "volatile_only"


def test_an_interrupted_episode_is_compared_as_far_as_it_came(store: TrajectoryStore) -> None:
    report = replay(store, recorded(store, SOLVED[:2]))
    assert (report.verdict, report.steps) == ("identical", 2)
    assert report.notes == ["the episode was interrupted when it was recorded: how it was judged cannot be compared"]


def test_a_step_in_which_the_environment_failed_is_left_out(store: TrajectoryStore) -> None:
    env = gymnasium.make("tests.trajectories.counting:Test/Counting-v0", disable_env_checker=True)
    with RecordTrajectory(env, str(store.path)) as recording:
        recording.reset(seed=0, options={"task_id": "test/breaking/3"})
        recording.step("look()")
        recording.step("add(1)")
    report = replay(store, str(recording.episode_id))
    assert (report.verdict, report.steps) == ("identical", 1)
    assert report.notes == ["step 2 is left out: the environment itself failed in it when it was recorded"]


def test_what_cannot_be_built_again_is_said(store: TrajectoryStore) -> None:
    with RecordTrajectory(CountingEnv(), str(store.path)) as bare:
        bare.reset(seed=0)
        bare.step("finish()")
    with pytest.raises(ConfigurationError, match=r"was not made by gymnasium\.make"):
        replay(store, str(bare.episode_id))
    with RecordTrajectory(gymnasium.make(ENV_ID, interface="text", disable_env_checker=True), str(store.path)) as moved:
        moved.reset(seed=0)
        state = moved.get_wrapper_attr("get_state")()
        moved.step("look()")
        moved.get_wrapper_attr("set_state")(state)
        moved.step("finish()")
    with pytest.raises(ConfigurationError, match="its record has no whole beginning"):
        replay(store, str(moved.episode_id))
    with pytest.raises(ConfigurationError, match="unknown mode 'again'"):
        replay(store, str(moved.episode_id), "again")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"env_id": "Nobody/Knows-v0"}, "is not registered in this process"),
        ({"kwargs": {"counterpart": "some.module:function"}}, "names 'some.module:function'"),
        ({"kwargs": {"rich_wrappers": [["antigravity:Wrapper", {}]]}}, "names 'antigravity:Wrapper'"),
        ({"wrappers": [["antigravity:Wrapper", {}]]}, "names 'antigravity:Wrapper'"),
        ({"wrappers": [["agent_gym.factory:load_object", {}]]}, r"is no gymnasium\.Wrapper"),
    ],
)
def test_a_store_does_not_say_what_is_imported(row: dict[str, Any], message: str) -> None:
    spec = {"kwargs": row.get("kwargs", {}), "max_episode_steps": None, "wrappers": row.get("wrappers", [])}
    with pytest.raises(ConfigurationError, match=message):
        rebuild({"episode_id": "x", "env_id": row.get("env_id", TOOL), "env_spec": orjson.dumps(spec).decode()})


def test_a_fork_goes_on_from_a_step_and_is_an_episode_like_any(store: TrajectoryStore) -> None:
    episode = recorded(store, ("look()", "look()", "press('12')", "finish()"))
    env = gymnasium.make(ENV_ID, interface="text", disable_env_checker=True)
    forked = fork(store, episode, 2, load("oracle", env))
    row = store.episode(forked)
    assert (row["parent_episode_id"], row["policy_id"], row["source"], row["outcome"]) == (episode, "oracle", "oracle", "success")
    old, new = list(store.steps(episode)), list(store.steps(forked))
    assert [step["obs_digest"] for step in new[:3]] == [step["obs_digest"] for step in old[:3]]
    assert [orjson.loads(step["action"])["name"] for step in new[1:]] == ["look", "look", "press", "finish"]
    assert [step["note"] for step in new[1:]] == [f'{{"taken_from":"{episode}"}}'] * 2 + [None] * 2
    assert replay(store, forked).verdict == "identical"
    with pytest.raises(ConfigurationError, match="nothing goes on from step 4; give one from 0 to 3"):
        fork(store, episode, 4, load("oracle", env))


def test_a_fork_may_act_through_another_interface(store: TrajectoryStore) -> None:
    episode = recorded(store)
    env = gymnasium.make(ENV_ID, interface="text", disable_env_checker=True)
    one, other = (fork(store, episode, 1, load("random", env, seed=3)) for _ in range(2))
    assert [step["action"] for step in store.steps(one)] == [step["action"] for step in store.steps(other)]
    assert replay(store, one).verdict == "identical"


def test_a_fork_of_what_comes_out_otherwise_is_refused(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = recorded(store)
    monkeypatch.setattr(DriftingEnv, "drift", "shown")
    env = gymnasium.make(ENV_ID, interface="text", disable_env_checker=True)
    with pytest.raises(ConfigurationError, match="comes out otherwise before the fork: obs_text of step 2 differs"):
        fork(store, episode, 3, load("oracle", env))
