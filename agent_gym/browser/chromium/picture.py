"""A screenshot as an array, with a box and the number of every element that can be acted upon drawn over it."""

from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from agent_gym.errors import MissingExtra

__all__ = ["picture"]

_COLOURS = ("#d7263d", "#1b6ca8", "#2a7f3e", "#8e44ad", "#b5651d")


def picture(screenshot: bytes, marks: Mapping[str, Sequence[float]]) -> NDArray[np.uint8]:
    """A screenshot with marks.

    Args:
        screenshot: The picture as the browser took it, JPEG or PNG.
        marks: The box of each element by its id: left, top, width and height in pixels.

    Returns:
        ``uint8[H, W, 3]``.

    Raises:
        MissingExtra: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise MissingExtra("pillow", "browser") from None
    image = Image.open(BytesIO(screenshot)).convert("RGB")
    draw = ImageDraw.Draw(image)
    for bid, (left, top, width, height) in marks.items():
        colour = _COLOURS[int(bid) % len(_COLOURS)]
        draw.rectangle((left, top, left + width, top + height), outline=colour)
        label = draw.textbbox((left, max(0.0, top - 11)), bid)
        draw.rectangle((label[0] - 1, label[1] - 1, label[2] + 1, label[3] + 1), fill=colour)
        draw.text((left, max(0.0, top - 11)), bid, fill="white")
    return np.array(image, dtype=np.uint8)
