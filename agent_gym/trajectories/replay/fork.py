"""Going on from a step of a recorded episode with another policy."""

from typing import Any

from agent_gym.core.policy import Policy
from agent_gym.errors import ConfigurationError
from agent_gym.trajectories.env_spec import describe
from agent_gym.trajectories.replay.diff import compare_steps
from agent_gym.trajectories.replay.playback import Playback, Taken
from agent_gym.trajectories.replay.recording import Recording
from agent_gym.trajectories.rows import checked_notes
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["fork"]

_REWARDED = frozenset({"reward", "reward_parts"})
"""May differ before the fork: what stood around another interface is left out."""


def fork(store: TrajectoryStore, episode_id: str, step: int, policy: Policy) -> str:
    """Plays an episode again up to a step, goes on from there with a policy, and records the whole as an episode of its own.

    The policy is shown the observations before that step too, one after the other, and what it decides on them is not done.

    Args:
        store: Where the episode is, and where the new one is recorded, with the old one as its parent.
        episode_id: The episode.
        step: The last step that is taken from it; 0 is the reset.
        policy: Who goes on. It knows the episode by its id.

    Returns:
        The new episode's id.

    Raises:
        ConfigurationError: The episode cannot be played again, comes out otherwise before the step, or does not go on from it.
        InfrastructureError: The environment failed.
        StoreError: There is no such episode, or the new one cannot be recorded.
    """
    recording = Recording.load(store, episode_id)
    last = max(number for number in range(recording.playable + 1) if recording.steps[number]["ending"] is None)
    if not 0 <= step <= last:
        raise ConfigurationError(f"episode {episode_id}: nothing goes on from step {step}; give one from 0 to {last}")
    env_id = recording.row["env_id"]
    with Playback(recording, interface=policy.interface) as playback, store.open_run(policy=policy.name, env_id=env_id) as run:
        recorder = run.recorder(
            env_id=env_id,
            env_version=playback.inner.version,
            source="oracle" if policy.name == "oracle" else "policy",
            prompt_version=recording.row["prompt_version"],
            env_spec=describe(playback.env.spec),
        )
        try:
            _check(recording, playback, 0, playback.begin())
            recorder.tools = playback.inner.tools
            forked = recorder.reset(playback.record, parent=episode_id)
            policy.reset([episode_id])
            for number in range(1, step + 1):
                policy.act([(episode_id, playback.observation)])
                _check(recording, playback, number, playback.step(number))
                recorder.step(playback.record, **playback.outcome, notes=checked_notes({"taken_from": episode_id}))
            while not playback.ended:
                decision = policy.act([(episode_id, playback.observation)])[0]
                notes: dict[str, Any] = {**decision.notes(), "policy_version": policy.version}
                playback.act(decision.action)
                recorder.step(playback.record, **playback.outcome, notes=checked_notes(notes))
        finally:
            recorder.close()
    return forked


def _check(recording: Recording, playback: Playback, number: int, taken: Taken) -> None:
    for one in compare_steps(recording.steps[number], recording.calls.get(number, ()), taken.step, taken.calls, playback.volatile):
        if not one.volatile and one.field not in _REWARDED:
            raise ConfigurationError(
                f"episode {recording.row['episode_id']} comes out otherwise before the fork: {one.field} of step {one.step} differs; "
                "agent-gym episodes replay says how"
            )
