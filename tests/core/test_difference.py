"""Where two values differ."""

import pytest

from agent_gym.core.difference import difference

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        ({"a": [1.0, NAN]}, {"a": [1.0, float("nan")]}, None),
        ({"a": [1.0, NAN]}, {"a": [1.0, 2.0]}, "shown.a[1]"),
        ({"a": 1}, {"a": 1.0}, "shown.a"),
        ([1], [1, 2], "shown[1]"),
    ],
)
def test_the_first_difference_is_named(one: object, other: object, where: str | None) -> None:
    found = difference(one, other, "shown")
    assert (found and found.where) == where
