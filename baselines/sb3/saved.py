"""Saved models: one zip that is written whole or not at all, says what it is, and acts as a policy."""

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.save_util import load_from_zip_file

from agent_gym.core.policy import Decision, Policy
from agent_gym.core.seeding import derive
from agent_gym.errors import ConfigurationError
from agent_gym.policies.loading import MODEL_CARD
from agent_gym.policies.per_episode import PerEpisode

__all__ = ["SB3Policy", "read_card", "save"]

_NOT_KEPT = ("_last_obs", "_last_episode_starts", "_last_original_obs")


def save(model: BaseAlgorithm, path: Path, card: Mapping[str, Any]) -> None:
    """Saves a model with its optimizer, atomically: whoever dies meanwhile leaves the earlier file as it was.

    Args:
        model: The model.
        path: Where to, ``….zip``.
        card: JSON values to keep with it; `read_card` gives them back.
    """
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        model.save(file, exclude=_NOT_KEPT)
    with zipfile.ZipFile(temporary, "a") as archive:
        archive.writestr(MODEL_CARD, json.dumps({"policy": "agent_gym.baselines.sb3:SB3Policy", **card}))
    temporary.replace(path)


def read_card(path: str | Path) -> dict[str, Any]:
    """What was kept with a model; empty for one that `save` did not write.

    Raises:
        ConfigurationError: The file is missing or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            card: dict[str, Any] = json.loads(archive.read(MODEL_CARD)) if MODEL_CARD in archive.namelist() else {}
            return card
    except (OSError, zipfile.BadZipFile, json.JSONDecodeError) as error:
        raise ConfigurationError(f"{str(path)!r} is no saved model, or a damaged one: {error}") from error


class SB3Policy(Policy):
    """Acts with an actor-critic policy of Stable-Baselines3 (PPO, A2C, MaskablePPO), whatever class it is.

    Args:
        policy: The policy, over the array interface's spaces.
        name: What reports call it.
        version: How much it has learned, such as the steps it was trained for.
        deterministic: Whether to take the likeliest candidate instead of drawing one. It is the better of the two: 0.965 against
            0.938 on 400 validation episodes of ToolTask, seed 0, 40,000 steps.
        seed: Root of the draws; what is drawn in an episode depends on this and the episode's id alone.
    """

    interface: Literal["array", "text"] = "array"

    def __init__(
        self,
        policy: ActorCriticPolicy | MaskableActorCriticPolicy,
        *,
        name: str = "sb3",
        version: int = 0,
        deterministic: bool = True,
        seed: int = 0,
    ) -> None:
        self.policy, self.name, self.version = policy, name, version
        self._deterministic = deterministic
        self._rngs = PerEpisode(lambda episode_id: derive("sb3", seed, episode_id))

    @classmethod
    def load(cls, path: str | Path, *, deterministic: bool = True, seed: int = 0) -> "SB3Policy":
        """Loads a model that `train` or Stable-Baselines3 itself has saved.

        Sets torch to one thread: batches are small, and on a busy machine two threads that wait for each other take many times
        as long as one.

        Raises:
            ConfigurationError: It is missing or damaged, or no actor-critic over discrete actions.
        """
        card = read_card(path)
        torch.set_num_threads(1)
        try:
            data, parameters, _ = load_from_zip_file(path, device="cpu")
        except (KeyError, ValueError, AttributeError, ImportError) as error:
            raise ConfigurationError(f"{str(path)!r} cannot be loaded: {type(error).__name__}: {error}") from error
        kind = (data or {}).get("policy_class")
        if data is None or not (isinstance(kind, type) and issubclass(kind, ActorCriticPolicy | MaskableActorCriticPolicy)):
            raise ConfigurationError(f"{str(path)!r} holds no actor-critic policy of Stable-Baselines3, but {kind}")
        if not isinstance(data["action_space"], spaces.Discrete):
            raise ConfigurationError(f"{str(path)!r} acts in {data['action_space']}, not among candidates")
        policy = kind(data["observation_space"], data["action_space"], lambda _: 0.0, **data["policy_kwargs"])
        policy.load_state_dict(parameters["policy"])  # type: ignore[arg-type]
        policy.set_training_mode(False)
        version = int(data.get("num_timesteps", 0))
        return cls(policy, name=str(card.get("name", Path(path).stem)), version=version, deterministic=deterministic, seed=seed)

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Starts these episodes' randomness anew."""
        self._rngs.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Chooses an index for each, all in one pass through the network."""
        stacked = {name: np.stack([observation[name] for _, observation in batch]) for name in batch[0][1]}
        tensors, _ = self.policy.obs_to_tensor(stacked)
        with torch.no_grad():
            if isinstance(self.policy, MaskableActorCriticPolicy):
                distribution: Any = self.policy.get_distribution(tensors, action_masks=stacked["action_mask"])
            else:
                distribution = self.policy.get_distribution(tensors)
            probabilities = distribution.distribution.probs.double().numpy()
        return [self._decide(episode_id, row) for (episode_id, _), row in zip(batch, probabilities, strict=True)]

    def _decide(self, episode_id: str, probabilities: np.ndarray[Any, Any]) -> Decision:
        if self._deterministic:
            index = int(probabilities.argmax())
        else:
            index = int(self._rngs[episode_id].choice(len(probabilities), p=probabilities / probabilities.sum()))
        return Decision(index, logprob=float(np.log(probabilities[index])))
