"""Makes the tasks: which faults the projects get; ``python -m agent_gym.envs.code_task.repo_repair.make`` writes them.

A fault is an edit that some edit undoes. Kept are those that visible and hidden tests notice, that leave no test without an end, and
that are mended by the first edit that makes all visible tests pass.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_gym.core.seeding import derive
from agent_gym.envs.code_task.repo_repair.mending import SHOWN, Change, Trials, mend, suspects
from agent_gym.envs.code_task.repo_repair.project import PROJECTS, Project, project
from agent_gym.interface.edits import python_edits

__all__ = ["DATA", "faults"]

DATA = Path(__file__).parent / "faults.json"

_MOST = 20
_MOST_ALIKE = 5  # faults of one kind
_MOST_FAILING = 0.6  # of the visible tests


def faults(made: Project) -> Iterator[tuple[Change, int, int]]:
    """The faults of a project: the change, how many visible tests fail, and how many edits there are of lines that these run."""
    changes = [(edit.kind, Change(path, edit.old, edit.new)) for path, text in made.files.items() for edit in python_edits(text)]
    order = [changes[place] for place in derive("repo_repair", made.name).permutation(len(changes))]
    visible = [expected[:SHOWN] for _, expected in made.visible]
    found = 0
    kinds: Counter[str] = Counter()
    for kind, change in order:
        if found == _MOST or kinds[kind] == _MOST_ALIKE:
            continue
        texts = {**made.files, change.path: made.files[change.path].replace(change.old, change.new)}
        if not any(texts[change.path].replace(edit.old, edit.new) == made.files[change.path] for edit in python_edits(texts[change.path])):
            continue
        (came,) = Trials(made.files).outcomes([change], [(text, None) for text, _ in made.visible])
        failing = sum(one != other for one, other in zip(came, visible, strict=False))
        if len(came) < len(visible) or not 1 <= failing <= _MOST_FAILING * len(visible) or right(made, made.files, change):
            continue
        tests = [(text, None if one == other else other) for (text, _), one, other in zip(made.visible, came, visible, strict=True)]
        mended = mend(texts, tests)
        if mended is not None and right(made, texts, mended):
            kinds[kind] += 1
            found += 1
            yield change, failing, len(suspects(Trials(texts), texts, tests))


def right(made: Project, texts: Mapping[str, str], change: Change) -> bool:
    """Whether all hidden tests pass with a change."""
    (came,) = Trials(texts).outcomes([change], made.hidden)
    return came == [expected[:SHOWN] for _, expected in made.hidden]


def main() -> None:
    """Writes `DATA`."""
    rows = []
    for name in (name for names in PROJECTS.values() for name in names):
        lines = [f"  {json.dumps([*change, failing, count])}" for change, failing, count in faults(project(name))]
        rows.append(f" {json.dumps(name)}: [\n" + ",\n".join(lines) + "\n ]")
        print(name, len(lines), file=sys.stderr, flush=True)
    DATA.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
