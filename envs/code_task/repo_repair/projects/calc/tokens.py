"""Cuts an expression into tokens."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.calc.errors import BadToken

SINGLE = "+-*/%^(),"


def tokenize(text: str) -> list[tuple[str, str]]:
    """Tokens as ``(kind, text)``: kinds are ``number``, ``name`` and ``op``."""
    tokens = []
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char in SINGLE:
            tokens.append(("op", char))
            at += 1
        elif char.isdigit():
            end = number_end(text, at)
            tokens.append(("number", text[at:end]))
            at = end
        elif char.isalpha():
            end = at + 1
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            tokens.append(("name", text[at:end]))
            at = end
        else:
            raise BadToken(char)
    return tokens


def number_end(text: str, at: int) -> int:
    """Where the number that begins at a place ends; it may have one point with digits after it."""
    end = at
    points = 0
    while end < len(text):
        if text[end] == "." and points == 0 and end + 1 < len(text) and text[end + 1].isdigit():
            points += 1
        elif not text[end].isdigit():
            break
        end += 1
    return end
