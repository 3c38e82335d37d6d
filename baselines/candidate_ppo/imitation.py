"""Imitation: behaviour cloning of the oracle and of recorded episodes, and DAgger, on CandidatePPO's network.

DAgger (Ross, Gordon, Bagnell 2011, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online Learning"): the policy
plays, and the oracle says at each step what it would do there. So the policy learns what to do where it gets to by itself.
"""

import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter

from agent_gym.baselines.candidate_ppo.config import CandidatePPOConfig
from agent_gym.baselines.candidate_ppo.features import RaggedEncoder
from agent_gym.baselines.candidate_ppo.network import Scorer, collate
from agent_gym.baselines.candidate_ppo.playing import Advice, Visit, play
from agent_gym.baselines.run_folder import Bars
from agent_gym.baselines.sb3.bc import discounted
from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.seeding import derive, derive_seed
from agent_gym.core.task import Selection
from agent_gym.core.tool import ToolSpec
from agent_gym.errors import ConfigurationError
from agent_gym.interface.candidates import Toolbox
from agent_gym.runner import AsyncPool
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["Example", "clone", "dagger", "demonstrations", "recorded", "stratified", "warm_start"]

_BLOCK = 12
"""Tasks of a family that are looked at at once for their difficulty: to know it, a task has to be made."""


@dataclass(frozen=True)
class Example:
    """What to do at one observation.

    Attributes:
        observation: The ragged interface's.
        action: Index of the call among the candidates.
        returns: Discounted reward from here on; None where nobody knows.
        weight: How much it counts.
    """

    observation: Mapping[str, Any]
    action: int
    returns: float | None = None
    weight: float = 1.0


