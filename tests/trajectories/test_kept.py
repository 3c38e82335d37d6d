"""What is kept of an episode beyond its calls: images, long texts, digests, versions, costs, tokens, events."""

import io
import json
import zlib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from agent_gym.core.observation import Observation
from agent_gym.errors import StoreError
from agent_gym.trajectories import TrajectoryStore, recorder
from agent_gym.trajectories.blobs import Blobs, png
from agent_gym.trajectories.versions import code_version
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID, CountingEnv, CountingSession


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "store")


def recorded(store: TrajectoryStore, **keywords: Any) -> RecordTrajectory:
    return RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path), **keywords)


def blobs(store: TrajectoryStore) -> list[Path]:
    return sorted(store.path.glob("blobs/??/*"))


def test_a_finished_episode_lacks_nothing(store: TrajectoryStore) -> None:
    env = recorded(store, source="human", policy_id="me")
    env.reset(seed=0, options={"task_id": "train/even/2"})
    env.note(policy_version=3, model_us=5, usage={"prompt_tokens": 1, "completion_tokens": 2, "cost_usd": 0.5})
    env.step("add(2)")
    env.step("finish()")
    env.close()
    row = store.episode(str(env.episode_id))
    may_be_null = {"parent_episode_id", "retry_safety", "n_useless_questions", "gaps", "error", "blobs", "stage"}
    assert {name for name, value in row.items() if value is None} <= may_be_null
    assert row["code_version"] == code_version()
    assert row["schema_version"] == 5
    assert len(row["tools_version"]) == len(row["prompt_version"]) == 32
    assert 0 <= row["human_s"] < 60
    for step in store.steps(row["episode_id"]):
        assert all(len(step[name]) == 32 for name in ("state_digest", "obs_digest", "rng_digest"))


def test_digests_tell_equal_episodes_and_steps_apart(store: TrajectoryStore) -> None:
    played = [(0, ["look()", "add(1)"]), (0, ["look()", "add(1)"]), (0, ["look()", "add(2)"]), (1, ["look()", "add(1)"])]
    for seed, actions in played:
        env = recorded(store)
        env.reset(seed=seed, options={"task_id": "train/even/2"})
        for action in actions:
            env.step(action)
        env.close()
    first, again, other, reseeded = (list(store.steps(row["episode_id"])) for row in store.episodes())

    def digests(steps: list[dict[str, Any]], name: str) -> list[str]:
        return [step[name] for step in steps]

    for name in ("state_digest", "obs_digest", "rng_digest"):
        assert digests(first, name) == digests(again, name)
    assert len(set(digests(first, "obs_digest"))) == 3
    assert digests(first, "obs_digest")[:2] == digests(other, "obs_digest")[:2]
    assert digests(first, "obs_digest")[2] != digests(other, "obs_digest")[2]
    assert digests(first, "obs_digest") == digests(reseeded, "obs_digest")
    assert not set(digests(first, "rng_digest")) & set(digests(reseeded, "rng_digest"))


def test_the_digest_of_randomness_follows_what_is_drawn(store: TrajectoryStore) -> None:
    for faults in (0.0, 1.0, 1.0):
        env = RecordTrajectory(
            gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", worlds=["retail"], faults=faults), str(store.path)
        )
        env.reset(seed=3)
        env.step("get_order('W4523870')")
        env.close()
    calm, troubled, again = ([step["rng_digest"] for step in store.steps(row["episode_id"])] for row in store.episodes())
    assert calm[0] == troubled[0]
    assert troubled[1] != troubled[0]
    assert calm[1] != troubled[1]
    assert troubled == again


def test_versions_of_tools_and_prompt(store: TrajectoryStore) -> None:
    for permissions, prompt in ((None, None), ("level1", "p2"), (None, None)):
        env = RecordTrajectory(CountingEnv(permissions=permissions), str(store.path), prompt_version=prompt)
        env.reset(seed=0)
        env.close()
    whole, few, again = store.episodes()
    assert whole["tools_version"] == again["tools_version"] != few["tools_version"]
    names = [{tool["function"]["name"] for tool in json.loads(store.episode(row["episode_id"])["tools"])} for row in (whole, few)]
    assert names[1] < names[0] == {tool.name for tool in CountingEnv().tools}
    assert (few["prompt_version"], whole["prompt_version"]) == ("p2", again["prompt_version"])
    assert store.runs()[0]["versions"]["code"] == code_version()


class Seeing(CountingSession):
    def observe(self) -> Observation:
        shown = super().observe()
        return Observation(shown.text, shown.data, np.full((4, 6, 3), self.count, np.uint8))


class SeeingEnv(CountingEnv):
    def open(self, task: Any, seed: int, snapshot: Any = None) -> Seeing:  # noqa: ARG002 - the contract's
        return Seeing(task)


