"""The library's web site: the desk's pages, by the site kit."""

from agent_gym.envs.worlds.library.operations import OPERATIONS
from agent_gym.world.site import Page, Section, Site

__all__ = ["ORIGIN", "SITE", "answer", "application", "clear_caches", "way"]

SITE = Site(
    name="Library",
    origin="https://library.example",
    operations=OPERATIONS,
    sections=[
        Section(title="Members", pages=["find_members", Page(operation="get_member", forms=["renew_loan"])]),
        Section(title="Books", pages=["get_book"]),
    ],
    about="The desk of a small library.",
)
"""The site."""

ORIGIN = SITE.origin
answer, application, clear_caches, way = SITE.answer, SITE.application, SITE.clear_caches, SITE.way
