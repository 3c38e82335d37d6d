"""What was sealed, as digests in a chain: who alters a row afterwards, and its file, and the manifest, has not altered this.

``_meta/ledger.sqlite`` has an entry for every episode and every event, in the order in which they were sealed. Each entry's ``chain``
is the digest of the entry and of the chain before it, so an entry cannot be altered, taken out or put in between without breaking all
that follow. Who can write the ledger can still write all of it anew; only a head that was kept elsewhere tells then.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import orjson

from agent_gym.errors import StoreError

__all__ = ["Entry", "Link", "append", "attach", "ledger_path", "walk"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger.entries (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,     -- episode, event
    id TEXT NOT NULL,       -- of the episode or the event
    owner TEXT,             -- the episode or the run that an event belongs to
    digests BLOB NOT NULL,  -- of the rows, see agent_gym.trajectories.digests
    chain BLOB NOT NULL
)
"""
_CHAIN_BYTES = 32


class Entry(NamedTuple):
    """An episode or an event, as it was sealed."""

    kind: str
    id: str
    owner: str | None
    digests: bytes


class Link(NamedTuple):
    """An entry in its place.

    Attributes:
        seq: From 1.
        entry: The entry.
        chain: The head of the chain, if this is the newest, as hexadecimal digits.
        follows: Whether it is what comes after the entry before it.
    """

    seq: int
    entry: Entry
    chain: str
    follows: bool

    @property
    def head(self) -> str:
        """The link's place and chain in one word."""
        return f"{self.seq}:{self.chain}"


def ledger_path(root: Path) -> Path:
    """Where a store's ledger is."""
    return root / "_meta" / "ledger.sqlite"


def attach(database: sqlite3.Connection, root: Path) -> None:
    """Makes the ledger part of a connection's transactions.

    Raises:
        sqlite3.Error: It is damaged, or cannot be written.
    """
    database.execute("ATTACH DATABASE ? AS ledger", [str(ledger_path(root))])
    database.execute(_SCHEMA)


def append(database: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    """Adds entries, as part of a transaction.

    Raises:
        sqlite3.Error: The ledger is damaged, or cannot be written.
    """
    seq, chain = database.execute("SELECT seq, chain FROM ledger.entries ORDER BY seq DESC LIMIT 1").fetchone() or (0, b"")
    rows = []
    for seq, entry in enumerate(entries, seq + 1):  # noqa: B020 - goes on from the newest
        chain = _next(chain, seq, entry)
        rows.append((seq, *entry, chain))
    database.executemany("INSERT INTO ledger.entries VALUES (?, ?, ?, ?, ?, ?)", rows)


def walk(root: Path) -> Iterator[Link]:
    """The whole chain, from its beginning.

    Raises:
        StoreError: The ledger is damaged.
    """
    path = ledger_path(root)
    if not path.exists():
        return
    before, due = b"", 1
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as database:
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone() is None:
                return  # whoever was making it died
            for seq, kind, owned, owner, digests, chain in database.execute("SELECT * FROM entries ORDER BY seq"):
                entry = Entry(kind, owned, owner, digests)
                yield Link(seq, entry, chain.hex(), seq == due and chain == _next(before, seq, entry))
                before, due = chain, seq + 1
    except sqlite3.Error as error:
        raise StoreError(f"cannot read {path}: {error}; agent-gym store recover puts it aside and begins another") from error


def _next(chain: bytes, seq: int, entry: Entry) -> bytes:
    told = orjson.dumps([seq, entry.kind, entry.id, entry.owner, entry.digests.hex()])
    return blake2b(chain + told, digest_size=_CHAIN_BYTES).digest()
