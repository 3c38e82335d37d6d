"""What is measured: the policies and how each comes about, and the suites, which say how much of it is done. All of it is data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_gym.errors import ConfigurationError

__all__ = ["POLICIES", "SUITES", "Part", "Recipe", "Suite"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a policy comes about.

    Attributes:
        algo: What ``agent-gym train --algo`` takes; empty where nothing is trained.
        clone: Whether the oracle's demonstrations are cloned.
        dagger: Whether DAgger follows.
        ppo: Whether PPO follows, or is all there is.
        milestones: Whether training rewards milestones on the way. The measurement never does.
        oracle: Whether it is the oracle itself.
    """

    algo: str = ""
    clone: bool = False
    dagger: bool = False
    ppo: bool = False
    milestones: bool = False
    oracle: bool = False


POLICIES: Mapping[str, Recipe] = {
    "random": Recipe(),
    "heuristic": Recipe(),
    "maskable-ppo": Recipe(algo="maskable-ppo", ppo=True),
    "async-maskable-ppo": Recipe(algo="async-maskable-ppo", ppo=True),
    "candidate-ppo": Recipe(algo="candidate-ppo", ppo=True),
    "candidate-ppo-milestones": Recipe(algo="candidate-ppo", ppo=True, milestones=True),
    "bc": Recipe(algo="candidate-ppo", clone=True),
    "dagger": Recipe(algo="candidate-ppo", clone=True, dagger=True),
    "bc-maskable-ppo": Recipe(algo="maskable-ppo", clone=True, ppo=True),
    "bc-candidate-ppo": Recipe(algo="candidate-ppo", clone=True, ppo=True),
    "oracle": Recipe(oracle=True),
}
"""The policies by their ids, in the order of the tables."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a suite does with one environment.

    Attributes:
        env_id: Gymnasium id.
        settings: Keywords of the environment, as JSON values, in training and in measuring.
        episodes: Episodes that each policy is measured on, of each seed and split.
        steps: PPO's environment steps, with demonstrations and without.
        bc: Oracle episodes to clone, for the policies that clone.
        dagger: Episodes of DAgger, for the policy that goes on with it.
        training: Further options of ``agent-gym train``, by the names of its configuration's fields; an algorithm gets those it knows.
        cloning: Those for the policies that clone, beside or instead.
        note: What a reader of the table should know about the choice.
    """

    env_id: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    episodes: int
    steps: int
    bc: int
    dagger: int
    training: Mapping[str, Any] = field(default_factory=dict)
    cloning: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What is run.

    Attributes:
        name: For the table and the folder.
        parts: One an environment.
        policies: Ids of `POLICIES`, in the order of the table.
        splits: The splits to measure on, where an environment has them.
        seeds: How many: 0, 1, … Each is a training, and a draw of tasks that is the same for all policies.
    """

    name: str
    parts: tuple[Part, ...]
    policies: tuple[str, ...] = tuple(POLICIES)
    splits: tuple[str, ...] = ("test", "transfer")
    seeds: int = 3

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigurationError(f"seeds must be at least 1, got {self.seeds}")


_REPAIR = {"families": ["code/repair"]}
_REPAIR_NOTE = "Only `code/repair`: in the other families of CodeTask programs are written, and no call on offer holds the right one."
_ROLLOUTS = {"n_steps": 64, "batch_size": 256}
_CLONING = {"bc_epochs": 4, "bc_batch_size": 64, "dagger_rounds": 1, "learning_rate": 3e-4}
_PAGES = ["click-button", "click-link", "click-tab", "click-test-2", "click-widget", "focus-text-2"]

SMALL = Suite(
    name="small",
    policies=tuple(policy for policy in POLICIES if policy not in ("candidate-ppo-milestones", "bc-maskable-ppo")),
    parts=(
        Part(
            env_id="AgentBase/ToolTask-v0",
            episodes=170,
            steps=4_096,
            bc=5_100,
            dagger=340,
            training={**_ROLLOUTS, "eval_every": 1_024, "eval_episodes": 68},
            cloning=_CLONING,
        ),
        Part(
            env_id="AgentBase/WebTask-v0",
            episodes=102,
            steps=4_096,
            bc=5_100,
            dagger=340,
            training={**_ROLLOUTS, "eval_every": 1_024, "eval_episodes": 68},
            cloning=_CLONING,
        ),
        Part(
            env_id="AgentBase/CodeTask-v0",
            settings=_REPAIR,
            episodes=88,
            steps=4_096,
            bc=450,
            dagger=150,
            training={"n_steps": 32, "batch_size": 256, "eval_every": 1_024, "eval_episodes": 40},
            cloning={"dagger_rounds": 1},
            note=_REPAIR_NOTE,
        ),
        Part(
            env_id="AgentBase/MiniWoB-v0",
            settings={"task": _PAGES},
            episodes=30,
            steps=256,
            bc=90,
            dagger=18,
            training={"n_envs": 8, "n_steps": 8, "batch_size": 64, "eval_every": 64, "eval_episodes": 18},
            cloning={"bc_epochs": 12, "bc_batch_size": 16},
            note="Six plain pages of 128.",
        ),
    ),
)
"""About two hours on two cores; a training takes one minute to eleven. In CPU seconds, beside some 3 to start a command, a
thousand environment steps with their validations cost 10 in ToolTask and in WebTask and 20 in CodeTask; ten demonstrations with their
cloning 0.5, 1 and 1; ten measured episodes 0.5, 0.5 and 1.5. In MiniWoB, where a browser works, it is 100, 5 and 4 seconds by the clock."""

FULL = Suite(
    name="full",
    parts=(
        Part(
            env_id="AgentBase/ToolTask-v0",
            episodes=680,
            steps=60_000,
            bc=10_200,
            dagger=680,
            training={**_ROLLOUTS, "eval_every": 10_000, "eval_episodes": 170},
            cloning=_CLONING,
        ),
        Part(
            env_id="AgentBase/WebTask-v0",
            episodes=680,
            steps=60_000,
            bc=6_800,
            dagger=680,
            training={**_ROLLOUTS, "eval_every": 10_000, "eval_episodes": 170},
            cloning=_CLONING,
        ),
        Part(
            env_id="AgentBase/CodeTask-v0",
            settings=_REPAIR,
            episodes=264,
            steps=30_000,
            bc=570,
            dagger=100,
            training={**_ROLLOUTS, "eval_every": 5_000, "eval_episodes": 60},
            note=_REPAIR_NOTE,
        ),
        Part(
            env_id="AgentBase/MiniWoB-v0",
            settings={"task": "all"},
            episodes=384,
            steps=8_192,
            bc=1_120,
            dagger=224,
            training={"n_steps": 64, "eval_every": 2_048, "eval_episodes": 128},
        ),
    ),
)
"""About a day on two cores, by the same costs: a training takes ten to thirty minutes."""

SUITES: Mapping[str, Suite] = {suite.name: suite for suite in (SMALL, FULL)}
"""The suites by name."""
