"""Recorded episodes in the forms that other software reads, one file a form."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_gym.errors import ConfigurationError, StoreError, unknown
from agent_gym.trajectories.export import atif, chat, hf, minari_dataset, preferences
from agent_gym.trajectories.export.reading import Reading, Recorded, Writer
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["FORMATS", "LEVELS", "Recorded", "export"]

FORMATS: dict[str, Writer] = {
    "chat": chat.write,
    "preferences": preferences.write,
    "hf": hf.write,
    "minari": minari_dataset.write,
    "atif": atif.write,
}
"""What writes each form."""
LEVELS: dict[str, Writer] = {"episode": preferences.write, "step": preferences.write_steps}
"""What ``preferences`` can compare."""


def export(
    store: TrajectoryStore,
    form: str,
    out: str | Path,
    ids: Sequence[str] = (),
    *,
    where: str | None = None,
    run_id: str | None = None,
    limit: int | None = None,
    level: str = "episode",
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Writes recorded episodes whose reward is valid in another form.

    Args:
        store: Where they are.
        form: One of `FORMATS`.
        out: The file or folder to make; ``minari`` takes its last part for the dataset's id.
        ids: These episodes; by default all.
        where: A condition in SQL that narrows them down, such as ``success``.
        run_id: Only this run's.
        limit: The newest so many.
        level: What ``preferences`` compares: whole episodes, or single steps; one of `LEVELS`.
        progress: Called with the number of episodes read and of all, after each.

    Returns:
        ``format, out``, ``episodes`` that were read, ``rows`` that were written, and ``skipped``: the ``episode_id`` and ``reason`` of
        each that was left out.

    Raises:
        ConfigurationError: There is no such form or level, ``out`` exists, the condition is none, or nothing is left to write.
        MissingExtra: The form needs a package that is not installed.
        StoreError: There is no such episode, or a file cannot be read or written.
    """
    if form not in FORMATS:
        raise unknown("format", form, FORMATS)
    if level not in LEVELS:
        raise unknown("level", level, LEVELS)
    out = Path(out)
    reading = Reading(store, ids, where=where, run_id=run_id, limit=limit, progress=progress)
    write = LEVELS[level] if form == "preferences" else FORMATS[form]
    with _made(out) as hidden:
        rows = write(reading, hidden)
        if not rows:
            reasons = {one["reason"] for one in reading.skipped}
            told = f"; {len(reading.skipped)} were skipped: {'; '.join(sorted(reasons)[:3])}" if reasons else ""
            raise ConfigurationError(f"nothing to export as {form} from {reading.total} episodes in {store.path}{told}")
    return {"format": form, "out": str(out), "episodes": reading.read, "rows": rows, "skipped": reading.skipped}


@contextmanager
def _made(out: Path) -> Iterator[Path]:
    """Where to write so that ``out`` appears whole or not at all."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigurationError(f"{out} exists; give a new name, or remove it first")
    folder = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        folder.mkdir(parents=True)
        yield folder / out.name
        if out.exists():
            out.rmdir()
        (folder / out.name).rename(out)
    except OSError as error:
        raise StoreError(f"cannot write {error.filename or out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