def warm_start(
    network: Scorer,
    make: Callable[[str], gymnasium.Env[Any, Any]],
    selection: Selection,
    config: CandidatePPOConfig,
    bars: Bars,
    board: SummaryWriter,
) -> dict[str, Any]:
    """Clones what is there to be cloned, and goes on with DAgger, as the configuration says.

    Args:
        network: Learns.
        make: Makes an environment with the ragged interface, whose oracle demonstrates, for who is to act in it: ``oracle`` or ``policy``.
        selection: The tasks.
        config: What was asked for.
        bars: Shows how far it is.
        board: Is told the loss of each epoch.

    Returns:
        ``examples``, ``demonstrations``, ``recorded``, ``dagger``: how many steps and episodes there were; ``loss`` and ``accuracy`` of
        the last epoch. Empty where nothing is imitated.

    Raises:
        ConfigurationError: There is nothing to clone, or the oracle fails or is not observational.
        InfrastructureError: The environments fail.
    """
    examples: list[Example] = []
    told: dict[str, Any] = {}
    epochs = itertools.count()

    def learn(passes: int, learning_rate: float) -> None:
        def say(figures: Mapping[str, float]) -> None:
            bars.advance()
            at = next(epochs)
            for name, figure in figures.items():
                board.add_scalar(f"imitation/{name}", figure, at)

        bars.begin("cloning", passes)
        rate = {"batch_size": config.bc_batch_size, "learning_rate": learning_rate, "seed": config.seed}
        told.update(clone(network, examples, epochs=passes, progress=say, **rate))  # type: ignore[arg-type]

    def pool(source: str) -> AsyncPool:
        return AsyncPool(functools.partial(_advised, make, source), config.n_envs, backend=config.backend, seed=config.seed)

    rounds = _rounds(selection, config)
    if config.bc:
        bars.begin("demonstrations", config.bc)
        with pool("oracle") as envs:
            shown = demonstrations(envs, stratified(selection, config.bc, config.seed), config, progress=bars.advance)
        told["demonstrations"] = len(shown)
        examples += itertools.chain.from_iterable(shown)
    if config.demos is not None:
        found = list(recorded(TrajectoryStore(config.demos), config.env_id, selection, gamma=config.gamma))
        told["recorded"] = len(found)
        examples += itertools.chain.from_iterable(found)
    if (config.bc or config.demos is not None) and not examples:
        raise ConfigurationError("none of the demonstrations succeeded with the calls on offer, so there is nothing to clone")
    if examples:
        learn(config.bc_epochs, config.bc_learning_rate)
    if rounds:
        with pool("policy") as envs:
            for number, tasks in enumerate(rounds):
                bars.begin(f"DAgger {number + 1} of {len(rounds)}", len(tasks))
                examples += dagger(network, envs, tasks, config, oracle_share=0.5 ** (number + 1), number=number, progress=bars.advance)
                if not examples:
                    raise ConfigurationError("the oracle's call was nowhere on offer, so DAgger has nothing to clone")
                learn(max(1, config.bc_epochs // 2), config.bc_learning_rate / 2)
        told["dagger"] = config.dagger
    return {**told, "examples": len(examples)} if examples else {}


def _rounds(selection: Selection, config: CandidatePPOConfig) -> list[list[str]]:
    """The tasks of each round of DAgger."""
    count = min(config.dagger_rounds, config.dagger)
    shares = [config.dagger // count + (number < config.dagger % count) for number in range(count)]
    rounds = [stratified(selection, share, derive_seed("dagger", config.seed, number)) for number, share in enumerate(shares)]
    for task in itertools.chain.from_iterable(rounds):
        if (kind := selection.get(task).oracle_kind) != "observational":
            raise ConfigurationError(
                f"task {task!r}: its oracle is {kind!r}, and DAgger asks it about states that the policy got into; leave DAgger out "
                "(dagger 0), or name families with an observational oracle"
            )
    return rounds


def demonstrations(
    pool: AsyncPool, task_ids: Sequence[str], config: CandidatePPOConfig, *, progress: Callable[[], None] = lambda: None
) -> list[list[Example]]:
    """Lets the oracle play.

    Args:
        pool: Environments with `Advice`.
        task_ids: What is played.
        config: What was asked for.
        progress: Called after each episode.

    Returns:
        The episodes that succeeded. Left out are those in which the oracle's call is not on offer (in long tasks there can be more calls
        than candidates), and, where faults are injected, those that bad luck makes too long.

    Raises:
        ConfigurationError: The oracle fails, and says for which task.
        InfrastructureError: The environments fail.
    """
    faulty = any(pool.call("faulty"))
    kept: list[list[Example]] = []
    for visits, info in play(pool, task_ids, lambda met: [visit.oracle for _, visit in met], seed=config.seed, progress=progress):
        if info.get("success"):
            ahead = discounted([visit.reward for visit in visits], config.gamma)
            kept.append([Example(visit.observation, visit.action, rest) for visit, rest in zip(visits, ahead, strict=True)])
        elif info.get("reward_valid") and not faulty:
            raise ConfigurationError(f"task {info['task_id']!r}: its oracle ends with {info['ending']!r}, so it shows nothing to clone")
    return kept


def clone(
    network: Scorer,
    examples: Sequence[Example],
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    progress: Callable[[Mapping[str, float]], None] = lambda _: None,
) -> dict[str, float]:
    """Teaches the actor the choices, and the critic the returns as far as they are known.

    Args:
        network: Learns; with an optimizer of its own, Adam, whose learning rate falls to a tenth.
        examples: What to imitate.
        epochs: Passes over all of it.
        batch_size: Steps in one gradient step.
        learning_rate: At the start.
        seed: Of the order of steps.
        progress: Called after each epoch with what is returned in the end.

    Returns:
        ``loss`` (weighted mean negative log-likelihood, in nats) and ``accuracy`` (how often the choice was the likeliest candidate) in
        the last epoch, as seen while learning.

    Raises:
        ConfigurationError: The loss is no number.
    """
    rng = derive("clone", seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, fused=True)
    batches = max(1, round(len(examples) / batch_size))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=epochs * batches)
    actions = torch.tensor([example.action for example in examples])
    weights = torch.tensor([example.weight for example in examples])
    known = torch.tensor([example.returns is not None for example in examples])
    returns = torch.tensor([0.0 if example.returns is None else example.returns for example in examples])
    told: dict[str, float] = {}
    network.train()
    for _ in range(epochs):
        loss_sum = hits = 0.0
        for chosen in np.array_split(rng.permutation(len(examples)), batches):
            batch = collate([examples[i].observation for i in chosen])
            scores = network(batch)
            log_probs = scores.log_probs[batch.first + actions[chosen]]
            missed = ((scores.values - returns[chosen]) ** 2 * known[chosen]).sum() / known[chosen].sum().clamp(min=1)
            imitated = -(weights[chosen] * log_probs).sum() / weights[chosen].sum()
            loss = imitated + 0.5 * missed
            if not torch.isfinite(loss):
                raise ConfigurationError(f"cloning has diverged: the loss is {loss.item()}; try a bc_learning_rate below {learning_rate:g}")
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            loss_sum += float(imitated.detach()) * len(chosen)
            offered = scores.log_probs.detach()
            best = offered.new_full((len(chosen),), -torch.inf).scatter_reduce(0, batch.owner, offered, "amax")
            hits += float((log_probs.detach() >= best).sum())
        told = {"loss": loss_sum / len(examples), "accuracy": hits / len(examples)}
        progress(told)
    network.eval()
    return told


def dagger(
    network: Scorer,
    pool: AsyncPool,
    task_ids: Sequence[str],
    config: CandidatePPOConfig,
    *,
    oracle_share: float,
    number: int,
    progress: Callable[[], None] = lambda: None,
) -> list[Example]:
    """Lets the policy play and notes what the oracle would do.

    Args:
        network: The policy; it takes the likeliest candidate.
        pool: Environments with `Advice`.
        task_ids: What is played.
        config: What was asked for.
        oracle_share: In how many of the steps the oracle acts itself.
        number: Of the round.
        progress: Called after each episode.

    Returns:
        Every state that was met where the oracle's call is on offer.

    Raises:
        InfrastructureError: The environments fail.
    """
    rngs = [derive("dagger", config.seed, number, place) for place in range(len(task_ids))]
    found: list[list[Example]] = [[] for _ in task_ids]

    def choose(met: Sequence[tuple[int, Visit]]) -> list[int | None]:
        batch = collate([visit.observation for _, visit in met])
        with torch.no_grad():
            parts = torch.tensor_split(network(batch).log_probs, batch.first[1:])
        actions: list[int | None] = []
        for (place, visit), log_probs in zip(met, parts, strict=True):
            action = int(log_probs.argmax())
            if visit.oracle is not None:
                key = action != visit.oracle or visit.oracle_changes
                found[place].append(Example(visit.observation, visit.oracle, None, config.key_weight if key else 1.0))
                if rngs[place].random() < oracle_share:
                    action = visit.oracle
            actions.append(action)
        return actions

    play(pool, task_ids, choose, seed=derive_seed("dagger", config.seed, number), progress=progress)
    return list(itertools.chain.from_iterable(found))


def _advised(make: Callable[[str], gymnasium.Env[Any, Any]], source: str) -> gymnasium.Env[Any, Any]:
    return Advice(make(source))


def stratified(selection: Selection, count: int, seed: int) -> list[str]:
    """Tasks in equal shares over families, and within each over its difficulties; none twice before all of its family were had.

    Args:
        selection: What there is.
        count: How many tasks.
        seed: Of the order.
    """
    low, high = selection.difficulty or (0.0, 1.0)
    families = [_in_turn(selection, family, low, high, derive("stratified", seed, family)) for family in selection.by_family]
    shares = [count // len(families) + (place < count % len(families)) for place in range(len(families))]
    taken = [list(itertools.islice(family, share)) for family, share in zip(families, shares, strict=True)]
    if short := [family for family, tasks in zip(selection.by_family, taken, strict=True) if not tasks and count >= len(families)]:
        raise ConfigurationError(f"no task of {', '.join(short)} has a difficulty within [{low:g}, {high:g}]")
    return [task for turn in itertools.zip_longest(*taken) for task in turn if task is not None]


def _in_turn(selection: Selection, family: str, low: float, high: float, rng: np.random.Generator) -> Iterator[str]:
    ids = selection.by_family[family]
    found = True
    while found:  # again from the start once all were had: other seeds make other episodes of them
        found = False
        order = rng.permutation(len(ids))
        for start in range(0, len(ids), _BLOCK):
            strata: dict[float, list[str]] = {}
            for at in order[start : start + _BLOCK]:
                if low <= (difficulty := selection.get(ids[at]).difficulty) <= high:
                    strata.setdefault(difficulty, []).append(ids[at])
            found |= bool(strata)
            yield from (task for turn in itertools.zip_longest(*strata.values()) for task in turn if task is not None)


def recorded(store: TrajectoryStore, env_id: str, selection: Selection, *, gamma: float) -> Iterator[list[Example]]:
    """The successful episodes of a store, with candidates as they would have been offered; each family counts alike.

    Left out are what a policy played, episodes whose steps were not kept, and steps whose call is not among the candidates: a person can
    write what cannot be chosen.

    Args:
        store: The store.
        env_id: Whose episodes.
        selection: Of which tasks; what is measured on is not learned from.
        gamma: Discount of the returns.
    """
    name = env_id.rpartition(":")[2].replace("'", "''")
    low, high = selection.difficulty or (0.0, 1.0)
    ids = {family: frozenset(tasks) for family, tasks in selection.by_family.items()}
    rows = [
        row
        for row in store.episodes(where=f"env_id = '{name}' AND outcome = 'success' AND source <> 'policy'")
        if row["task_id"] in ids.get(row["task_type"], ()) and low <= selection.get(row["task_id"]).difficulty <= high
    ]
    episodes_of = Counter(row["task_type"] for row in rows)
    for row in rows:
        weight = len(rows) / (len(episodes_of) * episodes_of[row["task_type"]])
        episode = store.episode(row["episode_id"])
        steps = list(store.steps(row["episode_id"]))
        if episode["tools"] is None or not steps:
            continue
        functions = [tool.get("function", tool) for tool in json.loads(episode["tools"])]
        toolbox = Toolbox([ToolSpec(name=one["name"], description=one["description"], parameters=one["parameters"]) for one in functions])
        seen = [json.loads(step["obs_data"]) for step in steps]
        ahead = discounted([step["reward"] or 0.0 for step in steps[1:]], gamma)
        encoder = RaggedEncoder(seen[0]["goal"], toolbox)
        found: list[Example] = []
        for data, step, returns in zip(seen, steps[1:], ahead, strict=False):
            observation = encoder.encode(data)
            if step["action"] is not None:
                call = json.loads(step["action"])
                key = dumps(ToolCall(call["name"], call["arguments"]).to_dict())
                index = next((i for i, candidate in enumerate(encoder.encoder.offered) if candidate.key == key), None)
                if index is not None:
                    found.append(Example(observation, index, returns, weight))
        if found:
            yield found
