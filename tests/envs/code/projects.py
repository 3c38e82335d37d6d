"""A small project as a task."""

from typing import Any

__all__ = ["MINI"]

_SUMS = "def add(a, b):\n    return a - b\n\n\ndef pair(a, b):\n    return [a, b]\n"
_TESTS = """import unittest
from pkg.sums import add, pair

class TestSums(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
        assert add(2, 2) == 4

    def test_pair(self):
        self.assertEqual(pair(1, 2), [1, 2])
"""

MINI: dict[str, Any] = {
    "task_id": "mini/0",
    "files": {"pkg/__init__.py": "", "pkg/sums.py": _SUMS, "tests/test_sums.py": "import unittest\n"},
    "instruction": "add() does not add.",
    "hidden_tests": {"tests/test_sums.py": _TESTS},
    "fail_to_pass": ["tests/test_sums.py::TestSums::test_add"],
    "pass_to_pass": ["tests/test_sums.py::TestSums::test_pair"],
    "solution": {"pkg/sums.py": _SUMS.replace("a - b", "a + b")},
}
