"""Which text fits best."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.search.index import Index
from agent_gym.envs.code_task.repo_repair.projects.search.words import split, terms


def score(index: Index, name: str, text: str) -> float:
    """How well a text fits some words: rare ones count for more, and those in short texts."""
    total = 0.0
    for _, term in terms(text):
        having = len(index.having(term))
        if having:
            total += index.count(term, name) / index.sizes[name] / having if index.sizes[name] else 0.0
    return total


def best(index: Index, text: str, most: int = 3) -> list[str]:
    """The texts that fit best, the best first, then by name; those that do not fit at all are left out."""
    scores = {name: score(index, name, text) for name in index.sizes}
    return sorted((name for name in scores if scores[name] > 0), key=lambda name: (-scores[name], name))[:most]


def snippet(text: str, word: str, around: int = 2) -> str:
    """A word with some of those before and after it; dots where more was left out."""
    words = split(text)
    if word.lower() not in words:
        return ""
    at = words.index(word.lower())
    start, end = max(at - around, 0), at + around + 1
    before = "... " if start > 0 else ""
    after = " ..." if end < len(words) else ""
    return before + " ".join(words[start:end]) + after
