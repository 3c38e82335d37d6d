"""What tests share."""

import os

import pytest

from agent_gym.sandbox import available


@pytest.fixture
def needs_sandbox() -> None:
    """Skips where code cannot be isolated, naming the remedy; fails instead when AGENT_GYM_REQUIRE lists ``sandbox``."""
    error = available()
    if error is None:
        return
    if "sandbox" in os.environ.get("AGENT_GYM_REQUIRE", "").replace(",", " ").split():
        pytest.fail(str(error))
    pytest.skip(str(error))
