"""Ids of elements: one a thing for the whole episode, given in order of first sight.

Two elements are the same thing if they have the same role, name and destination; controls also the same name, kind and form. A form is
the same if it goes to the same place and says the same without showing it, which tells the buttons in a list's rows apart; controls
that this leaves equal are told apart by what their rows or items say. Of equal things in one document the first, the second, … are the
same as the first, the second, … elsewhere.
"""

from agent_gym.browser.accessibility import attributes_of
from agent_gym.browser.inprocess.document import Document, Identity
from agent_gym.browser.inprocess.forms import hidden_fields, owner_of
from agent_gym.browser.inprocess.site import Site
from agent_gym.browser.inputs import kind_of
from agent_gym.browser.live import Node, text_of

__all__ = ["Ids"]

_CONTROLS = frozenset({"button", "input", "select", "textarea"})
_BY_VALUE = frozenset({"radio", "checkbox", "submit", "image", "reset", "button"})
"""Controls whose ``value`` says what they are, not what is in them."""
_AROUND = ("li", "p", "tr")


class Ids:
    """The ids given out in one episode.

    Args:
        site: What says where links lead.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._known: dict[Identity, str] = {}
        self._given: set[str] = set()
        self._alike: set[Identity] = set()  # what controls have been that nothing but their rows told apart

    def __contains__(self, bid: str) -> bool:
        return bid in self._given

    def of(self, document: Document, node: Node, role: str, name: str) -> str:
        """The id of an element: the one it has, else that of the same thing on an earlier page, else a new one."""
        bid = document.bids.get(node)
        if bid is None:
            identity = self._identity(document, node, role, name)
            count = document.counts[identity] = document.counts.get(identity, 0) + 1
            bid = self._known.get((identity, count))
            if bid is None:
                bid = self._known[identity, count] = str(len(self._known) + 1)
                self._given.add(bid)
            document.bids[node] = bid
            document.nodes[bid] = node
        return bid

    def _identity(self, document: Document, node: Node, role: str, name: str) -> Identity:
        tag, attributes = node.tag, attributes_of(node)
        leads = attributes.get("formaction" if tag in _CONTROLS else "href")
        leads = None if leads is None else self._site.locate(document.base, leads)
        if tag not in _CONTROLS:
            return tag, role, name, attributes.get("id"), leads
        kind = kind_of(node)
        if document.rows is None:
            document.rows = self._rows(document)
        return (
            tag,
            role,
            name,
            attributes.get("id"),
            kind,
            attributes.get("name"),
            attributes.get("value") if kind in _BY_VALUE else None,
            leads,
            self._form(document, node),
            document.rows.get(node),
        )

    def _rows(self, document: Document) -> dict[Node, str]:
        """What the row or item around a control says, of those controls that nothing else tells apart, here or on an earlier page."""
        alike: dict[Identity, list[Node]] = {}
        for control in document.root.iter(*_CONTROLS):
            if control.get("id") is None and control.get("type") != "hidden":
                alike.setdefault((control.tag, *control.items(), text_of(control), self._form(document, control)), []).append(control)
        self._alike |= {key for key, nodes in alike.items() if len(nodes) > 1}
        around = {node: next(node.iterancestors(*_AROUND), None) for key in self._alike & alike.keys() for node in alike[key]}
        said = {row: " ".join(text_of(row).split()) for row in set(around.values()) if row is not None}
        return {node: said[row] for node, row in around.items() if row is not None}

    def _form(self, document: Document, control: Node) -> Identity | None:
        """What makes a control's form the form it is; None where it has none."""
        form = owner_of(control, document.named if control.get("form") is not None else None)
        if form is None:
            return None
        known = document.forms.get(form)
        if known is None:
            action = form.get("action")
            leads = self._site.locate(document.base, action) if action else self._site.locate(document.url, "")
            if (form.get("method") or "").lower() != "post":
                leads = leads.partition("?")[0]  # which the fields take the place of
            known = document.forms[form] = (leads, form.get("id"), hidden_fields(form))
        return known
