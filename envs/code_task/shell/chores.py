"""Kinds of chores in a folder of files: what is there, what is asked, what is right, and a command that does it.

What is right is worked out here; the commands know only what the goal says.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["CHORES", "Chore", "Files"]

Files = dict[str, str]

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "Fjord", "grün", "harbour", "ínsula", "jetty", "Köln", "lagoon", "mole", "nøkkel")
_NAMES = ("report", "My notes", "été 2023", "budget", "Plan B", "photo", "minutes", "list", "Übersicht", "draft", "a-b", "x.y")
_HOSTS = ("db.example.org", "10.0.0.7", "mail.example.net", "cache-1.local")


@dataclass(frozen=True, kw_only=True)
class Chore:
    """A kind of chore.

    Attributes:
        text: What is asked, with slots.
        draw: The files at the start, and what stands in the slots.
        result: The files as they should be in the end.
        command: Does it in bash; the slots are its variables.
        work: So many operations (1 to 4) and traps (0 to 3: spaces and accents in names, folders in folders, numbers) it takes.
    """

    text: str
    draw: Callable[["Draw"], tuple[Files, dict[str, str]]]
    result: Callable[[Files, Mapping[str, str]], Files]
    command: str
    work: tuple[int, int]

    @property
    def difficulty(self) -> float:
        """From 0 to 1: half each for operations (1 to 4) and traps (0 to 3)."""
        operations, traps = self.work
        return round(((operations - 1) / 3 + traps / 3) / 2, 2)

    def solve(self, slots: Mapping[str, str]) -> str:
        """The command for what stands in the slots."""
        return "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(slots.items())) + self.command


class Draw:
    """Draws names, lines and files."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def number(self, low: int, high: int) -> int:
        """From ``low`` to ``high``."""
        return int(self.rng.integers(low, high + 1))

    def some(self, values: Sequence[str], low: int, high: int) -> list[str]:
        """Different values."""
        return [values[int(index)] for index in self.rng.permutation(len(values))[: self.number(low, high)]]

    def one(self, values: Sequence[str]) -> str:
        """A value."""
        return values[int(self.rng.integers(len(values)))]

    def lines(self, low: int, high: int, words: int = 3) -> str:
        """Lines of words."""
        return "".join(" ".join(self.one(_WORDS) for _ in range(self.number(1, words))) + "\n" for _ in range(self.number(low, high)))

    def tree(self, top: str, endings: Sequence[str], low: int = 6, high: int = 10) -> Files:
        """Files in a folder and in folders of it."""
        folders = (f"{top}/", f"{top}/old/", f"{top}/Ablage 2/")
        return {f"{self.one(folders)}{name}{self.one(endings)}": self.lines(1, 6) for name in self.some(_NAMES, low, high)}


def _drawn_inbox(draw: Draw) -> tuple[Files, dict[str, str]]:
    folder = draw.one(("inbox", "downloads"))
    inbox = {f"{folder}/{name}.{draw.one(('txt', 'csv', 'md'))}": draw.lines(1, 3) for name in draw.some(_NAMES, 6, 10)}
    return {**inbox, "README": "keep\n"}, {"folder": folder}


def _by_ending(files: Files, slots: Mapping[str, str]) -> Files:
    moved = {}
    for path, text in files.items():
        folder, _, name = path.rpartition("/")
        moved[f"{folder}/{name.rpartition('.')[2]}/{name}" if folder == slots["folder"] else path] = text
    return moved


def _plain_names(files: Files, slots: Mapping[str, str]) -> Files:
    folder = f"{slots['folder']}/"
    plain = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ ", "abcdefghijklmnopqrstuvwxyz_")
    return {f"{folder}{path[len(folder) :].translate(plain)}" if path.startswith(folder) else path: text for path, text in files.items()}


def _drawn_logs(draw: Draw) -> tuple[Files, dict[str, str]]:
    days = sorted({f"logs/2024-{draw.number(1, 12):02d}-{draw.number(1, 28):02d}.log": draw.lines(1, 4) for _ in range(6)}.items())
    return {**dict(days), "logs/readme.txt": draw.lines(1, 2)}, {"target": draw.one(("all.log", "joined.log"))}


def _joined(files: Files, slots: Mapping[str, str]) -> Files:
    logs = [path for path in sorted(files) if path.endswith(".log")]
    return {**{path: text for path, text in files.items() if path not in logs}, slots["target"]: "".join(files[path] for path in logs)}


def _counted(files: Files, slots: Mapping[str, str]) -> Files:
    found = sorted(path for path in files if path.endswith(slots["ending"]))
    return {**files, "counts.txt": "".join(f"{files[path].count(chr(10))} {path}\n" for path in found)}


def _drawn_settings(draw: Draw) -> tuple[Files, dict[str, str]]:
    old, new = draw.some(_HOSTS, 2, 2)
    other = old.replace(".", "x", 1)
    made = {}
    for path in draw.tree("etc", (".cfg", ".cfg", ".txt")):
        made[path] = "".join(f"{draw.one(('host', 'backup'))}={draw.one((old, old, other, new))}\n" for _ in range(draw.number(2, 5)))
    return made, {"old": old, "new": new}


