"""A Minari dataset: the rich observation's text and data as ``Text``, calls as JSON ``Text``, rewards and endings as they were given.

Minari keeps datasets by their id under a folder; the last part of the path to write is the id, such as ``oracle-v0``, and the folder
around it is what ``MINARI_DATASETS_PATH`` has to name for ``minari.load_dataset``.

Reference: https://minari.farama.org/content/dataset_standards/
"""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import orjson

from agent_gym.errors import ConfigurationError, MissingExtra
from agent_gym.registry import VERSION
from agent_gym.trajectories.export.reading import Reading, Recorded
from agent_gym.trajectories.versions import code_version

__all__ = ["write"]

_ID = re.compile(r"[\w-]+-v\d+", re.ASCII)


def write(episodes: Reading, out: Path) -> int:
    """Writes the dataset; see `agent_gym.trajectories.export.reading.Writer`. A row is a step with an action.

    Raises:
        ConfigurationError: The last part of ``out`` is no id of a Minari dataset.
        MissingExtra: Minari is not installed.
    """
    if not _ID.fullmatch(out.name):
        raise ConfigurationError(f"{out.name!r} is no id of a Minari dataset; end the path in a name and a version, such as oracle-v0")
    try:
        import minari
    except ImportError as error:
        raise MissingExtra("minari", "minari") from error
    known = list(episodes)
    if not known:
        return 0
    buffers = [_buffer(number, episode) for number, episode in enumerate(known)]
    texts: dict[str, gymnasium.Space[Any]] = {
        name: _space([text for one in buffers for text in one["observations"][name]]) for name in ("text", "data")
    }
    actions = _space([text for one in buffers for text in one["actions"]])
    with _folder(out.parent), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of authors and code links, which nobody has to tell
        dataset = minari.create_dataset_from_buffers(
            out.name,
            [minari.data_collector.EpisodeBuffer(**one) for one in buffers],
            algorithm_name=", ".join(sorted({str(episode.row["policy_id"]) for episode in known})),
            description=f"Recorded with agent-gym {VERSION} ({code_version()}): "
            + ", ".join(sorted({f"{one.row['env_id']} version {one.row['env_version']}" for one in known})),
            data_format="parquet",
            observation_space=gymnasium.spaces.Dict(texts),
            action_space=actions,
        )
        dataset.storage.update_episode_metadata([episode.about() for episode in known])
    return int(dataset.total_steps)


def _buffer(number: int, episode: Recorded) -> dict[str, Any]:
    acted = episode.steps[1:]
    return {
        "id": number,
        "seed": episode.row["seed"],
        "options": orjson.loads(episode.row["reset_options"] or "{}"),
        "observations": {name: [step[f"obs_{name}"] for step in episode.steps] for name in ("text", "data")},
        "actions": [step["action"] or step["given"] or "" for step in acted],
        "rewards": [step["reward"] for step in acted],
        "terminations": [step["terminated"] for step in acted],
        "truncations": [step["truncated"] for step in acted],
    }


def _space(texts: list[str]) -> gymnasium.spaces.Text:
    """The smallest space that holds these texts."""
    return gymnasium.spaces.Text(max(1, *map(len, texts)), min_length=0, charset="".join(sorted(set().union(*texts))) or " ")


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Where Minari keeps datasets, which it is told by the process's environment alone."""
    before = os.environ.get("MINARI_DATASETS_PATH")
    os.environ["MINARI_DATASETS_PATH"] = str(path.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ["MINARI_DATASETS_PATH"]
        else:
            os.environ["MINARI_DATASETS_PATH"] = before
