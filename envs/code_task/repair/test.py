# ruff: noqa: SIM110 - written as people write at first
"""Functions that get faults, for results that are reported."""


def smallest_positive(numbers: list[int]) -> int:
    """The smallest of the numbers above 0; 0 if there is none."""
    smallest = 0
    for number in numbers:
        if number > 0 and (smallest == 0 or number < smallest):
            smallest = number
    return smallest


def sign_changes(numbers: list[int]) -> int:
    """How often a number has another sign than the one before it; 0 counts as positive."""
    changes = 0
    for i in range(1, len(numbers)):
        if (numbers[i] < 0) != (numbers[i - 1] < 0):
            changes += 1
    return changes


def without_ends(items: list[int]) -> list[int]:
    """The items without the first and the last of them."""
    if len(items) < 2:
        return []
    return items[1:-1]


def masked(text: str, shown: int) -> str:
    """The text with a star for every letter but the last ones, of which so many are shown."""
    hidden = max(0, len(text) - shown)
    return "*" * hidden + text[hidden:]


def count_pattern(text: str, pattern: str) -> int:
    """How often a pattern occurs in a text, also where its places overlap."""
    count = 0
    for i in range(len(text) - len(pattern) + 1):
        if text[i : i + len(pattern)] == pattern:
            count += 1
    return count


def missing_numbers(numbers: list[int]) -> list[int]:
    """The whole numbers from 1 up to the greatest that are not among the numbers."""
    missing = []
    for number in range(1, max(numbers) + 1):
        if number not in numbers:
            missing.append(number)
    return missing


def minutes_between(start: str, end: str) -> int:
    """The minutes from one time of day, such as 7:05, to another; the second may be on the next day."""
    first = start.split(":")
    second = end.split(":")
    minutes = (int(second[0]) - int(first[0])) * 60 + int(second[1]) - int(first[1])
    return minutes % 1440


def top_names(scores: dict[str, int], limit: int) -> list[str]:
    """The names with a score of at least the limit, in order of the alphabet."""
    names = []
    for name, score in scores.items():
        if score >= limit:
            names.append(name)
    return sorted(names)


def longest_climb(heights: list[int]) -> int:
    """The greatest number of steps upwards that follow each other."""
    best = 0
    steps = 0
    for i in range(1, len(heights)):
        if heights[i] > heights[i - 1]:
            steps += 1
            best = max(best, steps)
        else:
            steps = 0
    return best


def column_sums(grid: list[list[int]]) -> list[int]:
    """The sum of each column of a grid whose rows are equally long."""
    sums = [0] * len(grid[0])
    for row in grid:
        for i, number in enumerate(row):
            sums[i] += number
    return sums


def swapped_case(text: str) -> str:
    """The text with small letters for capital ones and capital letters for small ones."""
    swapped = ""
    for letter in text:
        if letter.isupper():
            swapped += letter.lower()
        else:
            swapped += letter.upper()
    return swapped


def divisors(number: int) -> list[int]:
    """All divisors of a number, from 1 to itself."""
    found = []
    for candidate in range(1, number + 1):
        if number % candidate == 0:
            found.append(candidate)
    return found


def change_coins(amount: int, coins: list[int]) -> int:
    """How many coins make the amount, when the first coin is used as often as it fits, then the next; -1 if some is left."""
    count = 0
    for coin in coins:
        count += amount // coin
        amount = amount % coin
    if amount > 0:
        return -1
    return count


def season(month: int, southern: bool) -> str:
    """The season of a month: spring from March to May, and so on; in the south half a year later."""
    if southern:
        month = (month + 5) % 12 + 1
    if month < 3 or month == 12:
        return "winter"
    if month <= 5:
        return "spring"
    if month <= 8:
        return "summer"
    return "autumn"


def merged_counts(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """The counts of both, added where both have a name; names that come to 0 are left out."""
    merged = dict(left)
    for name, count in right.items():
        merged[name] = merged.get(name, 0) + count
    return {name: count for name, count in merged.items() if count != 0}


def rising_digits(number: int) -> bool:
    """Whether every digit of a number is greater than the one before it."""
    digits = str(number)
    for i in range(len(digits) - 1):
        if digits[i] >= digits[i + 1]:
            return False
    return True


def bill(prices: list[int], member: bool) -> int:
    """The sum of the prices, 10 less for members from 50 on, and never more than 200."""
    total = sum(prices)
    if member and total >= 50:
        total -= 10
    return min(total, 200)


def vowel_words(text: str) -> list[str]:
    """The words that begin with a vowel, small or capital, in order."""
    kept = []
    for word in text.split():
        if word[0].lower() in "aeiou":
            kept.append(word)
    return kept
