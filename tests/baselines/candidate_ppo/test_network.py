"""The network looks at each candidate by itself: order, number and company change nothing."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from agent_gym.baselines.candidate_ppo.features import BAGS, BUCKETS, STATE_SIZE  # noqa: E402
from agent_gym.baselines.candidate_ppo.network import Scorer, collate, entropy, log_softmax, relative_entropy  # noqa: E402
from agent_gym.interface.features import CANDIDATE_SIZE  # noqa: E402


def observation(candidates: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, BAGS + candidates).astype(np.int32)
    return {
        "state": rng.uniform(-1, 1, STATE_SIZE).astype(np.float32),
        "rows": rng.uniform(-1, 1, (candidates, CANDIDATE_SIZE)).astype(np.float32),
        "ids": rng.integers(0, BUCKETS, sizes.sum()).astype(np.int32),
        "sizes": sizes,
    }


def reordered(seen: dict[str, Any], order: Any) -> dict[str, Any]:
    bags = np.split(seen["ids"], np.cumsum(seen["sizes"])[:-1])
    bags = [*bags[:BAGS], *(bags[BAGS + place] for place in order)]
    return {
        **seen,
        "rows": seen["rows"][order],
        "ids": np.concatenate(bags),
        "sizes": np.array([len(bag) for bag in bags], np.int32),
    }


def network() -> Any:
    torch.manual_seed(0)
    return Scorer(width=16, embedding=8)


SIZES = (1, 3, 17, 300)
SEEN = [observation(size, seed) for seed, size in enumerate(SIZES)]


def test_the_order_of_candidates_plays_no_part() -> None:
    net = network()
    for seen in SEEN:
        order = np.random.default_rng(9).permutation(len(seen["rows"]))
        one, other = net(collate([seen])), net(collate([reordered(seen, order)]))
        torch.testing.assert_close(other.log_probs, one.log_probs[torch.from_numpy(order)])
        torch.testing.assert_close(other.values, one.values)


def test_what_else_is_in_the_batch_plays_no_part() -> None:
    net = network()
    together = net(collate(SEEN))
    alone = [net(collate([seen])) for seen in SEEN]
    torch.testing.assert_close(together.log_probs, torch.cat([scores.log_probs for scores in alone]))
    torch.testing.assert_close(together.values, torch.cat([scores.values for scores in alone]))
    shares = torch.zeros(len(SIZES)).index_add(0, collate(SEEN).owner, together.log_probs.exp())
    torch.testing.assert_close(shares, torch.ones(len(SIZES)))


def test_who_is_not_on_offer_gets_no_probability_and_no_gradient() -> None:
    net = network()
    batch = collate(SEEN)
    rows = batch.rows.clone().requires_grad_()
    scores = net(batch._replace(rows=rows))
    spread = entropy(scores.log_probs, batch.owner, len(SIZES))
    own = batch.owner == 2
    (scores.log_probs[own][0] + spread[2] + scores.values[2]).backward()
    assert len(scores.log_probs) == sum(SIZES)
    assert rows.grad is not None
    assert (rows.grad[~own] == 0).all()
    assert (rows.grad[own].abs().sum(1) > 0).all()
    touched = torch.zeros(BUCKETS, dtype=torch.bool)
    touched[torch.from_numpy(SEEN[2]["ids"]).long()] = True
    assert (net.tokens.weight.grad[~touched] == 0).all()
    assert all(torch.isfinite(weights.grad).all() for weights in net.parameters() if weights.grad is not None)


def test_the_softmax_is_that_of_each_owner_however_large_the_numbers() -> None:
    logits = torch.tensor([1000.0, 1001.0, -1000.0, -1000.0, 3.0])
    owner = torch.tensor([0, 0, 1, 1, 2])
    expected = [*torch.log_softmax(logits[:2], 0), *torch.log_softmax(logits[2:4], 0), torch.tensor(0.0)]
    found = log_softmax(logits, owner, 3)
    torch.testing.assert_close(found, torch.stack(expected))
    torch.testing.assert_close(entropy(found, owner, 3)[1:], torch.tensor([1.0, 0.0]))


def test_entropy_is_a_share_of_what_there_can_be() -> None:
    for size in (2, 50):
        owner = torch.zeros(size, dtype=torch.long)
        assert entropy(torch.full((size,), -np.log(size)), owner, 1).item() == pytest.approx(1.0)
    log_probs, other = torch.log(torch.tensor([0.5, 0.5])), torch.log(torch.tensor([0.25, 0.75]))
    apart = relative_entropy(log_probs, other, torch.zeros(2, dtype=torch.long), 1).item()
    assert apart == pytest.approx(0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75))
