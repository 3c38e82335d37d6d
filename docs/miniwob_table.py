"""Fills the table of docs/miniwob.md: ``python docs/miniwob_table.py RESULT.json …``.

A result is what ``agent-gym eval … --protocol miniwob --json`` gave. A cell is a policy's success on a page and its 95 % interval; cells
of pages and policies that no result is about stay as they are. The last rows sum up those cells of their column that are filled.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from agent_gym.envs.miniwob.oracles import ORACLES
from agent_gym.envs.miniwob.tasks import MiniWoBTaskSet
from agent_gym.evaluation.intervals import bootstrap_macro

PAGE = Path(__file__).with_name("miniwob.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"
COLUMNS = ("random-until-end", "heuristic", "oracle")
SUMMARY = ("**pages measured**", "**mean over them**", "**without a success**")
FILLED = re.compile(r"(\d\.\d\d)(?: of (\d+))? \(")


def cell(part: dict[str, Any]) -> str:
    """A success rate with its interval, and the valid episodes if they are not 50; empty if there is none."""
    if part["success_ci95"] is None:
        return ""
    low, high = part["success_ci95"]
    valid = part["episodes"] - part["infra_errors"]
    of = "" if valid == 50 else f" of {valid}"
    return f"{part['success_rate']:.2f}{of} ({low:.2f}–{high:.2f})"


def summed_up(cells: list[str]) -> tuple[str, str, str]:
    """Of a column: how many cells are filled, their mean with its bootstrap interval, and how many are 0."""
    found = [(float(match[1]), int(match[2] or 50)) for match in map(FILLED.match, cells) if match]
    if not found:
        return "0", "", ""
    low, high = bootstrap_macro([(round(rate * episodes), episodes) for rate, episodes in found])
    rates = [rate for rate, _ in found]
    return str(len(found)), f"{sum(rates) / len(rates):.3f} ({low:.3f}–{high:.3f})", str(rates.count(0.0))


def main(results: list[str]) -> None:
    """Reads results, and writes the page anew."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    table, _, tail = rest.partition(END)
    rows = [re.split(r"\s*\|\s*", line.strip("| \n")) for line in table.splitlines()[2:]]
    known = {row[0]: dict(zip(("limit", *COLUMNS), row[1:], strict=False)) for row in rows}
    for result in results:
        told = json.loads(Path(result).read_text(encoding="utf-8"))
        for page, part in told["by_task_type"].items():
            known.setdefault(page, {})[told["policy"]] = cell(part)
    tasks = MiniWoBTaskSet()
    lines = [f"| page | steps | {' | '.join(COLUMNS)} |", f"|---|---{'|---' * len(COLUMNS)}|"]
    for page in tasks.pages:
        cells = [known.get(page, {}).get(column) or "" for column in COLUMNS]
        cells[-1] = cells[-1].strip("–") or ("" if page in ORACLES else "–")
        lines.append(f"| {page} | {tasks.get(f'miniwob/{page}/test-0').max_steps} | {' | '.join(cells)} |")
    columns = ([known.get(page, {}).get(column) or "" for page in tasks.pages] for column in COLUMNS)
    lines += [f"| {' | '.join((label, '', *sums))} |" for label, *sums in zip(SUMMARY, *map(summed_up, columns), strict=True)]
    PAGE.write_text("\n".join([f"{head}{BEGIN}{lines[0]}", *lines[1:], f"{END}{tail}"]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
