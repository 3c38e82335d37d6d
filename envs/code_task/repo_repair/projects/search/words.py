"""Words of a text."""

from __future__ import annotations

STOP = ("a", "an", "and", "of", "the", "to", "in", "is")
ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", ""))


def split(text: str) -> list[str]:
    """Words in small letters: letters and digits, and an apostrophe between them."""
    words = []
    word = ""
    for at, char in enumerate(text):
        inside = char == "'" and word and text[at + 1 : at + 2].isalnum()
        if char.isalnum() or inside:
            word += char.lower()
        elif word:
            words.append(word)
            word = ""
    if word:
        words.append(word)
    return words


def stem(word: str) -> str:
    """A word without its ending; short ones stay as they are."""
    if len(word) <= 3 or word.endswith("ss"):
        return word
    for ending, instead in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: len(word) - len(ending)] + instead
    return word


def terms(text: str) -> list[tuple[int, str]]:
    """What is looked up: places and stems, without the commonest words."""
    return [(place, stem(word)) for place, word in enumerate(split(text)) if word not in STOP]
