"""Small edits of a Python text: the slips of the pen that people make, and so also what mends them.

Each kind is offered wherever it fits, by the syntax alone; nothing is known of what a text should do. Most kinds come in pairs that undo
each other.
"""

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["KINDS", "Edit", "python_edits"]

_COMPARED: dict[type[ast.cmpop], tuple[str, tuple[tuple[str, str], ...]]] = {
    ast.Lt: ("<", (("boundary", "<="), ("comparison", ">"))),
    ast.LtE: ("<=", (("boundary", "<"), ("comparison", ">="))),
    ast.Gt: (">", (("boundary", ">="), ("comparison", "<"))),
    ast.GtE: (">=", (("boundary", ">"), ("comparison", "<="))),
    ast.Eq: ("==", (("comparison", "!="),)),
    ast.NotEq: ("!=", (("comparison", "=="),)),
    ast.In: ("in", (("comparison", "not in"),)),
    ast.NotIn: ("not in", (("comparison", "in"),)),
    ast.Is: ("is", (("comparison", "is not"),)),
    ast.IsNot: ("is not", (("comparison", "is"),)),
}
_COMPUTED: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("+",)),
    ast.Div: ("/", ("//",)),
    ast.FloorDiv: ("//", ("%", "/")),
    ast.Mod: ("%", ("//",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
}
_ONE_SIDED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)
_TWINS: dict[str, tuple[str, ...]] = {}
for _group in (
    ("min", "max"),
    ("any", "all"),
    ("sum", "len"),
    ("append", "extend"),
    ("lower", "upper"),
    ("islower", "isupper"),
    ("isalpha", "isdigit"),
    ("lstrip", "rstrip", "strip"),
    ("startswith", "endswith"),
    ("keys", "values"),
    ("find", "rfind"),
    ("ljust", "rjust"),
    ("floor", "ceil"),
    ("union", "intersection"),
    ("add", "discard"),
    ("days", "seconds"),
):
    _TWINS |= {name: tuple(other for other in _group if other != name) for name in _group}
_WORDS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne", "+": "plus", "-": "minus", "*": "times", "/": "over"}
_WORDS |= {"//": "floordiv", "%": "mod", "&": "band", "|": "bor", "": "nothing", "0": "zero", "1": "one", "2": "two", "not in": "notin"}
_WORDS |= {"is not": "isnot"}

KINDS = (
    "boundary",
    "comparison",
    "constant",
    "arithmetic",
    "connective",
    "negation",
    "sign",
    "operands",
    "slice",
    "name",
    "flow",
    "variable",
    "branch",
    "indentation",
    "truth",
    "range",
)
"""The kinds of edits."""


@dataclass(frozen=True)
class Edit:
    """One way to change a text.

    Attributes:
        old: A text that occurs in it exactly once.
        new: What takes its place.
        kind: One of `KINDS`.
        words: What is changed into what, and where, as words that mean the same in every text.
    """

    old: str
    new: str
    kind: str
    words: tuple[str, ...]


class _Change(NamedTuple):
    start: int
    end: int
    new: str
    kind: str
    node: ast.AST


