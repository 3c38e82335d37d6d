"""Chat rows for supervised fine-tuning: a JSON object a line, the conversation in ``messages`` and what was on offer in ``tools``.

The form is that of OpenAI's fine-tuning files, which TRL's ``SFTTrainer`` and chat templates read. Everything else of a row says what
became of the episode, so that failures can be left out.
"""

from pathlib import Path

import orjson

from agent_gym.trajectories.export.conversation import opening, turns
from agent_gym.trajectories.export.reading import Reading

__all__ = ["write"]


def write(episodes: Reading, out: Path) -> int:
    """Writes a row an episode; see `agent_gym.trajectories.export.reading.Writer`."""
    rows = 0
    with out.open("wb") as file:
        for episode in episodes:
            row = {"messages": [*opening(episode), *turns(episode)], "tools": episode.tools, **episode.about()}
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            rows += 1
    return rows
