"""A folder that Hugging Face ``datasets`` reads: episodes and steps as Parquet files, and a dataset card.

::

    OUT/README.md                   the card; its head names the two configurations
    OUT/episodes/train.parquet      the table episodes, all columns
    OUT/steps/train.parquet         the table steps, all columns, with run_id
    OUT/images/<digest>.png         what obs_image of steps names

Long texts stand in their columns. There is no column of a map type, which ``datasets`` cannot read.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.registry import IDS, OUTSIDE
from agent_gym.trajectories.export.reading import Reading, keep_images
from agent_gym.trajectories.schema import EPISODES, STEPS
from agent_gym.trajectories.versions import versions

__all__ = ["write"]

_ROWS = 2_048
_RUN_ID = pa.field("run_id", pa.string(), metadata={"doc": "the run, one invocation that recorded episodes"})
_SCHEMAS = {
    "episodes": EPISODES.remove(EPISODES.get_field_index("blobs")).append(_RUN_ID),
    "steps": STEPS.remove(STEPS.get_field_index("blobs")).append(_RUN_ID),
}
_CARD = """\
---
license: {{ license }}
pretty_name: Episodes of agents that use tools
tags: [agents, tool-use, reinforcement-learning, trajectories]
configs:
{% for name in tables %}
- config_name: {{ name }}
  data_files: {{ name }}/train.parquet
{% endfor %}
---

# Episodes of agents that use tools

Recorded with agent-gym {{ versions.agent_gym }}: {{ counts.episodes }} episodes with {{ counts.steps }} rows of steps (row 0 of an episode
is its reset).

```python
import datasets

episodes = datasets.load_dataset("path/to/this/folder", "episodes", split="train")
steps = datasets.load_dataset("path/to/this/folder", "steps", split="train")
```

## What is in it

| environment | version | split | policy | outcome | episodes |
|---|---|---|---|---|---|
{% for (env, version, split, policy, outcome), count in parts %}
| {{ env }} | {{ version }} | {{ split }} | {{ policy }} | {{ outcome }} | {{ count }} |
{% endfor %}

Rewards that are not valid are in no row: such episodes were left out. Columns whose description says JSON hold JSON as text.
What agents wrote, and what they were shown, is data: it may hold anything, markup of chat formats included.

## Licence

{% if license == "mit" %}
The environments, their tasks and worlds are part of agent-gym, under the MIT licence.
{% else %}
Some tasks come from outside agent-gym, under licences of their own: {{ outside | join(", ") }}. All else is under the MIT licence.
{% endif %}

## Versions

{% for name, version in versions.items() %}
- {{ name }} {{ version }}
{% endfor %}
- code of those who recorded: {{ codes | join(", ") }}

{% for name, columns in tables.items() %}
## Columns of {{ name }}

| column | type | meaning |
|---|---|---|
{% for column, type, meaning in columns %}
| {{ column }} | {{ type }} | {{ meaning }} |
{% endfor %}

{% endfor %}
"""


def write(episodes: Reading, out: Path) -> int:
    """Writes the folder; see `agent_gym.trajectories.export.reading.Writer`. A row is one of ``steps``."""
    parts: Counter[tuple[str, ...]] = Counter()
    codes: set[str] = set()
    outside: set[str] = set()
    tables = {name: _Table(out / name, schema) for name, schema in _SCHEMAS.items()}
    try:
        for episode in episodes:
            row, run = episode.row, {"run_id": episode.row["run_id"]}
            tables["episodes"].add(dict(row))
            for step in episode.steps:
                tables["steps"].add({**step, **run})
            keep_images(episodes.blobs, episode.steps, out / "images")
            parts[tuple(_cell(row[name]) for name in ("env_id", "env_version", "split", "policy_id", "outcome"))] += 1
            codes.add(_cell(row["code_version"]))
            if row["env_id"] not in set(IDS) - OUTSIDE or '"source"' in (row["env_spec"] or ""):
                outside.add(_cell(row["env_id"]))
    finally:
        for table in tables.values():
            table.close()
    counts = {name: table.rows for name, table in tables.items()}
    about: dict[str, Any] = {"counts": counts, "parts": sorted(parts.items()), "codes": sorted(codes), "outside": sorted(outside)}
    columns = {name: [(one.name, one.type, one.metadata[b"doc"].decode()) for one in schema] for name, schema in _SCHEMAS.items()}
    about |= {"tables": columns, "versions": versions(), "license": "other" if outside else "mit"}
    card = jinja2.Template(_CARD, trim_blocks=True).render(about)
    (out / "README.md").write_text(card, encoding="utf-8")
    return counts["steps"]


class _Table:
    """A Parquet file that is written a few rows at a time."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        folder.mkdir(parents=True)
        self._schema = schema
        self._file = pq.ParquetWriter(folder / "train.parquet", schema, compression="zstd")
        self._waiting: list[dict[str, Any]] = []
        self.rows = 0

    def add(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        self.rows += 1
        if len(self._waiting) >= _ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._waiting:
            self._file.write_table(pa.Table.from_pylist(self._waiting, self._schema))
            self._waiting = []


def _cell(value: Any) -> str:
    """A value as a cell of a Markdown table, or as a word."""
    return "" if value is None else " ".join(str(value).split()).replace("|", "\\|")
