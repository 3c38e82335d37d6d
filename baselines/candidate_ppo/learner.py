"""CandidatePPO: demonstrations are cloned, then PPO goes on from there on what comes from environments that each go at their own pace.

`train` reads from top to bottom. What it is made of: `features` (what is seen), `network` (what scores it), `collector` (where rollouts
come from), `loss` (what is minimised), `imitation` (what is cloned).
"""

import functools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

from agent_gym.baselines.candidate_ppo.collector import Collector, Step
from agent_gym.baselines.candidate_ppo.config import CandidatePPOConfig
from agent_gym.baselines.candidate_ppo.features import INTERFACE
from agent_gym.baselines.candidate_ppo.imitation import warm_start
from agent_gym.baselines.candidate_ppo.loss import objective, vtrace
from agent_gym.baselines.candidate_ppo.network import Scorer, collate, entropy, relative_entropy
from agent_gym.baselines.candidate_ppo.sampler import TaskSampler
from agent_gym.baselines.candidate_ppo.saved import CandidatePPOPolicy, network_of, read, write
from agent_gym.baselines.run_folder import Bars, Keeper, TrainResult, prepare, write_json
from agent_gym.core.seeding import derive, derive_seed
from agent_gym.errors import ConfigurationError
from agent_gym.runner import AsyncPool
from agent_gym.trajectories.store import Run
from agent_gym.wrappers import RecordTrajectory, StateLeakCheck

__all__ = ["Learner", "train"]

_LEAK_CHECK_EVERY = 500
_CHUNK = 512
_HOPELESS = 50
"""Episodes of a family without one success, after which that is said."""


def train(
    config: CandidatePPOConfig, folder: str | Path, *, store: Run | None = None, resume: bool = False, progress: bool | None = None
) -> TrainResult:
    """Trains a policy.

    With ``lag_max`` 0 two equal runs on the same machine learn the same, and a run that was killed and goes on from its checkpoint the
    same as one that was never broken off: every ``checkpoint_every`` steps all episodes are begun anew. One that ``time_limit_s`` ended
    begins them anew where that was. With more, which steps fall into which rollout depends on how long things take.

    Args:
        config: What to do.
        folder: The run's folder; beside what `agent_gym.baselines.run_folder` says, ``summary.json`` says what was learned.
        store: A run of a trajectory store, which keeps every episode that is learned from.
        resume: Go on from the folder's checkpoint, or from the start if there is none yet. ``steps``, ``time_limit_s``,
            ``threads`` and ``backend`` may have changed.
        progress: Whether to show a progress bar on stderr; by default, if stderr is a terminal.

    Raises:
        ConfigurationError: The folder holds a run already, or another one than is to be resumed; its checkpoint is damaged or of another
            version's features; the environment or its oracle does not fit; or the loss is no number any more.
        StateLeakError: A reset left something behind; what was learned until then is in the checkpoint.
        InfrastructureError: The environments fail.
    """
    folder = Path(folder)
    going_on = prepare(config, folder, resume)
    torch.set_num_threads(config.threads)
    make = functools.partial(_make_env, config, store)
    shown = make("oracle")
    selection = _selection(shown, config)
    shown.close()
    sampler = TaskSampler(selection, floor=config.curriculum_floor, seed=config.seed)
    learner = Learner(config)
    summary: dict[str, Any] = {}
    state: Mapping[str, Any] = {}
    if going_on:
        state, tensors = read(folder / "checkpoint.zip")
        learner.load_state_dict(folder / "checkpoint.zip", state, tensors)
        summary["imitation"] = state["imitation"]
    with (
        Bars(progress) as bars,
        # What was told after the checkpoint comes again.
        SummaryWriter(str(folder / "tensorboard"), purge_step=learner.steps + 1 if learner.steps else None) as board,
        AsyncPool(functools.partial(make, "policy"), config.n_envs, backend=config.backend, seed=config.seed) as pool,
    ):
        collector = Collector(pool, config, sampler)
        if going_on:
            collector.load_state_dict(state["collector"])
            sampler.load_state_dict(state["sampler"])

        def save(path: Path, card: Mapping[str, Any], resumable: bool) -> None:
            if resumable:
                going = {"learner": learner.card(), "collector": collector.state_dict(), "sampler": sampler.state_dict(), **summary}
                write(path, {**card, **going}, learner.state_dict())
            else:
                write(path, card, {"network": learner.network.state_dict()})

        keeper = Keeper(config, folder, state, lambda: CandidatePPOPolicy(learner.network, version=learner.steps), save, bars)
        if not going_on:
            summary["imitation"] = warm_start(learner.network, make, selection, config, bars, board)
            learner.keep_prior()
        bars.begin("CandidatePPO", config.steps, learner.steps)
        keeper.keep(learner.steps)
        if learner.steps < config.steps:
            collector.restart()
        while learner.steps < config.steps and not keeper.out_of_time:
            rollout = collector.collect(learner.network)
            told = learner.update(rollout, collector.version)
            collector.version += 1
            _tell(board, learner.steps, told, collector, sampler)
            bars.show(learner.steps)
            if keeper.keep(learner.steps) and config.lag_max == 0 and learner.steps < config.steps:
                collector.restart()
        keeper.keep(learner.steps, last=True)
    hopeless = _hopeless(sampler, config)
    result = TrainResult(folder / "model.zip", learner.steps, keeper.seconds, keeper.curve)
    rates = {family: [sampler.solved[family], played] for family, played in sampler.played.items() if played}
    summary |= {"steps": result.steps, "seconds": result.seconds, "updates": collector.version, "episodes": collector.episodes}
    summary |= {"solved_of_played": rates, "never_solved": hopeless, "newest": learner.told, "curve": result.curve}
    write_json(folder / "summary.json", summary)
    return result


