"""Where all randomness comes from: generators derived from a root seed and a path of labels.

Two different paths give independent streams, so that what one part draws never shifts what another part sees.
"""

import hashlib

import numpy as np

__all__ = ["derive", "derive_seed"]


def derive_seed(*path: int | str) -> int:
    """A 63-bit seed for a path of labels, equal on every machine and in every process."""
    joined = "\x1f".join(f"{type(part).__name__}:{part}" for part in path)
    return int.from_bytes(hashlib.blake2b(joined.encode(), digest_size=8).digest(), "big") >> 1


def derive(*path: int | str) -> np.random.Generator:
    """A fresh generator for a path of labels."""
    return np.random.Generator(np.random.PCG64(derive_seed(*path)))
