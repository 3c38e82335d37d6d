"""What a browser's page is at the moment, as a document of the same kind as the in-process engine's: one tree, one way to tell it."""

from typing import Any

from lxml import etree

from agent_gym.browser.inprocess.document import Document, Identity, message
from agent_gym.browser.live import Live, Node, options_of

__all__ = ["Mirror"]

_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
_TOO_DEEP = "This page is nested too deeply to show: more than 120 levels"
_TOO_LARGE = "This page is too large to show: more than 10,000 elements"
_UNREAD = "a frame of another origin is not shown"


class Mirror:
    """One tab's page as it was last read.

    Attributes:
        document: The page.
        numbers: By what number the script in the page knows each element.
        url: Its URL now.
        scrolled: Pixels that the document is scrolled by.
    """

    def __init__(self) -> None:
        self.document = Document("about:blank")
        self.numbers: dict[Node, int] = {}
        self.url = "about:blank"
        self.scrolled = 0.0
        self._world = ""
        self._bids: dict[int, str] = {}  # by number, for as long as the document is shown
        self._counts: dict[Identity, int] = {}
        self._loaded = ""  # the URL it had when it was first read

    def update(self, read: dict[str, Any], status: int) -> None:
        """Takes over what was read of the page.

        Args:
            read: What the script's ``read`` gave, and ``world``: which document it is.
            status: The HTTP status it came with.
        """
        self._remember()
        self.url = read["url"]
        if read["world"] != self._world:
            self._world, self._bids, self._counts, self.scrolled, self._loaded = read["world"], {}, {}, 0.0, read["url"]
        document = Document(self._loaded, status=status)
        document.base, document.target, document.counts = read["base"], read["target"], self._counts
        document.title = " ".join(read["title"].split())
        document.notes = (_UNREAD,) if read["unread"] else ()
        self.document, self.numbers = document, {}
        if read["deep"] or read["large"]:
            document.root = etree.fromstring(message(_TOO_DEEP if read["deep"] else _TOO_LARGE), etree.HTMLParser())
            return
        document.root = etree.fromstring(read["markup"], _PARSER)
        nodes = list(document.root.iter())
        self.numbers = dict(zip(nodes, read["numbers"], strict=True))
        document.bids = {node: self._bids[number] for node, number in self.numbers.items() if number in self._bids}
        document.nodes = {bid: node for node, bid in document.bids.items()}
        document.live = live = Live()
        live.values = {nodes[int(at)]: value for at, value in read["values"].items()}
        live.checks = {nodes[int(at)]: checked for at, checked in read["checks"].items()}
        for at, chosen in read["selections"].items():
            options = options_of(nodes[int(at)])
            live.selections[nodes[int(at)]] = [options[index] for index in chosen if index < len(options)]
        live.focus = nodes[read["focus"]] if read["focus"] >= 0 else None
        live.invalid = (nodes[read["invalid"]], read["message"]) if read["invalid"] >= 0 else None

    def _remember(self) -> None:
        """Keeps the ids that elements have got, for when the same document is read again."""
        self._bids |= {self.numbers[node]: bid for node, bid in self.document.bids.items() if node in self.numbers}