@functools.lru_cache(maxsize=256)
def python_edits(text: str) -> tuple[Edit, ...]:
    """The edits of a Python text, in the order of their places; none if it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_Editor(text, tree).edits())


class _Editor:
    """The edits of one text."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self._text, self._tree = text, tree
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def edits(self) -> list[Edit]:
        """All of them, each once."""
        made: dict[tuple[str, str], Edit] = {}
        for function in ast.walk(self._tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for where, change in self._of(function):
                    edit = self._edit(change, where)
                    made.setdefault((edit.old, edit.new), edit)
        return [*made.values()]

    def _of(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[tuple[str, ...], _Change]]:
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        bound = [node.id for node in _inside(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        self._names = [*dict.fromkeys((*names, *bound))]
        found: list[tuple[tuple[str, ...], _Change]] = []
        for statement, around in _statements(function.body, ()):
            where = (type(statement).__name__.lower(), *around)
            found += [(where, change) for change in self._indented(statement, around)]
            for part in _own_parts(statement):
                for node in (part, *_inside(part)):
                    found += [(where, change) for change in self._node(node)]
            found += [(where, change) for change in self._statement(statement)]
        yield from sorted(found, key=lambda pair: (pair[1].start, pair[1].end))

    # Expressions.

    def _node(self, node: ast.AST) -> Iterator[_Change]:
        if isinstance(node, ast.Compare):
            for left, operator, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
                old, others = _COMPARED[type(operator)]
                for kind, new in others:
                    yield from self._between(left, right, old, new, kind, node)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in itertools.pairwise(node.values):
                yield from self._between(left, right, old, new, "connective", node)
        elif isinstance(node, ast.BinOp):
            old, news = _COMPUTED.get(type(node.op), ("", ()))
            for new in news:
                yield from self._between(node.left, node.right, old, new, "arithmetic", node)
            if isinstance(node.op, _ONE_SIDED) and _simple(node.left) and _simple(node.right):
                yield self._swap(node.left, node.right, node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start = self._start(node)
            yield _Change(start, start + 4, "", "negation", node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield _Change(self._start(node), self._start(node.operand), "", "sign", node)
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.Subscript):
            yield from self._subscript(node)
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.Attribute):
            end = self._end(node)
            for twin in _TWINS.get(node.attr, ()):
                yield _Change(end - len(node.attr), end, twin, "name", node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            for twin in _TWINS.get(node.id, ()):
                yield _Change(self._start(node), self._end(node), twin, "name", node)
        for test in (getattr(node, "test", None), *getattr(node, "ifs", ())):
            if isinstance(test, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
                yield _Change(self._start(test), self._start(test), "not ", "negation", node)

    def _constant(self, node: ast.Constant) -> Iterator[_Change]:
        start, end, value = self._start(node), self._end(node), node.value
        if isinstance(value, bool):
            yield _Change(start, end, str(not value), "truth", node)
        elif isinstance(value, int) and self._text[start:end] == str(value):
            for other in (value + 1, value - 1) if value else (1,):
                yield _Change(start, end, str(other), "constant", node)
        elif value == "" or value == " ":
            yield _Change(start, end, '" "' if value == "" else '""', "constant", node)

    def _subscript(self, node: ast.Subscript) -> Iterator[_Change]:
        index = node.slice
        if isinstance(index, ast.Slice):
            if index.step is None and (index.lower is None) != (index.upper is None):
                only = index.lower or index.upper
                assert only is not None
                start, end = self._end(node.value) + 1, self._end(node) - 1
                inner = self._source(only)
                yield _Change(start, end, f":{inner}" if index.upper is None else f"{inner}:", "slice", node)
        elif isinstance(index, ast.Name):
            end = self._end(index)
            for new in (" + 1", " - 1"):
                yield _Change(end, end, new, "range", node)
        elif isinstance(index, ast.BinOp) and _is_one(index.right) and isinstance(index.op, ast.Add | ast.Sub):
            yield _Change(self._end(index.left), self._end(index), "", "range", node)
        elif isinstance(index, ast.Constant) and index.value in (0, 1):
            start = self._start(index)
            yield _Change(start, self._end(index), "-1", "sign", node)

    def _call(self, node: ast.Call) -> Iterator[_Change]:
        if len(node.args) == 2 and all(map(_simple, node.args)):
            yield self._swap(node.args[0], node.args[1], node)
        if isinstance(node.func, ast.Name) and node.func.id == "range" and node.args:
            last = node.args[-1]
            if isinstance(last, ast.BinOp) and _is_one(last.right) and isinstance(last.op, ast.Add | ast.Sub):
                yield _Change(self._end(last.left), self._end(last), "", "range", node)
            else:
                for new in (" + 1", " - 1"):
                    yield _Change(self._end(last), self._end(last), new, "range", node)
            if len(node.args) == 1:
                yield _Change(self._start(last), self._start(last), "1, ", "range", node)
            elif len(node.args) == 2 and _is_one(node.args[0]):
                yield _Change(self._start(node.args[0]), self._start(last), "", "range", node)
        for argument in node.args:
            yield from self._variable(argument)

    def _variable(self, node: ast.AST | None) -> Iterator[_Change]:
        """The variables bound just before and just after it."""
        if isinstance(node, ast.Name) and node.id in self._names:
            place = self._names.index(node.id)
            for other in (place - 1, place + 1):
                if 0 <= other < len(self._names):
                    yield _Change(self._start(node), self._end(node), self._names[other], "variable", node)

    # Statements.

    def _statement(self, node: ast.stmt) -> Iterator[_Change]:
        start, end = self._start(node), self._end(node)
        if isinstance(node, ast.Break | ast.Continue):
            yield _Change(start, end, "continue" if isinstance(node, ast.Break) else "break", "flow", node)
        elif isinstance(node, ast.AugAssign):
            old, news = _COMPUTED.get(type(node.op), ("", ()))
            for new in news:
                yield from self._between(node.target, node.value, f"{old}=", f"{new}=", "arithmetic", node)
            yield from self._variable(node.value)
        elif isinstance(node, ast.Return | ast.Assign):
            yield from self._variable(node.value)
        elif isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
            yield _Change(self._start(node.test), self._start(node.test), "not ", "negation", node)
        if isinstance(node, ast.If):
            if self._text.startswith("elif", start):
                yield _Change(start, start + 4, "if", "branch", node)
            elif self._follows_if(node):
                yield _Change(start, start + 2, "elif", "branch", node)

    def _follows_if(self, node: ast.If) -> bool:
        for block in _blocks(self._tree):
            for earlier, later in itertools.pairwise(block):
                if later is node:
                    return isinstance(earlier, ast.If) and (not earlier.orelse or _chained(earlier))
        return False

    def _indented(self, node: ast.stmt, around: tuple[str, ...]) -> Iterator[_Change]:
        """A simple statement moved out of the block that it ends, or into the block that it follows."""
        if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.FunctionDef | ast.ClassDef):
            return
        start, line = self._start(node), self._starts[node.lineno - 1]
        if self._text[line:start].strip():
            return
        for block in _blocks(self._tree):
            if node in block:
                at = block.index(node)
                if at and isinstance(block[at - 1], ast.For | ast.While | ast.If):
                    yield _Change(line, start, self._text[line:start] + "    ", "indentation", node)
                if at and at == len(block) - 1 and around:
                    yield _Change(line, start, self._text[line:start].removesuffix("    "), "indentation", node)

    # Texts.

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str, kind: str, node: ast.AST) -> Iterator[_Change]:
        """An operator between two expressions."""
        start, end = self._end(left), self._start(right)
        pattern = rf"\b{old}\b".replace(" ", r"\s+") if old[:1].isalpha() else rf"(?<!\S){re.escape(old)}(?!\S)"
        match = re.search(pattern, self._text[start:end])
        if match:
            yield _Change(start + match.start(), start + match.end(), new, kind, node)

    def _swap(self, left: ast.expr, right: ast.expr, node: ast.AST) -> _Change:
        start, end = self._start(left), self._end(right)
        middle = self._text[self._end(left) : self._start(right)]
        return _Change(start, end, f"{self._source(right)}{middle}{self._source(left)}", "operands", node)

    def _edit(self, change: _Change, where: tuple[str, ...]) -> Edit:
        """As the replacement of the line, or of as many as make it the only text of its kind."""
        first = self._text.count("\n", 0, change.start)
        last = self._text.count("\n", 0, change.end)
        start, end = self._starts[first], self._starts[last] + len(self._lines[last])
        if change.kind != "indentation":
            start += len(self._lines[first]) - len(self._lines[first].lstrip())
        while self._text.count(self._text[start:end]) > 1 and (start or end < len(self._text)):
            if first:
                first -= 1
                start = self._starts[first]
            else:
                last += 1
                end = self._starts[last] + len(self._lines[last])
        old = self._text[start:end]
        new = self._text[start : change.start] + change.new + self._text[change.end : end]
        return Edit(old, new, change.kind, self._words(change, where))

    def _words(self, change: _Change, where: tuple[str, ...]) -> tuple[str, ...]:
        was, now = self._text[change.start : change.end].strip(), change.new.strip()
        if change.kind == "variable":
            was, now = "earlier", "later"
            if self._names.index(self._text[change.start : change.end]) > self._names.index(change.new):
                was, now = now, was
        elif change.kind == "indentation":
            was, now = ("in", "out") if len(change.new) < change.end - change.start else ("out", "in")
        elif change.kind == "constant":
            was, now = (_number(text) for text in (was, now))
        elif change.kind in ("operands", "slice"):
            was, now = change.kind, type(change.node).__name__.lower()
        was, now = (_WORDS.get(text, text) for text in (was, now))
        step, statement = f"{was}>{now}", where[0]
        return (change.kind, step, f"{step} {statement}", f"{change.kind} {statement}", f"old {was}", f"new {now}")

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _source(self, node: ast.expr) -> str:
        return self._text[self._start(node) : self._end(node)]


def _statements(block: list[ast.stmt], around: tuple[str, ...]) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
    """The statements of a block and of those inside it, each with the kinds of the statements around it; texts left out."""
    for statement in block:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        yield statement, around
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, [])
            deeper = around if _chained(statement) and name == "orelse" else (*around, type(statement).__name__.lower())
            yield from _statements(inner, deeper)
        for handler in getattr(statement, "handlers", ()):
            yield from _statements(handler.body, (*around, "except"))


def _chained(node: ast.stmt) -> bool:
    """Whether an ``if`` has an ``elif``; its parts are at one depth."""
    return isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement itself, without those of the statements inside it, and without annotations."""
    for name, value in ast.iter_fields(statement):
        if name == "annotation":
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.expr | ast.withitem):
                yield part


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        yield child
        yield from _inside(child)


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _simple(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Constant | ast.Subscript | ast.Attribute | ast.Call)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1 and not isinstance(node.value, bool)


def _number(text: str) -> str:
    return "many" if text.isdecimal() and int(text) > 2 else text.strip("\"'")
