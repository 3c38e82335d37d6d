# ruff: noqa: SIM110, RET505 - written as people write at first
"""Functions that get faults, for training."""


def running_totals(numbers: list[int]) -> list[int]:
    """For each number, the sum of all up to it."""
    totals = []
    total = 0
    for number in numbers:
        total += number
        totals.append(total)
    return totals


def largest_gap(numbers: list[int]) -> int:
    """The largest difference between two neighbours; 0 if there are none."""
    gap = 0
    for i in range(1, len(numbers)):
        difference = abs(numbers[i] - numbers[i - 1])
        gap = max(gap, difference)
    return gap


def count_above(numbers: list[int], limit: int) -> int:
    """How many numbers are greater than the limit."""
    count = 0
    for number in numbers:
        if number > limit:
            count += 1
    return count


def without_repeats(items: list[int]) -> list[int]:
    """The items in order, each only where it first appears."""
    seen = set()
    kept = []
    for item in items:
        if item not in seen:
            seen.add(item)
            kept.append(item)
    return kept


def chunks(items: list[int], size: int) -> list[list[int]]:
    """The items in groups of the given size; the last group may be shorter."""
    groups = []
    for start in range(0, len(items), size):
        groups.append(items[start : start + size])
    return groups


def rotate_left(items: list[int], steps: int) -> list[int]:
    """The items with the first of them moved to the end, as many times as there are steps."""
    if not items:
        return []
    steps = steps % len(items)
    return items[steps:] + items[:steps]


def second_largest(numbers: list[int]) -> int:
    """The second largest of the different numbers; -1 if there are fewer than two."""
    different = sorted(set(numbers))
    if len(different) < 2:
        return -1
    return different[-2]


def is_ascending(numbers: list[int]) -> bool:
    """Whether no number is smaller than the one before it."""
    for i in range(1, len(numbers)):
        if numbers[i] < numbers[i - 1]:
            return False
    return True


def pairs_with_sum(numbers: list[int], total: int) -> int:
    """How many pairs of numbers at different places add up to the total."""
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] + numbers[j] == total:
                count += 1
    return count


def longest_run(items: list[int]) -> int:
    """The length of the longest stretch of equal items next to each other."""
    best = 0
    length = 0
    for i in range(len(items)):
        if i > 0 and items[i] == items[i - 1]:
            length += 1
        else:
            length = 1
        best = max(best, length)
    return best


def first_index(items: list[int], wanted: int) -> int:
    """The place of the first item that is wanted, counted from 0; -1 if there is none."""
    for i, item in enumerate(items):
        if item == wanted:
            return i
    return -1


def flatten(lists: list[list[int]]) -> list[int]:
    """All items of all lists, in order."""
    flat = []
    for part in lists:
        flat.extend(part)
    return flat


def dot_product(left: list[int], right: list[int]) -> int:
    """The sum of the products of the numbers at equal places."""
    total = 0
    for i in range(min(len(left), len(right))):
        total += left[i] * right[i]
    return total


def moving_sums(numbers: list[int], size: int) -> list[int]:
    """The sums of every stretch of neighbours of the given size."""
    sums = []
    for start in range(len(numbers) - size + 1):
        sums.append(sum(numbers[start : start + size]))
    return sums


def evens_first(numbers: list[int]) -> list[int]:
    """The even numbers, then the odd ones, each in order."""
    even = []
    odd = []
    for number in numbers:
        if number % 2 == 0:
            even.append(number)
        else:
            odd.append(number)
    return even + odd


def count_vowels(text: str) -> int:
    """How many vowels a text has, small or capital."""
    count = 0
    for letter in text.lower():
        if letter in "aeiou":
            count += 1
    return count


def capital_words(text: str) -> int:
    """How many words begin with a capital letter."""
    count = 0
    for word in text.split():
        if word[0].isupper():
            count += 1
    return count


