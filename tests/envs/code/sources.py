"""Problems of our own in other people's formats, to read and to damage."""

import gzip
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
FILES = (
    "mbpp.jsonl",
    "mbpp_sanitized.json",
    "evalplus.jsonl",
    "apps.jsonl",
    "apps",
    "livecodebench.jsonl",
    "codecontests.jsonl",
    "swebench.jsonl",
    "minirepo.jsonl",
)


def row(name: str, number: int = 0) -> dict[str, Any]:
    """A row of one of the files."""
    found: dict[str, Any] = json.loads((DATA / name).read_text().splitlines()[number])
    return found


def write(path: Path, *rows: Any) -> Path:
    """Writes rows, or lines as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode(errors="surrogatepass")
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
