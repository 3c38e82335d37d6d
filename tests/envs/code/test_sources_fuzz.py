"""Damaged sources: one clear error each, in bounded time and memory."""

import base64
import gzip
import json
import pickle
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.envs.code_task.problems import ProblemSet
from agent_gym.envs.code_task.sources import formats
from agent_gym.envs.code_task.sources.row import Row
from agent_gym.errors import DatasetError
from tests.envs.code.sources import DATA, FILES, row

MIB = 1 << 20


def lines(*rows: Any) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


def packed(raw: bytes) -> dict[str, Any]:
    return {**row("livecodebench.jsonl"), "private_test_cases": base64.b64encode(raw).decode()}


def repeated(chunk: bytes, times: int) -> bytes:
    """Gzipped, one part a chunk."""
    return gzip.compress(chunk, 1) * times


class Call:
    def __reduce__(self) -> Any:
        return print, ("this pickle was run",)


MBPP = row("mbpp.jsonl")
CORPUS: dict[str, tuple[bytes, str]] = {
    "empty.jsonl": (b"", "holds no problem"),
    "blank.jsonl": (b"\n \r\n\t\n", "holds no problem"),
    "torn.jsonl": (lines(MBPP)[:-9], ":1: not JSON"),
    "second-line-torn.jsonl": (lines(MBPP, b'{"task_id": 2,'), ":2: not JSON"),
    "not-utf8.jsonl": (lines(MBPP).replace(b"widest", b"wid\xe9st"), ":1: not UTF-8"),
    "utf16.jsonl": (lines(MBPP).decode().encode("utf-16"), ":1: not UTF-8"),
    "nul.jsonl": (lines(MBPP).replace(b"gap", b"g\0p"), ":1: not JSON"),
    "only-nul.jsonl": (b"\0" * 1000, ":1: not JSON"),
    "nul-escaped.jsonl": (lines({**MBPP, "code": "\0"}), "NUL character"),
    "surrogate.jsonl": (lines({**MBPP, "text": "\udc00"}), "half a surrogate pair"),
    "surrogate-in-tests.jsonl": (lines({**row("apps.jsonl"), "input_output": {"inputs": ["\ud800"], "outputs": ["1"]}}), "surrogate"),
    "two-marks.jsonl": (b"\xef\xbb\xbf\xef\xbb\xbf" + lines(MBPP), ":1: not JSON"),
    "number.jsonl": (b"17\n", ":1: int instead of an object"),
    "nan.jsonl": (b"NaN\n", ":1: float instead of an object"),
    "list-in-lines.jsonl": (lines([MBPP]), ":1: list instead of an object"),
    "no-fields.jsonl": (b"{}\n", ":1: of no known format"),
    "foreign.jsonl": (lines({"content": "x", "labels": {}}), "its fields are 'content, labels'"),
    "missing.jsonl": (lines({key: MBPP[key] for key in MBPP if key != "code"}), "field 'code' is missing"),
    "wrong-type.jsonl": (lines({**MBPP, "test_list": "assert"}), "field 'test_list': not JSON"),
    "id-twice.jsonl": (lines(MBPP, MBPP), ":2: id 'mbpp/1' stands in .*:1 already"),
    "id-none.jsonl": (lines({**MBPP, "task_id": None}), "field 'task_id' is no id"),
    "id-huge.jsonl": (lines(MBPP).replace(b'"task_id": 1', b'"task_id": ' + b"1" * 9000), "field 'task_id' is no id"),
    "integer-without-end.jsonl": (b'{"a": ' + b"9" * MIB + b"}", "an integer of 1048576 digits"),
    "nested.jsonl": (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", ":1: nested too deep"),
    "nested-input.jsonl": (lines({**row("evalplus.jsonl"), "base_input": "[[" + "[" * 90 + "]" * 90 + "]]"}), "cannot be handed over"),
    "values.jsonl": (b'{"a": [' + b"[]," * 5_000_000 + b"[]]}", "more than 8000000 values"),
    "line.jsonl": (b" " * (65 * MIB), ":1: longer than 64 MiB"),
    "torn-list.json": (json.dumps([MBPP]).encode()[:-1], r":1 \(item 1\): not JSON"),
    "list-and-more.json": (json.dumps([MBPP]).encode() + b" x", "something follows the list"),
    "list-of-lists.json": (b"[\n[1],\n{}]", r":2 \(item 1\): list instead of an object"),
    "second-item.json": (b"[" + lines(MBPP) + b",\n{'a': 1}]", r":3 \(item 2\): not JSON"),
    "empty-list.json": (b" [ ] ", "holds no problem"),
    "not-gzip.jsonl.gz": (lines(MBPP), "cannot be read"),
    "torn.jsonl.gz": (gzip.compress(lines(MBPP))[:-9], "cannot be read"),
    "bad-sum.jsonl.gz": (gzip.compress(lines(MBPP))[:-8] + b"\0" * 8, "cannot be read"),
    "bomb.jsonl.gz": (repeated(b"0" * MIB, 80), "longer than 64 MiB"),
    "bomb-of-lines.jsonl.gz": (repeated(b"\n" * MIB, 2), "more than 1000000 lines"),
    "bomb-of-blanks.jsonl.gz": (repeated((b" " * (MIB - 1)) + b"\n", 100), "more than 64 MiB, unpacked"),
    "bomb.json.gz": (repeated(b"[" + b" " * MIB, 80), "a list of more than 64 MiB"),
    "private-not-packed.jsonl": (lines({**row("livecodebench.jsonl"), "private_test_cases": "!"}), "neither JSON nor base64"),
    "private-not-zlib.jsonl": (lines(packed(b"abc")), "cannot be unpacked"),
    "private-torn.jsonl": (lines(packed(zlib.compress(b"x" * 999)[:-7])), "cannot be unpacked: torn"),
    "private-bomb.jsonl": (lines(packed(zlib.compress(b"\0" * (70 * MIB), 1))), "more than 64 MiB"),
    "private-no-pickle.jsonl": (lines(packed(zlib.compress(b"[]"))), "a torn pickle|a pickle"),
    "private-call.jsonl": (lines(packed(zlib.compress(pickle.dumps(Call())))), "a pickle that does more than hold a text"),
    "private-class.jsonl": (lines(packed(zlib.compress(b"cos\nsystem\n(S'true'\ntR."))), r"more than hold a text \(GLOBAL\)"),
    "private-memo.jsonl": (lines(packed(zlib.compress(b"\x80\x04X\x01\x00\x00\x00xr\xff\xff\xff\x7f."))), "not JSON"),
    "private-length.jsonl": (lines(packed(zlib.compress(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx."))), "a torn pickle"),
    "time-without-end.jsonl": (lines(row("codecontests.jsonl")).replace(b'"seconds": 1', b'"seconds": 1e400'), "limits|time_limit"),
}
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from agent_gym.envs.code_task.problems import ProblemSet
from agent_gym.errors import DatasetError
for path in sys.argv[1:]:
    try:
        print("read", ProblemSet(path).splits())
    except DatasetError as error:
        print(str(error).replace("\\n", "\\\\n"))
"""


@pytest.mark.slow
def test_every_damaged_file_is_one_error_in_bounded_time_and_memory(tmp_path: Path) -> None:
    assert len(CORPUS) >= 30
    paths = [tmp_path / name for name in CORPUS]
    for path, (content, _) in zip(paths, CORPUS.values(), strict=True):
        path.write_bytes(content)
    done = subprocess.run([sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = done.stdout.splitlines()
    assert len(told) == len(CORPUS)
    for path, said, (_, expected) in zip(paths, told, CORPUS.values(), strict=True):
        assert said.startswith(f"{path}:")
        assert len(said) < 800
        assert re.search(expected, said), (path.name, said)


ROWS = [json.loads(line) for name in FILES if name.endswith(".jsonl") for line in (DATA / name).read_text().splitlines()]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("\ud800") | st.just("[]") | st.just("{}")
VALUES = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3), max_leaves=8
)


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A good row with some places in it, however deep, put to something else, or left out."""
    found: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(ROWS))))
    for _ in range(draw(st.integers(1, 3))):
        at: Any = found
        key = draw(st.sampled_from(sorted(at))) if at else "a"
        while isinstance(at.get(key) if isinstance(at, dict) else at[key], dict | list) and draw(st.booleans()):
            inner = at[key]
            if not inner:
                break
            at, key = inner, draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        if isinstance(at, dict) and draw(st.integers(0, 4)) == 0:
            del at[key]
        else:
            at[key] = draw(VALUES)
    return found


def attempt(make: Callable[[], Any]) -> Any:
    """What comes of it, or the error that it ends in."""
    try:
        return make()
    except DatasetError as error:
        return error


@given(fields=damaged())
@settings(max_examples=200)
def test_a_row_is_a_problem_or_an_error_that_names_it(fields: dict[str, Any]) -> None:
    made = attempt(lambda: formats.problem(Row("file:7", fields), "test", "code/x"))
    if isinstance(made, DatasetError):
        assert str(made).startswith("file:7: ")
        assert str(made).encode()
    else:
        assert 0 < len(made.task.id) < 300
        assert json.dumps(made.task.spec, allow_nan=False).encode()
        assert json.dumps([made.goal, made.solution], ensure_ascii=False).encode()


@given(data=st.data())
@settings(max_examples=100)
def test_bytes_are_problems_or_an_error_that_names_the_file(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = data.draw(st.sampled_from(["x.jsonl", "x.json", "x.jsonl.gz", "x.json.gz"]))
    rows = (MBPP, {**MBPP, "task_id": 2})
    good = lines(*rows) if ".jsonl" in name else json.dumps(rows).encode()
    raw = bytearray(gzip.compress(good, mtime=0) if name.endswith(".gz") else good)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        raw[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    path = tmp_path_factory.mktemp("bytes") / name
    path.write_bytes(raw)
    made = attempt(lambda: ProblemSet(str(path)))
    assert str(path) in str(made) if isinstance(made, DatasetError) else made.splits() == ["test"]
