"""What our learners take for an action's advantage is what it is by hand: cuts are bootstrapped, ends are not, episodes do not mix."""

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

from agent_gym.baselines.sb3 import CandidatePolicy  # noqa: E402
from agent_gym.baselines.sb3.config import ALGORITHMS  # noqa: E402
from agent_gym.factory import load_object, make  # noqa: E402
from agent_gym.runner.adapters import AgentVecEnv  # noqa: E402

GAMMA, LAMBDA = 0.9, 0.8
STEPS = 48
KEYWORDS: dict[str, Any] = {
    "defects": ["break_engine"],
    "shaping": "milestones",
    "gamma": GAMMA,
    "rich_wrappers": [["gymnasium.wrappers:TimeLimit", {"max_episode_steps": 3}]],
}
torch.set_num_threads(1)


@dataclass
class Row:
    """One step as the environment itself saw it."""

    before: Any
    reward: float
    after: Any
    terminated: bool
    truncated: bool
    ending: str


class Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps what passes."""

    def __init__(self, env: gymnasium.Env[Any, Any], rows: list[Row]) -> None:
        super().__init__(env)
        self.rows, self.before = rows, None

    def reset(self, **keywords: Any) -> Any:
        self.before, info = self.env.reset(**keywords)
        return self.before, info

    def step(self, action: Any) -> Any:
        after, reward, terminated, truncated, info = self.env.step(action)
        self.rows.append(Row(self.before, float(reward), after, terminated, truncated, info["ending"]))
        self.before = after
        return after, reward, terminated, truncated, info


class Compared(BaseCallback):
    """Looks at the advantages when the first rollout is complete and nothing has been learned from it yet.

    Args:
        columns: Tells from the observations, flat from column to column, what each column holds.
    """

    def __init__(self, columns: Callable[[dict[str, Any]], list[list[Row]]]) -> None:
        super().__init__()
        self.columns = columns
        self.got = self.expected = np.zeros(0)
        self.endings: set[str] = set()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        if self.got.size:
            return
        buffer: Any = self.model.rollout_buffer  # type: ignore[attr-defined]
        self.got = buffer.advantages.copy()
        columns = self.columns({name: part.swapaxes(0, 1).reshape(-1, part.shape[-1]) for name, part in buffer.observations.items()})
        self.endings = {row.ending for rows in columns for row in rows}
        self.expected = np.stack([self._by_hand(rows) for rows in columns], axis=1)

    def _value(self, observation: Any) -> float:
        tensors, _ = self.model.policy.obs_to_tensor(observation)
        with torch.no_grad():
            return float(self.model.policy.predict_values(tensors))  # type: ignore[operator]

    def _by_hand(self, rows: list[Row]) -> Any:
        """A_t = Σ (γλ)^k δ_{t+k} over the rest of the episode, with δ = r + γV(s′) − V(s), and V = 0 where the task has ended."""
        deltas = [row.reward + GAMMA * (0.0 if row.terminated else self._value(row.after)) - self._value(row.before) for row in rows]
        advantages = []
        for start in range(len(rows)):
            end = next((t for t in range(start, len(rows)) if rows[t].terminated or rows[t].truncated), len(rows) - 1)
            advantages.append(sum((GAMMA * LAMBDA) ** (t - start) * deltas[t] for t in range(start, end + 1)))
        return np.array(advantages)


def valid(rows: list[Row]) -> list[Row]:
    """Without the steps that broke off, at which what came before them is cut."""
    kept: list[Row] = []
    for row in rows:
        if row.ending != "infra_error":
            kept.append(row)
        elif kept and not (kept[-1].terminated or kept[-1].truncated):
            kept[-1] = dataclasses.replace(kept[-1], truncated=True, ending="cut")
    return kept


def cut_off(rows: list[Row]) -> list[Row]:
    """What a rollout has of an environment: its last step does not end there, and counts for what it is."""
    return [*rows[:-1], dataclasses.replace(rows[-1], truncated=True)] if rows else []


SYNCHRONOUS = [name for name in ALGORITHMS if not name.startswith("async-")]
ASYNCHRONOUS = [name for name in ALGORITHMS if name.startswith("async-")]


@pytest.mark.parametrize(
    ("algorithm", "vector"),
    [*itertools.product(SYNCHRONOUS, [DummyVecEnv, AgentVecEnv]), *itertools.product(ASYNCHRONOUS, [AgentVecEnv])],
)
def test_a_truncated_episode_has_the_advantage_that_it_has_by_hand(algorithm: str, vector: Callable[[Any], Any]) -> None:
    seen: list[list[Row]] = [[], []]

    def watched(rows: list[Row]) -> Callable[[], gymnasium.Env[Any, Any]]:
        return lambda: Watched(make(env="agent_gym.testing:SmallTask", **KEYWORDS), rows)

    def columns(seen_by_policy: dict[str, Any]) -> list[list[Row]]:
        """In turn, a column is an environment's. Asynchronously, the second's steps follow upon the first's, of whatever number."""
        learned = [valid(list(rows)) if algorithm in ASYNCHRONOUS else list(rows) for rows in seen]
        for first in range(2 * STEPS + 1) if algorithm in ASYNCHRONOUS else [STEPS]:
            rows = [*cut_off(learned[0][:first]), *cut_off(learned[1][: 2 * STEPS - first])]
            before = {name: np.stack([row.before[name] for row in rows]) for name in seen_by_policy}
            if all(np.array_equal(before[name], part) for name, part in seen_by_policy.items()):
                return [rows[:STEPS], rows[STEPS:]]
        raise AssertionError("nobody has seen these steps")

    envs = vector([watched(rows) for rows in seen])
    model = load_object(ALGORITHMS[algorithm])(
        CandidatePolicy,
        envs,
        n_steps=STEPS,
        batch_size=STEPS,
        n_epochs=1,
        gamma=GAMMA,
        gae_lambda=LAMBDA,
        policy_kwargs={"width": 16},
        seed=0,
        device="cpu",
    )
    compared = Compared(columns)
    model.learn(2 * STEPS, callback=compared)
    envs.close()
    assert compared.endings >= {"failure", "step_limit", "cut" if algorithm in ASYNCHRONOUS else "infra_error", ""}
    np.testing.assert_allclose(compared.got, compared.expected, atol=1e-5)
