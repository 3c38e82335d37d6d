"""What is known of the pages beside what they say themselves: which are left out, and what each takes."""

from collections.abc import Mapping

__all__ = ["DRAGGED_ONTO", "LEFT_OUT", "capabilities_of"]

_UNNAMED = "the package makes no environment of it"
LEFT_OUT: Mapping[str, str] = {
    "button-delay": _UNNAMED,
    "chase-circle": _UNNAMED,
    "flight.Alaska-auto-medium": _UNNAMED,
    "hover-shape": f"{_UNNAMED}, and it never ends",
    "moving-items": _UNNAMED,
    "simon-says": _UNNAMED,
}
"""Pages that are not played, and why."""

DRAGGED_ONTO = frozenset({"drag-box", "drag-items", "drag-items-grid", "drag-shapes", "drag-shapes-2", "drag-sort-numbers"})
"""Pages on which something is to be dragged onto something else: there, what can be seen is on offer for that."""

_CAPABILITIES = {
    "drag": ("drag-", "resize-", "highlight-", "use-slider", "draw-"),
    "coordinates": ("bisect-", "chase-", "circle-", "draw-", "find-midpoint", "grid-", "hover-", "right-angle", "use-colorwheel"),
    "typing": ("enter-", "login-", "terminal", "text-", "copy-", "form-", "search-", "book-", "find-word", "read-table", "guess-number"),
    "reading": ("email-", "find-", "read-", "phone-", "search-", "social-", "book-", "daily-", "stock-", "navigate-"),
    "counting": ("count-", "visual-", "number-", "odd-", "simple-"),
}


def capabilities_of(name: str) -> tuple[str, ...]:
    """What a page takes, coarsely, as labels for reports."""
    return tuple(label for label, stems in _CAPABILITIES.items() if name.startswith(stems)) or ("clicking",)