def test_images_are_kept_once(store: TrajectoryStore) -> None:
    env = RecordTrajectory(SeeingEnv(), str(store.path))
    env.reset(seed=0, options={"task_id": "train/even/4"})
    for action in ("look()", "add(9)", "look()"):
        env.step(action)
    env.close()
    steps = list(store.steps(str(env.episode_id)))
    assert len(blobs(store)) == 3, "two images and the tools"
    assert [step["obs_image"] for step in steps] == [steps[0]["obs_image"]] * 2 + [steps[2]["obs_image"]] * 2
    assert steps[0]["obs_digest"] != steps[1]["obs_digest"], "the texts differ"
    assert all(step["gaps"] is None for step in steps)
    image = Blobs(store.path).get(steps[2]["obs_image"])
    assert image == png(np.full((4, 6, 3), 9, np.uint8))
    pillow = pytest.importorskip("PIL.Image")
    assert np.array_equal(np.asarray(pillow.open(io.BytesIO(image))), np.full((4, 6, 3), 9))
    assert store.fsck() == []


def test_a_png_is_one() -> None:
    picture = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    content = png(picture)
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content[16:24] == (7).to_bytes(4, "big") + (5).to_bytes(4, "big")
    start = content.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompress(content[start : start + int.from_bytes(content[start - 8 : start - 4], "big")]), np.uint8)
    assert np.array_equal(lines.reshape(5, -1)[:, 1:].reshape(5, 7, 3), picture)


def test_long_texts_are_blobs_and_come_back(store: TrajectoryStore) -> None:
    long = "\N{SNOWMAN}" * 30_000
    env = recorded(store)
    for _ in range(2):
        env.reset(seed=0, options={"task_id": "train/even/2"})
        env.note(thought=long)
        env.step(f"finish('{long}')")
    env.close()
    assert len(blobs(store)) == len({path.name for path in blobs(store)}) <= 5, "kept once for both episodes, as the tools are"
    for row in store.episodes():
        _, step = store.steps(row["episode_id"])
        assert long in step["note"]
        assert long in step["given"]
        (call,) = store.tool_calls(row["episode_id"]) or [None]
        assert {blob["column"] for blob in step["blobs"]} >= {"note", "given"}
        assert call is not None
    raw = store.sql("SELECT note, blobs FROM steps WHERE step = 1")
    assert all(row["note"] is None and row["blobs"] for row in raw)
    assert store.stats()["blobs"]["files"] == len(blobs(store))
    assert store.compact()[1] == 1
    assert store.fsck() == []


def test_a_text_that_is_no_unicode_is_kept_escaped(store: TrajectoryStore) -> None:
    env = recorded(store)
    env.reset(seed=0)
    env.step("\ud800" * 2)
    env.step("\ud800" * 70_000)
    env.close()
    _, short, long = store.steps(str(env.episode_id))
    assert short["given"] == "\\ud800" * 2
    assert long["given"] == "\\ud800" * 70_000


def test_tokens_have_a_table_of_their_own(store: TrajectoryStore) -> None:
    env = recorded(store)
    env.reset(seed=0)
    env.note(policy_version=2, tokens={"prompt_token_ids": np.array([1, 2]), "completion_token_ids": [3], "logprobs": [-0.5], "extra": 1})
    env.step("look()")
    env.step("look()")
    env.close()
    (row,) = store.sql("SELECT * FROM tokens")
    assert row == {
        "episode_id": env.episode_id,
        "step": 1,
        "prompt_token_ids": [1, 2],
        "completion_token_ids": [3],
        "logprobs": [-0.5],
        "loss_mask": None,
        "policy_version": 2,
        "run_id": env.run_id,
    }
    assert [step["note"] for step in store.steps(str(env.episode_id))] == [None, '{"tokens":{"extra":1}}', None]
    with pytest.raises(TypeError):
        env.note(tokens={"logprobs": 1})


def test_events_are_added_and_never_change_a_row(store: TrajectoryStore) -> None:
    env = recorded(store)
    env.reset(seed=0)
    env.step("finish()")
    env.close()
    before = store.episodes()
    event_id = store.add_event(
        "score_edit", episode_id=env.episode_id, step=1, author="me", reason="the check was wrong", payload={"from": 0, "to": 1}
    )
    store.add_event("note", run_id=env.run_id)
    (event,) = store.events(str(env.episode_id))
    assert (event["event_id"], event["kind"], event["author"], event["payload"]) == (event_id, "score_edit", "me", '{"from":0,"to":1}')
    assert len(store.sql("SELECT * FROM events")) == 2
    assert store.episodes() == before
    assert store.fsck() == []
    with pytest.raises(StoreError, match="no episode 'nothing'"):
        store.add_event("note", episode_id="nothing")
    with pytest.raises(ValueError, match="episode_id or to a run_id"):
        store.add_event("note")


def test_what_a_living_writer_wrote_shows_after_a_while(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    env = recorded(store)
    env.reset(seed=0)
    env.step("finish()")
    assert store.episodes() == []
    monkeypatch.setattr(recorder, "ROTATE_S", 0.0)
    env.reset(seed=1)
    env.step("finish()")
    assert len(store.episodes()) == 2
    env.close()
