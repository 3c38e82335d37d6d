"""Playing recorded episodes again: to see whether everything comes out as it did, and to go on from where they went wrong."""

from agent_gym.trajectories.replay.diff import VERDICTS, Difference
from agent_gym.trajectories.replay.execute import MODES, Report, replay

__all__ = ["MODES", "VERDICTS", "Difference", "Report", "replay"]
