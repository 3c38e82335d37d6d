"""Which tasks are played, in which order, and with which seeds: the same for a policy that is measured and for a person who plays."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gym.core.seeding import derive, derive_seed
from agent_gym.core.task import TaskSet
from agent_gym.errors import ConfigurationError

__all__ = ["episode_seed", "keywords", "schedule"]


def keywords(split: str, env_kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The environment's keywords, with the split.

    Raises:
        ConfigurationError: One of them is not for the caller to set.
    """
    given = env_kwargs or {}
    if "interface" in given:
        raise ConfigurationError("the keyword 'interface' cannot be set; it follows from who acts")
    if given.get("split", split) != split:
        raise ConfigurationError("the keyword 'split' cannot be set among the others; give it as split= or --split")
    return {**given, "split": split}


def schedule(
    tasks: TaskSet,
    split: str,
    episodes: int | None,
    seed: int,
    wanted: str | Path | Sequence[str] | None,
    env_kwargs: Mapping[str, Any],
) -> Iterator[str]:
    """The ids of the tasks to play, in order.

    Args:
        tasks: The environment's tasks.
        split: The split to draw from.
        episodes: How many to draw; without it each of ``wanted`` comes once, or, without that either, there is no end.
        seed: Of the draw.
        wanted: Families, task ids, or a file of task ids or families, one a line.
        env_kwargs: The environment's keywords; ``families``, ``difficulty`` and ``task_ids`` narrow the draw.

    Raises:
        ConfigurationError: A name that does not exist, or nothing left to draw.
    """
    narrowed = {key: env_kwargs.get(key) for key in ("families", "difficulty", "task_ids")}
    if wanted is not None:
        narrowed["task_ids"] = _matches(tasks, split, _names(wanted))
    selection = tasks.select(split, **narrowed)
    if wanted is not None and episodes is None:
        yield from narrowed["task_ids"] or ()
        return
    for number in itertools.count() if episodes is None else range(episodes):
        yield selection.draw(derive("evaluate", seed, number)).id


def episode_seed(seed: int, number: int) -> int:
    """What the environment is reset with for the episode of that number, from 0."""
    return derive_seed(seed, number)


def _names(wanted: str | Path | Sequence[str]) -> list[str]:
    if isinstance(wanted, Path) or (isinstance(wanted, str) and len(wanted) < 1_000 and Path(wanted).is_file()):
        try:
            wanted = Path(wanted).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the list of tasks {wanted} cannot be read: {error}") from error
    elif isinstance(wanted, str):
        wanted = wanted.split(",")
    return [name.strip() for name in wanted if name.strip()]


def _matches(tasks: TaskSet, split: str, names: Sequence[str]) -> list[str]:
    matched: dict[str, None] = {}
    families = tasks.families(split) if split in tasks.splits() else ()
    for name in names:
        of_name = [family for family in families if name in (family, family.rpartition("/")[2])]
        if len(of_name) > 1:
            raise ConfigurationError(f"tasks: {name!r} is the name of several families: {', '.join(of_name)}")
        matched |= dict.fromkeys(tasks.ids(split, of_name[0]) if of_name else [tasks.get(name).id])
    return list(matched)
