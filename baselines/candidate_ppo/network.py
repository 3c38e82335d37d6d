"""The network: scores each candidate of each observation with the same weights, as one long list of rows.

Nothing is padded. What a row weighs depends on its observation and itself alone, so neither the order of the candidates nor their number,
nor what else is in the batch, changes anything but the softmax over an observation's own rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from agent_gym.baselines.candidate_ppo.features import BAGS, BUCKETS, STATE_SIZE
from agent_gym.interface.features import CANDIDATE_SIZE

__all__ = ["Batch", "Scorer", "Scores", "collate", "entropy", "log_softmax", "relative_entropy"]


class Batch(NamedTuple):
    """Observations of B decisions with N candidates in all.

    Attributes:
        state: The observations' numbers, ``float32[B, S]``.
        rows: The candidates' numbers, ``float32[N, C]``.
        ids: All tokens, ``int64[L]``: first those of each observation's bags, then those of each candidate's.
        offsets: Where each bag begins, ``int64[BAGS · B + N]``.
        owner: The observation that each candidate belongs to, ascending, ``int64[N]``.
        first: Where each observation's candidates begin, ``int64[B]``.
    """

    state: Tensor
    rows: Tensor
    ids: Tensor
    offsets: Tensor
    owner: Tensor
    first: Tensor


class Scores(NamedTuple):
    """What the network makes of a batch.

    Attributes:
        log_probs: Of each candidate among its observation's, in nats, ``float32[N]``.
        values: The return expected from each observation on, ``float32[B]``.
    """

    log_probs: Tensor
    values: Tensor


def collate(observations: Sequence[Mapping[str, Any]]) -> Batch:
    """A batch of the ragged interface's observations."""
    counts = np.array([len(one["rows"]) for one in observations])
    cuts = [int(one["sizes"][:BAGS].sum()) for one in observations]
    ids = [one["ids"][:cut] for one, cut in zip(observations, cuts, strict=True)]
    ids += [one["ids"][cut:] for one, cut in zip(observations, cuts, strict=True)]
    sizes = np.concatenate([one["sizes"][part] for part in (slice(BAGS), slice(BAGS, None)) for one in observations])
    return Batch(
        state=torch.from_numpy(np.stack([one["state"] for one in observations])),
        rows=torch.from_numpy(np.concatenate([one["rows"] for one in observations])),
        ids=torch.from_numpy(np.concatenate(ids).astype(np.int64)),
        offsets=torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)),
        owner=torch.from_numpy(np.repeat(np.arange(len(counts)), counts)),
        first=torch.from_numpy(np.cumsum(counts) - counts),
    )


class Scorer(nn.Module):
    """Actor and critic.

    Args:
        width: Units of the hidden layers.
        embedding: Length of a token's vector.
    """

    # While it is cloned (`train`), tokens and parts of the bags are dropped, lest it learn single demonstrations by heart; never while it
    # acts or in PPO. Dropping tokens is what counts: on 1,700 episodes the loss on others fell by a third.
    DROPOUT = TOKEN_DROPOUT = 0.2

    def __init__(self, width: int = 128, embedding: int = 64) -> None:
        super().__init__()
        self.tokens = nn.EmbeddingBag(BUCKETS, embedding, mode="sum")
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.dropout = nn.Dropout(self.DROPOUT)
        seen = STATE_SIZE + BAGS * embedding
        self.context = nn.Linear(seen, width)
        self.row = nn.Linear(CANDIDATE_SIZE + (1 + BAGS) * embedding, width)
        self.joined = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.score = nn.Linear(width, 1)
        self.critic = nn.Sequential(nn.Linear(seen + 2 * width, width), nn.ReLU(), nn.Linear(width, 1))
        self.eval()

    def forward(self, batch: Batch) -> Scores:
        """Scores every candidate and values every observation."""
        size = len(batch.state)
        ends = torch.cat([batch.offsets[1:], batch.offsets.new_tensor([len(batch.ids)])])
        counts = (ends - batch.offsets).clamp(min=1).unsqueeze(1)
        kept = torch.rand(len(batch.ids)).ge(self.TOKEN_DROPOUT).float() / (1 - self.TOKEN_DROPOUT) if self.training else None
        bags = self.dropout(self.tokens(batch.ids, batch.offsets, kept) / counts.sqrt())
        seen, offered = bags[: BAGS * size].view(size, BAGS, -1), bags[BAGS * size :]
        state = torch.cat([batch.state, seen.flatten(1)], 1)
        shared = seen[batch.owner] * offered.unsqueeze(1)
        rows = self.row(torch.cat([batch.rows, offered, shared.flatten(1)], 1)) + self.context(state)[batch.owner]
        hidden = self.joined(rows)
        log_probs = log_softmax(self.score(hidden).squeeze(1), batch.owner, size)
        # Detached: the critic reads what the actor sees, and its errors do not disturb the actor.
        pooled = hidden.detach()
        owners = batch.owner.unsqueeze(1).expand_as(pooled)
        mean = pooled.new_zeros(size, pooled.shape[1]).scatter_reduce(0, owners, pooled, "mean", include_self=False)
        most = pooled.new_zeros(size, pooled.shape[1]).scatter_reduce(0, owners, pooled, "amax", include_self=False)
        return Scores(log_probs, self.critic(torch.cat([state, mean, most], 1)).squeeze(1))


def log_softmax(logits: Tensor, owner: Tensor, size: int) -> Tensor:
    """The log-softmax over the rows of each owner.

    Args:
        logits: ``float32[N]``.
        owner: In [0, ``size``), ``int64[N]``.
        size: How many owners there are.
    """
    most = logits.detach().new_full((size,), -torch.inf).scatter_reduce(0, owner, logits.detach(), "amax")
    shifted = logits - most[owner]
    return shifted - logits.new_zeros(size).index_add(0, owner, shifted.exp()).log()[owner]


def entropy(log_probs: Tensor, owner: Tensor, size: int) -> Tensor:
    """The entropy of each owner's choice as a share of the greatest there can be, ``log K``; 0 where there is no choice: ``float32[B]``."""
    counts = torch.bincount(owner, minlength=size)
    own = log_probs.new_zeros(size).index_add(0, owner, -log_probs.exp() * log_probs)
    return own / counts.clamp(min=2).log()


def relative_entropy(log_probs: Tensor, others: Tensor, owner: Tensor, size: int) -> Tensor:
    """How far each owner's choice is from another policy's: KL(this ‖ other), in nats, ``float32[B]``."""
    return log_probs.new_zeros(size).index_add(0, owner, log_probs.exp() * (log_probs - others))
