"""Data sets of the Hugging Face hub, by name: ``hf:org/name``, or ``hf:org/name/configuration``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agent_gym.errors import ConfigurationError, DatasetError, MissingExtra

__all__ = ["PREFIX", "HubSplit", "splits"]

PREFIX = "hf:"


@dataclass(frozen=True)
class HubSplit:
    """One split of a data set, read with the `datasets` package, which fetches it and keeps it in its own cache.

    Attributes:
        name: ``org/name``.
        configuration: Where it has several.
        split: Which.
    """

    name: str
    configuration: str | None
    split: str

    def rows(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Its rows, each with its place."""
        for number, row in enumerate(_loaded(self.name, self.configuration)[self.split], 1):
            yield f"{PREFIX}{self.name} {self.split}:{number}", row


def splits(source: str) -> dict[str, HubSplit]:
    """The splits of a data set.

    Raises:
        ConfigurationError: It is no such name.
        DatasetError: It cannot be had.
        MissingExtra: The `datasets` package is not installed.
    """
    parts = source.removeprefix(PREFIX).split("/")
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise ConfigurationError(f"source: got {source!r}, expected 'hf:org/name' or 'hf:org/name/configuration'")
    name, configuration = "/".join(parts[:2]), parts[2] if len(parts) == 3 else None
    return {split: HubSplit(name, configuration, split) for split in _loaded(name, configuration)}


@lru_cache(maxsize=4)
def _loaded(name: str, configuration: str | None) -> Mapping[str, Any]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingExtra("datasets", "hf") from error
    try:
        return dict(load_dataset(name, configuration))
    except Exception as error:  # its errors have no root of their own, and are of a dozen libraries
        raise DatasetError(f"{PREFIX}{name}: cannot be had: {type(error).__name__}: {str(error)[:300]}") from error
