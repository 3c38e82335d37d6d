"""Nothing acknowledged is lost and nothing is doubled, whatever is killed, and whenever."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent_gym.trajectories import TrajectoryStore

ROOT = Path(__file__).parents[2]
ROUNDS = 50


@pytest.mark.slow
def test_fifty_times_kill_minus_nine(tmp_path: Path) -> None:
    told, store = tmp_path / "acknowledged", TrajectoryStore(tmp_path / "store")
    script = "import sys; from tests.trajectories.torture import main; main(sys.argv[1], int(sys.argv[2]), sys.argv[3])"
    subprocess.run([sys.executable, "-c", script, str(store.path), str(ROUNDS), str(told)], cwd=ROOT, check=True)
    lines = [line.split() for line in told.read_text().splitlines()]
    acknowledged = {(episode_id, int(step)) for episode_id, step, _ in lines}
    assert len(acknowledged) == len(lines) > 64 * ROUNDS
    kept = [(row["episode_id"], row["step"]) for row in store.sql("SELECT episode_id, step FROM steps")]
    present = set(kept)
    assert acknowledged - present == set(), "lost"
    assert len(kept) == len(present), "doubled"
    assert len(present - acknowledged) <= ROUNDS, "written, but killed before that was told: one a round at most"
    calls = [(row["episode_id"], row["step"]) for row in store.sql("SELECT episode_id, step FROM tool_calls")]
    assert len(calls) == len(set(calls)) == len([step for _, step in present if step])
    outcomes = {row["episode_id"]: row["outcome"] for row in store.sql("SELECT episode_id, outcome FROM episodes")}
    assert set(outcomes) == {episode_id for episode_id, _ in present}
    ended = {episode_id for episode_id, _, ended in lines if ended == "1"}
    assert all(outcomes[episode_id] != "interrupted" for episode_id in ended)
    still_open = {episode_id for episode_id, outcome in outcomes.items() if outcome == "interrupted"}
    assert still_open >= {episode_id for episode_id, _ in acknowledged} - ended - {episode_id for episode_id, _ in present - acknowledged}
    assert still_open
    assert store.fsck() == []
    store.compact()
    assert store.fsck() == []
    assert len(store.sql("SELECT step FROM steps")) == len(kept)
    print(f"{len(acknowledged)} acknowledged steps, {len(outcomes)} episodes, {len(still_open)} interrupted")