class Learner:
    """The network, its optimizer, and what they have learned from so far.

    Args:
        config: What was asked for.
    """

    def __init__(self, config: CandidatePPOConfig) -> None:
        self.config = config
        torch.manual_seed(derive_seed("network", config.seed))
        self.network = Scorer(config.width, config.embedding)
        self.prior: Scorer | None = None
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, fused=True)
        self.steps = 0
        self.told: dict[str, float] = {}
        self._rng = derive("minibatches", config.seed)

    def keep_prior(self) -> None:
        """From now on what the network is now is what it does not go far from."""
        if self.config.bc_kl and (self.config.bc or self.config.demos or self.config.dagger):
            self.prior = Scorer(self.config.width, self.config.embedding)
            self.prior.load_state_dict(self.network.state_dict())

    def update(self, rollout: Sequence[Step], version: int) -> dict[str, float]:
        """Learns from a rollout.

        Args:
            rollout: Steps, fragment after fragment.
            version: Updates before this one.

        Returns:
            What there is to say of it, by name.

        Raises:
            ConfigurationError: The loss is no number any more.
        """
        config = self.config
        left = max(0.0, 1 - self.steps / config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = config.final_learning_rate + left * (config.learning_rate - config.final_learning_rate)
        pull = config.bc_kl * max(0.0, 1 - self.steps / (config.steps * config.bc_kl_until))
        observations = [step.observation for step in rollout]
        values, proximal, priors = self._before(rollout, pull > 0)
        last = np.array([step.last for step in rollout])
        behaviour = np.array([step.log_prob for step in rollout])
        targets = vtrace(
            np.array([step.reward for step in rollout]),
            values,
            self._following(rollout, values),
            last,
            proximal - behaviour,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            ratio_clip=config.ratio_clip,
        )
        weights = np.exp(np.minimum(proximal - behaviour, np.log(config.weight_clip)))
        effective = float(weights.sum() ** 2 / (len(weights) * (weights**2).sum()))
        advantages = (targets.advantages - targets.advantages.mean()) / (targets.advantages.std() + 1e-8)
        actions = np.array([step.action for step in rollout])
        sums: dict[str, list[float]] = {}
        # Where few steps carry all the weight, more passes over them would only fit these.
        for _ in range(config.epochs if effective >= 0.5 else 1):
            for chosen in np.array_split(self._rng.permutation(len(rollout)), max(1, round(len(rollout) / config.batch_size))):
                batch = collate([observations[i] for i in chosen])
                scores = self.network(batch)
                log_probs = scores.log_probs[batch.first + torch.from_numpy(actions[chosen])]
                told = objective(
                    log_probs,
                    _floats(proximal[chosen]),
                    _floats(behaviour[chosen]),
                    _floats(advantages[chosen]),
                    clip_range=config.clip_range,
                    weight_clip=config.weight_clip,
                )
                value_loss = functional.mse_loss(scores.values, _floats(targets.values[chosen]))
                spread = entropy(scores.log_probs, batch.owner, len(chosen)).mean()
                loss = told.loss + config.vf_coef * value_loss - config.ent_coef * spread
                parts = {"loss/policy": told.loss, "loss/value": value_loss, "policy/entropy": spread, "policy/clipped": told.clipped}
                if priors is not None:
                    prior = torch.cat([priors[i] for i in chosen])
                    parts["policy/kl_to_bc"] = relative_entropy(scores.log_probs, prior, batch.owner, len(chosen)).mean()
                    loss = loss + pull * parts["policy/kl_to_bc"]
                self._descend(loss)
                for name, part in parts.items():
                    sums.setdefault(name, []).append(float(part.detach()))
        self.steps += len(rollout)
        lags = [version - step.version for step in rollout]
        self.told = {name: float(np.mean(part)) for name, part in sums.items()}
        self.told |= {"lag/mean": float(np.mean(lags)), "lag/max": max(lags), "lag/effective_share": effective}
        self.told |= {"rollout/steps": len(rollout), "loss/learning_rate": self.optimizer.param_groups[0]["lr"]}
        return self.told

    def _before(self, rollout: Sequence[Step], with_prior: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], list[Any] | None]:
        """Values and log-probabilities at the start of an update, and those of all candidates under the cloned policy."""
        values, chosen = [], []
        priors: list[torch.Tensor] = []
        with torch.no_grad():
            for start in range(0, len(rollout), _CHUNK):
                steps = rollout[start : start + _CHUNK]
                batch = collate([step.observation for step in steps])
                scores = self.network(batch)
                values.append(scores.values.double().numpy())
                chosen.append(scores.log_probs[batch.first + torch.tensor([step.action for step in steps])].double().numpy())
                if with_prior and self.prior is not None:
                    priors += torch.tensor_split(self.prior(batch).log_probs, batch.first[1:])
        return np.concatenate(values), np.concatenate(chosen), priors or None

    def _following(self, rollout: Sequence[Step], values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The value of what came after each step; 0 where the episode terminated."""
        following = np.append(values[1:], 0.0)
        following[[at for at, step in enumerate(rollout) if step.last]] = 0.0
        cuts = [at for at, step in enumerate(rollout) if step.ahead is not None]
        for start in range(0, len(cuts), _CHUNK):
            some = cuts[start : start + _CHUNK]
            with torch.no_grad():
                following[some] = self.network(collate([rollout[at].ahead for at in some])).values.double().numpy()
        return following

    def _descend(self, loss: torch.Tensor) -> None:
        if not torch.isfinite(loss):
            raise ConfigurationError(
                f"after {self.steps} steps the loss is {float(loss.detach())}: learning has diverged. The checkpoint is from before. Train "
                f"again in another folder, with a smaller learning_rate (now {self.config.learning_rate:g}), clip_range or max_grad_norm. "
                "Rewards that are not finite, or very large, do this too"
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_grad_norm)
        self.optimizer.step()

    def card(self) -> dict[str, Any]:
        """Counters and randomness, as JSON values."""
        return {"steps": self.steps, "rng": self._rng.bit_generator.state, "told": self.told}

    def state_dict(self) -> dict[str, Any]:
        """The tensors."""
        prior = None if self.prior is None else self.prior.state_dict()
        return {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict(), "prior": prior}

    def load_state_dict(self, path: Path, card: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        """Goes on from there.

        Raises:
            ConfigurationError: It is no checkpoint, or of another network.
        """
        try:
            own = card["learner"]
            self.network.load_state_dict(network_of(path, card, tensors["network"]).state_dict())
            self.optimizer.load_state_dict(tensors["optimizer"])
            self.prior = None if tensors["prior"] is None else network_of(path, card, tensors["prior"])
            self.steps, self.told, self._rng.bit_generator.state = own["steps"], own["told"], own["rng"]
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError(f"{str(path)!r} is no checkpoint to go on from: {error!r}; train again in another folder") from error


def _floats(values: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _make_env(config: CandidatePPOConfig, store: Run | None, source: str) -> gymnasium.Env[Any, Any]:
    env = gymnasium.make(config.env_id, interface=INTERFACE, disable_env_checker=True, **{"split": "train", **config.env_kwargs})
    # What the policy learns from by itself is checked as often as the run as a whole plays so many episodes.
    env = StateLeakCheck(env, every=_LEAK_CHECK_EVERY if source == "oracle" else max(1, _LEAK_CHECK_EVERY // config.n_envs))
    if store is None:
        return env
    return RecordTrajectory(env, store, source=source, policy_id="oracle" if source == "oracle" else config.algo)


def _selection(env: gymnasium.Env[Any, Any], config: CandidatePPOConfig) -> Any:
    given = {name: config.env_kwargs[name] for name in ("families", "difficulty", "task_ids") if config.env_kwargs.get(name) is not None}
    return env.get_wrapper_attr("tasks").select(config.env_kwargs.get("split", "train"), **given)


def _hopeless(sampler: TaskSampler, config: CandidatePPOConfig) -> list[str]:
    """Families that were never solved in many episodes; says so."""
    found = [family for family, played in sampler.played.items() if played >= _HOPELESS and not sampler.solved[family]]
    if found:
        remedy = f"more demonstrations (bc, now {config.bc}) or DAgger (dagger, now {config.dagger})"
        warnings.warn(
            f"no episode of {', '.join(found)} succeeded, of {min(sampler.played[family] for family in found)} or more each: the outcome "
            f"teaches nothing there. Try {remedy}; and agent-gym check tasks, to see that the oracle solves them",
            stacklevel=3,
        )
    return found


def _tell(board: SummaryWriter, steps: int, told: Mapping[str, float], collector: Collector, sampler: TaskSampler) -> None:
    for name, value in told.items():
        board.add_scalar(name, value, steps)
    if collector.rewards:
        board.add_scalar("rollout/episode_reward", float(np.mean(collector.rewards)), steps)
        collector.rewards.clear()
    played = sum(sampler.played.values())
    if played:
        board.add_scalar("rollout/solved_so_far", sum(sampler.solved.values()) / played, steps)
