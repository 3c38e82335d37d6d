"""The retail world's web site, as the shop's service desk sees it: a second door to the same operations."""

from agent_gym.envs.worlds.retail.site import app, reading
from agent_gym.envs.worlds.retail.site.app import application
from agent_gym.envs.worlds.retail.site.navigating import way
from agent_gym.envs.worlds.retail.site.reading import answer

__all__ = ["ORIGIN", "answer", "application", "clear_caches", "way"]

ORIGIN = "https://retail.example"
"""Where the site is reached."""


def clear_caches() -> None:
    """Forgets the pages read and the templates."""
    reading.clear_caches()
    app.clear_caches()
