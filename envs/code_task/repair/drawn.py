"""What the functions are called with: values drawn to their liking, and those at the edges."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["ARGUMENTS"]

Draw = Callable[[np.random.Generator], Any]
_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve")
_SYLLABLES = ("ba", "ne", "Ki", "o", "tur", "A", "els", "mi", "U", "go")


def _int(low: int, high: int) -> Draw:
    return lambda rng: int(rng.integers(low, high + 1))


def _list(draw: Draw, shortest: int, longest: int) -> Draw:
    return lambda rng: [draw(rng) for _ in range(rng.integers(shortest, longest + 1))]


def _pick(*values: Any) -> Draw:
    return lambda rng: values[rng.integers(len(values))]


def _together(*draws: Draw) -> Draw:
    return lambda rng: tuple(draw(rng) for draw in draws)


def _named(draw: Draw, most: int) -> Draw:
    return lambda rng: {str(name): draw(rng) for name in rng.permutation(_NAMES)[: rng.integers(0, most + 1)]}


def _letters(alphabet: str, shortest: int, longest: int) -> Draw:
    return lambda rng: "".join(alphabet[i] for i in rng.integers(0, len(alphabet), rng.integers(shortest, longest + 1)))


def _grid(rows: int, columns: int) -> Draw:
    return lambda rng: rng.integers(-3, 10, (rng.integers(1, rows + 1), rng.integers(1, columns + 1))).tolist()


def _square(rng: np.random.Generator) -> Any:
    size = int(rng.integers(1, 4))
    return rng.integers(-3, 10, (size, size)).tolist()


def _grown(rng: np.random.Generator) -> Any:
    start = int(rng.integers(0, 12))
    return start, start + int(rng.integers(0, 8))


def _word(rng: np.random.Generator) -> str:
    return "".join(_SYLLABLES[i] for i in rng.integers(0, len(_SYLLABLES), rng.integers(1, 3)))


def _ascending(rng: np.random.Generator) -> list[int]:
    numbers = sorted(rng.integers(-4, 9, rng.integers(0, 5)).tolist())
    if len(numbers) > 1 and rng.random() < 0.5:
        numbers[-1], numbers[-2] = numbers[-2], numbers[-1]
    return numbers


def _mirrored(rng: np.random.Generator) -> str:
    half = str(_letters("abAB c", 0, 3)(rng))
    middle = str(_letters("abC", 0, 1)(rng))
    return half + middle + half[::-1] if rng.random() < 0.7 else half + middle + half


def _start_alike(rng: np.random.Generator) -> tuple[str, str]:
    start = str(_letters("ab", 0, 3)(rng))
    return start + str(_letters("ab", 0, 2)(rng)), start + str(_letters("ab", 0, 2)(rng))


def _words(most: int) -> Draw:
    return lambda rng: " ".join(_list(_word, 0, most)(rng))


def _clock(rng: np.random.Generator) -> str:
    return f"{rng.integers(0, 24)}:{rng.integers(0, 60):02}"


def _rising(rng: np.random.Generator) -> tuple[int]:
    digits = sorted(rng.integers(1, 10, rng.integers(1, 5)).tolist())
    return (int("".join(map(str, digits))),)


_digit, _small, _signed = _int(0, 9), _int(0, 4), _int(-6, 9)
_numbers, _few, _alike = _list(_signed, 0, 6), _list(_digit, 0, 5), _list(_int(0, 3), 0, 6)

ARGUMENTS: dict[str, tuple[Draw, Sequence[tuple[Any, ...]]]] = {
    "running_totals": (_together(_numbers), [([],)]),
    "largest_gap": (_together(_numbers), [([],), ([4],)]),
    "count_above": (_together(_few, _digit), [([3, 3, 3], 3), ([], 0)]),
    "without_repeats": (_together(_alike), [([],)]),
    "chunks": (_together(_few, _int(1, 3)), [([], 2), ([1, 2, 3, 4], 2)]),
    "rotate_left": (_together(_few, _int(0, 7)), [([], 3), ([1, 2, 3], 3)]),
    "second_largest": (_together(_alike), [([5, 5],), ([],), ([2, 1],)]),
    "is_ascending": (_together(_ascending), [([],), ([2, 2],), ([2, 1],)]),
    "pairs_with_sum": (_together(_list(_int(0, 4), 0, 5), _int(2, 6)), [([2], 4), ([2, 2, 2], 4)]),
    "longest_run": (_together(_list(_int(0, 1), 0, 7)), [([],), ([1],)]),
    "first_index": (_together(_alike, _int(0, 3)), [([], 1), ([1, 1], 1)]),
    "flatten": (_together(_list(_list(_digit, 0, 3), 0, 3)), [([],), ([[], [1]],)]),
    "dot_product": (_together(_few, _few), [([], [1]), ([1, 2], [3])]),
    "moving_sums": (_together(_few, _int(1, 3)), [([1, 2, 3], 3), ([1], 2)]),
    "evens_first": (_together(_numbers), [([],), ([1, 2],)]),
    "count_vowels": (_together(_words(2)), [("",), ("AEIOU",)]),
    "capital_words": (_together(_words(4)), [("",), ("Ab C dE",)]),
    "is_palindrome": (_together(_mirrored), [("",), ("Aba",), ("a b",), ("abca",)]),
    "shorten": (_together(_letters("abcde", 0, 8), _int(3, 7)), [("abcd", 4), ("abcde", 4)]),
    "run_lengths": (_together(_letters("ab", 0, 6)), [("",), ("a",)]),
    "longest_word": (_together(_words(4)), [("",), ("ab cd",)]),
    "leading_spaces": (_together(_letters(" a", 0, 6)), [("",), ("  ",), (" a ",)]),
    "inside_brackets": (_together(_letters("()ab", 0, 7)), [("(a)",), (")(",), ("()",), ("a(b(c)d)e",)]),
    "digit_sum": (_together(_int(-999, 9999)), [(0,), (-12,)]),
    "is_prime": (_together(_int(0, 25)), [(1,), (2,), (9,)]),
    "largest_divisor": (_together(_int(2, 40)), [(2,), (9,), (12,)]),
    "clamp": (lambda rng: (int(rng.integers(-9, 15)), *_grown(rng)), [(5, 0, 5), (-1, 0, 5), (9, 2, 5)]),
    "is_leap_year": (_together(_int(1890, 2030)), [(2000,), (1900,), (2024,), (2023,), (2100,), (1600,)]),
    "seconds_of": (lambda rng: (f"{_clock(rng)}:{rng.integers(0, 60):02}",), [("0:00:00",), ("1:00:01",)]),
    "clock_of": (_together(_int(0, 3000)), [(0,), (1440,), (59,), (60,)]),
    "inverted": (_together(_named(_int(1, 3), 4)), [({},), ({"Ada": 1, "Ben": 1},)]),
    "word_counts": (_together(_words(5)), [("",), ("a A b",)]),
    "best_scores": (_together(_list(_together(_pick("Ada", "Ben"), _digit), 0, 5)), [([],), ([("Ada", 3), ("Ada", 2)],)]),
    "letter_grade": (_together(_int(0, 100)), [(90,), (89,), (75,), (74,), (50,), (49,)]),
    "overlap": (lambda rng: (_grown(rng), _grown(rng)), [((0, 4), (4, 6)), ((0, 5), (3, 9)), ((2, 3), (0, 9))]),
    "ticket_price": (_together(_int(1, 90), _pick(True, False)), [(14, False), (13, True), (65, False), (64, True)]),
    "stock_after": (_together(_small, _list(_int(-5, 4), 0, 5)), [(2, [-2, 1]), (0, [])]),
    "row_maxima": (_together(_list(_list(_signed, 0, 3), 0, 4)), [([],), ([[], [2, 3]],)]),
    "first_negative": (_together(_list(_int(-3, 5), 0, 5)), [([],), ([-1, -2],), ([0, 1],)]),
    "all_positive": (_together(_list(_list(_int(-1, 4), 0, 3), 0, 4)), [([],), ([[0]],), ([[1, 2], []],)]),
    "weekly_pay": (_together(_int(0, 60), _int(1, 30)), [(40, 10), (41, 10), (0, 5)]),
    "common_start": (_start_alike, [("", "a"), ("ab", "abc"), ("abc", "abd")]),
    "diagonal_sum": (_together(_square), [([],), ([[3]],)]),
    "middle": (_together(_few), [([],), ([4, 1],)]),
    "postage": (_together(_int(1, 4000), _pick(True, False)), [(500, False), (501, True), (1000, False), (999, False)]),
    "balanced": (_together(_letters("()a", 0, 6)), [("",), ("()",), (")(",), ("(()",), ("(())",), ("())",)]),
    "multiples": (_together(_int(1, 5), _int(0, 16)), [(3, 9), (4, 3)]),
    "cheapest": (_together(_named(_digit, 5)), [({},), ({"Ada": 2, "Ben": 2},)]),
    "initials": (_together(_words(4)), [("",), ("ada lovelace",)]),
    "peaks": (_together(_list(_int(0, 5), 0, 7)), [([],), ([1, 3, 2],), ([1, 3, 3, 1],)]),
    "only_digits": (_together(_letters("a1-2 3", 0, 7)), [("",), ("1a2",)]),
    "smallest_positive": (_together(_numbers), [([],), ([0, -1],), ([3, 1, 2],)]),
    "sign_changes": (_together(_list(_int(-3, 3), 0, 6)), [([],), ([0, -1],)]),
    "without_ends": (_together(_few), [([],), ([1],), ([1, 2],)]),
    "masked": (_together(_letters("abcd", 0, 6), _int(0, 5)), [("abc", 3), ("ab", 4), ("", 1)]),
    "count_pattern": (_together(_letters("ab", 0, 8), _letters("ab", 1, 2)), [("aaa", "aa"), ("", "a"), ("ab", "ab")]),
    "missing_numbers": (_together(_list(_int(1, 8), 1, 5)), [([1],), ([3],)]),
    "minutes_between": (_together(_clock, _clock), [("7:00", "7:00"), ("23:50", "0:10")]),
    "top_names": (_together(_named(_digit, 5), _digit), [({}, 1), ({"Ben": 3, "Ada": 3}, 3)]),
    "longest_climb": (_together(_list(_digit, 0, 7)), [([],), ([1, 2, 3, 1],), ([1, 1],)]),
    "column_sums": (_together(_grid(3, 3)), [([[1, 2]],)]),
    "swapped_case": (_together(_words(2)), [("",), ("aB",)]),
    "divisors": (_together(_int(1, 30)), [(1,), (7,), (12,)]),
    "change_coins": (
        lambda rng: (int(rng.integers(0, 60)), sorted({int(coin) for coin in rng.integers(2, 21, rng.integers(1, 4))}, reverse=True)),
        [(0, [5]), (11, [5, 2]), (12, [5, 2])],
    ),
    "season": (_together(_int(1, 12), _pick(True, False)), [(2, False), (3, False), (12, False), (5, True), (8, False), (9, True)]),
    "merged_counts": (_together(_named(_int(-2, 3), 3), _named(_int(-2, 3), 3)), [({}, {}), ({"Ada": 1}, {"Ada": -1})]),
    "rising_digits": (_rising, [(5,), (21,), (122,), (159,)]),
    "bill": (_together(_list(_int(5, 80), 0, 5), _pick(True, False)), [([50], True), ([49], True), ([150, 60], False)]),
    "vowel_words": (_together(_words(4)), [("",), ("an Egg x",)]),
}
"""Of each function a draw of arguments, and the edges."""
