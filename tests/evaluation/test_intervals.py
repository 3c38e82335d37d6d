"""Intervals, against values computed by hand and by others."""

import pytest

from agent_gym.evaluation import bootstrap_clustered, bootstrap_macro, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(3, 3, 0.4385, 1.0), (0, 10, 0.0, 0.2775), (60, 100, 0.5020, 0.6906), (1, 1, 0.2065, 1.0)],
)
def test_wilson(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_agrees_with_scipy() -> None:
    from scipy.stats import binomtest

    for trials in (1, 7, 164):
        for successes in range(0, trials + 1, 3):
            theirs = binomtest(successes, trials).proportion_ci(0.9, method="wilson")
            assert wilson(successes, trials, 0.9) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(1, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_proportion(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="need 0 <= successes <= trials"):
        wilson(successes, trials)


def test_bootstrap_of_one_group_is_the_binomial() -> None:
    # Binomial(100, 0.5) / 100: the 2.5 % and 97.5 % quantiles are 0.40 and 0.60.
    assert bootstrap_macro([(50, 100)]) == pytest.approx((0.40, 0.60), abs=0.01)


def test_bootstrap_is_stratified() -> None:
    # Two groups, all and none solved: the macro average is 0.5 in every resample. An unstratified bootstrap would spread.
    assert bootstrap_macro([(20, 20), (0, 20)]) == (0.5, 0.5)


def test_bootstrap_weighs_groups_not_trials() -> None:
    low, high = bootstrap_macro([(10, 1000), (9, 10)])
    # mean (0.01 + 0.9) / 2 = 0.455, its standard error √(0.01·0.99/1000 + 0.9·0.1/10) / 2 ≈ 0.0475
    assert 0.33 < low < 0.40
    assert 0.49 < high < 0.52


def test_clustered_bootstrap_draws_whole_clusters() -> None:
    # Two tasks, one always solved and one never, ten episodes each. A resample is both of one (1/4 each way) or one of each (1/2): the
    # rates are 0, 0.5 and 1, so the quantiles at 2.5 % and 97.5 % are 0 and 1. Twenty independent episodes would give 0.3 to 0.7.
    assert bootstrap_clustered([(10, 10), (0, 10)]) == (0.0, 1.0)
    # Binomial(100, 0.5) / 100 again, however many episodes each task has.
    assert bootstrap_clustered([(3, 3)] * 50 + [(0, 3)] * 50) == pytest.approx((0.40, 0.60), abs=0.01)


def test_clustered_bootstrap_weighs_trials() -> None:
    # A resample of (9, 9) and (0, 1) holds each twice or both once: the rates are 1, 0 and 9/10. A quarter of the
    # resamples is at 0, half at 0.9, a quarter at 1: the quantiles at 30 % and 70 % are 0.9.
    low, high = bootstrap_clustered([(9, 9), (0, 1)], confidence=0.4)
    assert (low, high) == (0.9, 0.9)


def test_clustered_bootstrap_ignores_order_and_follows_its_seed() -> None:
    counts = [(1, 3), (0, 2), (2, 2), (1, 1), (3, 7)]
    assert bootstrap_clustered(counts, seed=1) == bootstrap_clustered(counts[::-1], seed=1)
    assert bootstrap_clustered(counts, seed=1) != bootstrap_clustered([*counts, (5, 5)], seed=1)
    with pytest.raises(ValueError, match="need clusters"):
        bootstrap_clustered([(2, 1)])


def test_bootstrap_is_seeded() -> None:
    groups = [(3, 9), (5, 7), (30, 80)]
    assert bootstrap_macro(groups, seed=1) == bootstrap_macro(groups, seed=1)
    assert bootstrap_macro(groups, seed=1) != bootstrap_macro(groups, seed=2)


def test_bootstrap_refuses_bad_arguments() -> None:
    for counts in ([], [(1, 0)], [(3, 2)]):
        with pytest.raises(ValueError, match="need groups"):
            bootstrap_macro(counts)
    with pytest.raises(ValueError, match="at least 2000"):
        bootstrap_macro([(1, 2)], resamples=100)
    with pytest.raises(ValueError, match="confidence"):
        bootstrap_macro([(1, 2)], confidence=1.0)
