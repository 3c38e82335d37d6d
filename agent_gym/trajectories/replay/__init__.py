"""Playing recorded episodes again: to see whether everything comes out as it did, and to go on from where they went wrong."""

from agent_gym.trajectories.replay.blame import Blame, Rescue, blame
from agent_gym.trajectories.replay.diff import VERDICTS, Difference
from agent_gym.trajectories.replay.execute import MODES, Report, replay
from agent_gym.trajectories.replay.fork import fork

__all__ = ["MODES", "VERDICTS", "Blame", "Difference", "Report", "Rescue", "blame", "fork", "replay"]
