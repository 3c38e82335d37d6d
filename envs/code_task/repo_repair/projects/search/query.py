"""Questions: ``cats -dogs "big house" (red or blue)``."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.search.index import Index
from agent_gym.envs.code_task.repo_repair.projects.search.words import split, stem


class QueryError(ValueError):
    """A question that cannot be read."""


def scan(text: str) -> list[str]:
    """Words, phrases (with a quote before them), ``(``, ``)`` and ``-``."""
    tokens = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            end = text.find('"', at + 1)
            if end < 0:
                raise QueryError("quote")
            tokens.append(text[at:end])
            at = end + 1
        elif char in "()-":
            tokens.append(char)
            at += 1
        elif char.isspace():
            at += 1
        else:
            end = at
            while end < len(text) and not text[end].isspace() and text[end] not in '()"':
                end += 1
            tokens.append(text[at:end])
            at = end
    return tokens


class Question:
    """One question to an index."""

    def __init__(self, index: Index, text: str) -> None:
        self.index = index
        self.tokens = scan(text)
        self.at = 0

    def answer(self) -> set[str]:
        """The names of the texts."""
        found = self.either()
        if self.at < len(self.tokens):
            raise QueryError(self.tokens[self.at])
        return found

    def next(self) -> str:
        """The token that comes next; empty at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def either(self) -> set[str]:
        """Parts with ``or`` between them."""
        found = self.every()
        while self.next() == "or":
            self.at += 1
            found = found | self.every()
        return found

    def every(self) -> set[str]:
        """Parts that must all hold."""
        found = set(self.index.sizes)
        any_part = False
        while self.next() not in ("", ")", "or"):
            any_part = True
            found &= self.part()
        if not any_part:
            raise QueryError("empty")
        return found

    def part(self) -> set[str]:
        """A word, a phrase, a negation or something in parentheses."""
        token = self.next()
        self.at += 1
        if token == "-":
            return set(self.index.sizes) - self.part()
        if token == "(":
            found = self.either()
            if self.next() != ")":
                raise QueryError("parenthesis")
            self.at += 1
            return found
        if token in ("", ")", "or"):
            raise QueryError(token)
        if token.startswith('"'):
            return self.index.phrase(token[1:])
        if token.endswith("*"):
            return self.index.having(token.lower())
        found = set(self.index.sizes)
        for word in split(token):
            found &= self.index.having(stem(word))
        return found


def find(index: Index, text: str) -> list[str]:
    """The names of the texts that a question asks for, sorted."""
    return sorted(Question(index, text).answer())