def _replaced(files: Files, slots: Mapping[str, str]) -> Files:
    return {path: text.replace(slots["old"], slots["new"]) if path.endswith(".cfg") else text for path, text in files.items()}


def _different(files: Files, slots: Mapping[str, str]) -> Files:
    lines = {line for path, text in files.items() if path.startswith("lists/") for line in text.splitlines()}
    kept = sorted(line for line in lines if slots["word"] in line)
    return {**files, "found.txt": "".join(f"{line}\n" for line in kept)}


def _drawn_litter(draw: Draw) -> tuple[Files, dict[str, str]]:
    made = draw.tree("work", (".txt", ".txt~", ".tmp", ".md"), 9, 12)
    return {path: "" if draw.number(0, 3) == 0 else text for path, text in made.items()}, {"ending": draw.one((".tmp", ".txt~"))}


def _cleaned(files: Files, slots: Mapping[str, str]) -> Files:
    return {path: text for path, text in files.items() if text and not path.endswith(slots["ending"])}


def _drawn_archive(draw: Draw) -> tuple[Files, dict[str, str]]:
    folder = draw.one(("archive", "store"))
    return draw.tree(folder, (".txt", ".bin")), {"folder": folder}


def _listed(files: Files, slots: Mapping[str, str]) -> Files:
    sizes = sorted((-len(text.encode()), path) for path, text in files.items() if path.startswith(f"{slots['folder']}/"))
    return {**files, "index.csv": "".join(f"{path},{-size}\n" for size, path in sizes)}


def _drawn_sales(draw: Draw) -> tuple[Files, dict[str, str]]:
    rows = [
        f"{number},{draw.one(_WORDS)},{draw.number(1, 300)},{draw.one(('north', 'south', 'west'))}"
        for number in range(1, draw.number(15, 30))
    ]
    return {"sales.csv": "id,item,count,region\n" + "".join(f"{row}\n" for row in rows)}, {
        "least": str(draw.number(60, 200)),
        "region": draw.one(("north", "south", "west")),
    }


def _filtered(files: Files, slots: Mapping[str, str]) -> Files:
    head, *rows = files["sales.csv"].splitlines()
    kept = [row for row in rows if int(row.split(",")[2]) >= int(slots["least"]) and row.split(",")[3] == slots["region"]]
    return {
        **files,
        "kept.csv": "".join(f"{row}\n" for row in (head, *sorted(kept, key=lambda row: (-int(row.split(",")[2]), int(row.split(",")[0]))))),
    }


def _cut(files: Files, slots: Mapping[str, str]) -> Files:
    lines, size = files["big.txt"].splitlines(keepends=True), int(slots["size"])
    parts = {f"parts/{start // size:02d}.txt": "".join(lines[start : start + size]) for start in range(0, len(lines), size)}
    return {**{path: text for path, text in files.items() if path != "big.txt"}, **parts}


def _drawn_versions(draw: Draw) -> tuple[Files, dict[str, str]]:
    folder = draw.one(("releases", "drafts"))
    made = {}
    for name in draw.some(("plan", "offer", "map", "talk"), 3, 4):
        for version in {draw.number(1, 9), draw.number(8, 12), draw.number(2, 30)}:
            made[f"{folder}/{name}_v{version}.txt"] = draw.lines(1, 2)
    return made, {"folder": folder}


def _newest(files: Files, slots: Mapping[str, str]) -> Files:  # noqa: ARG001 - all results are worked out alike
    best: dict[str, int] = {}
    for path in files:
        name, _, version = path.removesuffix(".txt").rpartition("_v")
        best[name] = max(int(version), best.get(name, 0))
    return {path: files[path] for path in (f"{name}_v{version}.txt" for name, version in best.items())}


def _frequent(files: Files, slots: Mapping[str, str]) -> Files:
    counts = Counter(word for path, text in files.items() if path.endswith(".txt") for word in text.split())
    best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: int(slots["most"])]
    return {**files, "words.txt": "".join(f"{word} {count}\n" for word, count in best)}


