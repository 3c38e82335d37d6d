"""Kills what drops parts of a store at random moments. Its own process, so that it may fork."""

import os
import signal
import sys
import time
from collections.abc import Callable

from agent_gym.core.seeding import derive
from agent_gym.trajectories import TrajectoryStore, compact, fsck, seal  # loaded before the forks
from agent_gym.trajectories.policy import RetentionPolicy
from agent_gym.trajectories.retention import collect_garbage

__all__ = ["main"]

_LOADED = (compact, fsck, seal)
_ROUNDS = 14
_SHRINKS = 0.75
_PARTLY = """
SELECT episode_id FROM episodes LEFT JOIN (SELECT episode_id, count(*) AS n FROM steps GROUP BY ALL) USING (episode_id)
WHERE n_turns + 1 != coalesce(n, 0) AND (n > 0 OR outcome != 'success' OR episode_id NOT IN (
    SELECT episode_id FROM events WHERE kind = 'dropped_steps' AND reason IS NOT NULL AND author IS NOT NULL))
"""
_DOUBLED = "SELECT episode_id, kind FROM events GROUP BY ALL HAVING count(*) > 1"


def check(store: TrajectoryStore) -> None:
    """Ends the process with 1 unless the store is whole, with an event for everything that is gone, and for nothing else."""
    found = [str(one) for one in store.fsck()] + [str(row) for sql in (_PARTLY, _DOUBLED) for row in store.sql(sql)]
    tokens = store.sql("SELECT episode_id FROM events WHERE kind = 'dropped_tokens' AND episode_id IN (SELECT episode_id FROM tokens)")
    steps = store.sql("SELECT episode_id FROM events WHERE kind = 'dropped_steps' AND episode_id IN (SELECT episode_id FROM steps)")
    if found or tokens or steps:
        sys.exit(f"{found} {tokens} {steps}")


def fork(work: Callable[[], object]) -> int:
    """Does something in a child."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def main(path: str) -> None:
    """Runs all rounds; the number of children that were killed while they were at work is written to stdout."""
    store, rng = TrajectoryStore(path), derive("retention", "torture")
    budget = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)  # noqa: PTH118, PTH202
    killed = 0
    for number in range(_ROUNDS):
        budget = int(budget * _SHRINKS)
        child = fork(lambda: collect_garbage(store, RetentionPolicy.model_validate({"budget": budget})))  # noqa: B023 - it runs at once
        time.sleep(float(rng.uniform(0.02, 1.0)))
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        if os.waitpid(fork(lambda: check(store)), 0)[1]:
            sys.exit(f"round {number}: the store is not whole")
    print(killed)


if __name__ == "__main__":
    main(sys.argv[1])
