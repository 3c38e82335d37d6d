# ruff: noqa: E402, PT009, PT027 - the order of imports is the point, and unittest is what is used
"""Runs a project's hidden unittest tests in the project's own process, with tests among them that must fail.

Whatever the project's code has done to the test framework shows in those. What shows in nothing: code that finds the tests' own
objects, by walking frames or all objects there are, and forges just what is wanted.

The tests' sources are never on a disk: they are imported from memory. Modules that are needed here are imported before any of the
project's, so that no file of its own can stand in for them.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.util
import math
import sys
import tempfile
import types
from pathlib import Path

_WORKSPACE = "/workspace"
sys.modules.pop("solution", None)  # this program's own name, which the project may have for one of its modules
sys.path[:] = [folder for folder in sys.path if folder != _WORKSPACE]

import unittest

sys.path.insert(0, _WORKSPACE)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["run"]

_TEXT, _LEAVES = 300, 64
_EQUALITIES = (
    "assertEqual", "assertAlmostEqual", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual",
    "assertSequenceEqual", "assertCountEqual", "assertMultiLineEqual",
)  # fmt: skip
_FIXTURES = {"setUp", "tearDown", "setUpClass", "tearDownClass", "longMessage", "maxDiff"}
_HONEST = {name: getattr(unittest.TestCase, name) for name in _EQUALITIES}

_given: set[int] | None = None
"""Ids of the values that are compared, while they are seen through: then what the tests made to equal many things equals only these."""


class Pretends(BaseException):
    """A value says that it equals what it cannot equal."""


class _Any:
    """The tests' own ``unittest.mock.ANY``: the project may return the real one."""

    def __eq__(self, other: object) -> bool:
        return _given is None or id(other) in _given

    def __repr__(self) -> str:
        return "<ANY>"

    __hash__ = None  # type: ignore[assignment]


def run(sources: dict[str, str], data: dict[str, bytes], wanted: list[str], numbers: list[int]) -> list[tuple[str, str, str]]:
    """Runs tests.

    Args:
        sources: The tests' modules by path.
        data: What they need besides, by path.
        wanted: The ids of the tests to run, ``package.module.Class.method`` or ``package.module.function``.
        numbers: Drawn for this run. What a test that must fail is called follows from them.

    Returns:
        Of each test its id, ``passed``, ``failed``, ``error``, ``skipped`` or ``pretends``, and why. Tests that must fail have as
        id one of the numbers.
    """
    folder = _Memory(sources, data)
    sys.meta_path.insert(0, folder)
    outcomes: list[tuple[str, str, str]] = []
    modules, broken = {}, []
    for name in dict.fromkeys(part for part in map(folder.module_of, wanted) if part):
        try:
            modules[name] = importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - of the project's code or of the tests: all that they hold fails
            broken += [(test, "error", _text(error)) for test in wanted if folder.module_of(test) == name]
    found = {case.id(): case for name, module in modules.items() for case in _cases(name, module)}
    result = _Result(outcomes)
    _canaries(numbers[::2], 0).run(result)
    for kind in {type(case) for case in found.values()}:
        outcomes += [
            (kind.__name__, "pretends", f"{name} of {kind.__name__} is not unittest's") for name in _replaced(kind, [*modules.values()])
        ]
        for name in _EQUALITIES:
            setattr(kind, name, _strict(_HONEST[name], numbers[0]))
    unittest.TestSuite([found[test] for test in wanted if test in found]).run(result)
    _canaries(numbers[1::2], 1).run(result)
    missing = [
        (test, "error", "there is no such test") for test in wanted if test not in found and folder.module_of(test) in (*modules, "")
    ]
    return outcomes + broken + missing


