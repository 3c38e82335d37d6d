"""What the tests of reward wrappers ask: functions that a model, a judge or a potential would be, good and bad."""

import threading
from collections.abc import Mapping
from typing import Any

from agent_gym.wrappers.reward_wrapper import Transition

HELD = threading.Event()
"""Set it to let `hang` come back."""
ASKED: list[int] = []
"""How often it was asked."""


def lamps_off(observation: Mapping[str, Any]) -> float:
    """The share of lamps that are off, of a rich observation of `SmallTask`."""
    return len(observation["data"]["view"]["off"]) / 4


def steps_left(observation: Any) -> float:
    """Something that any of our observations tells."""
    data = observation["data"]
    return 1.0 - float(data["step"]) / data["max_steps"] if isinstance(data, Mapping) else float(data.sum()) / int(data.size)


def calls_made(now: Transition) -> float:
    """How many steps there were."""
    return float(len(now.history) - 1)


def says_nothing(_: Transition) -> None:
    """Has no opinion."""


def raises(_: Transition) -> float:
    raise RuntimeError("the model is down")


def nan(_: Transition) -> float:
    return float("nan")


def words(_: Transition) -> Any:
    return "great"


def hang(_: Transition) -> float:
    ASKED.append(1)
    HELD.wait(60)
    return 1.0


def not_of_the_second(now: Transition) -> float | None:
    """Has no opinion of the second step."""
    return None if len(now.history) == 3 else 1.0