CHORES: dict[str, Chore] = {
    "by_ending": Chore(
        text="Move every file of the folder {folder} into a folder inside it that is called as the file's ending is, without the dot.",
        draw=_drawn_inbox,
        result=_by_ending,
        command='for path in "$folder"/*; do mkdir -p "$folder/${path##*.}"; mv "$path" "$folder/${path##*.}/"; done',
        work=(2, 1),
    ),
    "plain_names": Chore(
        text="Rename the files of the folder {folder}: small letters for the capital letters A to Z, and _ for every space.",
        draw=_drawn_inbox,
        result=_plain_names,
        command="""for path in "$folder"/*; do
  name=$(basename "$path"); new=$(printf %s "$name" | LC_ALL=C tr 'A-Z ' 'a-z_')
  [ "$name" = "$new" ] || mv "$path" "$folder/$new"
done""",
        work=(2, 1),
    ),
    "joined": Chore(
        text="Put the contents of all .log files of logs, in the order of their names, into {target}, and remove them.",
        draw=_drawn_logs,
        result=_joined,
        command='cat logs/*.log > "$target.part"; rm logs/*.log; mv "$target.part" "$target"',
        work=(2, 0),
    ),
    "counted": Chore(
        text="Write into counts.txt, for each file below docs whose name ends with {ending}, its number of lines, a space and its path "
        "(beginning with docs/), sorted by path.",
        draw=lambda draw: (draw.tree("docs", (".txt", ".md")), {"ending": draw.one((".txt", ".md"))}),
        result=_counted,
        command="""find docs -type f -name "*$ending" | LC_ALL=C sort | while IFS= read -r path; do
  echo "$(wc -l < "$path" | tr -d ' ') $path"
done > counts.txt""",
        work=(3, 2),
    ),
    "replaced": Chore(
        text="In all .cfg files below etc, put {new} in the place of {old}, wherever exactly that stands.",
        draw=_drawn_settings,
        result=_replaced,
        command="""pattern=$(printf %s "$old" | sed 's/\\./\\\\./g')
find etc -type f -name '*.cfg' -exec sed -i "s/$pattern/$new/g" {} +""",
        work=(2, 3),
    ),
    "different": Chore(
        text="Write the different lines of all files in lists that hold the word {word} into found.txt, each once, sorted by the codes of "
        "their characters.",
        draw=lambda draw: ({f"lists/{name}.txt": draw.lines(4, 12, 2) for name in draw.some(_NAMES, 3, 5)}, {"word": draw.one(_WORDS)}),
        result=_different,
        command='cat lists/* | grep -F -- "$word" | LC_ALL=C sort -u > found.txt',
        work=(3, 1),
    ),
    "cleaned": Chore(
        text="Remove below work all files that are empty and all whose names end with {ending}. Nothing else.",
        draw=_drawn_litter,
        result=_cleaned,
        command='find work -type f \\( -empty -o -name "*$ending" \\) -delete',
        work=(2, 2),
    ),
    "listed": Chore(
        text="Write into index.csv, for each file below {folder}, its path (beginning with {folder}/), a comma and its size in bytes: the "
        "largest first, equally large ones by path.",
        draw=_drawn_archive,
        result=_listed,
        command="""find "$folder" -type f -printf '%s\\t%p\\n' | LC_ALL=C sort -t "$(printf '\\t')" -k1,1nr -k2 | \\
awk -F '\\t' '{ print $2 "," $1 }' > index.csv""",
        work=(4, 2),
    ),
    "filtered": Chore(
        text="Write into kept.csv the heading of sales.csv and its rows of the region {region} with a count of {least} or more: the "
        "largest count first, equal ones by id.",
        draw=_drawn_sales,
        result=_filtered,
        command="""head -n 1 sales.csv > kept.csv
tail -n +2 sales.csv | awk -F , -v least="$least" -v region="$region" '$3 + 0 >= least + 0 && $4 == region' | \\
sort -t , -k3,3nr -k1,1n >> kept.csv""",
        work=(4, 1),
    ),
    "cut": Chore(
        text="Cut big.txt into files of {size} lines each, the last perhaps with fewer: parts/00.txt, parts/01.txt and so on. "
        "Remove it then.",
        draw=lambda draw: ({"big.txt": draw.lines(20, 60), "other.txt": draw.lines(1, 3)}, {"size": str(draw.number(4, 9))}),
        result=_cut,
        command="""mkdir -p parts
awk -v size="$size" '{ print > sprintf("parts/%02d.txt", int((NR - 1) / size)) }' big.txt
rm big.txt""",
        work=(3, 0),
    ),
    "newest": Chore(
        text="In the folder {folder}, keep of each text only the highest version: plan_v12.txt is newer than plan_v9.txt.",
        draw=_drawn_versions,
        result=_newest,
        command="""cd "$folder" && ls | sed 's/_v[0-9]*\\.txt$//' | sort -u | while IFS= read -r name; do
  ls "$name"_v*.txt | sort -V | head -n -1 | xargs -r rm
done""",
        work=(3, 1),
    ),
    "frequent": Chore(
        text="Write the {most} most frequent words of all .txt files below texts into words.txt, each with a space and how often it "
        "occurs: the most frequent first, equal ones by the codes of their characters.",
        draw=lambda draw: (draw.tree("texts", (".txt", ".txt", ".md")), {"most": str(draw.number(3, 8))}),
        result=_frequent,
        command="""find texts -type f -name '*.txt' -exec cat {} + | tr -s ' ' '\\n' | grep . | LC_ALL=C sort | LC_ALL=C uniq -c | \\
LC_ALL=C sort -k1,1nr -k2,2 | head -n "$most" | awk '{ print $2 " " $1 }' > words.txt""",
        work=(4, 2),
    ),
}
"""The kinds, by name."""