def is_palindrome(text: str) -> bool:
    """Whether the letters of a text read the same backwards, capital or not."""
    letters = [letter.lower() for letter in text if letter.isalpha()]
    for i in range(len(letters) // 2):
        if letters[i] != letters[len(letters) - 1 - i]:
            return False
    return True


def shorten(text: str, length: int) -> str:
    """The text, cut so that it is no longer than the length, with two dots in place of what is cut."""
    if len(text) <= length:
        return text
    return text[: length - 2] + ".."


def run_lengths(text: str) -> list[tuple[str, int]]:
    """The letters in order, each with how often it follows itself."""
    runs: list[tuple[str, int]] = []
    count = 0
    for i in range(len(text)):
        count += 1
        if i + 1 == len(text) or text[i] != text[i + 1]:
            runs.append((text[i], count))
            count = 0
    return runs


def longest_word(text: str) -> str:
    """The longest word; the first of those that are equally long."""
    longest = ""
    for word in text.split():
        if len(word) > len(longest):
            longest = word
    return longest


def leading_spaces(line: str) -> int:
    """How many spaces a line begins with."""
    count = 0
    for letter in line:
        if letter != " ":
            break
        count += 1
    return count


def inside_brackets(text: str) -> str:
    """What stands between the first opening bracket and the last closing one; nothing if one is missing."""
    start = text.find("(")
    end = text.rfind(")")
    if start < 0 or end < start:
        return ""
    return text[start + 1 : end]


def digit_sum(number: int) -> int:
    """The sum of the digits of a number, whatever its sign."""
    total = 0
    for digit in str(abs(number)):
        total += int(digit)
    return total


def is_prime(number: int) -> bool:
    """Whether a number has no divisors but 1 and itself."""
    if number < 2:
        return False
    for divisor in range(2, number):
        if number % divisor == 0:
            return False
    return True


def largest_divisor(number: int) -> int:
    """The largest divisor of a number that is smaller than itself."""
    best = 1
    for divisor in range(2, number):
        if number % divisor == 0:
            best = divisor
    return best


def clamp(number: int, low: int, high: int) -> int:
    """The number, or the nearest limit if it lies outside of them."""
    if number < low:
        return low
    if number > high:
        return high
    return number


def is_leap_year(year: int) -> bool:
    """Whether a year has a 29th of February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def seconds_of(clock: str) -> int:
    """The seconds since midnight of a time such as 7:05:30."""
    total = 0
    for part in clock.split(":"):
        total = total * 60 + int(part)
    return total


def clock_of(minutes: int) -> str:
    """The time of day, such as 7:05, when so many minutes have passed since midnight."""
    hours = minutes // 60 % 24
    rest = minutes % 60
    return str(hours) + ":" + str(rest).rjust(2, "0")


def inverted(prices: dict[str, int]) -> dict[int, list[str]]:
    """For each price the names that have it, in order."""
    names: dict[int, list[str]] = {}
    for name, price in prices.items():
        if price not in names:
            names[price] = []
        names[price].append(name)
    return names


def word_counts(text: str) -> dict[str, int]:
    """How often each word occurs, capital or not."""
    counts: dict[str, int] = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def best_scores(results: list[tuple[str, int]]) -> dict[str, int]:
    """The highest score of each player."""
    best: dict[str, int] = {}
    for player, score in results:
        if player not in best or score > best[player]:
            best[player] = score
    return best


def letter_grade(points: int) -> str:
    """A from 90 points, B from 75, C from 50, else F."""
    if points >= 90:
        return "A"
    elif points >= 75:
        return "B"
    elif points >= 50:
        return "C"
    return "F"


def overlap(first: tuple[int, int], second: tuple[int, int]) -> int:
    """How long two stretches of time overlap; each has a start and an end."""
    start = max(first[0], second[0])
    end = min(first[1], second[1])
    if end <= start:
        return 0
    return end - start


def ticket_price(age: int, weekend: bool) -> int:
    """5 for those below 14 or from 65 on, else 9; at the weekend 2 more."""
    price = 9
    if age < 14 or age >= 65:
        price = 5
    if weekend:
        price += 2
    return price


def stock_after(stock: int, changes: list[int]) -> int:
    """The stock after all changes; one that would make it negative is skipped."""
    for change in changes:
        if stock + change < 0:
            continue
        stock += change
    return stock


def row_maxima(grid: list[list[int]]) -> list[int]:
    """The greatest number of each row; rows without numbers are left out."""
    maxima = []
    for row in grid:
        if not row:
            continue
        maxima.append(max(row))
    return maxima


def first_negative(numbers: list[int]) -> int:
    """The first negative number; 0 if there is none."""
    found = 0
    for number in numbers:
        if number < 0:
            found = number
            break
    return found


def all_positive(rows: list[list[int]]) -> int:
    """How many rows hold positive numbers only."""
    count = 0
    for row in rows:
        if all(number > 0 for number in row):
            count += 1
    return count


def weekly_pay(hours: int, wage: int) -> int:
    """The pay of a week; hours above 40 count double."""
    extra = max(0, hours - 40)
    return (hours + extra) * wage
