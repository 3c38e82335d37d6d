"""What tests share."""

import os

import pytest
from hypothesis import HealthCheck, settings

from agent_gym.sandbox import available

# A busy machine is slow, and that is no failure; the same examples are tried every time.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture
def needs_sandbox() -> None:
    """Skips where code cannot be isolated, naming the remedy; fails instead when AGENT_GYM_REQUIRE lists ``sandbox``."""
    error = available()
    if error is None:
        return
    if "sandbox" in os.environ.get("AGENT_GYM_REQUIRE", "").replace(",", " ").split():
        pytest.fail(str(error))
    pytest.skip(str(error))
