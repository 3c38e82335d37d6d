"""Targets and objective against numbers worked out by hand, and what the corrections for age are worth."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from agent_gym.baselines.candidate_ppo.loss import objective, vtrace  # noqa: E402

GAMMA, LAMBDA = 0.5, 0.8


def test_where_the_policy_is_the_same_it_is_the_generalized_advantage_estimate() -> None:
    # One episode of three steps that terminates with a reward of 1: deltas -0.4 + 0.1, -0.2 + 0.2, 1 - 0.4.
    targets = vtrace(
        np.array([0.0, 0.0, 1.0]),
        np.array([0.4, 0.2, 0.4]),
        np.array([0.2, 0.4, 0.0]),
        np.array([False, False, True]),
        np.zeros(3),
        gamma=GAMMA,
        gae_lambda=LAMBDA,
    )
    np.testing.assert_allclose(targets.advantages, [-0.3 + 0.4 * 0.24, 0.4 * 0.6, 0.6])
    np.testing.assert_allclose(targets.values, [0.4 - 0.3 + 0.4 * 0.24, 0.2 + 0.24, 1.0])


def test_vtrace_by_hand() -> None:
    # Ratios 2 (which counts 1), 0.5 and 0.25, λ = 1. deltas: 1 + 0.5·2 − 1 = 1; 0 + 0.5·4 − 2 = 0; 3 + 0.5·2 − 4 = 0.
    # Corrections backwards: 0.25 · 0 = 0; 0.5 · (0 + 0.5 · 0) = 0; 1 · (1 + 0.5 · 0) = 1.
    ratios = np.log([2.0, 0.5, 0.25])
    given = (np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 2.0]), np.array([False, False, True]), ratios)
    targets = vtrace(np.array([1.0, 0.0, 3.0]), *given, gamma=GAMMA, gae_lambda=1.0)
    np.testing.assert_allclose(targets.values, [2.0, 2.0, 4.0])
    # With 4 more at the end: corrections 0.25 · 4 = 1; 0.5 · 0.5 · 1 = 0.25; 1 + 0.5 · 0.25 = 1.125.
    targets = vtrace(np.array([1.0, 0.0, 7.0]), *given, gamma=GAMMA, gae_lambda=1.0)
    np.testing.assert_allclose(targets.values, [1 + 1.125, 2 + 0.25, 4 + 1])
    np.testing.assert_allclose(targets.advantages, [1.125, 0.5, 4.0])


def test_fragments_do_not_see_each_other_and_a_cut_is_bootstrapped() -> None:
    # The first fragment is cut off where the critic says 2, the second terminates.
    both = vtrace(
        np.array([0.0, 1.0]),
        np.array([0.5, 0.5]),
        np.array([2.0, 0.0]),
        np.array([True, True]),
        np.zeros(2),
        gamma=GAMMA,
        gae_lambda=LAMBDA,
    )
    np.testing.assert_allclose(both.advantages, [0.5 * 2.0 - 0.5, 0.5])


def test_the_objective_by_hand() -> None:
    proximal = torch.log(torch.tensor([0.5, 0.5, 0.2]))
    behaviour = torch.log(torch.tensor([0.25, 0.5, 0.8]))  # weights 2 and 1 and 0.25
    now = torch.log(torch.tensor([0.55, 0.75, 0.1])).requires_grad_()  # ratios 1.1, 1.5 (clipped at 1.2), 0.5 (clipped at 0.8)
    told = objective(now, proximal, behaviour, torch.tensor([1.0, 1.0, -1.0]), clip_range=0.2, weight_clip=2.0)
    assert told.loss.item() == pytest.approx(-(2 * 1.1 + 1.2 - 0.25 * 0.8) / 3)
    assert told.clipped.item() == pytest.approx(2 / 3)
    (gradient,) = torch.autograd.grad(told.loss, now)
    assert gradient[0] != 0
    assert gradient[1:].tolist() == [0, 0]
    heavy = objective(now, proximal, behaviour - 5, torch.tensor([1.0, 0.0, 0.0]), clip_range=0.2, weight_clip=2.0)
    assert heavy.loss.item() == pytest.approx(-2 * 1.1 / 3)


@pytest.mark.parametrize("corrected", [True, False])
def test_data_of_an_earlier_policy_teach_what_they_should(corrected: bool) -> None:
    """A chain of two steps: from the first state, `left` ends with 0.4; `right` leads to a state where the old policy errs.

    There, one action earns 1 and the other 0. The old policy takes the bad one nine times in ten, the present one the good one. Whoever
    takes the old policy's outcomes for its own believes `right` to be worth 0.1, and goes left.
    """
    rng = np.random.default_rng(0)
    old, now = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.5, 0.5], [0.05, 0.95]])
    columns: dict[str, list[Any]] = {name: [] for name in ("state", "action", "reward", "last")}

    def came(state: int, action: int, reward: float, last: bool) -> None:
        for name, value in zip(columns, (state, action, reward, last), strict=True):
            columns[name].append(value)

    for _ in range(4_000):
        right = bool(rng.random() < old[0, 1])
        came(0, int(right), 0.0 if right else 0.4, not right)
        if right:
            good = bool(rng.random() < old[1, 1])
            came(1, int(good), float(good), True)
    state, action, last = (np.array(columns[name]) for name in ("state", "action", "last"))
    ratios = np.log(now[state, action] / old[state, action]) if corrected else np.zeros(len(state))
    values = np.zeros(2)
    for _ in range(40):
        following = np.where(last, 0.0, np.append(values[state[1:]], 0.0))
        targets = vtrace(np.array(columns["reward"]), values[state], following, last, ratios, gamma=1.0, gae_lambda=1.0, ratio_clip=10.0)
        values = np.array([targets.values[state == one].mean() for one in (0, 1)])
    logits = torch.tensor(np.log(now[0]), requires_grad=True)
    first = state == 0
    log_probs = torch.log_softmax(logits, 0)[torch.from_numpy(action[first])]
    behaviour = torch.from_numpy(np.log(old[0, action[first]]))
    advantages = torch.from_numpy(targets.advantages[first])
    told = objective(log_probs, log_probs.detach(), behaviour, advantages, clip_range=0.2, weight_clip=2.0)
    (gradient,) = torch.autograd.grad(told.loss, logits)
    goes_right = bool(gradient[1] < 0)  # down the gradient
    assert goes_right == corrected
    assert abs(values[1] - (0.95 if corrected else 0.1)) < 0.05
