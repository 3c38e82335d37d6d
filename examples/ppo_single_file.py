"""PPO in one file, over nothing but ``gymnasium.make_vec``: masks from the observation, cuts bootstrapped, broken steps left out.

    python examples/ppo_single_file.py --demonstrations 300 --steps 30000

A policy that begins with nothing learns nothing here, since only a task that is solved is rewarded. ``--demonstrations`` are oracle
episodes that are imitated first.
"""

import argparse
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor, nn
from torch.nn import functional

GAMMA, LAMBDA, CLIP, EPOCHS, BATCH = 0.98, 0.95, 0.2, 4, 256


class Agent(nn.Module):
    """Scores every candidate with the same weights, and values the state by what it makes of all of them."""

    def __init__(self, spaces: Any, width: int = 128) -> None:
        super().__init__()
        self.size = gymnasium.spaces.flatdim(spaces["candidates"]) // gymnasium.spaces.flatdim(spaces["action_mask"])
        context = gymnasium.spaces.flatdim(spaces["text"]) + gymnasium.spaces.flatdim(spaces["data"])
        self.context, self.candidate = nn.Linear(context, width), nn.Linear(self.size, width)
        self.score = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.value = nn.Sequential(nn.Linear(context + 2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, seen: dict[str, Tensor]) -> tuple[torch.distributions.Categorical, Tensor]:
        """The distribution over candidates and the value, ``float32[B]``."""
        valid = seen["action_mask"].bool()
        state = torch.cat([seen["text"], seen["data"]], 1)
        rows = self.candidate(seen["candidates"].reshape(*valid.shape, self.size)) + self.context(state)[:, None]
        logits = self.score(rows).squeeze(2).masked_fill(~valid, -1e8)
        rows = rows.detach() * valid[:, :, None]
        value = self.value(torch.cat([state, rows.sum(1) / valid.sum(1, keepdim=True), rows.amax(1)], 1)).squeeze(1)
        return torch.distributions.Categorical(logits=logits), value


def tensors(seen: Any) -> dict[str, Tensor]:
    """Observations as tensors."""
    return {name: torch.as_tensor(np.asarray(part)) for name, part in seen.items()}


def imitate(agent: Agent, optimizer: torch.optim.Optimizer, options: argparse.Namespace) -> None:
    """Learns the oracle's choices, and what they earn."""
    from agent_gym.baselines.sb3 import demonstrate

    env = gymnasium.make(options.env_id, families=options.families)
    shown = demonstrate(env, options.demonstrations, seed=options.seed, gamma=GAMMA)
    env.close()
    observations, actions, returns = tensors(shown.observations), torch.as_tensor(shown.actions), torch.as_tensor(shown.returns)
    for _ in range(10):
        for rows in torch.split(torch.randperm(len(actions)), 32):
            chosen, values = agent({name: part[rows] for name, part in observations.items()})
            update(agent, optimizer, -chosen.log_prob(actions[rows]).mean() + 0.5 * functional.mse_loss(values, returns[rows]))


def update(agent: Agent, optimizer: torch.optim.Optimizer, loss: Any) -> None:
    """One step down the gradient."""
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()


def final(infos: dict[str, Any], name: str, n: Any) -> Any:
    """What the last info of an episode that has just ended says; None if nothing."""
    told = infos["final_info"]
    return told[name][n] if name in told and told[f"_{name}"][n] else None


def main(arguments: Sequence[str] | None = None) -> float:
    """Trains; returns the success rate of the newest hundred episodes, NaN if none has ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env-id", default="agent_gym:AgentBase/ToolTask-v0")
    parser.add_argument("--families", nargs="+", default=["cancel", "change_address", "exchange"])
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--rollout", type=int, default=64, help="steps of each environment between updates")
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--demonstrations", type=int, default=0)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)

    keywords = {"autoreset_mode": AutoresetMode.SAME_STEP}
    envs = gymnasium.make_vec(options.env_id, options.envs, vector_kwargs=keywords, families=options.families)
    agent = Agent(envs.single_observation_space)
    optimizer = torch.optim.Adam(agent.parameters(), lr=options.learning_rate)
    if options.demonstrations:
        imitate(agent, optimizer, options)

    solved: deque[float] = deque(maxlen=100)
    shape = (options.rollout, options.envs)
    seen = tensors(envs.reset(seed=options.seed)[0])
    for number in range(math.ceil(options.steps / (options.rollout * options.envs))):
        seens: list[dict[str, Tensor]] = []
        actions, log_probs = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
        rewards, values, lasts = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
        valid = torch.ones(shape, dtype=torch.bool)
        for t in range(options.rollout):
            with torch.no_grad():
                chosen, values[t] = agent(seen)
            actions[t] = chosen.sample()
            log_probs[t] = chosen.log_prob(actions[t])
            seens.append(seen)
            observations, earned, terminated, truncated, infos = envs.step(actions[t].numpy())
            rewards[t], lasts[t] = torch.as_tensor(earned), torch.as_tensor(terminated | truncated)
            for n in np.flatnonzero(terminated | truncated):
                solved.append(float(final(infos, "success", n) or 0.0))
                if not final(infos, "reward_valid", n):
                    valid[t, n], rewards[t, n] = False, values[t, n]  # what came before is worth what it led to
                elif not terminated[n]:  # cut off, not over: what would have followed is worth something
                    with torch.no_grad():
                        _, ahead = agent({name: part[None] for name, part in tensors(infos["final_obs"][n]).items()})
                    rewards[t, n] += GAMMA * ahead[0]
            seen = tensors(observations)

        with torch.no_grad():
            _, ahead = agent(seen)
        advantages, advantage = torch.zeros(shape), torch.zeros(options.envs)
        for t in reversed(range(options.rollout)):
            delta = rewards[t] + GAMMA * ahead * (1 - lasts[t]) - values[t]
            advantage = advantages[t] = delta + GAMMA * LAMBDA * (1 - lasts[t]) * advantage
            ahead = values[t]

        rows = {name: torch.cat([part[name] for part in seens]) for name in seens[0]}
        returns, flat = (advantages + values).flatten(), advantages.flatten()
        learned_from = valid.flatten().nonzero().squeeze(1)
        for _ in range(EPOCHS):
            for some in torch.split(learned_from[torch.randperm(len(learned_from))], BATCH):
                chosen, value = agent({name: part[some] for name, part in rows.items()})
                ratio = (chosen.log_prob(actions.flatten()[some]) - log_probs.flatten()[some]).exp()
                advantage = (flat[some] - flat[some].mean()) / (flat[some].std(correction=0) + 1e-8)
                gain = torch.min(advantage * ratio, advantage * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
                loss = -gain - 0.01 * chosen.entropy().mean() + 0.5 * functional.mse_loss(value, returns[some])
                update(agent, optimizer, loss)
        steps = (number + 1) * options.rollout * options.envs
        print(f"{steps} steps: {np.mean(solved) if solved else math.nan:.2f} of the newest {len(solved)} episodes solved", flush=True)
    envs.close()
    return float(np.mean(solved)) if solved else math.nan


if __name__ == "__main__":
    main()
