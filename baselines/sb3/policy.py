"""A policy class for Stable-Baselines3 that scores candidates one by one, with the same weights for each.

What it learns about one candidate holds for all, whatever their order and number; padding is never looked at.
"""

from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from agent_gym.errors import ConfigurationError
from agent_gym.interface.features import CANDIDATE_SIZE, CANDIDATES, DATA_SIZE, TEXT_SIZE

__all__ = ["CandidatePolicy"]

_SHAPES = {"text": (TEXT_SIZE,), "data": (DATA_SIZE,), "candidates": (CANDIDATES * CANDIDATE_SIZE,), "action_mask": (CANDIDATES,)}
_MASKED = -1e8
"""The logit of padding: its exponential is exactly 0, and so are its probability and its gradient."""


class CandidatePolicy(MaskableActorCriticPolicy):
    """Actor and critic over the array interface's observations; for MaskablePPO, PPO and A2C alike.

    It masks by ``obs["action_mask"]`` itself, so that algorithms which know nothing of masks can use it.

    Args:
        observation_space: The array interface's.
        action_space: ``Discrete(K)``.
        lr_schedule: The optimizer's first learning rate is its value at 1.
        use_sde: PPO and A2C pass it; only False makes sense.
        width: Units of the hidden layers.
        **keywords: `MaskableActorCriticPolicy`'s, as far as they do not say what the networks look like.

    Raises:
        ConfigurationError: The spaces are not the array interface's.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        use_sde: bool = False,
        width: int = 128,
        **keywords: Any,
    ) -> None:
        inside = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {}
        if {name: space.shape for name, space in inside.items()} != _SHAPES or action_space != spaces.Discrete(CANDIDATES):
            raise ConfigurationError(f"CandidatePolicy acts in the array interface's spaces, not {observation_space} and {action_space}")
        if use_sde:
            raise ConfigurationError("use_sde is for continuous actions; there are none here")
        self.width = width
        fixed: dict[str, Any] = {"net_arch": [], "ortho_init": False, "features_extractor_class": _PassThrough}
        super().__init__(observation_space, action_space, lr_schedule, **{**keywords, **fixed})

    def forward(  # type: ignore[override]
        self, obs: dict[str, Tensor], deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions ``int64[B]``, values ``float32[B, 1]`` and log-probabilities ``float32[B]``.

        That is what the base class gives, which makes and checks three distributions for it: half the time that acting takes.
        """
        logits, latent = self.mlp_extractor(self.extract_features(obs))
        if action_masks is not None:
            logits = logits.masked_fill(~torch.as_tensor(action_masks, dtype=torch.bool, device=logits.device), _MASKED)
        log_probs = logits.log_softmax(1)
        actions = log_probs.argmax(1) if deterministic else log_probs.exp().multinomial(1).squeeze(1)
        return actions, self.value_net(latent), log_probs.gather(1, actions[:, None]).squeeze(1)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _Scorer(self.width)  # type: ignore[assignment]

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        # The scorer's output already is the logits: the layer that SB3 puts on top goes, and the optimizer forgets it.
        self.action_net = nn.Identity()
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        parameters = super()._get_constructor_parameters()
        for name in ("net_arch", "ortho_init", "features_extractor_class"):
            del parameters[name]
        return {**parameters, "width": self.width}


class _PassThrough(BaseFeaturesExtractor):
    """Hands the observation's parts on as they are."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, features_dim=sum(spaces.flatdim(space) for space in observation_space.values()))

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        return observation


class _Scorer(nn.Module):
    """Scores valid candidates only, as one long list of rows, and pools them for the critic.

    Args:
        width: Units of the hidden layers.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.latent_dim_pi, self.latent_dim_vf = CANDIDATES, width
        self.context = nn.Linear(TEXT_SIZE + DATA_SIZE, width)
        self.row = nn.Linear(CANDIDATE_SIZE, width)
        self.joined = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.score = nn.Linear(width, 1)
        self.critic = nn.Sequential(nn.Linear(TEXT_SIZE + DATA_SIZE + 2 * width, width), nn.ReLU())

    def forward(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The logits, ``float32[B, K]``, and what the critic makes of it, ``float32[B, width]``."""
        hidden, valid = self._hidden(observation)
        return self._logits(hidden, valid), self._value(observation, hidden, valid)

    def forward_actor(self, observation: dict[str, Tensor]) -> Tensor:
        """The logits, ``float32[B, K]``."""
        hidden, valid = self._hidden(observation)
        return self._logits(hidden, valid)

    def forward_critic(self, observation: dict[str, Tensor]) -> Tensor:
        """What the critic makes of it, ``float32[B, width]``."""
        hidden, valid = self._hidden(observation)
        return self._value(observation, hidden, valid)

    def _hidden(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The valid rows' embeddings ``[N, width]``, and the mask ``[B, K]``."""
        valid = observation["action_mask"] > 0
        owner, place = valid.nonzero(as_tuple=True)
        rows = observation["candidates"].reshape(-1, CANDIDATES, CANDIDATE_SIZE)[owner, place]
        context = self.context(torch.cat([observation["text"], observation["data"]], dim=1))
        return self.joined(self.row(rows) + context[owner]), valid

    def _logits(self, hidden: Tensor, valid: Tensor) -> Tensor:
        logits = hidden.new_full(valid.shape, _MASKED)
        return logits.masked_scatter(valid, self.score(hidden))

    def _value(self, observation: dict[str, Tensor], hidden: Tensor, valid: Tensor) -> Tensor:
        # Detached: the critic reads what the actor sees, and its errors do not disturb the actor.
        padded = hidden.new_zeros(*valid.shape, hidden.shape[1])
        padded[valid] = hidden.detach()
        mean = padded.sum(1) / valid.sum(1, keepdim=True).clamp(min=1)
        value: Tensor = self.critic(torch.cat([observation["text"], observation["data"], mean, padded.amax(1)], dim=1))
        return value
