"""A web site for any world, from a short table: pages that show what operations read, and forms that do what they do.

A world declares which operation's page is in which section. From the operations' schemas follow the pages, the links between them, the
forms and their fields; and since every page shows just what one operation gave, in a form that can be read back, also how an oracle
that was written for the tools reads the pages (`Site.answer`) and finds its way through them (`Site.way`).
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_gym.core import ToolCall
from agent_gym.world.kind import WorldKind
from agent_gym.world.operations import Operation
from agent_gym.world.site import app, navigating, reading
from agent_gym.world.site.app import Operate, Shell
from agent_gym.world.site.plan import Page, Plan, Section

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

__all__ = ["Operate", "Page", "Section", "Site", "site_of"]


class Site:
    """The web site of one kind of world. A world's module ``site`` has it as ``SITE``.

    Args:
        name: What the site is called.
        origin: Where it is reached, such as ``https://retail.example``.
        operations: The world's operations by name. ``undo`` is a button on every page.
        sections: Its sections with their pages; by default one, with a page for each operation that reads.
        labels: What fields, operations and fixed values are called, where their names do not say it.
        keeps: Parameters that every link carries on, once they are known: as whom or for whom one goes about.
        types: Parameters that are typed, though a page may show what they could be.
        about: A line on whose site it is.
        accent: Its colour, as CSS has it.

    Attributes:
        ORIGIN: Where it is reached.
        plan: What follows from the declaration.

    Raises:
        ConfigurationError: It names an operation that there is not, two pages have one path, or a result's schema leaves open what is
            in it.
    """

    def __init__(
        self,
        *,
        name: str,
        origin: str,
        operations: Mapping[str, Operation],
        sections: Sequence[Section] = (),
        labels: Mapping[str, str] | None = None,
        keeps: Sequence[str] = (),
        types: Sequence[str] = (),
        about: str = "",
        accent: str = "#1f4e79",
    ) -> None:
        self.ORIGIN = origin
        reads = [name for name, operation in operations.items() if operation.spec.read_only]
        self.plan = Plan(operations, sections or [Section(title="Records", pages=reads)], labels or {}, keeps, types)
        self._shell = Shell(name, about, accent)

    def application(self, operate: Operate) -> "WSGIApplication":
        """The site on one world, as a WSGI application.

        Args:
            operate: Carries out an operation of the world. Every fact on a page is from what it gave, and nothing changes but by it.
        """
        return app.application(self.plan, self._shell, operate)

    def answer(self, call: ToolCall, view: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What an operation would answer, as far as a page tells it; None if it does not.

        Args:
            call: The operation and its arguments. One that changes something is answered by the page that says that it was done.
            view: The page, as an observation's ``data["view"]``.
        """
        return reading.answer(self.plan, call, view)

    def way(self, call: ToolCall, views: Sequence[Mapping[str, Any]]) -> ToolCall:
        """The next action on the page towards the answer of a call that no page has given yet.

        Args:
            call: The operation and its arguments.
            views: The pages seen so far, oldest first.
        """
        return navigating.way(self.plan, call, views)

    def clear_caches(self) -> None:
        """Forgets the pages read and the templates."""
        reading.clear_caches()
        app.clear_caches()


def site_of(kind: WorldKind) -> Any:
    """A world's site: that of the module it names, or one with the default pages if it names this one."""
    module = importlib.import_module(kind.site)
    if module.__name__ == __name__:
        return Site(name=kind.name.capitalize(), origin=f"https://{kind.name}.example", operations=kind.operations)
    return getattr(module, "SITE", module)
