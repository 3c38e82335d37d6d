"""How much there is in a store."""

from pathlib import Path
from typing import Any

from agent_gym.trajectories.manifest import kept

__all__ = ["stats"]


def stats(root: Path, rows: dict[str, int]) -> dict[str, Any]:
    """Counts files and bytes.

    Args:
        root: The store.
        rows: The rows of each table.

    Returns:
        Rows, files and bytes of each of the ``tables``; files and bytes of ``blobs`` and of ``open_logs``; ``bytes_per_step`` of
        everything that is sealed.

    Raises:
        StoreError: The manifest is damaged.
    """
    sizes = {}
    for table, count in rows.items():
        found = [file.path.stat().st_size for file in kept(root, table) if file.path.exists()]
        sizes[table] = {"rows": count, "files": len(found), "bytes": sum(found)}
    blobs, logs = ([path.stat().st_size for path in root.glob(pattern)] for pattern in ("blobs/??/[!.]*", "wal/*/*.jsonl"))
    total = sum(one["bytes"] for one in sizes.values()) + sum(blobs)
    return {
        "tables": sizes,
        "blobs": {"files": len(blobs), "bytes": sum(blobs)},
        "open_logs": {"files": len(logs), "bytes": sum(logs)},
        "bytes_per_step": total / rows["steps"] if rows["steps"] else None,
    }
