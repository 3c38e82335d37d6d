"""Makes a tree of tokens."""

from __future__ import annotations

from typing import Any

from agent_gym.envs.code_task.repo_repair.projects.calc.errors import BadSyntax
from agent_gym.envs.code_task.repo_repair.projects.calc.tokens import tokenize

STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 4}
NEGATION = 3


class Parser:
    """Reads one expression; the tree is made of lists that begin with a word."""

    def __init__(self, text: str) -> None:
        self.tokens = tokenize(text)
        self.at = 0

    def peek(self) -> str:
        """The operator that comes next; empty if none does."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "op":
            return self.tokens[self.at][1]
        return ""

    def expect(self, operator: str) -> None:
        """Takes an operator that must be there."""
        if self.peek() != operator:
            raise BadSyntax(operator)
        self.at += 1

    def parse(self) -> list[Any]:
        """The whole expression."""
        tree = self.expression(0)
        if self.at < len(self.tokens):
            raise BadSyntax(self.tokens[self.at][1])
        return tree

    def expression(self, weakest: int) -> list[Any]:
        """An expression of operators stronger than this."""
        tree = self.operand()
        while STRENGTH.get(self.peek(), 0) > weakest:
            operator = self.peek()
            self.at += 1
            strength = STRENGTH[operator]
            right = self.expression(strength - 1 if operator == "^" else strength)
            tree = ["binary", operator, tree, right]
        return tree

    def operand(self) -> list[Any]:
        """A number, a name, a call, something in parentheses or a negation."""
        if self.peek() == "-":
            self.at += 1
            return ["negate", self.expression(NEGATION)]
        if self.peek() == "(":
            self.at += 1
            tree = self.expression(0)
            self.expect(")")
            return tree
        if self.at >= len(self.tokens) or self.peek():
            raise BadSyntax("operand")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return ["number", float(text) if "." in text else int(text)]
        if self.peek() == "(":
            return ["call", text, self.arguments()]
        return ["name", text]

    def arguments(self) -> list[Any]:
        """What stands in a call's parentheses."""
        self.expect("(")
        found: list[Any] = []
        while self.peek() != ")":
            if found:
                self.expect(",")
            found.append(self.expression(0))
        self.expect(")")
        return found


def parse(text: str) -> list[Any]:
    """The tree of a text."""
    return Parser(text).parse()
