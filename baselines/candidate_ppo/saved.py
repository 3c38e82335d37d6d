"""Saved networks: one zip that is written whole or not at all, says what it is, and acts as a policy."""

import io
import json
import os
import pickle
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agent_gym.baselines.candidate_ppo.features import INTERFACE, SCHEMA
from agent_gym.baselines.candidate_ppo.network import Scorer, collate
from agent_gym.core.policy import Decision, Policy
from agent_gym.core.seeding import derive
from agent_gym.errors import ConfigurationError
from agent_gym.policies.loading import MODEL_CARD
from agent_gym.policies.per_episode import PerEpisode

__all__ = ["CandidatePPOPolicy", "read", "write"]

_TENSORS = "tensors.pt"
_DAMAGED = (OSError, KeyError, TypeError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading a zip raises, by what is wrong with it."""
_POLICY = "agent_gym.baselines.candidate_ppo:CandidatePPOPolicy"


def write(path: Path, card: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Writes a file, atomically: whoever dies meanwhile leaves the earlier one as it was.

    Args:
        path: Where to, ``….zip``.
        card: JSON values.
        tensors: Tensors in dicts and lists.
    """
    held = io.BytesIO()
    torch.save(tensors, held)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(temporary, "w") as archive:
        archive.writestr(MODEL_CARD, json.dumps({"policy": _POLICY, "schema": SCHEMA, **card}))
        archive.writestr(_TENSORS, held.getvalue())
    temporary.replace(path)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `write` wrote: the card and the tensors. Nothing in the file is executed.

    Raises:
        ConfigurationError: The file is missing, damaged, or of other features than this version's.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            card = json.loads(archive.read(MODEL_CARD))
            held = archive.read(_TENSORS)  # which compares its checksum
        if not isinstance(card, dict):
            raise TypeError(f"{MODEL_CARD} holds no object")
    except _DAMAGED as error:
        raise ConfigurationError(
            f"{str(path)!r} is no model of CandidatePPO, or a damaged one: {error}; take an earlier copy, or train again in another folder"
        ) from error
    if card.get("schema") != SCHEMA:
        raise ConfigurationError(
            f"{str(path)!r} was trained on features {card.get('schema')!r}, and this version makes {SCHEMA!r}; "
            "train again, or use the version of agent_gym that trained it"
        )
    try:
        tensors = torch.load(io.BytesIO(held), weights_only=True)
        if not isinstance(tensors, dict):
            raise TypeError(f"{_TENSORS} holds no dict")
        return card, tensors
    except (RuntimeError, pickle.UnpicklingError, EOFError, TypeError) as error:
        raise ConfigurationError(f"{str(path)!r} is damaged: {error}; take an earlier copy, or train again in another folder") from error


def network_of(path: str | Path, card: Mapping[str, Any], weights: Mapping[str, Any]) -> Scorer:
    """The network of those weights.

    Raises:
        ConfigurationError: They do not fit what the card says.
    """
    try:
        network = Scorer(card["config"]["width"], card["config"]["embedding"])
        network.load_state_dict(weights)
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ConfigurationError(f"{str(path)!r}: its weights do not fit its configuration: {error}; train again") from error
    return network


class CandidatePPOPolicy(Policy):
    """Acts with a network of CandidatePPO.

    Args:
        network: The network.
        name: What reports call it.
        version: How much it has learned, such as the steps it was trained for.
        deterministic: Whether to take the likeliest candidate instead of drawing one.
        seed: Root of the draws; what is drawn in an episode depends on this and the episode's id alone.
    """

    interface = INTERFACE

    def __init__(
        self, network: Scorer, *, name: str = "candidate-ppo", version: int = 0, deterministic: bool = True, seed: int = 0
    ) -> None:
        self.network, self.name, self.version = network, name, version
        self._deterministic = deterministic
        self._rngs = PerEpisode(lambda episode_id: derive("candidate-ppo", seed, episode_id))

    @classmethod
    def load(cls, path: str | Path, *, deterministic: bool = True, seed: int = 0) -> "CandidatePPOPolicy":
        """Loads a model or a checkpoint that `train` has saved. Sets torch to one thread: batches are small.

        Raises:
            ConfigurationError: It is missing, damaged, or of another version's features.
        """
        card, tensors = read(path)
        torch.set_num_threads(1)
        network = network_of(path, card, tensors.get("network", {}))
        name = str(card.get("name", Path(path).stem))
        return cls(network, name=name, version=int(card.get("steps", 0)), deterministic=deterministic, seed=seed)

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Starts these episodes' randomness anew."""
        self._rngs.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Chooses an index for each, all in one pass through the network."""
        made = collate([observation for _, observation in batch])
        with torch.no_grad():
            scores = self.network(made)
        parts = np.split(scores.log_probs.double().numpy(), made.first[1:].numpy())
        decided = []
        for (episode_id, _), log_probs, value in zip(batch, parts, scores.values.tolist(), strict=True):
            if self._deterministic:
                index = int(log_probs.argmax())
            else:
                shares = np.exp(log_probs)
                index = int(self._rngs[episode_id].choice(len(shares), p=shares / shares.sum()))
            decided.append(Decision(index, logprob=float(log_probs[index]), value=value))
        return decided
