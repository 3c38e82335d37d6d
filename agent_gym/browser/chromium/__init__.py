"""The engine that runs pages in Chromium (extra ``browser``)."""

from agent_gym.browser.chromium.engine import ChromiumPage

__all__ = ["ChromiumPage"]
