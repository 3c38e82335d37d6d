"""PPO by RLlib, with its own module for masked actions.

    pip install "ray[rllib]"
    python examples/rllib_ppo.py --iterations 2

A start, to be built on: the policy begins with nothing and sees the candidates as one long vector, so it solves little; see
``ppo_single_file.py`` for a network that scores them one by one and for demonstrations.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, flatdim
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

SEEN = ("text", "data", "candidates")


class Flat(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The mask, and all the rest as one vector, under the names that the module knows."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        parts: Any = env.observation_space
        size, choices = sum(flatdim(parts[name]) for name in SEEN), flatdim(parts["action_mask"])
        self.observation_space = Dict(
            {"observations": Box(-1.0, 1.0, (size,), np.float32), "action_mask": Box(0.0, 1.0, (choices,), np.float32)}
        )

    def observation(self, observation: Any) -> Any:
        """Reorders one observation."""
        return {
            "observations": np.concatenate([observation[name] for name in SEEN]),
            "action_mask": observation["action_mask"].astype(np.float32),
        }


def make(settings: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Makes an environment; runs in RLlib's workers."""
    return Flat(gymnasium.make("agent_gym:AgentBase/ToolTask-v0", disable_env_checker=True, **settings))


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains; returns the steps it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--rollout", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=0, help="processes that collect; 0: this one does")
    options = parser.parse_args(arguments)
    register_env("agent_gym", make)
    algorithm = (
        PPOConfig()
        .environment("agent_gym", env_config={"families": ["cancel"]})
        .env_runners(num_env_runners=options.workers)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule, model_config={"head_fcnet_hiddens": [128]}))
        .training(gamma=0.98, train_batch_size_per_learner=options.rollout, minibatch_size=128, num_epochs=4)
        .build_algo()
    )
    steps = 0
    for _ in range(options.iterations):
        result = algorithm.train()
        steps = int(result["num_env_steps_sampled_lifetime"])
        print(f"{steps} steps: return {result['env_runners'].get('episode_return_mean', float('nan')):.3f} an episode", flush=True)
    algorithm.stop()
    return steps


if __name__ == "__main__":
    main()
