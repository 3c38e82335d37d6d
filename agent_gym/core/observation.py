"""The one observation of every environment: text, structured data, optionally an image."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Observation", "cut"]


@dataclass(frozen=True)
class Observation:
    """What can be seen now.

    Attributes:
        text: Complete and readable by itself.
        data: The same facts as JSON values.
        image: ``uint8[H, W, 3]``, or None where there is nothing to see.
    """

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    image: NDArray[np.uint8] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The form that Gymnasium's spaces describe: ``text``, ``data`` and, if there is one, ``image``."""
        plain: dict[str, Any] = {"text": self.text, "data": self.data}
        if self.image is not None:
            plain["image"] = self.image
        return plain


def cut(text: str, max_bytes: int) -> str:
    """``text``, or as much of its beginning as fits into ``max_bytes`` of UTF-8 with a closing ellipsis; whole characters only."""
    raw = text.encode()
    if len(raw) <= max_bytes:
        return text
    return raw[: max(0, max_bytes - 3)].decode(errors="ignore") + "…"
