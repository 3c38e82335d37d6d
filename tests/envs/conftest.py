"""What tests of environments share."""

from collections.abc import Iterator

import pytest

from tests.envs.desk import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    """The retail world's web site on a world of its own."""
    made = Desk()
    yield made
    made.world.close()
