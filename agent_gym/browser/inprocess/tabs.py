"""Tabs and their history.

A page that is gone back to is asked for again; the answer to a POST is shown again as it was left, for nothing may be sent twice. A tab
keeps a few of those; one that is no longer kept is asked for with GET.
"""

from dataclasses import dataclass, field

from agent_gym.browser.inprocess.document import Document
from agent_gym.browser.inprocess.site import BLANK

__all__ = ["MAX_TABS", "Tab", "Visit"]

MAX_TABS = 20
_MAX_ENTRIES = 50
_MAX_KEPT = 8
"""Answers to a POST that a tab keeps."""


@dataclass(eq=False)
class Visit:
    """One load of a document. The entries for places within it share it.

    Attributes:
        document: The document; None once it is left and not kept.
    """

    document: Document | None


@dataclass(eq=False)
class Tab:
    """One tab.

    Attributes:
        name: What ``target`` calls it.
        entries: Its history: URLs, and the visits they belong to.
        at: The entry that is shown.
    """

    name: str = ""
    entries: list[tuple[str, Visit]] = field(default_factory=lambda: [(BLANK, Visit(Document(BLANK)))])
    at: int = 0

    @property
    def url(self) -> str:
        """The URL that is shown."""
        return self.entries[self.at][0]

    @property
    def document(self) -> Document:
        """The document that is shown."""
        document = self.entries[self.at][1].document
        if document is None:
            raise RuntimeError("a tab has lost the document it shows")
        return document

    def is_within(self, url: str) -> bool:
        """Whether a URL is a place within the document that is shown."""
        return "#" in url and url.partition("#")[0] == self.url.partition("#")[0]

    def visit(self, url: str, document: Document, again: bool = False) -> None:
        """Goes to a document; it takes the place of the entry if its URL was asked for again, and so does the first page in a new tab."""
        replaces = again or (self.url == BLANK and len(self.entries) == 1)
        self._leave()
        self._push(url, Visit(document), replaces)

    def move_within(self, url: str) -> None:
        """Goes to a place within the document that is shown."""
        self._push(url, self.entries[self.at][1], replaces=url == self.url)

    def step(self, by: int, url: str = "", fresh: Document | None = None) -> None:
        """Goes back or forward.

        Args:
            by: How many entries.
            url: Where the entry has led this time.
            fresh: Its document, loaded again; None if it still has one.
        """
        old, visit = self.entries[self.at + by]
        if visit is not self.entries[self.at][1]:
            self._leave()
        self.at += by
        if fresh is not None:
            visit.document = fresh
            self.entries[self.at] = (url or old, visit)

    def _leave(self) -> None:
        """Lets go of the document that is shown, unless it cannot be asked for again."""
        visit = self.entries[self.at][1]
        if visit.document is not None and visit.document.status and not visit.document.posted:
            visit.document = None

    def _push(self, url: str, visit: Visit, replaces: bool) -> None:
        if replaces:
            self.entries[self.at] = (url, visit)
        else:
            self.entries[self.at + 1 :] = [(url, visit)]
            del self.entries[:-_MAX_ENTRIES]
            self.at = len(self.entries) - 1
        kept = dict.fromkeys(each for _, each in self.entries if each.document is not None and each.document.posted)
        for each in list(kept)[:-_MAX_KEPT]:
            if each is not visit:
                each.document = None
