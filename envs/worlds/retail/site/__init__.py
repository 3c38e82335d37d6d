"""The retail world's web site, as the shop's service desk sees it: a second door to the same operations."""

from agent_gym.envs.worlds.retail.site.app import application

__all__ = ["ORIGIN", "application"]

ORIGIN = "https://retail.example"
"""Where the site is reached."""
