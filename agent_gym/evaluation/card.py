"""The gameability card: what policies that do not solve the tasks score on each family, as a page for readers."""

from collections.abc import Sequence

from agent_gym.evaluation.admission import BOUNDS, AdmissionRow

__all__ = ["card_heading", "card_line", "gameability_card"]

_HEAD = """# Gameability

What policies that do not solve a task get for it, family by family. Each is played on the tasks that {seeds} seeds draw, {episodes}
with each; a score is the share that ended as success. Through the web door the same tasks are judged by the same code, so that only
what pages could spoil is played again. Made by

```console
agent-gym check tasks --all --seeds {seeds} --episodes {episodes} --card docs/gameability.md
```

which fails where a score is out of its bounds; a test plays parts of it again.

| policy | what it does | may score |
|---|---|---|
{policies}

*Ways* are the sequences of tools by which the oracle solved the tasks, *steps* its mean number of calls, the closing one included;
*difficulty* is a formula of the oracle's calls, of records that look like the right one, and of facts to be put together.
"""

_ABOUT = {
    "oracle": "solves it, from what it observes",
    "noop": "finishes at once",
    "spam": "calls everything with everything it has seen",
    "refuse-always": "refuses or hands over at once",
    "finish-early": "finishes after its first read",
    "cheats": "the best of the family's own short cuts",
    "first-candidate": "takes the first call on offer that it has not tried",
    "random": "takes any call on offer",
    "heuristic": "takes the call that shares most words with the goal",
}


def gameability_card(rows: Sequence[AdmissionRow], *, seeds: int, episodes: int) -> str:
    """The page, in Markdown.

    Args:
        rows: What `admit_all` found.
        seeds: As it was told.
        episodes: As it was told.
    """
    policies = "\n".join(f"| `{name}` | {_ABOUT[name]} | {_range(*bounds)} |" for name, bounds in BOUNDS.items())
    parts = [_HEAD.format(seeds=seeds, episodes=episodes, policies=policies)]
    columns = ["family", *BOUNDS, "ways", "steps", "difficulty"]
    for heading in dict.fromkeys(map(card_heading, rows)):
        table = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        table += [card_line(row) for row in rows if card_heading(row) == heading]
        parts.append(f"{heading}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def card_heading(row: AdmissionRow) -> str:
    """The heading under which a family's line stands."""
    return f"## {row.env_id}, version {row.version}, split {row.split}"


def card_line(row: AdmissionRow) -> str:
    """A family's line of the table."""
    cells = [
        row.family,
        *(_cell(row.scores[name], 2) for name in BOUNDS),
        _cell(row.ways, 0),
        _cell(row.steps, 1),
        _cell(row.difficulty, 2),
    ]
    return "| " + " | ".join(cells) + " |"


def _cell(figure: float | None, digits: int) -> str:
    return "–" if figure is None else f"{figure:.{digits}f}"


def _range(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"at most {high:g}"
