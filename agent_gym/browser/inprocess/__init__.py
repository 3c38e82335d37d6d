"""The in-process engine: pages of a WSGI app without a browser."""

from agent_gym.browser.inprocess.engine import InProcessPage

__all__ = ["InProcessPage"]
