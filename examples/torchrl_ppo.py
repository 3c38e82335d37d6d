"""PPO by TorchRL: its wrapper, masks and loss around one of our environments.

    pip install torchrl
    python examples/torchrl_ppo.py --steps 2048

A start, to be built on: the policy begins with nothing and sees the candidates as one long vector, so it solves little; see
``ppo_single_file.py`` for a network that scores them one by one and for demonstrations.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.collectors import Collector
from torchrl.envs import Compose, DTypeCastTransform, GymWrapper, StepCounter, TransformedEnv
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

SEEN = ["text", "data", "candidates"]


class Joined(nn.Module):
    """A network over the parts of an observation, side by side."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, out))

    def forward(self, *parts: Tensor) -> Tensor:
        """``float32[…, out]``."""
        scores: Tensor = self.net(torch.cat(parts, -1))
        return scores


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains; returns the steps it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env-id", default="agent_gym:AgentBase/ToolTask-v0")
    parser.add_argument("--steps", type=int, default=2048)
    parser.add_argument("--rollout", type=int, default=256)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)

    inside = GymWrapper(gymnasium.make(options.env_id, disable_env_checker=True), categorical_action_encoding=True)
    env = TransformedEnv(inside, Compose(DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]), StepCounter()))
    env.set_seed(0)
    size = sum(env.observation_spec[name].shape[-1] for name in SEEN)
    scorer = TensorDictModule(Joined(size, env.action_spec.space.n), SEEN, ["logits"])
    actor = ProbabilisticActor(
        scorer,
        in_keys={"logits": "logits", "mask": "action_mask"},
        spec=env.action_spec,
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(Joined(size, 1), SEEN)
    advantage = GAE(gamma=0.98, lmbda=0.95, value_network=critic)
    objective = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    optimizer = torch.optim.Adam(objective.parameters(), lr=1e-3)

    steps = 0
    collector = Collector(env, actor, frames_per_batch=options.rollout, total_frames=options.steps)
    for rollout in collector:
        steps += rollout.numel()
        for _ in range(4):
            advantage(rollout)
            losses = objective(rollout)
            loss: Any = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{steps} steps: reward {rollout['next', 'reward'].mean():+.3f} a step, loss {loss:.3f}", flush=True)
    collector.shutdown()
    return steps


if __name__ == "__main__":
    main()