class _Memory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from a dict; what is no module is put into a folder, which is what they see as theirs."""

    def __init__(self, sources: dict[str, str], data: dict[str, bytes]) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._sources = {_dotted(path): (path, source) for path, source in sources.items()}
        for path, content in data.items():
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / path).write_bytes(content)

    def module_of(self, test: str) -> str:
        """The module that a test's id begins with; empty if there is none."""
        return max((name for name in self._sources if test.startswith(f"{name}.")), key=len, default="")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - as the import system calls it
        package = any(known.startswith(f"{name}.") for known in self._sources)
        if name not in self._sources and not package:
            return None
        spec = importlib.util.spec_from_loader(name, self, is_package=package)
        if package and spec:
            spec.submodule_search_locations = [f"{_WORKSPACE}/{name.replace('.', '/')}"]  # what of it is not hidden
        return spec

    def exec_module(self, module: types.ModuleType) -> None:
        path, source = self._sources.get(module.__name__, (f"{module.__name__.replace('.', '/')}/__init__.py", ""))
        module.__file__ = str(self._folder / path)
        module.__dict__.update(__equal__=_equal, __any__=_Any())
        tree = ast.fix_missing_locations(_Equalities("mock" in source).visit(ast.parse(source)))
        exec(compile(tree, module.__file__, "exec", dont_inherit=True), module.__dict__)
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__ and "__eq__" in vars(value):
                setattr(value, "__eq__", _knowing(vars(value)["__eq__"]))  # noqa: B010 - not as mypy has it


class _Equalities(ast.NodeTransformer):
    """Has ``a == b`` asked in a way that sees through what pretends, and ``ANY`` be the tests' own."""

    def __init__(self, mocks: bool) -> None:
        self._mocks = mocks

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self._mocks and node.id == "ANY" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Name("__any__", ast.Load()), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._mocks and node.attr == "ANY" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Name("__any__", ast.Load()), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            call = ast.Call(ast.Name("__equal__", ast.Load()), [node.left, node.comparators[0]], [])
            return ast.copy_location(call, node)
        return node


