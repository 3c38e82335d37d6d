"""Numbers as people read them."""

import pytest

from agent_gym.report import figures


@pytest.mark.parametrize(
    ("rate", "said"),
    [(None, "–"), (0.0, "0 %"), (0.001, "less than 0.5 %"), (0.932, "93 %"), (0.998, "more than 99.5 %"), (1.0, "100 %")],
)
def test_rates_in_sentences_never_round_to_all_or_nothing(rate: float | None, said: str) -> None:
    assert figures.whole_percent(rate).replace("\u00a0", " ") == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (9.96, "10 s"), (59.6, "1 min 00 s"), (307, "5 min 07 s"), (3599.7, "1 h 00 min"), (7500, "2 h 05 min")],
)
def test_spans_of_time(seconds: float, said: str) -> None:
    assert figures.duration(seconds).replace("\u00a0", " ") == said


@pytest.mark.parametrize(("value", "said"), [(None, "–"), (0.0, "0"), (1.0, "+1"), (-0.1, "−0.1"), (-1.0, "−1")])
def test_rewards_carry_their_sign(value: float | None, said: str) -> None:
    assert figures.reward(value) == said
