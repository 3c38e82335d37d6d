"""What can be in stock."""

from __future__ import annotations

from dataclasses import dataclass


class StockError(Exception):
    """Something that the stock cannot do."""


@dataclass
class Item:
    """One kind of thing.

    Attributes:
        sku: Its number, such as ``AB-0001``.
        name: What it is called.
        cents: Its price.
        least: How many there should always be.
    """

    sku: str
    name: str
    cents: int
    least: int = 0

    def __post_init__(self) -> None:
        if self.cents < 0 or self.least < 0:
            raise StockError("negative")
        self.sku = normal(self.sku)


def normal(sku: str) -> str:
    """A number in its usual form: upper case, four digits."""
    letters, dash, digits = sku.strip().upper().partition("-")
    if not dash or not letters.isalpha() or not digits.isdigit() or len(digits) > 4:
        raise StockError(f"sku {sku}")
    return f"{letters}-{digits.zfill(4)}"
