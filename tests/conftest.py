"""What tests share."""

import os

import pytest
from hypothesis import HealthCheck, settings

from agent_gym.browser.chromium import executable
from agent_gym.envs.miniwob import pages
from agent_gym.errors import MissingExtra
from agent_gym.sandbox import available

# A busy machine is slow, and that is no failure; the same examples are tried every time.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture
def needs_sandbox() -> None:
    """Skips where code cannot be isolated, naming the remedy; fails instead when AGENT_GYM_REQUIRE lists ``sandbox``."""
    _need("sandbox", available())


@pytest.fixture
def needs_chromium() -> None:
    """Skips where no browser can be started, naming the remedy; fails instead when AGENT_GYM_REQUIRE lists ``chromium``."""
    _need("chromium", executable.available())


@pytest.fixture
def needs_miniwob(needs_chromium: None) -> None:  # noqa: ARG001
    """Skips where the pages of MiniWoB++ or a browser are missing; fails instead when AGENT_GYM_REQUIRE lists ``miniwob``."""
    try:
        pages.folder()
    except MissingExtra as error:
        _need("miniwob", error)


def _need(what: str, error: Exception | None) -> None:
    if error is None:
        return
    if what in os.environ.get("AGENT_GYM_REQUIRE", "").replace(",", " ").split():
        pytest.fail(str(error))
    pytest.skip(str(error))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, so that no process is left with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
