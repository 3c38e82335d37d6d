"""Functions that get faults, for choosing among policies."""


def common_start(left: str, right: str) -> str:
    """The longest text that both texts begin with."""
    length = 0
    for i in range(min(len(left), len(right))):
        if left[i] != right[i]:
            break
        length += 1
    return left[:length]


def diagonal_sum(grid: list[list[int]]) -> int:
    """The sum of the numbers from the top left to the bottom right of a square grid."""
    total = 0
    for i in range(len(grid)):
        total += grid[i][i]
    return total


def middle(numbers: list[int]) -> int:
    """The number in the middle when they are sorted; of two the smaller; 0 if there are none."""
    if not numbers:
        return 0
    return sorted(numbers)[(len(numbers) - 1) // 2]


def postage(grams: int, express: bool) -> int:
    """3 up to 500 grams, above it 5 and 1 more for each full kilogram; express costs 4 more."""
    price = 3
    if grams > 500:
        price = 5 + grams // 1000
    if express:
        price += 4
    return price


def balanced(text: str) -> bool:
    """Whether every opening bracket is closed later, and none is closed that was not opened."""
    depth = 0
    for letter in text:
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        if depth < 0:
            return False
    return depth == 0


def multiples(number: int, limit: int) -> list[int]:
    """The multiples of a number from itself up to the limit."""
    found = []
    for candidate in range(1, limit + 1):
        if candidate % number == 0:
            found.append(candidate)
    return found


def cheapest(prices: dict[str, int]) -> str:
    """The name with the lowest price, the first of several; nothing if there are none."""
    best = ""
    for name, price in prices.items():
        if best == "" or price < prices[best]:
            best = name
    return best


def initials(name: str) -> str:
    """The first letters of all words of a name, as capitals."""
    letters = ""
    for word in name.split():
        letters += word[0].upper()
    return letters


def peaks(numbers: list[int]) -> list[int]:
    """The numbers that are greater than both their neighbours."""
    found = []
    for i in range(1, len(numbers) - 1):
        if numbers[i] > numbers[i - 1] and numbers[i] > numbers[i + 1]:
            found.append(numbers[i])
    return found


def only_digits(text: str) -> str:
    """The digits of a text in order, everything else left out."""
    kept = ""
    for letter in text:
        if letter.isdigit():
            kept += letter
    return kept
