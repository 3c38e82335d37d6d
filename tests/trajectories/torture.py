"""Kills recorders, sealers and compacters of one store at random moments, many times. Its own process, so that it may fork.

``python torture.py STORE ROUNDS ACKNOWLEDGED``: every step that was acknowledged is a line of the file ACKNOWLEDGED.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

import gymnasium

from agent_gym.core.seeding import derive
from agent_gym.trajectories import TrajectoryStore, compact, fsck, seal  # loaded before the forks
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID

__all__ = ["main"]

_ENVS = 64
_LONG = "long " * 20_000
_LOADED = (compact, fsck, seal)


def record(envs: list[RecordTrajectory], acknowledged: int) -> None:
    """Steps all environments in turn, for ever."""
    numbers = [0] * _ENVS
    ended = [True] * _ENVS
    turn = 0
    while True:
        turn += 1
        for index, env in enumerate(envs):
            if ended[index]:
                env.reset(seed=turn)
                numbers[index], ended[index] = 0, False
            else:
                if turn % 7 == index % 7:
                    env.note(thought=f"{_LONG}{index % 3}")
                *_, terminated, truncated, _ = env.step("add(1)")
                numbers[index] += 1
                ended[index] = terminated or truncated
            os.write(acknowledged, f"{env.episode_id} {numbers[index]} {int(ended[index])}\n".encode())
            if ended[index] and turn % 5 == 0:  # a log is finished, and can be sealed meanwhile
                env.close()


def tidy(store: TrajectoryStore) -> None:
    """Seals and compacts, for ever."""
    while True:
        store.seal()
        store.compact()


def fork(work: Callable[[], None]) -> int:
    """Does something in a child that ends by being killed only."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(1)


def main(path: str, rounds: int, acknowledged: str) -> None:
    """Runs all rounds; a child that ends by itself is a failure."""
    store = TrajectoryStore(path)
    rng = derive("torture", rounds)
    run = store.open_run(command="torture")
    envs = [RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), run) for _ in range(_ENVS)]
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number in range(rounds):
        children = [fork(lambda: tidy(store)), fork(lambda: record(envs, log))]
        time.sleep(float(rng.uniform(0.05, 0.6)))
        for child in children:
            os.kill(child, signal.SIGKILL)
            if not os.WIFSIGNALED(status := os.waitpid(child, 0)[1]):
                sys.exit(f"round {number}: a child ended by itself with {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