class _Result(unittest.TestResult):
    """Keeps what became of each test."""

    def __init__(self, outcomes: list[tuple[str, str, str]]) -> None:
        super().__init__()
        self._outcomes = outcomes
        self._worse: dict[str, tuple[str, str]] = {}

    def _keep(self, test: Any, outcome: str, error: Any = None) -> None:
        pretends = error is not None and isinstance(error[1], Pretends)
        self._outcomes.append((_id(test), "pretends" if pretends else outcome, _text(error[1]) if error else ""))

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        self._keep(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._keep(test, "failed", err)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self._keep(test, "error", err)

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802, ARG002
        self._keep(test, "skipped")

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802, ARG002
        self._keep(test, "passed")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        self._keep(test, "failed")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802, ARG002
        if err is not None:
            self._keep(test, "failed", err)


def _cases(name: str, module: types.ModuleType) -> Iterator[unittest.TestCase]:
    """The tests of a module: of its classes, and its functions, as pytest takes them."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == name:
            for method in unittest.TestLoader().getTestCaseNames(value):
                yield value(method)
        elif isinstance(value, types.FunctionType) and value.__name__.startswith("test") and value.__module__ == name:
            yield _Function(value, f"{name}.{value.__name__}")


def _replaced(kind: type, modules: list[types.ModuleType]) -> list[str]:
    """What of unittest's a test's class has from elsewhere than the tests, such as from a stand-in for ``TestCase``."""
    known = [unittest.TestCase, unittest.IsolatedAsyncioTestCase, unittest.FunctionTestCase, _Function, object]
    known += [
        value for module in modules for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
    ]
    others = [base for base in kind.__mro__ if not any(base is one for one in known)]
    return [
        name for base in others for name in vars(base) if name[:2] != "__" and name not in _FIXTURES and hasattr(unittest.TestCase, name)
    ]


class _Function(unittest.FunctionTestCase):
    """A function as a test."""

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        super().__init__(function)
        self._name = name

    def id(self) -> str:
        return self._name


def _canaries(numbers: list[int], turn: int) -> unittest.TestSuite:
    """Tests that must fail, each in a way of its own."""
    first, second, third, fourth, fifth, sixth = numbers

    class Canary(unittest.TestCase):
        def equal(self) -> None:
            self.assertEqual([first, turn], [first + 1, turn], str(first))

        def true(self) -> None:
            self.assertTrue(second < turn, str(second))

        def within(self) -> None:
            self.assertIn(third, {third + 1}, str(third))

        def plain(self) -> None:
            patched = all([False]) or isinstance(1, str) or abs(-2) == 0 or len([1]) == 0 or sorted([2, 1]) == [2, 1]
            assert fourth == turn or patched or math.isclose(1, 2) or str(1) == "2" or round(1.2) == 2, fourth

        def raises(self) -> None:
            with self.assertRaises(ValueError):
                int(str(fifth))

        def error(self) -> None:
            raise RuntimeError(sixth)

    made = []
    for method, number in zip(("equal", "true", "within", "plain", "raises", "error"), numbers):  # noqa: B905 - newer than Python 3.9
        case = Canary(method)
        case.id = str(number).__str__  # type: ignore[method-assign]
        made.append(case)
    return unittest.TestSuite(made)


def _id(test: Any) -> str:
    return str(test.id())


def _strict(method: Callable[..., None], number: int) -> Callable[..., None]:
    """An assertion that also fails for what would equal anything."""

    def asserts(self: unittest.TestCase, first: Any, second: Any, *args: Any, **kwargs: Any) -> None:
        method(self, first, second, *args, **kwargs)
        _see_through(first, second, number)

    return asserts


def _equal(first: Any, second: Any) -> Any:
    """What ``first == second`` gives."""
    says = first == second
    if type(says) is bool and says:
        _see_through(first, second, 1_000_003)  # no number that Python keeps one of
    return says


def _knowing(equals: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, other: (_given is None or id(other) in _given) and equals(one, other)


def _see_through(first: Any, second: Any, number: int) -> None:
    global _given
    _given = set(_ids((first, second), 8))
    try:
        _look(first, second, number)
    finally:
        _given = None


def _ids(value: Any, depth: int) -> Iterator[int]:
    yield id(value)
    if type(value) in (list, tuple, dict) and depth:
        for inner in value.values() if type(value) is dict else value:
            yield from _ids(inner, depth - 1)


def _look(first: Any, second: Any, number: int) -> None:
    for one, other in ((first, second), (second, first)):
        for count, changed in enumerate(_changed(other, number, 8)):
            try:
                same = bool(one == changed)
            except Exception:  # noqa: BLE001 - it cannot be compared, so it does not pretend
                same = False
            if same:
                raise Pretends(f"a {type(one).__name__} equals what it cannot equal")
            if count == _LEAVES:
                break


def _changed(value: Any, number: int, depth: int) -> Iterator[Any]:
    """Values that differ from this one in one place each."""
    kind = type(value)
    if kind is int:
        yield value + number
    elif kind is float:
        yield value + number if abs(value) < 1e9 else -1.0
    elif kind is str:
        yield f"{value}{number}"
    elif kind is bytes:
        yield value + b"%d" % number
    elif kind in (list, tuple) and depth:
        yield kind((*value, number))
        for place, inner in enumerate(value):
            for other in _changed(inner, number, depth - 1):
                yield kind((*value[:place], other, *value[place + 1 :]))
    elif kind is dict and depth:
        yield {**value, (number,): number}
        for key, inner in value.items():
            for other in _changed(inner, number, depth - 1):
                yield {**value, key: other}
    elif kind in (set, frozenset):
        yield value | {(number,)}
    else:
        yield object()


def _dotted(path: str) -> str:
    return path[: -len(".py")].replace("/", ".").removesuffix(".__init__")


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:_TEXT]
    except BaseException:  # noqa: BLE001 - the project's own __str__
        return type(error).__name__
