"""What happened, kept for ever: an append-only log a writer, sealed into Parquet by run, queried with SQL.

Reading and sealing load pyarrow and duckdb; recording loads neither.
"""

from agent_gym.trajectories.recorder import Recorder
from agent_gym.trajectories.store import Run, TrajectoryStore

__all__ = ["Recorder", "Run", "TrajectoryStore"]
